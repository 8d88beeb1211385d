//! Fairness keys: jobs that wait or hang under one key do not block another key's job;
//! and the queue repairs its counts after Redis loses them.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::Semaphore;
use waypost_core::job_queue::{Depth, JobEnd, QueueSettings};

use super::fixture::{Count, QueueFixture, fast, key, until};

const QUOTA: u32 = 10;

fn small_quota() -> QueueSettings {
    QueueSettings {
        quota: QUOTA as usize,
        repair_every: Duration::from_millis(50),
        ..fast()
    }
}

async fn nothing_is_left(fixture: &QueueFixture) {
    until("nothing is left", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert!(fixture.counts().await.is_empty());
    let keys = fixture.redis_key("*");
    let keys: Vec<String> = fixture.ask(&["KEYS", &keys]).await;
    let own = [fixture.stream(), fixture.redis_key("m")];
    assert!(keys.iter().all(|key| own.contains(key)), "{keys:?}");
}

// --- quotas ---------------------------------------------------------------------

#[tokio::test]
async fn a_key_has_a_quota_in_the_stream_and_its_backlog_follows_in_order() {
    let fixture = QueueFixture::shared_with("quota", small_quota());
    fixture.push_in(1, 0..5).await;
    assert_eq!(fixture.in_stream().await, 5);
    fixture.push_in(1, 5..3_000).await;
    assert_eq!(fixture.in_stream().await, QUOTA);
    assert_eq!(fixture.depth().await.waiting, 3_000);
    fixture.push_in(2, 5_000..5_003).await;
    assert_eq!(fixture.in_stream().await, QUOTA + 3);
    let worker = fixture.worker("a", 1, 4, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&fixture).await;
    assert!(fixture.runs.all_once());
    let order = fixture.runs.in_order();
    let first: Vec<u32> = order.iter().copied().filter(|run| *run < 5_000).collect();
    assert!(first.is_sorted(), "a key alone keeps its order");
    assert_eq!(first.len(), 3_000);
    worker.stop().await;
}

#[tokio::test]
async fn a_new_keys_job_waits_at_most_for_a_quota_of_each_busy_key() {
    let fixture = QueueFixture::shared_with("new-key", small_quota());
    for busy in 1..=3 {
        let from = busy * 10_000;
        fixture.push_in(busy, from..from + 2_000).await;
    }
    fixture.push_in(9, [1]).await;
    let worker = fixture.worker("a", 2, 4, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&fixture).await;
    let order = fixture.runs.in_order();
    let before = order.iter().position(|run| *run == 1).unwrap();
    assert!(before <= 3 * QUOTA as usize, "{before} came first");
    assert_eq!(order.len(), 6_001);
    assert!(fixture.runs.all_once());
    worker.stop().await;
}

#[tokio::test]
async fn delayed_jobs_come_back_within_the_quota() {
    let fixture = QueueFixture::shared_with("quota-delayed", small_quota());
    let now = fixture.clock.now();
    let jobs: Vec<_> = (0..100)
        .map(|number| (Count { number, key: 1 }, now + TimeDelta::hours(1)))
        .collect();
    fixture.queue.push_at(&jobs).await.unwrap();
    let permits = Arc::new(Semaphore::new(0));
    let worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("a", 2, 4, move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    fixture.clock.advance(TimeDelta::hours(2));
    until("all are due", async || fixture.depth().await.delayed == 0).await;
    assert_eq!(fixture.in_stream().await, QUOTA);
    permits.add_permits(100);
    nothing_is_left(&fixture).await;
    assert!(fixture.runs.all_once());
    assert_eq!(fixture.runs.total(), 100);
    worker.stop().await;
}

#[tokio::test]
async fn every_removal_from_the_stream_is_counted() {
    let fixture = QueueFixture::shared_with("removals", small_quota());
    let runs = fixture.runs.clone();
    let handler = move |job: Count| {
        let nth = runs.of(job.number);
        async move {
            match job.number % 4 {
                0 if nth == 1 => Ok(JobEnd::Snooze(Duration::from_millis(1))),
                2 if nth == 1 => Err("refused by the test".into()),
                _ => Ok(JobEnd::Done),
            }
        }
    };
    fixture.push_in(1, 0..200).await;
    // No worker can decode it, and it counts for its key all the same.
    let name = key(2).to_string();
    let stream = fixture.stream();
    let add = ["XADD", &stream, "*", "j", "{}", "at", "1", "l", &name];
    let _: String = fixture.ask(&add).await;
    let _: u32 = fixture
        .ask(&["HINCRBY", &fixture.redis_key("n"), &name, "1"])
        .await;
    let stopping = fixture.worker("stopping", 2, 8, handler.clone());
    until("some have run", async || fixture.runs.total() > 20).await;
    stopping.stop().await;
    let counted: u32 = fixture.counts().await.values().sum();
    assert_eq!(counted, fixture.in_stream().await, "after a worker stopped");
    let worker = fixture.worker("a", 2, 8, handler);
    until("all have ended", async || {
        fixture.clock.advance(TimeDelta::seconds(30));
        fixture.depth().await == Depth::default()
    })
    .await;
    assert!(fixture.counts().await.is_empty());
    assert_eq!(fixture.in_stream().await, 0);
    worker.stop().await;
}

// --- slots ------------------------------------------------------------------------

#[tokio::test]
async fn hanging_jobs_leave_slots_for_those_of_others() {
    let fixture = QueueFixture::shared("hanging");
    let permits = Arc::new(Semaphore::new(0));
    let worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("a", 16, 32, move |job: Count| {
            let permits = Arc::clone(&permits);
            async move {
                if job.key < 9 {
                    permits.acquire().await.unwrap().forget();
                }
                Ok(JobEnd::Done)
            }
        })
    };
    // Far more than fit into the buffer; they all hang.
    fixture.push_in(1, 0..400).await;
    until("the first key has its share", async || {
        fixture.runs.total() == 12
    })
    .await;
    fixture.push_in(2, 1_000..1_400).await;
    until("the second has its share of the rest", async || {
        fixture.runs.total() == 15
    })
    .await;
    fixture.push_in(9, 2_000..2_500).await;
    until("the jobs of a third key have run, one by one", async || {
        fixture.runs.total() == 515
    })
    .await;
    assert_eq!(
        fixture.depth().await.waiting,
        0,
        "jobs that hang do not block the others"
    );
    permits.add_permits(800);
    until("all have run", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert!(fixture.runs.all_once());
    worker.stop().await;
}

// --- the relay's query ---------------------------------------------------------------

#[tokio::test]
async fn a_key_with_a_backlog_reports_its_own_low_watermark() {
    let fixture = QueueFixture::shared_with("watermarks", small_quota());
    let first = fixture.clock.now();
    fixture.push_in(1, 0..30).await;
    fixture.clock.advance(TimeDelta::minutes(1));
    let second = fixture.clock.now();
    fixture.push_in(1, 30..60).await;
    fixture.clock.advance(TimeDelta::minutes(1));
    let third = fixture.clock.now();
    fixture.push_in(2, [100]).await;
    let waiting = async || fixture.queue.waiting().await.unwrap();
    assert_eq!(waiting().await.backlogged, [(key(1), first)].into());

    let permits = Arc::new(Semaphore::new(0));
    let worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("a", 1, 1, move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    permits.add_permits(11);
    until(
        "one quota and the job of the other key have run",
        async || fixture.runs.total() == 12,
    )
    .await;
    let now = waiting().await;
    assert_eq!(
        now.oldest,
        Some(third),
        "jobs from the backlog do not hide lost jobs of others"
    );
    assert_eq!(now.backlogged, [(key(1), first)].into());
    permits.add_permits(25);
    until("jobs of the second push have run", async || {
        fixture.runs.total() == 37
    })
    .await;
    until("the watermark has risen", async || {
        waiting().await.backlogged == [(key(1), second)].into()
    })
    .await;
    permits.add_permits(100);
    nothing_is_left(&fixture).await;
    assert_eq!(waiting().await, Default::default());
    worker.stop().await;
}

#[tokio::test]
async fn a_key_is_ordinary_again_when_its_backlog_is_empty() {
    let fixture = QueueFixture::shared_with("watermarks-end", small_quota());
    fixture.push_in(1, 0..15).await;
    let permits = Arc::new(Semaphore::new(0));
    let worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("a", 1, 1, move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    let backlogged = async || fixture.queue.waiting().await.unwrap().backlogged.len();
    permits.add_permits(8);
    until("the backlog is empty", async || {
        fixture.in_stream().await == 7
    })
    .await;
    assert_eq!(
        backlogged().await,
        1,
        "jobs from the backlog are still in the stream"
    );
    // Busy, and never empty again.
    fixture.clock.advance(TimeDelta::seconds(1));
    fixture.push_in(1, 15..18).await;
    permits.add_permits(8);
    until("they have left", async || fixture.in_stream().await == 2).await;
    assert_eq!(backlogged().await, 0);
    permits.add_permits(2);
    nothing_is_left(&fixture).await;
    worker.stop().await;
}

// --- losses of Redis -------------------------------------------------------------------

/// Loses something while a worker is busy with a key that has a backlog; returns how many
/// of its jobs ran in the end.
async fn after_losing(name: &str, lose: impl AsyncFn(&QueueFixture)) -> usize {
    let fixture = QueueFixture::private_with(name, small_quota()).await;
    fixture.push_in(1, 0..500).await;
    fixture.push_in(2, 1_000..1_005).await;
    let permits = Arc::new(Semaphore::new(0));
    let worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("a", 3, 6, move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    permits.add_permits(50);
    until("it is busy", async || fixture.runs.total() == 53).await;
    lose(&fixture).await;
    permits.add_permits(10_000);
    until("all that is left has run", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    fixture.push_in(1, 2_000..2_100).await;
    until("new ones run too", async || {
        (2_000..2_100).all(|number| fixture.runs.of(number) >= 1)
    })
    .await;
    nothing_is_left(&fixture).await;
    worker.stop().await;
    (0..500)
        .filter(|number| fixture.runs.of(*number) >= 1)
        .count()
}

#[tokio::test]
async fn lost_counts_are_recounted() {
    let ran = after_losing("lost-counts", async |fixture| {
        let _: u32 = fixture.ask(&["DEL", &fixture.redis_key("n")]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn counts_that_are_too_high_strand_no_job() {
    let ran = after_losing("high-counts", async |fixture| {
        let (counts, name) = (fixture.redis_key("n"), key(1).to_string());
        let _: u32 = fixture.ask(&["HINCRBY", &counts, &name, "1000"]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn lost_low_watermarks_are_restored() {
    let ran = after_losing("lost-watermarks", async |fixture| {
        let _: u32 = fixture.ask(&["DEL", &fixture.redis_key("f")]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn a_backlog_of_a_lost_stream_moves_to_the_next_one() {
    let ran = after_losing("lost-stream", async |fixture| {
        let _: u32 = fixture.ask(&["DEL", &fixture.stream()]).await;
    })
    .await;
    // The stream's entries were lost; the relay pushes them again.
    assert!((500 - QUOTA as usize..=500).contains(&ran), "{ran} ran");
}

#[tokio::test]
async fn after_everything_was_lost_a_key_starts_again() {
    let ran = after_losing("lost-all", async |fixture| {
        fixture.command("FLUSHALL").await
    })
    .await;
    // Only jobs that were fetched before still run; the relay pushes the rest again.
    assert!((48..500).contains(&ran), "{ran} ran");
}

#[tokio::test]
async fn an_old_snapshot_is_harmless() {
    let ran = after_losing("snapshot", async |fixture| {
        let keys: Vec<String> = fixture.ask(&["KEYS", &fixture.redis_key("*")]).await;
        let mut snapshot = Vec::new();
        for key in keys {
            let mut dump = redis::cmd("DUMP");
            let value: Vec<u8> = dump
                .arg(&key)
                .query_async(&mut fixture.redis().await)
                .await
                .unwrap();
            snapshot.push((key, value));
        }
        // Some jobs run that the snapshot does not contain.
        fixture.push_in(1, 3_000..3_050).await;
        fixture.command("FLUSHALL").await;
        for (key, value) in snapshot {
            let mut restore = redis::cmd("RESTORE");
            restore.arg(key).arg(0).arg(value).arg("REPLACE");
            let mut redis = fixture.redis().await;
            restore.query_async::<()>(&mut redis).await.unwrap();
        }
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn entries_and_delayed_jobs_without_a_fairness_key_still_run() {
    let fixture = QueueFixture::shared_with("without-keys", small_quota());
    let (stream, delayed) = (fixture.stream(), fixture.redis_key("z"));
    for number in 0..30 {
        let job = serde_json::to_string(&Count { number, key: 1 }).unwrap();
        let _: String = fixture
            .ask(&["XADD", &stream, "*", "j", &job, "at", "1"])
            .await;
        let job = Count {
            number: 100 + number,
            key: 1,
        };
        let member = format!(":{}", serde_json::to_string(&job).unwrap());
        let _: u32 = fixture.ask(&["ZADD", &delayed, "1", &member]).await;
    }
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&fixture).await;
    assert_eq!(fixture.runs.total(), 60);
    assert!(fixture.runs.all_once());
    worker.stop().await;
}
