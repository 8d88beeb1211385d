//! Test mode: a test goes through everything that a live message goes through, but no provider
//! is called, nobody gets it, and it counts nowhere.

mod apart;
mod crashes;
mod keys;
mod requests;

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Receiver, TestApp, event_types, message_to};

/// Longer than the wait for the evidence of a lost answer.
const UNKNOWN_WAIT: TimeDelta = TimeDelta::minutes(16);

/// What becomes of a test of one account: its status, its events, and the outcomes of its
/// attempts.
type Story = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const STORIES: [Story; 7] = [
    (
        "delivered",
        "DELIVERED",
        &["QUEUED", "SENT", "DELIVERED"],
        &["ACCEPTED"],
    ),
    (
        "bounced",
        "BOUNCED",
        &["QUEUED", "SENT", "BOUNCED"],
        &["ACCEPTED"],
    ),
    (
        "complained",
        "DELIVERED",
        &["QUEUED", "SENT", "DELIVERED", "COMPLAINED"],
        &["ACCEPTED"],
    ),
    (
        "deferred",
        "DELIVERED",
        &["QUEUED", "SENT", "DEFERRED", "DELIVERED"],
        &["ACCEPTED"],
    ),
    ("failed", "FAILED", &["QUEUED", "DROPPED"], &["REJECTED"]),
    (
        "unknown",
        "DELIVERED",
        &["QUEUED", "SENT", "DELIVERED"],
        &["UNKNOWN", "ACCEPTED"],
    ),
    (
        "failover",
        "DELIVERED",
        &["QUEUED", "DEFERRED", "SENT", "DELIVERED"],
        &["UNAVAILABLE", "ACCEPTED"],
    ),
];

/// A test to one recipient.
fn test_to(recipient: &str, outcome: &str) -> Value {
    let mut message = message_to(recipient);
    message["test"] = json!(true);
    message["testOutcome"] = json!(outcome);
    message
}

/// Does all work, and what follows from it until all tests are reported.
async fn finish(app: &TestApp) {
    app.drain().await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
    app.advance_and_drain(UNKNOWN_WAIT).await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
}

/// Subscribes a receiver to all events of messages.
async fn subscribe(app: &TestApp, receiver: &Receiver) {
    let events = [
        "QUEUED",
        "SENT",
        "DELIVERED",
        "OPENED",
        "CLICKED",
        "BOUNCED",
        "COMPLAINED",
        "UNSUBSCRIBED",
        "DROPPED",
        "DEFERRED",
        "SUPPRESSION_CREATED",
        "PROVIDER_FAILING",
    ];
    let body = json!({ "url": receiver.url(), "events": events });
    app.post("/v1/webhook-endpoints", &body).await.data(201);
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[tokio::test]
async fn every_outcome_has_its_history_and_its_webhooks_at_every_provider() {
    for kind in ProviderType::ALL {
        let app = TestApp::start().await;
        let receiver = Receiver::start().await;
        app.connect(kind).await;
        subscribe(&app, &receiver).await;
        let mut sent = Vec::new();
        for (outcome, ..) in STORIES {
            let address = format!("{outcome}@example.org");
            sent.push(app.send(&test_to(&address, outcome)).await);
        }
        finish(&app).await;
        let webhooks: Vec<Value> = receiver.received().iter().map(|one| one.json()).collect();
        for ((outcome, status, events, outcomes), id) in STORIES.into_iter().zip(&sent) {
            let message = app.message(id).await;
            assert_eq!(message["test"], true);
            assert_eq!(message["status"], status, "{kind} {outcome}: {message}");
            assert_eq!(event_types(&message), events, "{kind} {outcome}");
            assert_eq!(app.outcomes(id).await, outcomes, "{kind} {outcome}");
            let posted = webhooks
                .iter()
                .filter(|one| one["data"]["messageId"] == **id);
            let posted: Vec<&Value> = posted.collect();
            assert!(
                posted.iter().all(|one| one["data"]["test"] == true),
                "{posted:?}"
            );
            let types = posted
                .iter()
                .map(|one| one["event"].as_str().unwrap().to_owned());
            let expected = events.iter().map(|event| (*event).to_owned());
            assert_eq!(
                sorted(types.collect()),
                sorted(expected.collect()),
                "{kind} {outcome}"
            );
            let recipient = app.recipient(id).await;
            let is_accepted = outcomes.contains(&"ACCEPTED");
            let provider_id = recipient["providerMessageId"].as_str().unwrap_or_default();
            assert_eq!(
                provider_id.starts_with("test-"),
                is_accepted,
                "{provider_id}"
            );
        }
        assert_eq!(app.simulator().captured_count(), 0, "{kind}");
        assert_eq!(number(&app, "SELECT count(*) FROM test_reports").await, 0);
        assert_eq!(
            number(&app, "SELECT count(*) FROM unknown_attempts").await,
            0
        );
    }
}

#[tokio::test]
async fn live_webhooks_are_not_marked() {
    let app = TestApp::start().await;
    let receiver = Receiver::start().await;
    app.connect(ProviderType::Sendgrid).await;
    subscribe(&app, &receiver).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    assert_eq!(app.message(&id).await["test"], false);
    assert!(receiver.count() > 0);
    for webhook in receiver.received() {
        assert_eq!(webhook.json()["data"].get("test"), None);
    }
}

#[tokio::test]
async fn every_recipient_of_a_large_or_shared_test_has_its_history() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let to: Vec<String> = (0..230).map(|nth| format!("r{nth}@example.org")).collect();
    for (outcome, status, events, outcomes) in STORIES {
        let mut private = test_to("", outcome);
        private["to"] = json!(to);
        let mut shared = test_to("a@example.org", outcome);
        shared["cc"] = json!(["b@example.org", "c@example.org"]);
        for (message, count) in [(private, 230), (shared, 3)] {
            let id = app.send(&message).await;
            finish(&app).await;
            assert_eq!(app.status(&id).await, status, "{outcome} {count}");
            let condition =
                format!("FROM recipients WHERE message_id = '{id}' AND status = '{status}'");
            let same = number(&app, &format!("SELECT count(*) {condition}")).await;
            assert_eq!(same, count, "{outcome}");
            let ids = format!("SELECT count(DISTINCT provider_message_id) {condition}");
            let expected = match (outcome, count) {
                ("failed", _) => 0,
                (_, 3) => 1,
                (_, count) => count,
            };
            assert_eq!(number(&app, &ids).await, expected, "{outcome} {count}");
            let attempts = format!("SELECT count(*) FROM send_attempts WHERE message_id = '{id}'");
            let attempts = number(&app, &attempts).await;
            assert_eq!(attempts, count * i64::try_from(outcomes.len()).unwrap());
            // The first is about all of them.
            let history = format!("SELECT count(*) FROM message_events WHERE message_id = '{id}'");
            let each = i64::try_from(events.len()).unwrap() - 1;
            assert_eq!(
                number(&app, &history).await,
                1 + count * each,
                "{outcome} {count}"
            );
        }
    }
    assert_eq!(app.simulator().captured_count(), 0);
}

