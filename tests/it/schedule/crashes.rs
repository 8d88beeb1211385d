//! Crashes around the due time: nothing is lost, nothing is sent early, and nothing is sent
//! twice without a recorded reason. Processes and time are real.

use std::sync::OnceLock;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};
use waypost_core::clock::Timestamp;
use waypost_core::provider::kind::ProviderType;
use waypost_simulator::Fault;
use waypost_tests::{TestApp, wait_until, wait_within};

use super::{ahead, message_with, text};

/// Leases of 6 s end, another scheduler takes over, and builds share the machine.
const RECOVERED_WITHIN: Duration = Duration::from_secs(90);
const MESSAGES: usize = 40;

fn address(number: usize) -> String {
    format!("r{number}@example.org")
}

/// Messages that are due at one moment, which is returned with their ids.
async fn schedule_all(app: &TestApp, by: TimeDelta) -> (Vec<String>, Timestamp) {
    let due = ahead(app, by);
    let fields = json!({ "scheduledAt": text(due) });
    let messages = (0..MESSAGES).map(|number| message_with(&address(number), &fields));
    // One request, since time is real.
    let batch = json!({ "messages": messages.collect::<Vec<_>>() });
    let reply = app.post("/v1/emails/batch", &batch).await.expect(200);
    assert!(app.clock.now() < due, "accepting took too long");
    let results = reply["results"].as_array().unwrap().iter();
    let ids = results.map(|result| result["messageId"].as_str().unwrap().to_owned());
    (ids.collect(), due)
}

async fn until(app: &TestApp, time: Timestamp) {
    let is_reached = wait_within(RECOVERED_WITHIN, async || app.clock.now() >= time).await;
    assert!(is_reached);
}

/// A message, as soon as the API shows it: it answers 503 until it has noticed that a restarted
/// Postgres is back.
async fn shown(app: &TestApp, id: &str) -> Value {
    let message = OnceLock::new();
    let is_shown = wait_within(RECOVERED_WITHIN, async || {
        let reply = app.get(&format!("/v1/messages/{id}")).await;
        reply.status == 200 && message.set(reply.data(200)).is_ok()
    })
    .await;
    assert!(is_shown, "{id} is not shown");
    message.into_inner().unwrap()
}

async fn each_was_sent_in_time_and_once(app: &TestApp, ids: &[String], due: Timestamp) {
    let is_done = wait_within(RECOVERED_WITHIN, async || {
        // A Postgres that restarts refuses connections for a moment.
        let left = sqlx::query_scalar("SELECT count(*) FROM outbox");
        left.fetch_one(&app.pool).await.unwrap_or(-1_i64) == 0
    })
    .await;
    assert!(is_done, "work is left: {:?}", app.outbox().await);
    for (nth, id) in ids.iter().enumerate() {
        let message = shown(app, id).await;
        assert_eq!(message["status"], "SENT", "{id}");
        let copies = app.captured(&address(nth));
        let outcomes = app.outcomes(id).await;
        let unknown = outcomes
            .iter()
            .filter(|outcome| *outcome == "UNKNOWN")
            .count();
        assert!(
            (1..=1 + unknown).contains(&copies.len()),
            "{id} was sent {} times: {outcomes:?}",
            copies.len()
        );
        for copy in copies {
            let at = DateTime::parse_from_rfc3339(&copy.accepted_at).unwrap();
            assert!(
                at >= due - TimeDelta::milliseconds(1),
                "{at} is before {due}"
            );
        }
    }
}

#[tokio::test]
async fn processes_killed_around_the_due_time_lose_nothing() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let mut api = app.spawn_api().await;
    let mut doomed = (app.spawn_worker(), app.spawn_scheduler());
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(Fault::slow_sends(300));
    let (ids, due) = schedule_all(&app, TimeDelta::seconds(5)).await;
    api.kill().await;
    until(&app, due).await;
    wait_until("some are sent", async || {
        app.simulator().captured_count() > 0
    })
    .await;
    doomed.1.kill().await;
    doomed.0.kill().await;
    app.simulator().clear_faults();
    let _api = app.spawn_api().await;
    let mut second = (app.spawn_scheduler(), app.spawn_worker());
    second.0.kill().await;
    let _others = (app.spawn_scheduler(), app.spawn_worker());
    each_was_sent_in_time_and_once(&app, &ids, due).await;
}

#[tokio::test]
async fn a_redis_emptied_around_the_due_time_loses_nothing() {
    let app = TestApp::builder().processes().private_redis().start().await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(Fault::slow_sends(200));
    let (ids, due) = schedule_all(&app, TimeDelta::seconds(5)).await;
    let redis = app.redis.as_ref().unwrap();
    redis.flush().await;
    for milliseconds in [0, 100, 250, 300, 400, 600, 900] {
        until(&app, due + TimeDelta::milliseconds(milliseconds)).await;
        redis.flush().await;
    }
    each_was_sent_in_time_and_once(&app, &ids, due).await;
    assert_eq!(app.simulator().captured_count(), MESSAGES as u64);
}

#[tokio::test]
async fn without_redis_workers_take_what_is_due_from_postgres() {
    let mut app = TestApp::builder().processes().private_redis().start().await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Sendgrid).await;
    let (ids, due) = schedule_all(&app, TimeDelta::seconds(6)).await;
    app.redis.as_mut().unwrap().stop().await;
    until(&app, due).await;
    each_was_sent_in_time_and_once(&app, &ids, due).await;
    assert_eq!(app.simulator().captured_count(), MESSAGES as u64);
}

#[tokio::test]
async fn a_postgres_that_crashes_around_the_due_time_loses_nothing() {
    let mut app = TestApp::builder()
        .processes()
        .private_redis()
        .private_postgres()
        .start()
        .await;
    let _all = (
        app.spawn_api().await,
        app.spawn_worker(),
        app.spawn_scheduler(),
    );
    app.connect(ProviderType::Sendgrid).await;
    app.simulator().set_fault(Fault::slow_sends(200));
    let (ids, due) = schedule_all(&app, TimeDelta::seconds(6)).await;
    let postgres = app.postgres.as_mut().unwrap();
    // Before it, at it, and while they are sent.
    postgres.stop().await;
    postgres.resume().await;
    until(&app, due + TimeDelta::milliseconds(300)).await;
    for _ in 0..2 {
        let postgres = app.postgres.as_mut().unwrap();
        postgres.stop().await;
        postgres.resume().await;
    }
    each_was_sent_in_time_and_once(&app, &ids, due).await;
}
