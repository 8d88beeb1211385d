//! Scheduled messages: they wait in Postgres, go at their time and not before, and are decided
//! then; their owner moves or cancels them.

mod cancel;
mod crashes;
mod expiry;
mod load;
mod moving;
mod races;

use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use waypost_core::clock::Timestamp;
use waypost_core::delivery::job::{SendJob, send_queue};
use waypost_core::job_queue::Depth;
use waypost_core::provider::kind::ProviderType;
use waypost_core::redis::Redis;
use waypost_core::secret::Secret;
use waypost_simulator::{Fault, FaultCalls, FaultKind, Provider};
use waypost_tests::{TestApp, message_to, wait_until};

fn text(time: Timestamp) -> String {
    time.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A time so long after now.
fn ahead(app: &TestApp, by: TimeDelta) -> Timestamp {
    app.clock.now() + by
}

/// A message with further fields.
fn message_with(recipient: &str, fields: &Value) -> Value {
    let mut message = message_to(recipient);
    let members = message.as_object_mut().unwrap();
    members.extend(fields.as_object().unwrap().clone());
    message
}

/// Sends a message that is due so long after now.
async fn schedule(app: &TestApp, recipient: &str, by: TimeDelta) -> String {
    let fields = json!({ "scheduledAt": text(ahead(app, by)) });
    app.send(&message_with(recipient, &fields)).await
}

/// The reasons of the DROPPED events of a message, in order.
async fn dropped(app: &TestApp, id: &str) -> Vec<String> {
    let reasons = app
        .value(&format!(
            "SELECT string_agg(data ->> 'reason', ',' ORDER BY position)
             FROM events WHERE message_id = '{id}' AND event_type = 'DROPPED'"
        ))
        .await;
    let reasons = reasons.iter().flat_map(|all| all.split(','));
    reasons.map(str::to_owned).collect()
}

fn queue(app: &TestApp) -> waypost_core::job_queue::Queue<SendJob> {
    let url = app.variables["REDIS_URL"].clone();
    let redis = Redis::new(&Secret::from(url), &app.variables["WAYPOST_REDIS_PREFIX"]).unwrap();
    send_queue(&redis, app.clock.clone())
}

fn broken(kind: FaultKind) -> Fault {
    Fault {
        provider: None,
        kind,
        rate: 1.0,
        latency_ms: 0,
        calls: FaultCalls::Send,
    }
}

async fn is_captured(app: &TestApp, address: &str) {
    wait_until("it is sent", async || !app.captured(address).is_empty()).await;
    app.drain().await;
    app.captured_once(address);
}

#[tokio::test]
async fn a_scheduled_message_waits_in_postgres_and_goes_at_its_time() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    for (nth, days) in [0, 1, 364].into_iter().enumerate() {
        let address = format!("later{nth}@example.org");
        let by = TimeDelta::days(days) + TimeDelta::hours(2);
        let id = schedule(&app, &address, by).await;
        app.advance_and_drain(by - TimeDelta::milliseconds(1)).await;
        assert_eq!(queue(&app).depth().await.unwrap(), Depth::default());
        assert_eq!(app.status(&id).await, "QUEUED");
        assert_eq!(app.events(&id).await, ["QUEUED"]);
        assert!(app.captured(&address).is_empty());
        app.advance(TimeDelta::milliseconds(1));
        is_captured(&app, &address).await;
        assert_eq!(app.status(&id).await, "SENT");
    }
}

#[tokio::test]
async fn nothing_sends_a_scheduled_message_early() {
    let app = TestApp::start().await;
    let account = app.connect(ProviderType::Sendgrid).await;
    let id = schedule(&app, "later@example.org", TimeDelta::hours(3)).await;
    // Its account could not send for a while, and then its waiting mail was made due.
    app.simulator().set_fault(broken(FaultKind::Suspended));
    app.send_to("first@example.org").await;
    let query =
        format!("SELECT sending_paused_since FROM provider_accounts WHERE id = '{account}'");
    wait_until("the account is paused", async || {
        app.value(&query).await.is_some()
    })
    .await;
    app.simulator().clear_faults();
    app.advance(TimeDelta::hours(1));
    wait_until("the account sends again", async || {
        !app.captured("first@example.org").is_empty()
    })
    .await;
    // A job of it is in Redis, whoever pushed it.
    let job = SendJob {
        message_id: id
            .parse::<uuid::Uuid>()
            .map(waypost_core::ids::MessageId)
            .unwrap(),
        chunk: 0,
        organization_id: app.organization_id(),
    };
    queue(&app).push(&[job, job]).await.unwrap();
    app.advance_and_drain(TimeDelta::hours(1)).await;
    assert!(app.captured("later@example.org").is_empty());
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance(TimeDelta::hours(1));
    is_captured(&app, "later@example.org").await;
}

