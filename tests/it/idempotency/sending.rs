//! Sends and batches with keys in one process.

use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Reply, TestApp, message_to};

use super::{REPLAYED, assert_replayed, keyed, quiet};

const SEND: &str = "/v1/send";
const BATCH: &str = "/v1/emails/batch";

async fn send(app: &TestApp, key: &str, message: &Value) -> Reply {
    keyed(app.caller(), SEND, key, message).await
}

fn with_key(recipient: &str, key: &str) -> Value {
    let mut message = message_to(recipient);
    message["idempotencyKey"] = json!(key);
    message
}

async fn batch(app: &TestApp, messages: &[Value]) -> Vec<Value> {
    results(&app.post(BATCH, &json!({ "messages": messages })).await)
}

fn results(reply: &Reply) -> Vec<Value> {
    reply.expect(200)["results"].as_array().unwrap().clone()
}

async fn messages(app: &TestApp) -> u64 {
    let page = app.get("/v1/messages").await.expect(200);
    page["pagination"]["total"].as_u64().unwrap()
}

#[tokio::test]
async fn a_repeated_send_is_one_message_sent_once() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let message = message_to("ada@example.org");
    let first = send(&app, "order-1", &message).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_replayed(&first, &send(&app, "order-1", &message).await);
    app.drain().await;
    assert_replayed(&first, &send(&app, "order-1", &message).await);
    app.drain().await;
    app.captured_once("ada@example.org");
    let other = send(&app, "order-2", &message).await;
    assert_ne!(other.text, first.text);
    send(&app, "order-1", &message_to("bob@example.org"))
        .await
        .expect_error(409, "CONFLICT");
    app.drain().await;
    assert_eq!(app.captured("ada@example.org").len(), 2);
    assert_eq!(app.captured("bob@example.org").len(), 0);
}

#[tokio::test]
async fn a_repetition_gets_the_same_response_after_changes() {
    let app = quiet().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let group = app
        .post("/v1/templates", &json!({ "name": "T" }))
        .await
        .data(201);
    let template = group["id"].as_str().unwrap();
    let content = json!({ "htmlContent": "<p>{{name}}</p>" });
    app.post(&format!("/v1/templates/{template}/versions"), &content)
        .await
        .data(201);
    let mut rendered = message_to("ada@example.org");
    rendered["templateId"] = json!(template);
    rendered["variables"] = json!({ "name": "x" });
    let suppression = json!({ "email": "eve@example.org" });
    let suppression = app.post("/v1/suppressions", &suppression).await.data(201);
    let mut partly = message_to("eve@example.org");
    partly["to"] = json!(["eve@example.org", "mal@example.org"]);
    let requests = [
        ("plain", message_to("ada@example.org")),
        ("rendered", rendered),
        ("suppressed", message_to("eve@example.org")),
        ("partly", partly),
    ];
    let mut first = Vec::new();
    for (key, message) in &requests {
        let reply = send(&app, key, message).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        first.push(reply);
    }
    assert_eq!(first[2].json()["status"], "suppressed");
    assert_eq!(first[3].json()["suppressedCount"], 1);
    let before = messages(&app).await;

    let lifted = suppression["id"].as_str().unwrap();
    app.delete(&format!("/v1/suppressions/{lifted}"))
        .await
        .expect(200);
    app.post("/v1/suppressions", &json!({ "email": "ada@example.org" }))
        .await
        .data(201);
    for ((key, message), first) in requests.iter().zip(&first) {
        assert_replayed(first, &send(&app, key, message).await);
    }
    app.delete(&format!("/v1/templates/{template}"))
        .await
        .expect(200);
    let off = json!({ "isActive": false });
    app.patch(&format!("/v1/providers/{account}"), &off)
        .await
        .expect(200);
    for ((key, message), first) in requests.iter().zip(&first) {
        assert_replayed(first, &send(&app, key, message).await);
        // A request with its own key is rejected, or suppressed if no recipient is left.
        let anew = send(&app, &format!("{key} anew"), message).await;
        assert_ne!(anew.text, first.text);
    }
    assert_eq!(messages(&app).await, before);
    // A key that was used for another body is reported first.
    let mut other = message_to("ada@example.org");
    other["from"] = json!("a@unverified.example.net");
    send(&app, "plain", &other)
        .await
        .expect_error(409, "CONFLICT");
    app.leave_work();
}

#[tokio::test]
async fn a_rejected_send_leaves_its_key_free() {
    let app = quiet().await;
    let message = message_to("ada@example.org");
    send(&app, "k", &message)
        .await
        .expect_error(422, "VALIDATION_ERROR");
    send(&app, "k", &json!({}))
        .await
        .expect_error(400, "VALIDATION_ERROR");
    app.connect(ProviderType::Sendgrid).await;
    let first = send(&app, "k", &message).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert_replayed(&first, &send(&app, "k", &message).await);
    app.leave_work();
}

