//! A message's attempts in the API, and the manual retry of a failed message.

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::{Fault, FaultCalls, FaultKind};
use waypost_tests::{TestApp, message_to, to_hash, wait_until};

fn broken(kind: FaultKind, latency_ms: u64) -> Fault {
    Fault {
        provider: None,
        kind,
        rate: 1.0,
        latency_ms,
        calls: FaultCalls::Send,
    }
}

async fn attempts(app: &TestApp, id: &str) -> Vec<Value> {
    let message = app.message(id).await;
    message["attempts"].as_array().unwrap().clone()
}

async fn total(app: &TestApp, status: &str) -> i64 {
    let page = app.get(&format!("/v1/messages?status={status}")).await;
    page.expect(200)["pagination"]["total"].as_i64().unwrap()
}

/// A message that a provider did not accept for a day.
async fn failed(app: &TestApp, recipient: &str) -> String {
    app.simulator().set_fault(broken(FaultKind::Error, 0));
    let id = app.send_to(recipient).await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::hours(25)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    id
}

/// Inserts a message that failed before the first attempt.
async fn failed_untried(app: &TestApp, recipient: &str) -> String {
    let id = app.send_to(recipient).await;
    for statement in [
        "DELETE FROM outbox",
        "UPDATE recipients SET status = 'FAILED'",
        "UPDATE messages SET status = 'FAILED'",
    ] {
        app.execute(statement).await;
    }
    id
}

#[tokio::test]
async fn every_attempt_is_listed_oldest_first() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("flaky@example.org").await;
    app.drain().await;
    app.advance_and_drain(TimeDelta::minutes(1)).await;
    let attempts = attempts(&app, &id).await;
    let [first, second] = attempts.as_slice() else {
        panic!("{attempts:?}");
    };
    let expected = json!({
        "id": first["id"],
        "toHash": to_hash("flaky@example.org"),
        "providerAccountId": account,
        "providerType": "SENDGRID",
        "startedAt": first["startedAt"],
        "durationMs": 0,
        "outcome": "UNAVAILABLE",
        "statusCode": 500,
        "reason": first["reason"],
    });
    assert_eq!(first, &expected);
    assert!(first["reason"].as_str().unwrap().contains("500"), "{first}");
    assert_eq!(second["outcome"], "ACCEPTED");
    assert_eq!(second["statusCode"], 202);
    assert_eq!(second["reason"], Value::Null);
    let times = [first, second].map(|attempt| attempt["startedAt"].as_str().unwrap());
    assert!(times[0] < times[1], "{times:?}");
}

#[tokio::test]
async fn a_running_call_is_pending_and_a_lost_response_unknown() {
    let app = TestApp::builder()
        .setting("WAYPOST_PROVIDER_TIMEOUT", "1s")
        .start()
        .await;
    app.connect(ProviderType::Postmark).await;
    let id = app.send_to("timeout-once@example.org").await;
    wait_until("the call is under way", async || {
        !attempts(&app, &id).await.is_empty()
    })
    .await;
    let pending = attempts(&app, &id).await;
    assert_eq!(pending[0]["outcome"], "PENDING", "{pending:?}");
    assert_eq!(pending[0]["durationMs"], Value::Null);
    assert_eq!(pending[0]["statusCode"], Value::Null);
    app.drain().await;
    let lost = attempts(&app, &id).await;
    assert_eq!(lost[0]["outcome"], "UNKNOWN");
    assert!(lost[0]["durationMs"].is_i64() && lost[0]["reason"].is_string());
    app.advance_and_drain(TimeDelta::minutes(16)).await;
    assert_eq!(attempts(&app, &id).await[1]["outcome"], "ACCEPTED");
}

#[tokio::test]
async fn a_deleted_accounts_provider_is_shown_and_so_are_the_newest_500() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Mailgun).await;
    let id = app.send_to("ada@example.org").await;
    app.drain().await;
    app.delete(&format!("/v1/providers/{account}"))
        .await
        .expect(200);
    let shown = attempts(&app, &id).await;
    assert_eq!(shown[0]["providerType"], "MAILGUN");
    assert_eq!(shown[0]["providerAccountId"], account.as_str());
    app.execute(&format!(
        "INSERT INTO send_attempts (message_id, id, organization_id, position, provider_account_id, started_at)
         SELECT message_id, gen_random_uuid(), organization_id, position, provider_account_id,
                started_at + n * interval '1 second'
         FROM send_attempts, generate_series(1, 600) n
         WHERE message_id = '{id}'"
    ))
    .await;
    let shown = attempts(&app, &id).await;
    assert_eq!(shown.len(), 500);
    assert!(shown.iter().all(|attempt| attempt["outcome"] == "PENDING"));
    let times: Vec<&str> = shown
        .iter()
        .map(|attempt| attempt["startedAt"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted());
}

