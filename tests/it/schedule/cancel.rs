//! `POST /v1/messages/:id/cancel`.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultKind};
use waypost_tests::{Reply, TestApp, message_to, wait_until};

use super::{broken, dropped, message_with, schedule};

async fn cancel(app: &TestApp, id: &str) -> Reply {
    app.caller()
        .post_empty(&format!("/v1/messages/{id}/cancel"))
        .await
}

fn assert_conflict(reply: &Reply, reason: &str) {
    let error = reply.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], reason, "{reply:?}");
}

async fn cancellations_audited(app: &TestApp, id: &str) -> String {
    let query = format!(
        "SELECT count(*) FROM audit_logs WHERE action = 'message.cancelled' AND target_id = '{id}'"
    );
    app.value(&query).await.unwrap()
}

#[tokio::test]
async fn a_cancelled_message_is_not_sent_and_cancelling_again_changes_nothing() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = schedule(&app, "one@example.org", TimeDelta::hours(1)).await;
    for _ in 0..3 {
        let data = cancel(&app, &id).await.data(200);
        assert_eq!(
            data,
            json!({ "id": id, "status": "FAILED", "cancelledCount": 1 })
        );
    }
    assert_eq!(cancellations_audited(&app, &id).await, "1");
    assert_eq!(app.events(&id).await, ["QUEUED", "DROPPED"]);
    assert_eq!(dropped(&app, &id).await, ["CANCELLED"]);
    assert_eq!(app.recipient(&id).await["lastError"], "CANCELLED");
    assert!(app.outbox().await.is_empty());
    app.advance_and_drain(TimeDelta::days(2)).await;
    assert_eq!(app.simulator().captured_count(), 0);
    assert_eq!(app.status(&id).await, "FAILED");
}

#[tokio::test]
async fn what_is_merely_queued_or_waits_for_a_retry_is_cancelled_too() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(broken(FaultKind::Error));
    let id = app.send_to("one@example.org").await;
    wait_until("it is tried", async || !app.attempts(&id).await.is_empty()).await;
    app.drain().await;
    app.simulator().clear_faults();
    assert_eq!(cancel(&app, &id).await.data(200)["status"], "FAILED");
    app.advance_and_drain(TimeDelta::days(2)).await;
    assert_eq!(app.simulator().captured_count(), 0);
}

#[tokio::test]
async fn what_was_sent_or_may_have_been_is_not_cancelled() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let sent = app.send_to("sent@example.org").await;
    app.drain().await;
    assert_conflict(&cancel(&app, &sent).await, "MESSAGE_SENT");
    // A worker calls the provider.
    app.simulator().set_fault(Fault::slow_sends(1_500));
    let calling = app.send_to("calling@example.org").await;
    wait_until("it is called", async || {
        app.outcomes(&calling).await == ["OPEN"]
    })
    .await;
    assert_conflict(&cancel(&app, &calling).await, "MESSAGE_SENDING");
    app.drain().await;
    assert_conflict(&cancel(&app, &calling).await, "MESSAGE_SENT");
    // The provider's answer is lost.
    app.simulator().set_fault(broken(FaultKind::Reset));
    let lost = app.send_to("lost@example.org").await;
    wait_until("the answer is lost", async || {
        app.outcomes(&lost).await == ["UNKNOWN"]
    })
    .await;
    app.drain().await;
    assert_conflict(&cancel(&app, &lost).await, "MESSAGE_SENDING");
    app.simulator().clear_faults();
    // All recipients failed before.
    app.execute(
        "UPDATE recipients SET status = 'FAILED', last_error = 'refused' WHERE status = 'SENT'",
    )
    .await;
    assert_conflict(&cancel(&app, &sent).await, "MESSAGE_FINISHED");
    app.leave_work();
}

#[tokio::test]
async fn of_several_recipients_those_that_wait_are_cancelled() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    // Two chunks. Of the first, all were sent but two.
    let to: Vec<String> = (0..120).map(|n| format!("r{n}@example.org")).collect();
    let id = app
        .send(&message_with("x@example.org", &json!({ "to": to })))
        .await;
    app.drain().await;
    let before = app.simulator().captured_count();
    for statement in [
        format!(
            "UPDATE recipients SET status = 'QUEUED', sent_at = NULL, next_attempt_at = now() + interval '1 day'
             WHERE message_id = '{id}' AND position IN (3, 99, 110)"
        ),
        format!(
            "INSERT INTO outbox (message_id, chunk, organization_id, wake_at)
             SELECT '{id}', chunk, organization_id, now() + interval '1 day'
             FROM messages, UNNEST(ARRAY[0, 1]) AS c (chunk) WHERE id = '{id}'"
        ),
    ] {
        app.execute(&statement).await;
    }
    let data = cancel(&app, &id).await.data(200);
    assert_eq!(
        data,
        json!({ "id": id, "status": "SENT", "cancelledCount": 3 })
    );
    assert_eq!(cancel(&app, &id).await.data(200)["cancelledCount"], 3);
    assert!(app.outbox().await.is_empty());
    app.advance_and_drain(TimeDelta::days(2)).await;
    assert_eq!(app.simulator().captured_count(), before);
}

#[tokio::test]
async fn a_chunk_that_is_being_sent_does_not_keep_the_others_from_being_cancelled() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let to: Vec<String> = (0..250).map(|n| format!("r{n}@example.org")).collect();
    let at = super::text(super::ahead(&app, TimeDelta::hours(1)));
    let fields = json!({ "to": to, "scheduledAt": at });
    let id = app.send(&message_with("x@example.org", &fields)).await;
    let statement = format!(
        "UPDATE outbox SET leased_by = gen_random_uuid() WHERE message_id = '{id}' AND chunk = 1"
    );
    app.execute(&statement).await;
    let data = cancel(&app, &id).await.data(200);
    assert_eq!(data["cancelledCount"], 150);
    assert_eq!(data["status"], "QUEUED");
    app.execute("UPDATE outbox SET leased_by = NULL").await;
    assert_eq!(cancel(&app, &id).await.data(200)["cancelledCount"], 250);
    assert_eq!(app.status(&id).await, "FAILED");
}

#[tokio::test]
async fn a_message_is_cancelled_by_its_organization_alone() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = schedule(&app, "one@example.org", TimeDelta::hours(1)).await;
    let path = format!("/v1/messages/{id}/cancel");
    let other = app.tenant("Stranger").await;
    other
        .caller
        .post_empty(&path)
        .await
        .expect_error(404, "NOT_FOUND");
    for unknown in ["01a1fbfa-b12e-763c-a29e-ce02006ba540", "x", "%00"] {
        let reply = cancel(&app, unknown).await;
        assert!([400, 404].contains(&reply.status), "{unknown}: {reply:?}");
    }
    let key = app
        .key(app.organization_id(), &[Permission::MetricsRead])
        .await;
    let reader = app.caller().with_key(&key);
    reader
        .post_empty(&path)
        .await
        .expect_error(403, "FORBIDDEN");
    assert_eq!(app.status(&id).await, "QUEUED");
}

#[tokio::test]
async fn a_cancelled_message_can_be_retried_by_its_owner() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let body: Value = message_to("one@example.org");
    let at = super::text(super::ahead(&app, TimeDelta::hours(1)));
    let mut scheduled = body.clone();
    scheduled["scheduledAt"] = at.into();
    let id = app.send(&scheduled).await;
    cancel(&app, &id).await.expect(200);
    app.retry(&id).await.expect(200);
    super::is_captured(&app, "one@example.org").await;
    assert_conflict(&cancel(&app, &id).await, "MESSAGE_SENT");
}