#[tokio::test]
async fn a_failover_uses_the_fallback_and_an_unknown_answer_the_rule() {
    for (on_unknown, status, outcomes) in [
        ("wait", "DELIVERED", &["UNKNOWN", "ACCEPTED"][..]),
        ("resend", "DELIVERED", &["UNKNOWN", "ACCEPTED"]),
        ("fail", "FAILED", &["UNKNOWN"]),
    ] {
        let app = TestApp::start().await;
        let first = app.connect(ProviderType::Mailgun).await;
        app.advance(TimeDelta::milliseconds(10));
        let second = app.connect(ProviderType::Postmark).await;
        let rule = json!({
            "name": "With a fallback",
            "providerAccountId": first,
            "fallbackProviderAccountIds": [second],
            "onUnknown": on_unknown,
        });
        app.post("/v1/routing-rules", &rule).await.data(201);
        let failover = app.send(&test_to("a@example.org", "failover")).await;
        let unknown = app.send(&test_to("b@example.org", "unknown")).await;
        app.drain().await;
        let accounts = app.attempts(&failover).await;
        let accounts: Vec<String> = accounts
            .iter()
            .map(|one| one.account_id.to_string())
            .collect();
        assert_eq!(accounts, [first, second.clone()], "at once");
        assert_eq!(
            app.recipient(&failover).await["providerAccountId"],
            json!(second)
        );
        let waits = app.status(&unknown).await == "SENDING";
        assert_eq!(waits, on_unknown == "wait");
        finish(&app).await;
        assert_eq!(app.status(&unknown).await, status, "{on_unknown}");
        assert_eq!(app.outcomes(&unknown).await, outcomes, "{on_unknown}");
        assert_eq!(app.simulator().captured_count(), 0);
    }
}

#[tokio::test]
async fn tests_are_scheduled_moved_cancelled_and_retried_like_live_messages() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let at = |minutes| (app.clock.now() + TimeDelta::minutes(minutes)).to_rfc3339();
    let scheduled = |outcome, minutes| {
        let mut message = test_to("ada@example.org", outcome);
        message["scheduledAt"] = json!(at(minutes));
        message
    };
    let moved = app.send(&scheduled("bounced", 30)).await;
    let cancelled = app.send(&scheduled("delivered", 30)).await;
    let dropped = app.send(&scheduled("suppressed", 5)).await;
    app.drain().await;
    let change = json!({ "scheduledAt": at(5) });
    app.patch(&format!("/v1/messages/{moved}"), &change)
        .await
        .data(200);
    app.caller()
        .post_empty(&format!("/v1/messages/{cancelled}/cancel"))
        .await
        .data(200);
    app.advance_and_drain(TimeDelta::minutes(6)).await;
    app.advance_and_drain(TimeDelta::seconds(1)).await;
    assert_eq!(app.events(&moved).await, ["QUEUED", "SENT", "BOUNCED"]);
    assert_eq!(app.events(&cancelled).await, ["QUEUED", "DROPPED"]);
    assert_eq!(app.events(&dropped).await, ["QUEUED", "DROPPED"]);
    assert_eq!(app.attempts(&dropped).await, []);

    let failed = app.send(&test_to("bob@example.org", "failed")).await;
    app.drain().await;
    for id in [&failed, &dropped] {
        app.retry(id).await.data(200);
        app.drain().await;
        assert_eq!(app.events(id).await, ["QUEUED", "DROPPED", "DROPPED"]);
        assert_eq!(app.message(id).await["test"], true);
    }
    assert_eq!(app.outcomes(&failed).await, ["REJECTED", "REJECTED"]);
    assert_eq!(app.simulator().captured_count(), 0);
}