#[tokio::test]
async fn a_single_send_has_no_field_for_the_key() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    for key in [json!("k"), json!("k"), json!(""), json!(1)] {
        let mut message = message_to("ada@example.org");
        message["idempotencyKey"] = key;
        let reply = app.post("/v1/send", &message).await;
        reply.expect_issues(400, &["idempotencyKey"]);
    }
    assert_eq!(messages(&app).await, 0);
}

#[tokio::test]
async fn messages_of_a_batch_have_their_own_keys_shared_with_single_sends() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let one = batch(
        &app,
        &[
            with_key("a@example.org", "a"),
            message_to("plain@example.org"),
            with_key("b@example.org", "b"),
        ],
    )
    .await;
    let single = send(&app, "a", &message_to("a@example.org")).await;
    assert_eq!(single.header(REPLAYED), Some("true"));
    assert_eq!(single.json()["messageId"], one[0]["messageId"]);
    let single = send(&app, "c", &message_to("c@example.org")).await;
    let two = batch(
        &app,
        &[
            with_key("c@example.org", "c"),
            message_to("plain@example.org"),
            with_key("a@example.org", "a"),
            with_key("other@example.org", "b"),
        ],
    )
    .await;
    assert_eq!(two[0]["messageId"], single.json()["messageId"]);
    assert_ne!(two[1]["messageId"], one[1]["messageId"]);
    assert_eq!(two[2], one[0]);
    assert!(
        two[3]["error"].as_str().unwrap().contains("key"),
        "{}",
        two[3]
    );
    app.drain().await;
    for (address, copies) in [("a", 1), ("b", 1), ("c", 1), ("plain", 2), ("other", 0)] {
        let address = format!("{address}@example.org");
        assert_eq!(app.captured(&address).len(), copies, "{address}");
    }
}

#[tokio::test]
async fn one_key_twice_in_a_batch_is_one_message_or_a_conflict() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let suppressed = json!({ "email": "eve@example.org" });
    app.post("/v1/suppressions", &suppressed).await.data(201);
    let all = [
        with_key("a@example.org", "a"),
        with_key("a@example.org", "a"),
        with_key("b@example.org", "a"),
        with_key("eve@example.org", "e"),
        with_key("c@example.org", "c"),
        with_key("eve@example.org", "e"),
        with_key("a@example.org", "a"),
    ];
    let found = batch(&app, &all).await;
    assert_eq!((&found[1], &found[6]), (&found[0], &found[0]));
    assert!(found[0]["messageId"].is_string(), "{}", found[0]);
    assert!(found[2]["error"].is_string(), "{}", found[2]);
    assert_eq!(
        found[3],
        json!({ "messageId": null, "status": "suppressed" })
    );
    assert_eq!(found[5], found[3]);
    assert_eq!(found[4]["status"], "queued");
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
    assert_eq!(batch(&app, &all).await, found);
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
}

#[tokio::test]
async fn the_key_of_a_message_is_validated_like_its_other_fields() {
    let app = quiet().await;
    app.connect(ProviderType::Sendgrid).await;
    let with = |key: Value| {
        let mut message = message_to("a@example.org");
        message["idempotencyKey"] = key;
        message
    };
    let mut both = with(json!(""));
    both["subject"] = Value::Null;
    let found = batch(
        &app,
        &[
            with(json!("k")),
            with(json!("é".repeat(256))),
            with(Value::Null),
            with(json!("")),
            with(json!("k".repeat(257))),
            with(json!(1)),
            both,
        ],
    )
    .await;
    for accepted in &found[..3] {
        assert_eq!(accepted["status"], "queued", "{accepted}");
    }
    for refused in &found[3..] {
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains("idempotencyKey"), "{error}");
    }
    assert!(found[6]["error"].as_str().unwrap().contains("subject"));
    assert_eq!(messages(&app).await, 3);
    app.leave_work();
}

#[tokio::test]
async fn a_batch_with_a_key_is_replayed_and_rejected_for_another_body() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let mut unroutable = message_to("x@example.org");
    unroutable["from"] = json!("a@unverified.example.net");
    let body = json!({ "messages": [
        message_to("a@example.org"), {}, unroutable, with_key("b@example.org", "b"),
    ] });
    let first = keyed(app.caller(), BATCH, "k", &body).await;
    let found = results(&first);
    assert!(found[2]["error"].is_string());
    app.drain().await;
    let accept_all = json!({ "unverifiedDomains": "accept" });
    app.patch("/v1/settings", &accept_all).await.expect(200);
    assert_replayed(&first, &keyed(app.caller(), BATCH, "k", &body).await);
    let off = json!({ "isActive": false });
    app.patch(&format!("/v1/providers/{account}"), &off)
        .await
        .expect(200);
    assert_replayed(&first, &keyed(app.caller(), BATCH, "k", &body).await);
    let other = json!({ "messages": [message_to("a@example.org")] });
    keyed(app.caller(), BATCH, "k", &other)
        .await
        .expect_error(409, "CONFLICT");
    app.drain().await;
    assert_eq!(app.simulator().captured_count(), 2);
    // A batch that is rejected as a whole leaves its key free.
    keyed(app.caller(), BATCH, "free", &json!({ "messages": [] }))
        .await
        .expect_issues(400, &["messages"]);
    keyed(app.caller(), BATCH, "free", &other).await.expect(200);
}

