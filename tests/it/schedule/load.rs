//! Many messages that are due in the same second.
//!
//! `WAYPOST_TEST_DUE_AT_ONCE` sets how many; 100,000 measure what is promised.

use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{Caller, Process, TestApp, credentials, message_to, wait_within};

use super::{ahead, message_with, text};

/// Messages per batch.
const BATCH: usize = 1_000;
/// Builds share the machine.
const BOUND: Duration = Duration::from_secs(300);

#[expect(
    clippy::disallowed_methods,
    reason = "a setting of this test, which no program reads"
)]
fn due_at_once() -> usize {
    let given = std::env::var("WAYPOST_TEST_DUE_AT_ONCE").ok();
    given.and_then(|count| count.parse().ok()).unwrap_or(5_000)
}

async fn number(app: &TestApp, query: &str) -> i64 {
    app.value(query).await.unwrap().parse().unwrap()
}

async fn schedule_many(app: &TestApp, count: usize, fields: &Value) {
    stream::iter(0..count / BATCH)
        .for_each_concurrent(4, |batch| async move {
            let from = batch * BATCH;
            let messages: Vec<Value> = (from..from + BATCH)
                .map(|nth| message_with(&format!("busy{nth}@example.org"), fields))
                .collect();
            let body = json!({ "messages": messages });
            app.post("/v1/emails/batch", &body).await.expect(200);
        })
        .await;
}

#[tokio::test]
async fn many_due_in_one_second_go_and_nobody_elses_mail_waits_for_them() {
    let app = TestApp::builder()
        .processes()
        .private_redis()
        // As in production; the relay must not push again what waits.
        .setting("WAYPOST_RELAY_GRACE", "15s")
        .start()
        .await;
    let mut processes: Vec<Process> = vec![app.spawn_api().await];
    app.connect(ProviderType::Sendgrid).await;
    let other = app.tenant("Stranger").await;
    let account = json!({
        "providerType": ProviderType::Postmark,
        "displayName": "An account",
        "credentials": credentials(ProviderType::Postmark),
    });
    other
        .caller
        .post("/v1/providers", &account)
        .await
        .expect(201);
    let count = due_at_once();
    let far = json!({ "scheduledAt": text(ahead(&app, TimeDelta::days(30))) });
    schedule_many(&app, count, &far).await;
    processes.extend([
        app.spawn_worker(),
        app.spawn_worker(),
        app.spawn_scheduler(),
    ]);
    app.execute("VACUUM ANALYZE outbox").await;
    // All of them at one moment, as if they had been scheduled for it.
    app.execute(
        "WITH at AS MATERIALIZED (SELECT clock_timestamp() + interval '15 seconds' AS due),
              r AS (UPDATE recipients SET next_attempt_at = at.due FROM at),
              m AS (UPDATE messages SET scheduled_at = at.due FROM at)
         UPDATE outbox SET due_at = at.due, wake_at = at.due + interval '15 seconds' FROM at",
    )
    .await;
    let due = app.value("SELECT min(due_at) FROM outbox").await.unwrap();
    let due = DateTime::parse_from_str(&due, "%Y-%m-%d %H:%M:%S%.f%#z").unwrap();
    let in_time = wait_within(BOUND, async || app.clock.now() >= due).await;
    assert!(in_time && app.simulator().captured_count() == 0);
    let since = Instant::now();
    let overtaken = send_beside(&app, &other.caller).await;
    let pushed = wait_within(BOUND, async || {
        number(&app, "SELECT count(*) FROM outbox WHERE due_at IS NOT NULL").await == 0
    })
    .await;
    println!(
        "{count} were in the queue at most {:?} after their time",
        since.elapsed()
    );
    assert!(pushed);
    let all = count as u64 + 10;
    let sent = wait_within(BOUND, async || app.simulator().captured_count() >= all).await;
    println!(
        "{} were sent {:?} after their time",
        app.simulator().captured_count(),
        since.elapsed()
    );
    assert!(sent);
    let is_done = wait_within(BOUND, async || app.outbox().await.is_empty()).await;
    assert!(is_done);
    assert_eq!(app.simulator().captured_count(), all);
    let begun = "SELECT round(extract(epoch FROM max(started_at) - min(scheduled_at)), 3)
         FROM send_attempts a JOIN messages m ON m.id = a.message_id WHERE scheduled_at IS NOT NULL";
    let begun = app.value(begun).await.unwrap();
    println!("The last call began {begun} s after its time");
    // What waits in the queue of a worker, and the slots of two.
    let most = 2 * 512 + 2 * 256;
    assert!(
        overtaken.iter().all(|count| *count <= most),
        "{overtaken:?}"
    );
}

/// Sends mails of another organization. Returns how many mails went before each of them.
async fn send_beside(app: &TestApp, other: &Caller) -> Vec<u64> {
    let (mut waits, mut overtaken) = (Vec::new(), Vec::new());
    for nth in 0..10 {
        let address = format!("other{nth}@example.org");
        let sent = Instant::now();
        let before = app.simulator().captured_count();
        other
            .post("/v1/send", &message_to(&address))
            .await
            .expect(202);
        let arrived = wait_within(BOUND, async || !app.captured(&address).is_empty()).await;
        assert!(arrived);
        waits.push(sent.elapsed());
        overtaken.push(app.captured_once(&address).sequence - before);
    }
    println!("Another organization's mail waited {waits:?}, behind {overtaken:?} others");
    overtaken
}
