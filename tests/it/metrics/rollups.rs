//! Roll-ups: whatever is rolled up, by which process, how often and amid what else, the
//! responses stay the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::TimeDelta;
use futures_util::future::join_all;
use serde_json::Value;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::event::EventType;
use waypost_core::message::list;
use waypost_core::metrics;
use waypost_core::provider::kind::ProviderType;
use waypost_tests::{TestApp, wait_until};

use super::{agreed, fold, quiet, record, sent_in_all, total};

/// Sent messages and other events over some days, none of them rolled up.
async fn history(app: &TestApp, copies: i64) {
    app.connect(ProviderType::Sendgrid).await;
    let id = app.send_to("a@example.org").await;
    app.leave_work();
    let now = app.clock.now();
    for number in 0..copies {
        let at = now - TimeDelta::hours(number * 7);
        record(app, &id, 0, EventType::Sent, at, None).await;
        if number % 3 == 0 {
            record(app, &id, 0, EventType::Delivered, at, None).await;
        }
    }
    record(app, &id, 0, EventType::Opened, now, None).await;
}

async fn delta_count(app: &TestApp) -> i64 {
    let count = app.value("SELECT count(*) FROM metric_deltas").await;
    count.unwrap().parse().unwrap()
}

async fn answer(app: &TestApp) -> Value {
    let now = app.clock.now();
    agreed(
        app.caller(),
        now - TimeDelta::days(60),
        now + TimeDelta::hours(1),
    )
    .await
}

#[tokio::test]
async fn repeated_and_partial_rollups_change_nothing() {
    let app = quiet().await;
    history(&app, 20).await;
    let before = answer(&app).await;
    assert_eq!(total(&before, "sent"), 20);
    assert!(delta_count(&app).await > 20);
    while fold(&app.pool, 3).await > 0 {
        assert_eq!(answer(&app).await, before);
    }
    assert_eq!(delta_count(&app).await, 0);
    assert_eq!(fold(&app.pool, 100).await, 0);
    assert_eq!(answer(&app).await, before);
    // Later counts are added to the roll-ups.
    let id = app.value("SELECT id FROM messages").await.unwrap();
    record(&app, &id, 0, EventType::Sent, app.clock.now(), None).await;
    assert_eq!(total(&answer(&app).await, "sent"), 21);
    fold(&app.pool, 100).await;
    assert_eq!(total(&answer(&app).await, "sent"), 21);
}

#[tokio::test]
async fn two_concurrent_rollups_during_reads_count_everything_once() {
    let app = quiet().await;
    history(&app, 60).await;
    let before = answer(&app).await;
    let done = Arc::new(AtomicBool::new(false));
    let folders = (0..2).map(|_| {
        let (pool, done) = (app.pool.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let mut taken = 0;
            while !done.load(Ordering::SeqCst) {
                taken += fold(&pool, 2).await;
            }
            taken
        })
    });
    let folders: Vec<_> = folders.collect();
    let all = delta_count(&app).await;
    let mut looks = 0;
    while delta_count(&app).await > 0 || looks < 3 {
        assert_eq!(answer(&app).await, before);
        looks += 1;
    }
    done.store(true, Ordering::SeqCst);
    let taken: i64 = join_all(folders)
        .await
        .into_iter()
        .map(Result::unwrap)
        .sum();
    assert!(taken >= all, "{taken} of {all}");
    assert_eq!(answer(&app).await, before);
}

