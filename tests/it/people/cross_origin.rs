//! Requests that another site makes with a user's cookie.

use http::Method;
use serde_json::json;
use waypost_core::auth::Role;
use waypost_tests::{Caller, PASSWORD, Reply, TestApp};

use super::quiet;

/// A request with these headers beside the cookie.
async fn change(caller: &Caller, headers: &[(&str, &str)]) -> Reply {
    let headers = headers.to_vec();
    caller
        .from_elsewhere()
        .call(Method::POST, "/v1/templates", |request| {
            let request = request.json(&json!({ "name": "Letter" }));
            headers.into_iter().fold(request, |request, (name, value)| {
                request.header(name, value)
            })
        })
        .await
}

fn expect_refused(reply: &Reply) {
    let error = reply.expect_error(403, "FORBIDDEN");
    assert_eq!(error["details"]["reason"], "CROSS_ORIGIN");
}

#[tokio::test]
async fn a_change_needs_the_header_and_an_origin_of_ours() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting("WAYPOST_PUBLIC_URL", "https://mail.example.com/waypost")
        .start()
        .await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let own = ada.base_url().to_owned();
    let csrf = ("x-waypost-csrf", "1");
    for headers in [
        &[][..],
        &[csrf],
        &[("origin", own.as_str())],
        &[csrf, ("origin", "https://evil.example")],
        &[csrf, ("origin", "null")],
        &[csrf, ("origin", "https://mail.example.com.evil.example")],
        &[csrf, ("origin", "http://mail.example.com")],
        &[csrf, ("origin", "https://mail.example.com/waypost")],
        &[csrf, ("origin", &own), ("origin", "https://evil.example")],
        &[("x-waypost-csrf", "yes"), ("origin", &own)],
    ] {
        expect_refused(&change(&ada, headers).await);
    }
    for origin in [own.as_str(), "https://mail.example.com"] {
        change(&ada, &[csrf, ("origin", origin)]).await.expect(201);
    }
    // Reading changes nothing, so it needs neither; the answer is not readable elsewhere.
    let reply = ada.from_elsewhere().get("/v1/templates").await;
    reply.expect(200);
    assert!(reply.header("access-control-allow-origin").is_none());
}

#[tokio::test]
async fn every_method_that_may_change_something_is_protected() {
    let app = quiet().await;
    let ada = app.member(app.organization_id(), Role::Owner).await;
    let elsewhere = ada.from_elsewhere();
    for (method, path) in [
        (Method::POST, "/v1/send"),
        (Method::PATCH, "/v1/settings"),
        (Method::PATCH, "/v1/session"),
        (Method::DELETE, "/v1/session"),
        (Method::PATCH, "/v1/user"),
    ] {
        let has_body = method != Method::DELETE;
        let reply = elsewhere.call(method, path, |request| match has_body {
            true => request.json(&json!({})),
            false => request,
        });
        expect_refused(&reply.await);
    }
    ada.get("/v1/session").await.expect(200);
}

#[tokio::test]
async fn another_site_cannot_sign_a_browser_in() {
    let app = quiet().await;
    let organization = app.organization_id();
    app.user("eve@example.com", &[(organization, Role::Owner)])
        .await;
    let stranger = app.caller().anonymous();
    let body = json!({ "email": "eve@example.com", "password": PASSWORD });
    expect_refused(&stranger.post("/v1/session", &body).await);
    let sign_in = async |headers: &[(&'static str, &'static str)]| {
        let headers = headers.to_vec();
        let body = body.clone();
        let reply = stranger.call(Method::POST, "/v1/session", |request| {
            headers
                .into_iter()
                .fold(request.json(&body), |request, (name, value)| {
                    request.header(name, value)
                })
        });
        reply.await
    };
    let csrf = ("x-waypost-csrf", "1");
    expect_refused(&sign_in(&[csrf, ("origin", "https://evil.example")]).await);
    // A program that is no browser sends no Origin.
    sign_in(&[csrf]).await.expect(201);
    // A form can send neither the header nor JSON.
    let form = stranger
        .from_page()
        .post_raw("/v1/session", Some("text/plain"), body.to_string())
        .await;
    form.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
}