#[tokio::test]
async fn an_interrupted_batch_is_finished_by_its_repetition() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let template = json!({ "name": "Without a version" });
    let template = app.post("/v1/templates", &template).await.data(201);
    let template = template["id"].as_str().unwrap();
    let mut later = message_to("late@example.org");
    later["templateId"] = json!(template);
    let body = json!({ "messages": [
        message_to("a@example.org"), later, with_key("b@example.org", "b"), message_to("c@example.org"),
    ] });
    let repeat = async || keyed(app.caller(), BATCH, "k", &body).await;
    let first = results(&repeat().await);
    assert!(first[1]["error"].is_string(), "{}", first[1]);
    app.drain().await;
    let content = json!({ "htmlContent": "<p>x</p>" });
    app.post(&format!("/v1/templates/{template}/versions"), &content)
        .await
        .data(201);
    // As if the process had died before its response.
    let unanswered = "UPDATE idempotency_keys SET answer = NULL WHERE get_byte(answer, 0) = 1";
    app.execute(unanswered).await;
    let open = "SELECT count(*) FROM idempotency_keys WHERE answer IS NULL";
    assert_eq!(app.value(open).await.as_deref(), Some("1"));
    let other = json!({ "messages": [message_to("mal@example.org")] });
    keyed(app.caller(), BATCH, "k", &other)
        .await
        .expect_error(409, "CONFLICT");
    // Each message has a result, including the rejected one.
    let second = repeat().await;
    assert_eq!(second.header(REPLAYED), None);
    assert_eq!(results(&second), first);
    assert_replayed(&second, &repeat().await);
    // As if the process had died before the second message.
    app.execute(unanswered).await;
    app.execute("DELETE FROM idempotency_keys WHERE encode(answer, 'escape') LIKE '%refused%'")
        .await;
    let third = results(&repeat().await);
    assert!(third[1]["messageId"].is_string(), "{}", third[1]);
    for nth in [0, 2, 3] {
        assert_eq!(third[nth], first[nth]);
    }
    app.drain().await;
    for name in ["a", "b", "c", "late"] {
        app.captured_once(&format!("{name}@example.org"));
    }
    assert_eq!(app.simulator().captured_count(), 4);
}

/// An app whose organization has suppressed gone@example.org.
async fn app_with_one_suppression() -> TestApp {
    let app = quiet().await;
    app.leave_work();
    app.connect(ProviderType::Sendgrid).await;
    let suppression = json!({ "email": "gone@example.org" });
    app.post("/v1/suppressions", &suppression).await.data(201);
    app
}

#[tokio::test]
async fn concurrent_repetitions_agree_on_the_suppressed_recipients() {
    let app = app_with_one_suppression().await;
    let mut some = message_to("ada@example.org");
    some["to"] = json!(["ada@example.org", "gone@example.org"]);
    let all = message_to("gone@example.org");
    for (round, message) in [&some, &all, &some, &all].into_iter().enumerate() {
        let before = messages(&app).await;
        let key = format!("round-{round}");
        let replies = join_all((0..24).map(|_| send(&app, &key, message))).await;
        let first = replies
            .iter()
            .find(|reply| reply.header(REPLAYED).is_none());
        let first = first.expect("one of them was the first");
        let answer = first.expect(202);
        assert_eq!(answer["suppressedCount"], 1, "{answer}");
        let again = replies
            .iter()
            .filter(|reply| reply.header(REPLAYED).is_some());
        let mut count = 0;
        for again in again {
            assert_replayed(first, again);
            count += 1;
        }
        assert_eq!(count, 23);
        let written = u64::from(!answer["messageId"].is_null());
        assert_eq!(written, u64::from(message == &some), "{answer}");
        assert_eq!(messages(&app).await, before + written);
    }
}

#[tokio::test]
async fn one_key_with_two_concurrent_bodies_belongs_to_one_although_some_are_suppressed() {
    let app = app_with_one_suppression().await;
    let bodies = ["ada@example.org", "bob@example.org", "gone@example.org"].map(|other| {
        let mut message = message_to("");
        message["to"] = json!(["cyd@example.org", "gone@example.org", other]);
        message
    });
    for round in 0..4 {
        let key = format!("round-{round}");
        let sends = bodies.iter().cycle().take(24);
        let replies = join_all(sends.map(|body| send(&app, &key, body))).await;
        let taken: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 202).collect();
        let first = taken.iter().find(|reply| reply.header(REPLAYED).is_none());
        let first = first.expect("one of them was the first");
        assert_eq!(first.expect(202)["suppressedCount"], 1);
        assert_eq!(taken.len(), 8, "those with its body");
        assert!(taken.iter().all(|reply| reply.text == first.text));
        let others = replies.iter().filter(|reply| reply.status != 202);
        for other in others {
            other.expect_error(409, "CONFLICT");
        }
        assert_eq!(messages(&app).await, round + 1);
    }
}
