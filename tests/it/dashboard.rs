//! The files of the dashboard, as browsers get them. The pages themselves are tested in
//! `dashboard/tests`.

use http::Method;
use waypost_tests::{Caller, Reply, TestApp};

async fn as_browser(caller: &Caller, method: Method, path: &str) -> Reply {
    let call = |request: reqwest::RequestBuilder| {
        request.header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
    };
    caller.anonymous().call(method, path, call).await
}

fn policy(reply: &Reply) -> &str {
    reply.header("content-security-policy").unwrap_or_default()
}

#[tokio::test]
async fn a_browser_gets_the_dashboard_at_every_path_outside_the_api() {
    let app = TestApp::builder().without_worker().start().await;
    for path in [
        "/",
        "/messages",
        "/messages/no-id?tab=content",
        "/v2",
        "/docsy",
    ] {
        let page = as_browser(app.caller(), Method::GET, path).await;
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(page.text.contains("<div id=\"root\">"), "{path}");
        assert!(policy(&page).contains("script-src 'self';"), "{path}");
        assert_eq!(page.header("cache-control"), Some("no-cache"), "{path}");
    }
    for path in ["/v1", "/v1/nothing", "/v1/", "/openapi.json/x"] {
        let reply = as_browser(app.caller(), Method::GET, path).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    let reply = as_browser(app.caller(), Method::POST, "/messages").await;
    assert!([404, 405].contains(&reply.status), "{reply:?}");
}

#[tokio::test]
async fn other_clients_get_the_errors_of_the_api() {
    let app = TestApp::builder().without_worker().start().await;
    for path in ["/messages", "/no/such/page", "/assets/nothing.js"] {
        let reply = app.caller().anonymous().get(path).await;
        reply.expect_error(404, "NOT_FOUND");
    }
    // Also one that asks for the first page alone, as people do by curl.
    let page = app.caller().anonymous().get("/").await;
    assert!(page.text.contains("<div id=\"root\">"), "{page:?}");
}

#[tokio::test]
async fn files_are_compressed_and_cached_for_good() {
    let app = TestApp::builder().without_worker().start().await;
    let page = as_browser(app.caller(), Method::GET, "/").await;
    let (_, rest) = page.text.split_once("src=\"./assets/").unwrap();
    let (name, _) = rest.split_once('"').unwrap();
    let path = format!("/assets/{name}");
    let call = |request: reqwest::RequestBuilder| request.header("accept-encoding", "gzip");
    let file = app
        .caller()
        .anonymous()
        .call(Method::GET, &path, call)
        .await;
    assert_eq!(file.status, 200, "{path}");
    assert_eq!(file.header("content-encoding"), Some("gzip"));
    assert!(file.header("cache-control").unwrap().contains("immutable"));
    let etag = file.header("etag").unwrap().to_owned();
    let call = |request: reqwest::RequestBuilder| request.header("if-none-match", etag);
    let again = app
        .caller()
        .anonymous()
        .call(Method::GET, &path, call)
        .await;
    assert_eq!(again.status, 304);
}

#[tokio::test]
async fn below_a_path_the_page_names_it_as_its_base() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_PUBLIC_URL", "https://example.com/mail")
        .start()
        .await;
    let page = as_browser(app.caller(), Method::GET, "/").await;
    assert!(page.text.contains("<base href=\"/mail/\" />"), "{page:?}");
}
