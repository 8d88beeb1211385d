//! Resend's `POST /emails`: accepted, repeated and refused.

use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_tests::{SENDER, TestApp};

use super::{EMAILS, post_with, quiet, refused};

/// A small email to one address.
pub(super) fn email_to(to: &str) -> Value {
    json!({ "from": SENDER, "to": to, "subject": "Hello", "html": "<p>Hello</p>" })
}

/// Sends an email that must be accepted; returns its id.
pub(super) async fn sent(app: &TestApp, email: &Value) -> String {
    let answer = app.post(EMAILS, email).await.expect(200);
    answer["id"]
        .as_str()
        .expect("an email has an id")
        .to_owned()
}

#[tokio::test]
async fn the_id_is_that_of_the_message() {
    let app = quiet().await;
    let id = sent(&app, &email_to("ada@example.org")).await;
    app.drain().await;
    let mail = app.captured_once("ada@example.org");
    assert_eq!(mail.metadata["waypost_message"], id);
    assert_eq!(app.status(&id).await, "SENT");
}

#[tokio::test]
async fn several_addresses_share_one_mail() {
    let app = quiet().await;
    let mut email = email_to("");
    email["to"] = json!(["Ada <ada@example.org>", "bob@example.org"]);
    let id = sent(&app, &email).await;
    app.drain().await;
    let seen = app.captured_once("bob@example.org").visible_recipients;
    assert_eq!(seen, ["ada@example.org", "bob@example.org"]);
    // One address has a mail of its own, as by `POST /v1/send`.
    assert_eq!(app.recipients(&id).await.len(), 2);
}

#[tokio::test]
async fn a_repeated_key_sends_nothing_twice() {
    let app = quiet().await;
    let email = email_to("ada@example.org");
    let key = [("Idempotency-Key", "order-1")];
    let first = post_with(&app, EMAILS, &key, &email).await.expect(200);
    let again = post_with(&app, EMAILS, &key, &email).await.expect(200);
    assert_eq!(first, again);
    let other = email_to("bob@example.org");
    let other = post_with(&app, EMAILS, &key, &other).await;
    refused(&other, 409, "invalid_idempotent_request");
    app.drain().await;
    app.captured_once("ada@example.org");
    assert!(app.captured("bob@example.org").is_empty());
    // What was accepted stays the answer, whatever became of the address.
    let suppressed = json!({ "email": "ada@example.org" });
    app.post("/v1/suppressions", &suppressed).await.expect(201);
    let after = post_with(&app, EMAILS, &key, &email).await.expect(200);
    assert_eq!(first, after);
    let long = "x".repeat(257);
    let long = post_with(&app, EMAILS, &[("Idempotency-Key", &long)], &email).await;
    refused(&long, 400, "invalid_idempotency_key");
}

#[tokio::test]
async fn an_email_to_suppressed_addresses_is_refused_because_it_has_no_id() {
    let app = quiet().await;
    let suppressed = json!({ "email": "ada@example.org" });
    app.post("/v1/suppressions", &suppressed).await.expect(201);
    let reply = app.post(EMAILS, &email_to("ada@example.org")).await;
    let message = refused(&reply, 422, "validation_error");
    assert!(
        message.starts_with("to must have an address that is not suppressed"),
        "{message}"
    );
    // Another address of the email still gets it.
    let mut both = email_to("");
    both["to"] = json!(["ada@example.org", "bob@example.org"]);
    sent(&app, &both).await;
    app.drain().await;
    app.captured_once("bob@example.org");
    assert!(app.captured("ada@example.org").is_empty());
}

