//! The whole message: every field of `POST /v1/send` and of the messages of a batch, from
//! the request to the stored rows, and what each field rejects.

mod account;
mod attachments;
mod delivered;
mod headers;
mod personal;
mod schedule;
mod shared;

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, SENDER, TestApp};

/// An API without a worker, so that the rows stay as they were accepted, and an account.
async fn accepting() -> TestApp {
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    app.leave_work();
    app
}

/// A message with these fields in addition to a sender, a subject and a text.
fn message(fields: Value) -> Value {
    let mut message = json!({ "from": SENDER, "subject": "Hello", "text": "Hello" });
    for (name, value) in fields.as_object().unwrap() {
        message[name] = value.clone();
    }
    message
}

async fn send(app: &TestApp, fields: Value) -> Reply {
    app.post("/v1/send", &message(fields)).await
}

/// Sends a message that is accepted, and returns its id.
async fn accepted(app: &TestApp, fields: Value) -> String {
    let reply = send(app, fields).await.expect(202);
    reply["messageId"].as_str().unwrap().to_owned()
}

/// Asserts that the same fields are rejected by `POST /v1/send` and in a batch, with these
/// paths, and that nothing is stored.
async fn assert_rejected(app: &TestApp, fields: Value, paths: &[&str]) {
    let what = fields.to_string();
    let before = count(app, "messages").await;
    send(app, fields.clone()).await.expect_issues(400, paths);
    let batch = json!({ "messages": [message(fields)] });
    let reply = app.post("/v1/emails/batch", &batch).await.expect(200);
    let error = reply["results"][0]["error"].as_str().unwrap();
    for path in paths {
        assert!(error.contains(path), "{what}: {path} in {error}");
    }
    assert_eq!(count(app, "messages").await, before, "{what}");
}

async fn count(app: &TestApp, table: &str) -> u32 {
    let query = format!("SELECT count(*) FROM {table}");
    app.value(&query).await.unwrap().parse().unwrap()
}

/// A JSON value that a query over the row of a message returns.
async fn of_message(app: &TestApp, id: &str, what: &str) -> Value {
    let query = format!(
        "SELECT to_jsonb({what}) FROM messages m JOIN message_bodies b ON b.message_id = m.id WHERE m.id = '{id}'"
    );
    match app.value(&query).await {
        Some(text) => serde_json::from_str(&text).unwrap(),
        None => Value::Null,
    }
}

/// The stored recipients of a message, in order: kind, hash of the address, status.
async fn recipients(app: &TestApp, id: &str) -> Value {
    let query = format!(
        "SELECT jsonb_agg(jsonb_build_array(coalesce(kind::text, 'TO'), encode(address_hash, 'hex'), status)
                          ORDER BY position)
         FROM recipients WHERE message_id = '{id}'"
    );
    serde_json::from_str(&app.value(&query).await.unwrap()).unwrap()
}

/// What recipients have instead of the message's content, by position.
async fn own_contents(app: &TestApp, id: &str) -> Value {
    let query = format!(
        "SELECT coalesce(jsonb_object_agg(position, jsonb_strip_nulls(
                    jsonb_build_object('subject', subject, 'html', html, 'text', text, 'metadata', metadata))),
                    '{{}}')
         FROM recipient_contents WHERE message_id = '{id}'"
    );
    serde_json::from_str(&app.value(&query).await.unwrap()).unwrap()
}

async fn suppress(app: &TestApp, address: &str) {
    let body = json!({ "email": address });
    app.post("/v1/suppressions", &body).await.data(201);
}
