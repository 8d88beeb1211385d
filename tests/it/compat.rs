//! The endpoints of other vendors: their requests, answers and errors over the same acceptance as
//! `POST /v1/send`. `make judges` runs the vendors' own clients against them.

mod described;
mod postmark;
mod postmark_batch;
mod postmark_fields;
mod resend;
mod resend_batch;
mod resend_fields;
mod resend_reads;
mod sendgrid;
mod sendgrid_fields;

use std::collections::BTreeSet;
use std::fs;

use http::Method;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, TestApp, root};

const EMAILS: &str = "/compat/resend/emails";

/// A Waypost with an account and without tracking.
async fn quiet() -> TestApp {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let untracked = json!({ "trackOpens": false, "trackClicks": false });
    app.patch("/v1/settings", &untracked).await.expect(200);
    app
}

/// An error of Resend with this status and name; returns its message.
fn refused(reply: &Reply, status: u16, name: &str) -> String {
    let error = reply.expect(status);
    let members: BTreeSet<&str> = error
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(members, BTreeSet::from(["message", "name", "statusCode"]));
    assert_eq!(
        (&error["statusCode"], &error["name"]),
        (&json!(status), &json!(name)),
        "{error}"
    );
    error["message"].as_str().unwrap().to_owned()
}

/// POST with more headers.
async fn post_with(app: &TestApp, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let shape = |request: reqwest::RequestBuilder| {
        let request = request.json(body);
        headers.iter().fold(request, |request, (name, value)| {
            request.header(*name, *value)
        })
    };
    app.caller().call(Method::POST, path, shape).await
}

/// The tables are between two comments of docs/compatibility.md that name them.
#[test]
fn the_document_shows_what_is_done_with_each_field() {
    let document = fs::read_to_string(root().join("docs/compatibility.md")).unwrap();
    for (name, table) in waypost_api::compatibility_tables() {
        let (begin, end) = (
            format!("<!-- table {name} -->\n"),
            "<!-- end -->".to_owned(),
        );
        let (_, rest) = document
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no table {name}"));
        let (shown, _) = rest.split_once(&end).expect("a table ends");
        assert_eq!(shown, table, "docs/compatibility.md must show:\n{table}");
    }
}

#[tokio::test]
async fn whatever_is_below_a_vendor_answers_in_its_form() {
    let app = quiet().await;
    let missing = app.caller().anonymous().post(EMAILS, &json!({})).await;
    refused(&missing, 401, "missing_api_key");
    let wrong = app
        .caller()
        .with_key("re_123")
        .post(EMAILS, &json!({}))
        .await;
    refused(&wrong, 403, "invalid_api_key");
    refused(&app.get("/compat/resend/domains").await, 404, "not_found");
    refused(&app.get("/compat/resend").await, 404, "not_found");
    let method = app.delete(EMAILS).await;
    refused(&method, 405, "method_not_allowed");
    assert_eq!(method.header("allow"), Some("GET, POST"));
    let form = Some("application/x-www-form-urlencoded");
    let form = app.caller().post_raw(EMAILS, form, "a=b").await;
    refused(&form, 415, "validation_error");
    let no_json = app
        .caller()
        .post_raw(EMAILS, Some("application/json"), "{")
        .await;
    assert!(refused(&no_json, 422, "validation_error").contains("not valid JSON"));
    // A browser that opens the address gets no page of the dashboard.
    let page = |request: reqwest::RequestBuilder| request.header("accept", "text/html");
    let page = app
        .caller()
        .call(Method::GET, "/compat/resend/x", page)
        .await;
    refused(&page, 404, "not_found");
    // Other paths keep Waypost's own form.
    app.get("/compat/nobody/emails")
        .await
        .expect_error(404, "NOT_FOUND");
    app.get("/compat/resending")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_operation_needs_its_permission_and_an_api_key() {
    let app = quiet().await;
    let id = "01a21f88-0902-7411-a0f3-8c583360bade";
    let one = format!("{EMAILS}/{id}");
    let operations = [
        (Method::POST, EMAILS.to_owned(), Permission::Send),
        (Method::POST, format!("{EMAILS}/batch"), Permission::Send),
        (Method::PATCH, one.clone(), Permission::Send),
        (Method::POST, format!("{one}/cancel"), Permission::Send),
        (Method::GET, EMAILS.to_owned(), Permission::MetricsRead),
        (Method::GET, one, Permission::MetricsRead),
    ];
    for (method, path, permission) in operations {
        let others: Vec<Permission> = Permission::ALL
            .into_iter()
            .filter(|other| *other != permission)
            .collect();
        let key = app.key(app.organization_id(), &others).await;
        let caller = app.caller().with_key(&key);
        let reply = caller.call(method, &path, |request| request).await;
        let message = refused(&reply, 401, "restricted_api_key");
        assert!(message.contains(permission.as_str()), "{message}");
    }
}

#[tokio::test]
async fn a_send_counts_against_the_limit_of_sends() {
    let app = TestApp::builder()
        .setting("WAYPOST_RATE_LIMIT_SEND_MAX", "1")
        .setting("WAYPOST_RATE_LIMIT_OTHER_MAX", "50")
        .start()
        .await;
    let first = app.post(EMAILS, &json!({})).await;
    refused(&first, 422, "missing_required_field");
    assert_eq!(first.header("ratelimit-limit"), Some("1"));
    assert_eq!(first.header("ratelimit-remaining"), Some("0"));
    assert!(first.header("x-ratelimit-limit").is_none());
    let mut over = first;
    // The limit refills while a slow machine sends.
    for _ in 0..1_000 {
        if over.status == 429 {
            break;
        }
        over = app.post(EMAILS, &json!({})).await;
    }
    refused(&over, 429, "rate_limit_exceeded");
    assert!(over.header("retry-after").is_some());
    // Reads have a limit of their own.
    assert_eq!(app.get(EMAILS).await.header("ratelimit-limit"), Some("50"));
}