#[tokio::test]
async fn a_test_key_sends_tests() {
    let app = quiet().await;
    let caller = app.test_key(&Permission::ALL).await;
    let answer = caller.post(EMAILS, &email_to("ada@example.org")).await;
    let id = answer.expect(200)["id"].as_str().unwrap().to_owned();
    app.drain().await;
    assert!(app.captured("ada@example.org").is_empty());
    assert_eq!(app.message(&id).await["test"], true);
    // Tests have a list of their own.
    let tests = caller.get(EMAILS).await.expect(200);
    assert_eq!(tests["data"][0]["id"], id);
    assert_eq!(app.get(EMAILS).await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn a_sender_without_a_verified_domain_is_refused_as_by_resend() {
    let app = quiet().await;
    let mut email = email_to("ada@example.org");
    email["from"] = json!("Acme <news@elsewhere.example>");
    let reply = app.post(EMAILS, &email).await;
    let message = refused(&reply, 403, "validation_error");
    assert!(message.starts_with("from must have a domain"), "{message}");
}

/// A change of a valid email, the name of the error, and how its message begins.
const REFUSED: [(&str, &str, &str); 22] = [
    (
        r#"{"from":null}"#,
        "missing_required_field",
        "from is required",
    ),
    (r#"{"to":null}"#, "missing_required_field", "to is required"),
    (
        r#"{"subject":null}"#,
        "missing_required_field",
        "subject is required",
    ),
    (
        r#"{"html":null}"#,
        "missing_required_field",
        "html is required unless",
    ),
    (
        r#"{"from":"nobody"}"#,
        "invalid_from_address",
        "from must be",
    ),
    (
        r#"{"from":["a@example.com"]}"#,
        "invalid_from_address",
        "from must be a string",
    ),
    (r#"{"to":[]}"#, "validation_error", "to must "),
    (
        r#"{"to":{"email":"a@example.org"}}"#,
        "validation_error",
        "to must be a string or",
    ),
    (
        r#"{"to":[{"email":"a@example.org"}]}"#,
        "validation_error",
        "to must be a string or",
    ),
    (
        r#"{"to":["a@example.org","b"]}"#,
        "validation_error",
        "to.1 must be",
    ),
    (
        r#"{"subject":"a\r\nBcc: x@example.org"}"#,
        "validation_error",
        "subject must not contain",
    ),
    (
        r#"{"reply_to":["a@example.org",1]}"#,
        "validation_error",
        "reply_to must be a string or",
    ),
    (
        r#"{"replyTo":"a@example.org"}"#,
        "validation_error",
        "replyTo is not a known field; did you mean `reply_to`?",
    ),
    (
        r#"{"headers":{"Subject":"x"}}"#,
        "validation_error",
        "headers.Subject ",
    ),
    (
        r#"{"region":"eu-west-1"}"#,
        "validation_error",
        "region is not supported: ",
    ),
    (
        r#"{"scheduled_at":"tomorrow at noon"}"#,
        "validation_error",
        "scheduled_at must be a time",
    ),
    (
        r#"{"scheduled_at":"2020-01-01T00:00:00Z"}"#,
        "validation_error",
        "scheduled_at must be in the future",
    ),
    (
        r#"{"tags":[{"name":"a b"}]}"#,
        "validation_error",
        "tags.0.name must have only",
    ),
    (
        r#"{"tags":[{"name":"a","value":"1"},{"name":"a","value":"2"}]}"#,
        "validation_error",
        "tags.1.name must not be",
    ),
    (
        r#"{"template":{"id":"welcome"}}"#,
        "validation_error",
        "html must not be given together",
    ),
    (
        r#"{"attachments":[{"filename":"a","content":"*"}]}"#,
        "invalid_attachment",
        "attachments.0.content ",
    ),
    (
        r#"{"attachments":[{"filename":"a/b","content":"QQ==","size":1}]}"#,
        "invalid_attachment",
        "attachments.0.size is not",
    ),
];

#[tokio::test]
async fn what_cannot_be_sent_is_refused_under_resends_names() {
    let app = quiet().await;
    for (change, name, begin) in REFUSED {
        let mut email = email_to("ada@example.org");
        let change: Value = serde_json::from_str(change).unwrap();
        for (field, value) in change.as_object().unwrap() {
            email[field] = value.clone();
        }
        let reply = app.post(EMAILS, &email).await;
        let message = refused(&reply, 422, name);
        assert!(message.starts_with(begin), "{change}: {message}");
    }
    // All mistakes at once, each once.
    let all = app.post(EMAILS, &json!({ "to": 1, "nothing": 1 })).await;
    assert_eq!(
        refused(&all, 422, "missing_required_field"),
        "from is required; subject is required; to must be a string or an array of strings; \
         html is required unless text or template is given; nothing is not a known field"
    );
    let list = app.post(EMAILS, &json!([])).await;
    assert!(refused(&list, 422, "validation_error").contains("must be a JSON object"));
}

#[tokio::test]
async fn hostile_values_change_nothing_else() {
    let app = quiet().await;
    let mut email = email_to("ada@example.org");
    // The text that stands for a large content elsewhere in the API.
    email["attachments"] = json!([{
        "filename": "a.txt",
        "content": format!("\0content:{}", "0".repeat(64)),
    }]);
    refused(&app.post(EMAILS, &email).await, 422, "invalid_attachment");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let deep = app
        .caller()
        .post_raw(EMAILS, Some("application/json"), deep)
        .await;
    refused(&deep, 422, "validation_error");
    let mut many = email_to("ada@example.org");
    many["tags"] = json!(vec![json!({}); 1_001]);
    let many = app.post(EMAILS, &many).await;
    let message = refused(&many, 422, "validation_error");
    assert_eq!(message, "tags must not have more than 1000 items");
    let twice = r#"{"to":"a@example.org","to":"b@example.org"}"#;
    let twice = app
        .caller()
        .post_raw(EMAILS, Some("application/json"), twice)
        .await;
    assert!(refused(&twice, 422, "validation_error").contains("twice"));
    // A large content passes as it is.
    let content = vec![b'x'; 200_000];
    let mut email = email_to("ada@example.org");
    email["attachments"] = json!([{ "filename": "a.txt", "content": content }]);
    refused(&app.post(EMAILS, &email).await, 422, "validation_error");
    email["attachments"] = json!([{ "filename": "a.txt", "content": "eHh4".repeat(50_000) }]);
    sent(&app, &email).await;
    app.drain().await;
    let mail = app.captured_once("ada@example.org");
    assert_eq!(mail.attachments[0].bytes, 150_000);
}
