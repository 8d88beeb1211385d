//! Batches of sends: each message has its own result.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, message_to};

const PATH: &str = "/v1/emails/batch";

fn with(field: &str, value: Value) -> Value {
    let mut message = message_to("a@example.org");
    message[field] = value;
    message
}

async fn results(app: &TestApp, messages: Value) -> Vec<Value> {
    let body = app
        .post(PATH, &json!({ "messages": messages }))
        .await
        .expect(200);
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    body["results"].as_array().unwrap().clone()
}

fn error_of(result: &Value) -> &str {
    assert_eq!(result.as_object().unwrap().len(), 1, "{result}");
    result["error"].as_str().unwrap()
}

fn id_of(result: &Value) -> &str {
    assert_eq!(result.as_object().unwrap().len(), 2, "{result}");
    assert_eq!(result["status"], "queued");
    result["messageId"].as_str().unwrap()
}

#[tokio::test]
async fn results_have_the_order_of_the_messages() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let found = results(
        &app,
        json!([
            with("to", json!("first@example.org")),
            with("to", json!(["fine@example.org", "not an address"])),
            "not an object",
            with("subject", Value::Null),
            with("to", json!("second@example.org")),
            {},
        ]),
    )
    .await;
    assert_eq!(found.len(), 6);
    let (first, second) = (id_of(&found[0]).to_owned(), id_of(&found[4]).to_owned());
    assert!(error_of(&found[1]).contains("to.1"), "{}", found[1]);
    assert!(!error_of(&found[2]).is_empty());
    assert!(error_of(&found[3]).contains("subject"), "{}", found[3]);
    for field in ["to", "from", "subject", "html"] {
        assert!(error_of(&found[5]).contains(field), "{field}: {}", found[5]);
    }
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
    assert_eq!(
        app.captured_once("first@example.org").metadata["waypost_message"],
        first
    );
    assert_eq!(
        app.captured_once("second@example.org").metadata["waypost_message"],
        second
    );
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        2
    );
}

#[tokio::test]
async fn one_message_that_cannot_be_routed_does_not_fail_the_others() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let found = results(
        &app,
        json!([
            with("from", json!("a@unverified.example.net")),
            with("to", json!("good@example.org")),
        ]),
    )
    .await;
    assert!(error_of(&found[0]).contains("from"), "{}", found[0]);
    id_of(&found[1]);
    app.drain().await;
    app.captured_once("good@example.org");
}

#[tokio::test]
async fn without_an_active_account_every_message_of_a_batch_has_its_error() {
    let app = TestApp::builder().without_worker().start().await;
    let found = results(
        &app,
        json!([message_to("a@example.org"), message_to("b@example.org")]),
    )
    .await;
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|result| error_of(result).contains("provider")),
        "{found:?}"
    );
}

#[tokio::test]
async fn an_invalid_message_does_not_fail_the_others() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let found = results(
        &app,
        json!([
            with("to", json!("good@example.org")),
            with("html", json!("a\u{0}b")),
            with("metadata", json!({ "k\u{0}": 1 })),
            with("templateId", json!("0193a1b2-0000-7000-8000-000000000000")),
            with("to", json!("good2@example.org")),
        ]),
    )
    .await;
    id_of(&found[0]);
    assert!(error_of(&found[1]).contains("html"));
    assert!(error_of(&found[2]).contains("metadata"));
    assert!(error_of(&found[3]).contains("templateId"));
    id_of(&found[4]);
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
}

#[tokio::test]
async fn a_batch_takes_one_to_a_thousand_messages() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.post(PATH, &json!({ "messages": [] }))
        .await
        .expect_issues(400, &["messages"]);
    let thousand: Vec<Value> = (0..1_000)
        .map(|number| message_to(&format!("r{number}@example.org")))
        .collect();
    let mut more = thousand.clone();
    more.push(message_to("one-too-many@example.org"));
    app.post(PATH, &json!({ "messages": more }))
        .await
        .expect_issues(400, &["messages"]);
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        0
    );
    let found = results(&app, json!(thousand)).await;
    assert_eq!(found.len(), 1_000);
    found
        .iter()
        .for_each(|result| assert!(!id_of(result).is_empty()));
    assert_eq!(
        app.get("/v1/messages").await.expect(200)["pagination"]["total"],
        1_000
    );
    app.leave_work();
}

#[tokio::test]
async fn the_operator_may_set_another_limit() {
    let app = TestApp::builder()
        .without_worker()
        .setting("WAYPOST_BATCH_MESSAGES_MAX", "2")
        .start()
        .await;
    let three = json!({ "messages": [{}, {}, {}] });
    app.post(PATH, &three)
        .await
        .expect_issues(400, &["messages"]);
    assert_eq!(results(&app, json!([{}, {}])).await.len(), 2);
}

#[tokio::test]
async fn a_batch_that_is_no_list_is_rejected_by_name() {
    let app = TestApp::builder().without_worker().start().await;
    for body in [
        json!({}),
        json!({ "messages": null }),
        json!({ "messages": {} }),
        json!({ "messages": "x" }),
        json!({ "messages": 1 }),
    ] {
        app.post(PATH, &body)
            .await
            .expect_issues(400, &["messages"]);
    }
    app.post(PATH, &json!([]))
        .await
        .expect_error(400, "VALIDATION_ERROR");
}

#[tokio::test]
async fn messages_with_large_templates_do_not_reject_each_other() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let made = app.post("/v1/templates", &json!({ "name": "Large" })).await;
    let template = made.data(201)["id"].as_str().unwrap().to_owned();
    let html = format!("<p>{}</p>", "x".repeat(256 << 10));
    app.post(
        &format!("/v1/templates/{template}/versions"),
        &json!({ "htmlContent": html, "textContent": "" }),
    )
    .await
    .expect(201);
    let message = json!({ "from": "news@example.com", "to": "a@example.org", "subject": "Hi",
                          "templateId": template });
    // 75 MiB together.
    let found = results(&app, vec![message; 300].into()).await;
    let ids: std::collections::HashSet<&str> = found.iter().map(id_of).collect();
    assert_eq!(ids.len(), 300);
    app.leave_work();
}
