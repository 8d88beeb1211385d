//! Endpoints that filter by the tags of messages.

use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Receiver, TestApp, message_to};

use super::{PATH, bodies, counts, number, subscribe_with};

async fn send(app: &TestApp, recipients: &[&str], tags: &[&str]) {
    let mut message = message_to("");
    message["to"] = json!(recipients);
    message["tags"] = json!(tags);
    app.send(&message).await;
}

/// The recipients of the webhooks, sorted.
fn recipients(receiver: &Receiver) -> Vec<String> {
    let mut found: Vec<String> = bodies(receiver)
        .iter()
        .map(|body| body["data"]["recipient"].as_str().unwrap().to_owned())
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn an_endpoint_with_tags_gets_the_events_of_messages_with_one_of_them() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let (all, some, none) = (
        Receiver::start().await,
        Receiver::start().await,
        Receiver::start().await,
    );
    let events = json!(["SENT", "QUEUED"]);
    let caller = app.caller();
    subscribe_with(caller, &all, &json!({ "events": events })).await;
    let tags = json!({ "events": events, "tags": ["receipts", "späße %'\"\\{}"] });
    let path = subscribe_with(caller, &some, &tags).await;
    let tags = json!({ "events": events, "tags": ["Receipts"] });
    subscribe_with(caller, &none, &tags).await;
    send(
        &app,
        &["a@example.org", "b@example.org"],
        &["receipts", "x"],
    )
    .await;
    send(&app, &["c@example.org"], &["x", "späße %'\"\\{}"]).await;
    send(&app, &["d@example.org"], &["receipt", "x"]).await;
    send(&app, &["e@example.org"], &[]).await;
    app.drain().await;
    let twice = |names: &[&str]| -> Vec<String> {
        let both = names.iter().flat_map(|name| [name, name]);
        both.map(|name| format!("{name}@example.org")).collect()
    };
    assert_eq!(recipients(&all), twice(&["a", "b", "c", "d", "e"]));
    assert_eq!(recipients(&some), twice(&["a", "b", "c"]));
    assert_eq!(none.count(), 0);
    // An empty list is all messages again, and what was passed over does not come.
    let changed = app.patch(&path, &json!({ "tags": [] })).await.data(200);
    assert_eq!(changed["tags"], json!([]));
    send(&app, &["f@example.org"], &[]).await;
    app.drain().await;
    assert_eq!(recipients(&some), twice(&["a", "b", "c", "f"]));
    let changed = app.patch(&path, &json!({ "tags": ["y"] })).await.data(200);
    assert_eq!(changed["events"], json!(["SENT", "QUEUED"]));
    send(&app, &["g@example.org"], &["receipts"]).await;
    app.drain().await;
    assert_eq!(some.count(), 8);
    let replay = json!({ "since": "2020-01-01", "until": "2020-01-02" });
    app.post(&format!("{path}/replay"), &replay).await.data(200);
}

#[tokio::test]
async fn an_event_without_a_message_is_not_filtered_by_tag() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    let endpoint = json!({ "events": ["SUPPRESSION_CREATED", "QUEUED"], "tags": ["receipts"] });
    subscribe_with(app.caller(), &receiver, &endpoint).await;
    let body = json!({ "email": "a@example.org" });
    app.post("/v1/suppressions", &body).await.data(201);
    app.drain().await;
    assert_eq!(counts(&receiver)["SUPPRESSION_CREATED"], 1);
}

#[tokio::test]
async fn tags_are_checked_shown_and_kept() {
    let app = TestApp::builder().without_worker().start().await;
    let receiver = Receiver::start().await;
    let with = |tags: Value| json!({ "url": receiver.url(), "events": ["SENT"], "tags": tags });
    let many: Vec<String> = (0..11).map(|number| format!("t{number}")).collect();
    for (tags, path) in [
        (json!("receipts"), "tags"),
        (json!({ "0": "receipts" }), "tags"),
        (json!(many), "tags"),
        (json!([7]), "tags.0"),
        (json!(["receipts", null]), "tags.1"),
        (json!([""]), "tags.0"),
        (json!(["a".repeat(101)]), "tags.0"),
        (json!(["a\u{0}b"]), "tags.0"),
        (json!(["a\nb"]), "tags.0"),
    ] {
        let reply = app.post(PATH, &with(tags.clone())).await;
        reply.expect_issues(400, &[path]);
    }
    assert_eq!(receiver.count(), 0);
    let made = app
        .post(PATH, &with(json!(["b", "a", "b"])))
        .await
        .data(201);
    assert_eq!(made["tags"], json!(["b", "a"]));
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await.data(200)["tags"], json!(["b", "a"]));
    app.patch(&path, &json!({ "tags": null }))
        .await
        .expect_issues(400, &["tags"]);
    app.patch(&path, &json!({ "tags": [7], "isActive": 1 }))
        .await
        .expect_issues(400, &["tags.0", "isActive"]);
    // Another change keeps them.
    let change = json!({ "events": ["SENT", "DOMAIN_BROKEN"] });
    let changed = app.patch(&path, &change).await.data(200);
    assert_eq!(changed["tags"], json!(["b", "a"]));
    let no_tags = app.post(PATH, &with(Value::Null)).await.data(201);
    assert_eq!(no_tags["tags"], json!([]));
    let stored = "SELECT count(*) FROM webhook_endpoints";
    assert_eq!(number(&app, stored).await, 2);
}
