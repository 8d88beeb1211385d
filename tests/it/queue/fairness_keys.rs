//! Fairness keys: jobs that wait or hang under one key do not block another key's job;
//! and the queue repairs its counts after Redis loses them.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::Semaphore;
use waypost_core::job_queue::{Depth, JobEnd, QueueSettings};

use super::fixture::{Count, House, fast, lane, until};

const WINDOW: u32 = 10;

fn narrow() -> QueueSettings {
    QueueSettings {
        window: WINDOW as usize,
        mend_every: Duration::from_millis(50),
        ..fast()
    }
}

async fn nothing_is_left(house: &House) {
    until("nothing is left", async || {
        house.depth().await == Depth::default()
    })
    .await;
    assert!(house.counts().await.is_empty());
    let keys = house.key("*");
    let keys: Vec<String> = house.ask(&["KEYS", &keys]).await;
    let own = [house.stream(), house.key("m")];
    assert!(keys.iter().all(|key| own.contains(key)), "{keys:?}");
}

// --- quotas ---------------------------------------------------------------------

#[tokio::test]
async fn a_key_has_a_quota_in_the_stream_and_its_backlog_follows_in_order() {
    let house = House::shared_with("window", narrow());
    house.push_in(1, 0..5).await;
    assert_eq!(house.in_stream().await, 5);
    house.push_in(1, 5..3_000).await;
    assert_eq!(house.in_stream().await, WINDOW);
    assert_eq!(house.depth().await.waiting, 3_000);
    house.push_in(2, 5_000..5_003).await;
    assert_eq!(house.in_stream().await, WINDOW + 3);
    let worker = house.worker("a", 1, 4, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&house).await;
    assert!(house.runs.all_once());
    let order = house.runs.in_order();
    let first: Vec<u32> = order.iter().copied().filter(|run| *run < 5_000).collect();
    assert!(first.is_sorted(), "a lane alone keeps its order");
    assert_eq!(first.len(), 3_000);
    worker.stop().await;
}

#[tokio::test]
async fn a_new_keys_job_waits_at_most_for_a_quota_of_each_busy_key() {
    let house = House::shared_with("stranger", narrow());
    for busy in 1..=3 {
        let from = busy * 10_000;
        house.push_in(busy, from..from + 2_000).await;
    }
    house.push_in(9, [1]).await;
    let worker = house.worker("a", 2, 4, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&house).await;
    let order = house.runs.in_order();
    let before = order.iter().position(|run| *run == 1).unwrap();
    assert!(before <= 3 * WINDOW as usize, "{before} came first");
    assert_eq!(order.len(), 6_001);
    assert!(house.runs.all_once());
    worker.stop().await;
}

