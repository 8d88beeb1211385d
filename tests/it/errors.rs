//! Errors: all have the same form.

use http::Method;
use serde_json::json;
use uuid::Uuid;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to, wait_until};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn an_unknown_path_is_not_found() {
    let app = TestApp::builder().without_worker().start().await;
    for path in [
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/v2/send",
        "/v1/send/more",
        "/v1/messages/",
        "/v1/%00",
        "/v1/..%2f",
    ] {
        app.get(path).await.expect_error(404, "NOT_FOUND");
    }
    app.caller()
        .anonymous()
        .get("/v1/nothing")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn an_unsupported_method_is_not_allowed() {
    let app = TestApp::builder().without_worker().start().await;
    let id = Uuid::nil();
    for (method, path) in [
        (Method::GET, "/v1/send".to_owned()),
        (Method::PUT, "/v1/send".to_owned()),
        (Method::DELETE, "/v1/providers".to_owned()),
        (Method::POST, "/v1/messages".to_owned()),
        (Method::PUT, format!("/v1/providers/{id}")),
        (Method::GET, format!("/v1/providers/{id}/validate")),
        (Method::DELETE, format!("/v1/messages/{id}")),
    ] {
        let reply = app.caller().call(method, &path, |request| request).await;
        reply.expect_error(405, "METHOD_NOT_ALLOWED");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_rejected() {
    let filler = "x".repeat(31 * MIB);
    let mut message = message_to("a@example.org");
    message["html"] = json!(filler);
    let batch = json!({ "messages": [], "filler": "x".repeat(51 * MIB) });
    // Written before the API starts: it runs on this thread, which would stand still so long
    // that Postgres seems to be away.
    let (message, batch) = (message.to_string(), batch.to_string());
    let app = TestApp::builder().without_worker().start().await;
    app.caller()
        .post_raw("/v1/send", Some("application/json"), message)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    let account = json!({ "displayName": &filler[..MIB + 1] });
    app.post("/v1/providers", &account)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    let id = app.connect(ProviderType::Mailgun).await;
    let path = format!("/v1/providers/{id}");
    app.patch(&path, &account)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
    app.caller()
        .post_raw("/v1/emails/batch", Some("application/json"), batch)
        .await
        .expect_error(413, "PAYLOAD_TOO_LARGE");
}

#[tokio::test]
async fn a_body_within_its_limit_is_accepted() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Ses).await;
    let mut message = message_to("a@example.org");
    message["html"] = json!("x".repeat(29 * MIB));
    app.send(&message).await;
    let batch = json!({ "messages": [{ "text": "x".repeat(49 * MIB) }] });
    app.post("/v1/emails/batch", &batch).await.expect(200);
    app.leave_work();
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_content_type_is_rejected() {
    let app = TestApp::builder().without_worker().start().await;
    let body = message_to("a@example.org").to_string();
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/xml"),
        Some("json"),
        Some(""),
    ] {
        for path in ["/v1/send", "/v1/emails/batch", "/v1/providers"] {
            let reply = app.caller().post_raw(path, kind, body.clone()).await;
            reply.expect_error(415, "UNSUPPORTED_MEDIA_TYPE");
        }
    }
    for kind in [
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json;charset=UTF-8",
    ] {
        let reply = app
            .caller()
            .post_raw("/v1/send", Some(kind), body.clone())
            .await;
        // There is no provider account: the body was parsed.
        reply.expect_error(422, "VALIDATION_ERROR");
    }
}

#[tokio::test]
async fn the_message_of_a_request_with_several_mistakes_names_the_first_three() {
    let app = TestApp::builder().without_worker().start().await;
    let issues = |fields: &[&str]| {
        let fields = fields.iter().map(|field| ((*field).to_owned(), json!(1)));
        serde_json::Value::Object(fields.collect())
    };
    let known = "is not a known field";
    for (unknown, message) in [
        (vec!["q1"], format!("q1 {known}")),
        (
            vec!["q1", "q2", "q3"],
            format!("The request has 3 mistakes: q1 {known}; q2 {known}; q3 {known}"),
        ),
        (
            vec!["q1", "q2", "q3", "q4"],
            format!("The request has 4 mistakes: q1 {known}; q2 {known}; q3 {known}; …"),
        ),
    ] {
        let mut body = issues(&unknown);
        body["name"] = json!("A group");
        let reply = app.post("/v1/unsubscribe-groups", &body).await;
        let error = reply.expect_error(400, "VALIDATION_ERROR");
        assert_eq!(error["message"], message);
    }
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_not_found() {
    let app = TestApp::builder().without_worker().start().await;
    for id in [
        "1",
        "abc",
        "0193a1b2-0000-7000-8000-00000000000",
        "%F0%9F%93%AC",
        "%00",
        "..",
        "'%20OR%201=1",
        "{id}",
    ] {
        for path in [
            format!("/v1/messages/{id}"),
            format!("/v1/messages/{id}/recipients"),
            format!("/v1/providers/{id}"),
            format!("/v1/providers/{id}/domains"),
        ] {
            app.get(&path).await.expect_error(404, "NOT_FOUND");
        }
        app.delete(&format!("/v1/providers/{id}"))
            .await
            .expect_error(404, "NOT_FOUND");
        app.patch(&format!("/v1/providers/{id}"), &json!({}))
            .await
            .expect_error(404, "NOT_FOUND");
        app.caller()
            .post_empty(&format!("/v1/providers/{id}/validate"))
            .await
            .expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn when_postgres_is_down_the_response_is_503_with_retry_after() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .setting(
            "DATABASE_URL",
            "postgres://nobody:nothing@127.0.0.1:1/nowhere",
        )
        .start()
        .await;
    let reply = app.get("/v1/messages").await;
    reply.expect_error(503, "SERVICE_UNAVAILABLE");
    let wait = reply
        .header("retry-after")
        .and_then(|wait| wait.parse::<u32>().ok());
    assert!(wait.is_some_and(|wait| wait > 0), "{reply:?}");
    assert!(!reply.text.contains("127.0.0.1"), "{reply:?}");
}

#[tokio::test]
async fn every_response_has_a_unique_request_id() {
    let app = TestApp::builder().without_worker().start().await;
    let mut seen = std::collections::HashSet::new();
    for path in [
        "/v1/messages",
        "/v1/nothing",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/docs",
        "/v1/providers",
    ] {
        let reply = app.get(path).await;
        assert!(
            seen.insert(reply.header("x-request-id").unwrap().to_owned()),
            "{path}"
        );
    }
}

#[tokio::test]
async fn every_documented_error_can_be_produced() {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    let address = json!({ "email": "ada@example.org" });
    app.post("/v1/suppressions", &json!({}))
        .await
        .expect_issues(400, &["email"]);
    app.get("/v1/messages?page=0")
        .await
        .expect_issues(400, &["page"]);
    app.caller()
        .anonymous()
        .get("/v1/messages")
        .await
        .expect_error(401, "AUTHENTICATION_ERROR");
    app.get(&format!("/v1/messages/{}", Uuid::nil()))
        .await
        .expect_error(404, "NOT_FOUND");
    let _first = app.post("/v1/suppressions", &address).await.data(201);
    app.post("/v1/suppressions", &address)
        .await
        .expect_error(409, "CONFLICT");
    let error = app
        .post("/v1/send", &message_to("bob@example.org"))
        .await
        .expect_error(422, "VALIDATION_ERROR");
    assert_eq!(error["details"]["reason"], "NO_ACTIVE_PROVIDER");
    let account = json!({
        "providerType": "POSTMARK",
        "displayName": "Refused",
        "credentials": { "serverToken": "invalid" },
    });
    let error = app
        .post("/v1/providers", &account)
        .await
        .expect_error(422, "PROVIDER_INVALID_CREDENTIALS");
    assert!(error["message"].as_str().unwrap().contains("POSTMARK"));
    let limits = json!({ "rateLimits": { "otherPerSecond": 1 } });
    let _settings = app.patch("/v1/settings", &limits).await.data(200);
    wait_until("the limit counts", async || {
        let reply = app.get("/v1/settings").await;
        if reply.status == 429 {
            assert!(reply.header("retry-after").is_some(), "{reply:?}");
            reply.expect_error(429, "RATE_LIMIT_EXCEEDED");
        }
        reply.status == 429
    })
    .await;
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.execute("ALTER TABLE templates RENAME TO lost").await;
    let error = app
        .get("/v1/templates")
        .await
        .expect_error(500, "INTERNAL_ERROR");
    assert!(error.get("details").is_none(), "{error}");
    assert!(!error["message"].as_str().unwrap().contains("templates"));
}