#[tokio::test]
async fn the_shards_contain_every_organization_exactly_once() {
    let app = quiet().await;
    app.execute(
        "INSERT INTO metric_deltas (organization_id, quarter, account, domain, template,
                                    sent, delivered, opened, clicked, bounced, complained, unsubscribed)
         SELECT gen_random_uuid(), date_trunc('hour', now()), 'SMTP', 'example.com', '', 1, 0, 0, 0, 0, 0, 0
         FROM generate_series(1, 400)",
    )
    .await;
    app.execute(
        "INSERT INTO message_count_deltas (organization_id, status, change)
         SELECT organization_id, 'SENT', 1 FROM metric_deltas",
    )
    .await;
    app.execute(
        "INSERT INTO message_transitions (organization_id, was, status, count)
         SELECT organization_id, 'QUEUED', 'SENT', 1 FROM metric_deltas",
    )
    .await;
    app.execute(
        "INSERT INTO new_messages (organization_id, message_id, subject)
         SELECT organization_id, gen_random_uuid(), 'hello' FROM metric_deltas",
    )
    .await;
    let left = async || {
        let tables = [
            "metric_deltas",
            "message_count_deltas",
            "message_transitions",
            "new_messages",
        ];
        let counts = tables.map(|table| format!("(SELECT count(*) FROM {table})"));
        app.value(&format!("concat_ws(' ', {})", counts.join(", ")))
            .await
    };
    let mut connection = app.pool.acquire().await.unwrap();
    let mut folded = 0;
    for share in OrganizationShard::all(7) {
        let metrics = metrics::store::roll_up(&mut connection, share, 1_000)
            .await
            .unwrap();
        let messages = list::store::roll_up(&mut connection, share, 1_000)
            .await
            .unwrap();
        assert!((10..200).contains(&metrics), "{metrics} in {share:?}");
        assert_eq!(metrics, messages, "{share:?}");
        folded += metrics;
        let waiting = 400 - folded;
        let each = format!("{waiting} {waiting} {waiting} {waiting}");
        assert_eq!(left().await, Some(each), "{share:?}");
    }
    assert_eq!(OrganizationShard::all(7).len(), 8);
    assert_eq!(folded, 400);
    assert_eq!(delta_count(&app).await, 0);
    let counted = app.value("SELECT sum(count) FROM message_counts WHERE status = 'SENT'");
    assert_eq!(counted.await.as_deref(), Some("800"));
}

#[tokio::test]
async fn a_scheduler_that_dies_during_a_rollup_has_changed_nothing() {
    let app = quiet().await;
    history(&app, 10).await;
    let before = answer(&app).await;
    let waiting = delta_count(&app).await;
    let mut transaction = app.pool.begin().await.unwrap();
    let taken = metrics::store::roll_up(&mut transaction, OrganizationShard::WHOLE, 1_000)
        .await
        .unwrap();
    assert_eq!(taken, waiting);
    assert_eq!(answer(&app).await, before);
    // Another process waits for the rows that the first one has taken.
    let pool = app.pool.clone();
    let other = tokio::spawn(async move { fold(&pool, 1_000).await });
    let waits = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait_until("the other process waits", async || {
        app.value(waits).await.as_deref() == Some("1")
    })
    .await;
    // The connection is cut, as by a killed process.
    app.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND state = 'idle in transaction'",
    )
    .await;
    drop(transaction);
    assert_eq!(other.await.unwrap(), waiting);
    assert_eq!(delta_count(&app).await, 0);
    assert_eq!(answer(&app).await, before);
}

#[tokio::test]
async fn the_scheduler_rolls_up_everything_beside_a_second_one() {
    let app = TestApp::builder().start().await;
    app.connect(ProviderType::Sendgrid).await;
    let second = app.spawn_scheduler();
    for number in 0..20 {
        app.send_to(&format!("r{number}@example.org")).await;
    }
    app.drain().await;
    assert_eq!(sent_in_all(&app).await, 20);
    for table in [
        "metric_deltas",
        "message_count_deltas",
        "message_transitions",
        "new_messages",
    ] {
        wait_until(table, async || {
            app.value(&format!("SELECT count(*) FROM {table}"))
                .await
                .as_deref()
                == Some("0")
        })
        .await;
    }
    assert_eq!(sent_in_all(&app).await, 20);
    let rolled_up =
        "SELECT sum(sent) FROM metric_rollups WHERE filter = 'TOTAL' AND grouped_by = 'TOTAL'";
    assert_eq!(app.value(rolled_up).await.as_deref(), Some("20"));
    let counts = app.value("SELECT sum(count) FROM message_counts").await;
    assert_eq!(counts.as_deref(), Some("20"));
    let subjects = app.value("SELECT count(*) FROM message_subjects").await;
    assert_eq!(subjects.as_deref(), Some("20"));
    drop(second);
}

#[tokio::test]
async fn every_counted_event_leaves_a_delta_whatever_inserts_it() {
    let app = quiet().await;
    history(&app, 5).await;
    // Even with plain SQL.
    app.execute(
        "INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
         SELECT id, gen_random_uuid(), organization_id, 0, 'SENT', created_at FROM messages",
    )
    .await;
    assert_eq!(total(&answer(&app).await, "sent"), 6);
    let mut connection = app.pool.acquire().await.unwrap();
    while metrics::store::roll_up(&mut connection, OrganizationShard::WHOLE, 1)
        .await
        .unwrap()
        > 0
    {}
    assert_eq!(total(&answer(&app).await, "sent"), 6);
}