#[tokio::test]
async fn a_failed_message_is_retried_and_sent_once() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = failed(&app, "ada@example.org").await;
    assert_eq!(total(&app, "FAILED").await, 1);
    let made = app.outcomes(&id).await.len();
    app.simulator().clear_faults();
    let data = app.retry(&id).await.data(200);
    assert_eq!(data["id"], id.as_str());
    assert!(data["attempts"].as_array().unwrap().len() >= made);
    app.retry(&id).await.expect_error(409, "CONFLICT");
    app.drain().await;
    assert_eq!(app.status(&id).await, "SENT");
    app.captured_once("ada@example.org");
    app.retry(&id).await.expect_error(409, "CONFLICT");
    let recipient = app.recipient(&id).await;
    assert_eq!(recipient["attempts"], 1, "counted from the retry");
    assert_eq!(recipient["lastError"], Value::Null);
    for (status, count) in [("FAILED", 0), ("QUEUED", 0), ("SENDING", 0), ("SENT", 1)] {
        assert_eq!(total(&app, status).await, count, "{status}");
    }
    let events = app.events(&id).await;
    let of = |wanted: &str| events.iter().filter(|event| *event == wanted).count();
    assert_eq!((of("QUEUED"), of("DROPPED"), of("SENT")), (1, 1, 1));
    assert_eq!(events.last().map(String::as_str), Some("SENT"));
    let summary = app.get("/v1/metrics/summary").await.data(200);
    assert_eq!(summary["totalSent"], 1);
    let entries = app.get("/v1/audit-logs?action=message.retried").await;
    let entries = entries.expect(200);
    assert_eq!(entries["pagination"]["total"], 1);
    let entry = &entries["data"][0];
    assert_eq!(
        entry["target"],
        json!({ "type": "message", "id": id.as_str() })
    );
    assert_eq!(entry["metadata"], json!({ "recipients": 1 }));
}

#[tokio::test]
async fn the_retry_horizon_starts_with_the_manual_retry() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Mailgun).await;
    let id = failed(&app, "ada@example.org").await;
    app.retry(&id).await.expect(200);
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert_eq!(app.status(&id).await, "QUEUED");
    assert_eq!(app.recipient(&id).await["attempts"], 2);
    app.advance_and_drain(TimeDelta::hours(24)).await;
    assert_eq!(app.status(&id).await, "FAILED");
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn only_failed_recipients_are_retried() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Postmark).await;
    let mut message = message_to("ada@example.org");
    message["to"] = json!(["ada@example.org", "refuse@example.org", "error@example.org"]);
    let id = app.send(&message).await;
    app.drain().await;
    let outbox = app.outbox().await;
    assert_eq!(outbox.len(), 1, "one recipient waits for its next try");
    app.retry(&id).await.expect(200);
    app.drain().await;
    assert_eq!(app.outbox().await.len(), 1);
    let statuses: Vec<Value> = app
        .recipients(&id)
        .await
        .iter()
        .map(|recipient| recipient["status"].clone())
        .collect();
    assert_eq!(statuses, ["SENT", "FAILED", "QUEUED"]);
    let attempts = attempts(&app, &id).await;
    let of = |address: &str| {
        let hash = to_hash(address);
        attempts
            .iter()
            .filter(|attempt| attempt["toHash"] == hash.as_str())
            .count()
    };
    assert_eq!(
        ["ada", "refuse", "error"].map(|name| of(&format!("{name}@example.org"))),
        [1, 2, 1]
    );
    app.captured_once("ada@example.org");
}

#[tokio::test]
async fn a_suppressed_recipient_is_dropped_again() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let mut message = message_to("ada@example.org");
    message["to"] = json!(["ada@example.org", "gone@example.org"]);
    app.post("/v1/suppressions", &json!({ "email": "gone@example.org" }))
        .await
        .expect(201);
    let id = app.send(&message).await;
    app.drain().await;
    app.retry(&id).await.expect(200);
    app.drain().await;
    let recipients = app.recipients(&id).await;
    assert_eq!(recipients[1]["status"], "FAILED");
    assert!(app.captured("gone@example.org").is_empty());
    app.captured_once("ada@example.org");
    assert_eq!(app.status(&id).await, "SENT");
}

#[tokio::test]
async fn a_message_that_cannot_be_retried_is_rejected() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let sent = app.send_to("ada@example.org").await;
    app.drain().await;
    let reply = app.retry(&sent).await;
    let error = reply.expect_error(409, "CONFLICT");
    assert!(reply.text.contains("FAILED"), "{error}");
    app.retry(&uuid::Uuid::nil().to_string())
        .await
        .expect_error(404, "NOT_FOUND");
    app.retry("no-id").await.expect_error(404, "NOT_FOUND");
    let id = failed(&app, "bob@example.org").await;
    let stranger = app.tenant("Other").await.caller;
    stranger
        .post_empty(&format!("/v1/messages/{id}/retry"))
        .await
        .expect_error(404, "NOT_FOUND");
    let reader = app
        .key(app.organization_id(), &[Permission::MetricsRead])
        .await;
    app.caller()
        .with_key(&reader)
        .post_empty(&format!("/v1/messages/{id}/retry"))
        .await
        .expect_error(403, "FORBIDDEN");
    app.execute(&format!(
        "DELETE FROM message_bodies WHERE message_id = '{id}'"
    ))
    .await;
    app.retry(&id).await.expect_error(409, "CONFLICT");
    assert_eq!(app.status(&id).await, "FAILED");
    assert!(app.outbox().await.is_empty());
}

#[tokio::test]
async fn of_many_concurrent_retries_one_succeeds() {
    let app = TestApp::builder().without_worker().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = failed_untried(&app, "ada@example.org").await;
    let replies = join_all((0..8).map(|_| app.retry(&id))).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    app.start_worker();
    app.drain().await;
    app.captured_once("ada@example.org");
}