#[tokio::test]
async fn delayed_jobs_come_back_within_the_quota() {
    let house = House::shared_with("window-delayed", narrow());
    let now = house.clock.now();
    let jobs: Vec<_> = (0..100)
        .map(|number| (Count { number, lane: 1 }, now + TimeDelta::hours(1)))
        .collect();
    house.queue.push_at(&jobs).await.unwrap();
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        house.worker("a", 2, 4, move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    house.clock.advance(TimeDelta::hours(2));
    until("all are due", async || house.depth().await.delayed == 0).await;
    assert_eq!(house.in_stream().await, WINDOW);
    gate.add_permits(100);
    nothing_is_left(&house).await;
    assert!(house.runs.all_once());
    assert_eq!(house.runs.total(), 100);
    worker.stop().await;
}

#[tokio::test]
async fn every_removal_from_the_stream_is_counted() {
    let house = House::shared_with("ways-out", narrow());
    let runs = house.runs.clone();
    let handler = move |job: Count| {
        let nth = runs.of(job.number);
        async move {
            match job.number % 4 {
                0 if nth == 1 => Ok(JobEnd::Snooze(Duration::from_millis(1))),
                1 => Ok(JobEnd::Dead {
                    reason: "for good".to_owned(),
                }),
                2 if nth == 1 => Err("refused by the test".into()),
                _ => Ok(JobEnd::Done),
            }
        }
    };
    house.push_in(1, 0..200).await;
    // No worker can decode it, and it counts for its key all the same.
    let name = lane(2).to_string();
    let stream = house.stream();
    let add = ["XADD", &stream, "*", "j", "{}", "at", "1", "l", &name];
    let _: String = house.ask(&add).await;
    let _: u32 = house.ask(&["HINCRBY", &house.key("n"), &name, "1"]).await;
    let leaving = house.worker("leaving", 2, 8, handler.clone());
    until("some have run", async || house.runs.total() > 20).await;
    leaving.stop().await;
    let counted: u32 = house.counts().await.values().sum();
    assert_eq!(counted, house.in_stream().await, "after a departure");
    let worker = house.worker("a", 2, 8, handler);
    until("all have ended", async || {
        house.clock.advance(TimeDelta::seconds(30));
        let depth = house.depth().await;
        depth.dead == 51 && depth.waiting + depth.fetched + depth.delayed == 0
    })
    .await;
    assert!(house.counts().await.is_empty());
    assert_eq!(house.in_stream().await, 0);
    worker.stop().await;
}

// --- slots ------------------------------------------------------------------------

#[tokio::test]
async fn hanging_jobs_leave_slots_for_those_of_others() {
    let house = House::shared("hanging");
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        house.worker("a", 16, 32, move |job: Count| {
            let gate = Arc::clone(&gate);
            async move {
                if job.lane < 9 {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(JobEnd::Done)
            }
        })
    };
    // Far more than fit into the buffer; they all hang.
    house.push_in(1, 0..400).await;
    until("the first lane has its share", async || {
        house.runs.total() == 12
    })
    .await;
    house.push_in(2, 1_000..1_400).await;
    until("the second has its share of the rest", async || {
        house.runs.total() == 15
    })
    .await;
    house.push_in(9, 2_000..2_500).await;
    until("a third's run, one by one", async || {
        house.runs.total() == 515
    })
    .await;
    assert_eq!(
        house.depth().await.waiting,
        0,
        "what hangs is out of the way"
    );
    gate.add_permits(800);
    until("all have run", async || {
        house.depth().await == Depth::default()
    })
    .await;
    assert!(house.runs.all_once());
    worker.stop().await;
}

// --- the relay's query ---------------------------------------------------------------

#[tokio::test]
async fn a_key_with_a_backlog_reports_its_own_low_watermark() {
    let house = House::shared_with("floors", narrow());
    let first = house.clock.now();
    house.push_in(1, 0..30).await;
    house.clock.advance(TimeDelta::minutes(1));
    let second = house.clock.now();
    house.push_in(1, 30..60).await;
    house.clock.advance(TimeDelta::minutes(1));
    let third = house.clock.now();
    house.push_in(2, [100]).await;
    let waiting = async || house.queue.waiting().await.unwrap();
    assert_eq!(waiting().await.overflowing, [(lane(1), first)].into());

    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        house.worker("a", 1, 1, move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    gate.add_permits(11);
    until("a window and the stranger have run", async || {
        house.runs.total() == 12
    })
    .await;
    let now = waiting().await;
    assert_eq!(
        now.oldest,
        Some(third),
        "what was let in does not hide what others lost"
    );
    assert_eq!(now.overflowing, [(lane(1), first)].into());
    gate.add_permits(25);
    until("the second push has its turn", async || {
        house.runs.total() == 37
    })
    .await;
    until("the floor has risen", async || {
        waiting().await.overflowing == [(lane(1), second)].into()
    })
    .await;
    gate.add_permits(100);
    nothing_is_left(&house).await;
    assert_eq!(waiting().await, Default::default());
    worker.stop().await;
}

#[tokio::test]
async fn a_key_is_ordinary_again_when_its_backlog_is_empty() {
    let house = House::shared_with("floors-end", narrow());
    house.push_in(1, 0..15).await;
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        house.worker("a", 1, 1, move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    let overflowing = async || house.queue.waiting().await.unwrap().overflowing.len();
    gate.add_permits(8);
    until("nobody waits for the stream", async || {
        house.in_stream().await == 7
    })
    .await;
    assert_eq!(overflowing().await, 1, "some that had to are still there");
    // Busy, and never empty again.
    house.clock.advance(TimeDelta::seconds(1));
    house.push_in(1, 15..18).await;
    gate.add_permits(8);
    until("they have left", async || house.in_stream().await == 2).await;
    assert_eq!(overflowing().await, 0);
    gate.add_permits(2);
    nothing_is_left(&house).await;
    worker.stop().await;
}

// --- losses of Redis -------------------------------------------------------------------

/// Loses something while a worker is busy with a key that has a backlog; returns how many
/// of its jobs ran in the end.
async fn after_losing(name: &str, lose: impl AsyncFn(&House)) -> usize {
    let house = House::private_with(name, narrow()).await;
    house.push_in(1, 0..500).await;
    house.push_in(2, 1_000..1_005).await;
    let gate = Arc::new(Semaphore::new(0));
    let worker = {
        let gate = Arc::clone(&gate);
        house.worker("a", 3, 6, move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    gate.add_permits(50);
    until("it is busy", async || house.runs.total() == 53).await;
    lose(&house).await;
    gate.add_permits(10_000);
    until("all that is left has run", async || {
        house.depth().await == Depth::default()
    })
    .await;
    house.push_in(1, 2_000..2_100).await;
    until("new ones run too", async || {
        (2_000..2_100).all(|number| house.runs.of(number) >= 1)
    })
    .await;
    nothing_is_left(&house).await;
    worker.stop().await;
    (0..500)
        .filter(|number| house.runs.of(*number) >= 1)
        .count()
}

#[tokio::test]
async fn lost_counts_are_recounted() {
    let ran = after_losing("lost-counts", async |house| {
        let _: u32 = house.ask(&["DEL", &house.key("n")]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn counts_that_are_too_high_strand_no_job() {
    let ran = after_losing("high-counts", async |house| {
        let (counts, name) = (house.key("n"), lane(1).to_string());
        let _: u32 = house.ask(&["HINCRBY", &counts, &name, "1000"]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn lost_low_watermarks_are_restored() {
    let ran = after_losing("lost-floors", async |house| {
        let _: u32 = house.ask(&["DEL", &house.key("f")]).await;
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn a_backlog_of_a_lost_stream_moves_to_the_next_one() {
    let ran = after_losing("lost-stream", async |house| {
        let _: u32 = house.ask(&["DEL", &house.stream()]).await;
    })
    .await;
    // The stream's entries were lost; the relay pushes them again.
    assert!((500 - WINDOW as usize..=500).contains(&ran), "{ran} ran");
}

#[tokio::test]
async fn after_everything_was_lost_a_key_starts_again() {
    let ran = after_losing("lost-all", async |house| house.command("FLUSHALL").await).await;
    // Only jobs that were fetched before still run; the relay pushes the rest again.
    assert!((48..500).contains(&ran), "{ran} ran");
}

#[tokio::test]
async fn an_old_snapshot_is_harmless() {
    let ran = after_losing("snapshot", async |house| {
        let keys: Vec<String> = house.ask(&["KEYS", &house.key("*")]).await;
        let mut snapshot = Vec::new();
        for key in keys {
            let mut dump = redis::cmd("DUMP");
            let value: Vec<u8> = dump
                .arg(&key)
                .query_async(&mut house.redis().await)
                .await
                .unwrap();
            snapshot.push((key, value));
        }
        // Some jobs run that the snapshot does not contain.
        house.push_in(1, 3_000..3_050).await;
        house.command("FLUSHALL").await;
        for (key, value) in snapshot {
            let mut restore = redis::cmd("RESTORE");
            restore.arg(key).arg(0).arg(value).arg("REPLACE");
            let mut redis = house.redis().await;
            restore.query_async::<()>(&mut redis).await.unwrap();
        }
    });
    assert_eq!(ran.await, 500);
}

#[tokio::test]
async fn entries_and_delayed_jobs_without_a_fairness_key_still_run() {
    let house = House::shared_with("before-lanes", narrow());
    let (stream, delayed) = (house.stream(), house.key("z"));
    for number in 0..30 {
        let job = serde_json::to_string(&Count { number, lane: 1 }).unwrap();
        let _: String = house
            .ask(&["XADD", &stream, "*", "j", &job, "at", "1"])
            .await;
        let job = Count {
            number: 100 + number,
            lane: 1,
        };
        let member = format!("2:{}", serde_json::to_string(&job).unwrap());
        let _: u32 = house.ask(&["ZADD", &delayed, "1", &member]).await;
    }
    let worker = house.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    nothing_is_left(&house).await;
    assert_eq!(house.runs.total(), 60);
    assert!(house.runs.all_once());
    worker.stop().await;
}
