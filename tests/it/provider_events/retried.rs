//! A recipient that the customer retries while its provider reports events.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{connect, event, number, tags, totals};

/// A message that failed because its answer was lost twice, inserted as rows; the id of
/// the attempt.
async fn lost_twice(app: &TestApp, recipient: &str) -> (String, String) {
    let id = app.send_to(recipient).await;
    let attempt = uuid::Uuid::from_u128(7).to_string();
    for statement in [
        "DELETE FROM outbox".to_owned(),
        "UPDATE recipients SET status = 'FAILED', unknowns = 2, attempts = 2".to_owned(),
        "UPDATE messages SET status = 'FAILED'".to_owned(),
        format!(
            "INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id,
                                        started_at, finished_at, outcome)
             SELECT id, '{attempt}', organization_id, 0, provider_account_id, created_at, created_at, 'UNKNOWN'
             FROM messages"
        ),
    ] {
        app.execute(&statement).await;
    }
    (id, attempt)
}

#[tokio::test]
async fn evidence_after_the_retry_stops_it() {
    let app = TestApp::builder().without_worker().start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let (id, attempt) = lost_twice(&app, "ada@example.org").await;
    app.retry(&id).await.expect(200);
    assert_eq!(app.status(&id).await, "QUEUED");
    let delivered = event(&app, &tags(&id, 0, &attempt), "delivered", "d", 0);
    account.tell(&app, &json!([delivered])).await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    app.start_worker();
    app.drain().await;
    assert!(app.captured("ada@example.org").is_empty());
    assert!(app.outbox().await.is_empty());
    assert_eq!(totals(&app).await, [1, 1, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn concurrent_evidence_and_retry_leave_no_work_without_an_outbox_row() {
    for round in 0..10 {
        let app = TestApp::builder().without_worker().start().await;
        let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
        let (id, attempt) = lost_twice(&app, "ada@example.org").await;
        let delivered = json!([event(&app, &tags(&id, 0, &attempt), "delivered", "d", 0)]);
        let (reply, ()) = tokio::join!(app.retry(&id), account.tell(&app, &delivered));
        assert!([200, 409].contains(&reply.status), "{round}: {reply:?}");
        assert_eq!(app.status(&id).await, "DELIVERED", "{round}");
        let queued = "SELECT count(*) FROM recipients WHERE status IN ('QUEUED', 'SENDING')";
        assert_eq!(number(&app, queued).await, 0, "{round}");
        app.start_worker();
        app.drain().await;
        assert!(app.captured("ada@example.org").is_empty(), "{round}");
        assert_eq!(totals(&app).await, [1, 1, 0, 0, 0, 0, 0], "{round}");
    }
}

#[tokio::test]
async fn a_dropped_recipient_can_be_retried_and_delivered() {
    let app = TestApp::start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.advance(TimeDelta::minutes(1));
    let ids = super::ids_of(&app, &id, 0).await;
    let dropped = event(&app, &ids, "dropped", "p", 0);
    account.tell(&app, &json!([dropped])).await;
    assert_eq!(app.status(&id).await, "FAILED");
    app.retry(&id).await.expect(200);
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.recipient(&id).await["lastError"], Value::Null);
    app.advance(TimeDelta::minutes(1));
    let ids = super::ids_of(&app, &id, 0).await;
    let delivered = event(&app, &ids, "delivered", "d", 0);
    account.tell(&app, &json!([delivered])).await;
    assert_eq!(app.status(&id).await, "DELIVERED");
    assert_eq!(app.captured("ada@example.org").len(), 2);
    // The provider accepted two messages for one recipient.
    assert_eq!(totals(&app).await, [1, 1, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn a_late_event_of_the_earlier_attempt_does_not_stop_the_retry() {
    let app = TestApp::builder().without_worker().start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let (id, attempt) = lost_twice(&app, "ada@example.org").await;
    drop_and_retry(&app, &id).await;
    let late = [("processed", "t"), ("deferred", "f"), ("dropped", "q")];
    let late =
        late.map(|(kind, event_id)| event(&app, &tags(&id, 0, &attempt), kind, event_id, -30));
    account.tell(&app, &json!(late)).await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.outbox().await.len(), 1);
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.captured("ada@example.org").len(), 1);
    // It counted as sent, if it did, before its owner had it tried again: rows say so
    // here.
    assert_eq!(totals(&app).await, [0, 0, 0, 0, 0, 0, 0]);
    let history = app.events(&id).await;
    for told in ["DEFERRED", "DROPPED"] {
        assert!(history.iter().any(|event| event == told), "{history:?}");
    }
}

#[tokio::test]
async fn an_event_matched_before_the_retry_does_not_stop_it() {
    let app = TestApp::builder().without_worker().start().await;
    let account = connect(&app, app.caller(), ProviderType::Sendgrid).await;
    let (id, attempt) = lost_twice(&app, "ada@example.org").await;
    let obstacle = app.block_writes("provider_events").await;
    let deferred = json!([event(&app, &tags(&id, 0, &attempt), "deferred", "f", -30)]);
    let meanwhile = async {
        // The event has found its recipient, whose attempt had no outcome then.
        let standing = "SELECT count(*) FROM pg_stat_activity
                        WHERE datname = current_database() AND wait_event = 'advisory'";
        wait_until("the event waits for the lock", async || {
            number(&app, standing).await == 1
        })
        .await;
        drop_and_retry(&app, &id).await;
        obstacle.rollback().await.unwrap();
    };
    tokio::join!(account.tell(&app, &deferred), meanwhile);
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.outbox().await.len(), 1);
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    assert_eq!(app.captured("ada@example.org").len(), 1);
}

/// Records that the provider took the only copy and dropped it, and has its owner try
/// again.
async fn drop_and_retry(app: &TestApp, id: &str) {
    for statement in [
        "UPDATE send_attempts SET outcome = 'ACCEPTED'",
        "UPDATE recipients SET sent_at = now(), unknowns = 0, attempts = 1",
        "UPDATE messages SET sent_at = now()",
    ] {
        app.execute(statement).await;
    }
    app.retry(id).await.expect(200);
}
