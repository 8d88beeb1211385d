//! `expiresAt`: from then on a message is not sent.

use chrono::TimeDelta;
use serde_json::json;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::FaultKind;
use waypost_tests::{TestApp, wait_until};

use super::{ahead, broken, dropped, message_with, text};

async fn send_until(app: &TestApp, recipient: &str, expires: TimeDelta) -> String {
    let fields = json!({ "expiresAt": text(ahead(app, expires)) });
    app.send(&message_with(recipient, &fields)).await
}

async fn is_expired(app: &TestApp, id: &str) {
    wait_until("it failed", async || app.status(id).await == "FAILED").await;
    assert_eq!(dropped(app, id).await, ["EXPIRED"]);
    assert_eq!(app.recipient(id).await["lastError"], "EXPIRED");
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn what_waits_fails_when_it_expires_and_is_not_sent_afterwards() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = send_until(&app, "late@example.org", TimeDelta::minutes(10)).await;
    let kept = send_until(&app, "kept@example.org", TimeDelta::minutes(30)).await;
    app.advance(TimeDelta::minutes(10) - TimeDelta::milliseconds(1));
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance(TimeDelta::milliseconds(1));
    wait_until("it failed", async || app.status(&id).await == "FAILED").await;
    assert_eq!(dropped(&app, &id).await, ["EXPIRED"]);
    app.start_worker();
    app.drain().await;
    app.captured_once("kept@example.org");
    assert_eq!(app.status(&kept).await, "SENT");
    assert!(app.captured("late@example.org").is_empty());
}

#[tokio::test]
async fn a_worker_sends_nothing_that_has_expired() {
    // Without a scheduler nothing but the worker notices.
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let to: Vec<String> = (0..30).map(|n| format!("r{n}@example.org")).collect();
    let fields = json!({ "to": to, "expiresAt": text(ahead(&app, TimeDelta::minutes(1))) });
    let many = app.send(&message_with("x@example.org", &fields)).await;
    let one = send_until(&app, "one@example.org", TimeDelta::minutes(1)).await;
    let sent = send_until(&app, "sent@example.org", TimeDelta::minutes(2)).await;
    app.advance(TimeDelta::minutes(1));
    app.start_worker();
    app.drain().await;
    assert_eq!(app.status(&one).await, "FAILED");
    assert_eq!(dropped(&app, &one).await, ["EXPIRED"]);
    assert_eq!(dropped(&app, &many).await, vec!["EXPIRED"; 30]);
    assert!(app.attempts(&many).await.is_empty());
    assert!(app.attempts(&one).await.is_empty());
    assert_eq!(app.status(&sent).await, "SENT");
    assert_eq!(app.simulator().captured_count(), 1);
}

#[tokio::test]
async fn postgres_writes_no_attempt_after_the_expiry_by_its_own_clock() {
    // The process's clock stands still, so to it the message never expires.
    let app = TestApp::builder()
        .without_worker()
        .without_scheduler()
        .start()
        .await;
    app.connect(ProviderType::Sendgrid).await;
    let by = TimeDelta::milliseconds(300);
    let id = send_until(&app, "late@example.org", by).await;
    let expires = format!("SELECT expires_at <= clock_timestamp() FROM messages WHERE id = '{id}'");
    wait_until("it has expired", async || {
        app.value(&expires).await.as_deref() == Some("true")
    })
    .await;
    app.start_worker();
    app.drain().await;
    assert!(app.attempts(&id).await.is_empty());
    assert_eq!(app.simulator().captured_count(), 0);
    is_expired(&app, &id).await;
}

#[tokio::test]
async fn a_retry_that_would_be_too_late_fails_at_once() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(broken(FaultKind::Error));
    let id = send_until(&app, "one@example.org", TimeDelta::minutes(20)).await;
    for _ in 0..40 {
        app.drain().await;
        if app.status(&id).await == "FAILED" {
            break;
        }
        app.advance(TimeDelta::seconds(30));
    }
    is_expired(&app, &id).await;
    let late = format!(
        "SELECT count(*) FROM send_attempts a JOIN messages m ON m.id = a.message_id
         WHERE a.message_id = '{id}' AND a.started_at >= m.expires_at"
    );
    assert_eq!(app.value(&late).await.as_deref(), Some("0"));
    assert!(!app.attempts(&id).await.is_empty());
}

#[tokio::test]
async fn a_message_whose_answer_was_lost_is_not_sent_again_after_its_expiry() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(broken(FaultKind::Reset));
    let id = send_until(&app, "lost@example.org", TimeDelta::minutes(1)).await;
    wait_until("the answer is lost", async || {
        app.outcomes(&id).await == ["UNKNOWN"]
    })
    .await;
    app.simulator().clear_faults();
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(2)).await;
    // The mail may have been sent, so it is not dropped yet.
    assert_eq!(app.status(&id).await, "SENDING");
    app.advance_and_drain(TimeDelta::minutes(20)).await;
    is_expired(&app, &id).await;
    app.captured_once("lost@example.org");
}