#[tokio::test]
async fn the_retry_horizon_begins_at_its_time() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(broken(FaultKind::Error));
    let id = schedule(&app, "later@example.org", TimeDelta::days(3)).await;
    app.advance(TimeDelta::days(3));
    wait_until("it is tried", async || !app.attempts(&id).await.is_empty()).await;
    app.drain().await;
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::hours(23)).await;
    assert_eq!(app.status(&id).await, "QUEUED");
    app.advance_and_drain(TimeDelta::hours(2)).await;
    assert_eq!(app.status(&id).await, "FAILED");
}

#[tokio::test]
async fn routing_is_decided_when_it_goes() {
    let app = TestApp::start().await;
    let first = app.connect(ProviderType::Sendgrid).await;
    let second = app.connect(ProviderType::Mailgun).await;
    let ids = [
        schedule(&app, "one@example.org", TimeDelta::hours(1)).await,
        schedule(&app, "two@example.org", TimeDelta::hours(2)).await,
    ];
    let rule = json!({ "name": "All", "priority": 1, "providerAccountId": second });
    let reply = app.post("/v1/routing-rules", &rule).await;
    let rule = reply.data(201)["id"].as_str().unwrap().to_owned();
    app.advance(TimeDelta::hours(1));
    is_captured(&app, "one@example.org").await;
    let captured = app.captured_once("one@example.org");
    assert_eq!(captured.provider, Provider::Mailgun);
    // Without any account it waits for one, as a message of now would.
    let path = format!("/v1/routing-rules/{rule}");
    app.patch(&path, &json!({ "providerAccountId": first }))
        .await
        .expect(200);
    for account in [&first, &second] {
        let path = format!("/v1/providers/{account}");
        app.patch(&path, &json!({ "isActive": false }))
            .await
            .expect(200);
    }
    app.advance(TimeDelta::hours(1));
    wait_until("it found no account", async || {
        let recipient = app.recipient(&ids[1]).await;
        recipient["lastError"]
            .as_str()
            .is_some_and(|error| error.contains("no active"))
    })
    .await;
    let path = format!("/v1/providers/{first}");
    app.patch(&path, &json!({ "isActive": true }))
        .await
        .expect(200);
    app.advance(TimeDelta::hours(1));
    is_captured(&app, "two@example.org").await;
    assert_eq!(
        app.captured_once("two@example.org").provider,
        Provider::SendGrid
    );
}

#[tokio::test]
async fn suppressions_are_decided_when_it_goes() {
    let app = TestApp::start().await;
    app.connect(ProviderType::Sendgrid).await;
    let id = schedule(&app, "gone@example.org", TimeDelta::hours(1)).await;
    let suppression = json!({ "email": "gone@example.org" });
    app.post("/v1/suppressions", &suppression).await.expect(201);
    app.advance(TimeDelta::hours(1));
    wait_until("it is dropped", async || app.status(&id).await == "FAILED").await;
    assert_eq!(dropped(&app, &id).await, ["suppressed"]);
    assert_eq!(app.simulator().captured_count(), 0);
}

#[tokio::test]
async fn a_pinned_account_has_no_fallback_and_no_substitute() {
    let app = TestApp::start().await;
    let pinned = app.connect(ProviderType::Sendgrid).await;
    let other = app.connect(ProviderType::Mailgun).await;
    let rule = json!({
        "name": "All", "priority": 1, "providerAccountId": pinned,
        "fallbackProviderAccountIds": [other],
    });
    app.post("/v1/routing-rules", &rule).await.expect(201);
    app.simulator().set_fault(Fault {
        provider: Some(Provider::SendGrid),
        ..broken(FaultKind::Error)
    });
    let fields = json!({ "providerAccountId": pinned });
    let id = app.send(&message_with("one@example.org", &fields)).await;
    app.drain().await;
    for _ in 0..4 {
        app.advance_and_drain(TimeDelta::minutes(31)).await;
    }
    let path = format!("/v1/providers/{pinned}");
    app.patch(&path, &json!({ "isActive": false }))
        .await
        .expect(200);
    app.advance_and_drain(TimeDelta::minutes(31)).await;
    let attempts = app.attempts(&id).await;
    assert!(attempts.len() >= 3, "{attempts:?}");
    for attempt in attempts {
        assert_eq!(attempt.account_id.to_string(), pinned);
    }
    assert_eq!(app.simulator().captured_count(), 0);
    assert_eq!(app.status(&id).await, "QUEUED");
    app.simulator().clear_faults();
    app.patch(&path, &json!({ "isActive": true }))
        .await
        .expect(200);
    app.advance(TimeDelta::minutes(31));
    is_captured(&app, "one@example.org").await;
    assert_eq!(
        app.captured_once("one@example.org").provider,
        Provider::SendGrid
    );
}
