//! `PATCH /v1/messages/:id`: another time for a scheduled message.

use chrono::TimeDelta;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::FaultKind;
use waypost_tests::{Reply, TestApp, wait_until};

use super::{ahead, broken, dropped, is_captured, message_with, schedule, text};

async fn move_to(app: &TestApp, id: &str, to: Value) -> Reply {
    let body = json!({ "scheduledAt": to });
    app.patch(&format!("/v1/messages/{id}"), &body).await
}

fn assert_conflict(reply: &Reply, reason: &str) {
    let error = reply.expect_error(409, "CONFLICT");
    assert_eq!(error["details"]["reason"], reason, "{reply:?}");
}

#[tokio::test]
async fn a_message_goes_at_its_latest_time() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let hours = TimeDelta::hours;
    // Times from now, and the one that counts.
    for (nth, (first, moved)) in [(2, vec![5, 3]), (5, vec![1]), (2, vec![9, 1, 4])]
        .into_iter()
        .enumerate()
    {
        let address = format!("moved{nth}@example.org");
        let id = schedule(&app, &address, hours(first)).await;
        let begin = app.clock.now();
        for at in &moved {
            let reply = move_to(&app, &id, text(begin + hours(*at)).into()).await;
            assert_eq!(reply.data(200)["id"], id);
        }
        let last = hours(*moved.last().unwrap());
        app.advance_and_drain(last - TimeDelta::seconds(1)).await;
        assert!(app.captured(&address).is_empty(), "{moved:?}");
        app.advance(TimeDelta::seconds(1));
        is_captured(&app, &address).await;
        let audit = app
            .value("SELECT count(*) FROM audit_logs WHERE action = 'message.rescheduled'")
            .await;
        assert!(audit.is_some_and(|count| count != "0"));
    }
}

#[tokio::test]
async fn null_is_now() {
    // Without a scheduler nothing but the change itself pushes the job.
    let app = TestApp::builder().without_scheduler().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = schedule(&app, "now@example.org", TimeDelta::days(100)).await;
    move_to(&app, &id, Value::Null).await.expect(200);
    is_captured(&app, "now@example.org").await;
}

#[tokio::test]
async fn a_wrong_time_is_refused() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let fields = json!({
        "scheduledAt": text(ahead(&app, TimeDelta::hours(1))),
        "expiresAt": text(ahead(&app, TimeDelta::hours(2))),
    });
    let id = app.send(&message_with("one@example.org", &fields)).await;
    for wrong in [
        json!("tomorrow"),
        json!("2036-01-01"),
        json!("2027-01-01T00:00:00"),
        json!(1),
        json!([]),
        json!(text(ahead(&app, -TimeDelta::seconds(1)))),
        json!(text(ahead(&app, TimeDelta::days(367)))),
        json!(text(ahead(&app, TimeDelta::hours(2)))),
    ] {
        let reply = move_to(&app, &id, wrong.clone()).await;
        assert_eq!(reply.status, 400, "{wrong}: {reply:?}");
        reply.expect_issues(400, &["scheduledAt"]);
    }
    let path = format!("/v1/messages/{id}");
    app.patch(&path, &json!({})).await.expect(200);
    let unknown = json!({ "scheduledAt": null, "subject": "Other" });
    app.patch(&path, &unknown)
        .await
        .expect_issues(400, &["subject"]);
    app.advance_and_drain(TimeDelta::minutes(59)).await;
    assert!(app.captured("one@example.org").is_empty());
    app.advance(TimeDelta::minutes(1));
    is_captured(&app, "one@example.org").await;
}

#[tokio::test]
async fn only_a_scheduled_message_that_has_not_begun_is_moved() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let later: Value = text(ahead(&app, TimeDelta::days(2))).into();
    let sent = app.send_to("sent@example.org").await;
    app.drain().await;
    assert_conflict(
        &move_to(&app, &sent, later.clone()).await,
        "MESSAGE_NOT_SCHEDULED",
    );
    let id = schedule(&app, "two@example.org", TimeDelta::hours(1)).await;
    let other = app.tenant("Stranger").await;
    let path = format!("/v1/messages/{id}");
    let body = json!({ "scheduledAt": null });
    other
        .caller
        .patch(&path, &body)
        .await
        .expect_error(404, "NOT_FOUND");
    let key = app
        .key(app.organization_id(), &[Permission::MetricsRead])
        .await;
    app.caller()
        .with_key(&key)
        .patch(&path, &body)
        .await
        .expect_error(403, "FORBIDDEN");
    app.simulator().set_fault(broken(FaultKind::Error));
    app.advance(TimeDelta::hours(1));
    wait_until("it is tried", async || !app.attempts(&id).await.is_empty()).await;
    app.drain().await;
    assert_conflict(&move_to(&app, &id, later.clone()).await, "MESSAGE_SENDING");
    app.simulator().clear_faults();
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_conflict(&move_to(&app, &id, later.clone()).await, "MESSAGE_SENT");
    let id = schedule(&app, "three@example.org", TimeDelta::hours(1)).await;
    app.post(&format!("/v1/messages/{id}/cancel"), &json!({}))
        .await
        .expect(200);
    assert_conflict(&move_to(&app, &id, later).await, "MESSAGE_FINISHED");
    assert_eq!(dropped(&app, &id).await, ["CANCELLED"]);
}
