//! Months that are created and dropped during sends, and while schedulers die.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use waypost_core::clock::Timestamp;
use waypost_core::partition::{self, DropOutcome, Month};
use waypost_tests::{TestApp, wait_until};

use super::{OLD, add_old, assert_counted, partitions_of, quiet, retention, total};

/// The longest time of a send while months are created and dropped.
const SEND_MAX: Duration = Duration::from_secs(5);

/// Sends one after the other until stopped; returns the number and the longest time.
async fn keep_sending(app: &TestApp, is_over: &AtomicBool) -> (usize, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !is_over.load(Ordering::SeqCst) {
        let begun = Instant::now();
        app.send_to("a@example.org").await;
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    (count, longest)
}

#[tokio::test]
async fn sends_do_not_wait_for_months_that_are_created_and_dropped() {
    let app = quiet().await;
    for month in ["2020-01-01Z", "2020-02-01Z", "2020-03-01Z"] {
        add_old(&app, month, 3_000).await;
    }
    let is_over = AtomicBool::new(false);
    let months = async {
        // The next three years, with a long-running reader.
        let made = partition::create_ahead(&app.pool, app.clock.now(), 12)
            .await
            .unwrap();
        assert!(made > 0);
        let mut reader = app.pool.begin().await.unwrap();
        sqlx::query("LOCK TABLE messages IN ACCESS SHARE MODE")
            .execute(&mut *reader)
            .await
            .unwrap();
        let january = Month::of("2020-01-15T00:00:00Z".parse::<Timestamp>().unwrap());
        let ending = partition::drop_month(&app.pool, january).await.unwrap();
        assert_eq!(ending, DropOutcome::Busy);
        reader.rollback().await.unwrap();
        let dropped = retention(&app, Some(30), None).drop_months().await.unwrap();
        assert_eq!(dropped, 3);
        is_over.store(true, Ordering::SeqCst);
    };
    let senders = join_all((0..8).map(|_| keep_sending(&app, &is_over)));
    let (sent, ()) = tokio::join!(senders, months);
    let count: usize = sent.iter().map(|(count, _)| count).sum();
    let longest = sent.iter().map(|(_, longest)| *longest).max().unwrap();
    assert!(longest < SEND_MAX, "a send took {longest:?}");
    assert_eq!(total(app.caller()).await, count);
    assert_counted(&app).await;
    app.execute("DELETE FROM outbox").await;
}

#[tokio::test]
async fn a_scheduler_killed_midway_leaves_the_next_one_nothing_broken() {
    let app = TestApp::builder()
        .processes()
        .setting("WAYPOST_RETENTION_DAYS", "30")
        .start()
        .await;
    let _api = app.spawn_api().await;
    add_old(&app, OLD, 100).await;
    let january = Month::of("2020-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
    let mut reader = app.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE recipients IN ACCESS SHARE MODE")
        .execute(&mut *reader)
        .await
        .unwrap();
    let mut first = app.spawn_scheduler();
    wait_until("the messages are gone", async || {
        total(app.caller()).await == 0
    })
    .await;
    first.kill().await;
    reader.rollback().await.unwrap();
    assert!(partitions_of(&app, january).await.0 > 0);
    assert_counted(&app).await;
    let _second = app.spawn_scheduler();
    wait_until("the month is gone", async || {
        let left = app.value("SELECT count(*) FROM partition_drops").await;
        left.as_deref() == Some("0") && partitions_of(&app, january).await == (0, 0)
    })
    .await;
    assert_counted(&app).await;
    // The scheduler also deletes what an organization keeps for a shorter time.
    let ran = "SELECT count(*) FROM scheduler_tasks
               WHERE name IN ('drop-months', 'delete-expired') AND last_succeeded_at IS NOT NULL";
    wait_until("both tasks have run", async || {
        app.value(ran).await.as_deref() == Some("2")
    })
    .await;
}
