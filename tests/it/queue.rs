//! The job queue: jobs run, and crashes of workers and Redis only cost time.
//!
//! The workers are those of the worker binary: apalis with the backend. Tests that stop
//! or empty Redis start their own.

#[cfg(test)]
mod fairness_keys;
#[cfg(test)]
mod fixture;

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use tokio::sync::Semaphore;
use waypost_core::job_queue::{Capacity, Depth, JobEnd, JobSlot, QueueSettings};

use fixture::{Count, QueueFixture, fast, job, until};

// --- running ------------------------------------------------------------------

#[tokio::test]
async fn every_pushed_job_runs_once_and_leaves_nothing_behind() {
    let fixture = QueueFixture::shared("once");
    let worker = fixture.worker("a", 8, 16, |_| async { Ok(JobEnd::Done) });
    fixture.push(0..2_000).await;
    until("all have run", async || fixture.runs.total() == 2_000).await;
    until("nothing is left", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert!(fixture.runs.all_once());
    worker.stop().await;
}

#[tokio::test]
async fn a_delayed_job_runs_when_its_time_has_come() {
    let fixture = QueueFixture::shared("delayed");
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    let now = fixture.clock.now();
    let jobs = [
        (job(1), now + TimeDelta::hours(1)),
        (job(2), now + TimeDelta::hours(2)),
    ];
    fixture.queue.push_at(&jobs).await.unwrap();
    // A later time does not postpone a delayed job.
    fixture
        .queue
        .push_at(&[(job(1), now + TimeDelta::hours(9))])
        .await
        .unwrap();
    fixture.push([3]).await;
    until("the one without delay has run", async || {
        fixture.runs.of(3) == 1
    })
    .await;
    assert_eq!(fixture.depth().await.delayed, 2);
    fixture.clock.advance(TimeDelta::minutes(61));
    until("the first has run", async || fixture.runs.of(1) == 1).await;
    assert_eq!(fixture.runs.of(2), 0);
    fixture.clock.advance(TimeDelta::hours(1));
    until("the second has run", async || fixture.runs.of(2) == 1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_failing_job_and_a_snoozed_one_run_again_until_they_are_done() {
    let settings = QueueSettings {
        retry_failed_after: Duration::from_secs(60),
        ..fast()
    };
    let fixture = QueueFixture::shared_with("retry", settings);
    let runs = fixture.runs.clone();
    let worker = fixture.worker("a", 4, 8, move |job| {
        let nth = runs.of(job.number);
        async move {
            match job.number {
                1 if nth <= 3 => Err("refused by the test".into()),
                // Without the panic's backtrace, which blocks the only thread for longer
                // than a Redis command may take.
                2 if nth <= 3 => std::panic::resume_unwind(Box::new("panicked for the test")),
                3 if nth <= 5 => Ok(JobEnd::Snooze(Duration::from_secs(60))),
                _ => Ok(JobEnd::Done),
            }
        }
    });
    fixture.push(1..=4).await;
    until("three wait", async || {
        let depth = fixture.depth().await;
        depth.delayed == 3 && depth.waiting + depth.fetched == 0
    })
    .await;
    assert_eq!(fixture.runs.total(), 4, "none ran again before its time");
    until("all are done", async || {
        fixture.clock.advance(TimeDelta::seconds(30));
        fixture.depth().await == Depth::default()
    })
    .await;
    let counts: Vec<usize> = (1..=4).map(|number| fixture.runs.of(number)).collect();
    assert_eq!(counts, [4, 4, 6, 1]);
    worker.stop().await;
}

#[tokio::test]
async fn an_entry_that_is_not_a_job_is_deleted_and_the_worker_continues() {
    let fixture = QueueFixture::shared("undecodable");
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    let key = fixture.stream();
    for (field, value) in [
        (&b"j"[..], &b"{\"number\":\"x\"}"[..]),
        (b"j", b"\x01"),
        (b"other", b"thing"),
        (b"\xff", b"\xfe"),
    ] {
        let add = redis::cmd("XADD")
            .arg(&key)
            .arg("*")
            .arg(field)
            .arg(value)
            .take();
        add.query_async::<()>(&mut fixture.redis().await)
            .await
            .unwrap();
    }
    fixture.push([7]).await;
    until("the good one has run", async || fixture.runs.of(7) == 1).await;
    until("nothing is left", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert_eq!(fixture.runs.total(), 1);
    worker.stop().await;
}

// --- leases -------------------------------------------------------------------

#[tokio::test]
async fn a_killed_workers_unfinished_jobs_run_again_and_its_finished_ones_do_not() {
    let fixture = QueueFixture::shared("takeover");
    // The first worker finishes the first ten jobs and hangs at all others.
    let doomed = fixture.worker("doomed", 4, 8, |job| async move {
        if job.number >= 10 {
            std::future::pending::<()>().await;
        }
        Ok(JobEnd::Done)
    });
    fixture.push(0..30).await;
    until("all its capacity is used", async || {
        fixture.runs.total() == 14 && fixture.depth().await.fetched == 8
    })
    .await;
    doomed.kill();
    let killed = Instant::now();
    let successor = fixture.worker("successor", 4, 8, |_| async { Ok(JobEnd::Done) });
    until("all have run", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert!(
        killed.elapsed() < fixture.queue_settings.lease * 3,
        "{:?}",
        killed.elapsed()
    );
    for number in 0..30 {
        let expected = if (10..14).contains(&number) { 2 } else { 1 };
        assert_eq!(fixture.runs.of(number), expected, "job {number}");
    }
    successor.stop().await;
}

#[tokio::test]
async fn a_job_longer_than_its_lease_runs_once() {
    let fixture = QueueFixture::shared("long");
    let permits = Arc::new(Semaphore::new(0));
    let handler = {
        let permits = Arc::clone(&permits);
        move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        }
    };
    // A larger buffer than concurrency: jobs that have not started keep their lease too.
    let workers = [
        fixture.worker("a", 2, 6, handler.clone()),
        fixture.worker("b", 2, 6, handler),
    ];
    fixture.push(0..12).await;
    until("all are fetched", async || {
        fixture.depth().await.fetched == 12
    })
    .await;
    let since = Instant::now();
    let leases = fixture.queue_settings.lease * 4;
    until("four leases are over", async || since.elapsed() > leases).await;
    permits.add_permits(100);
    until("all are done", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert_eq!(fixture.runs.total(), 12);
    assert!(fixture.runs.all_once());
    for worker in workers {
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_job_that_frees_its_slot_lets_another_start_before_it_ends() {
    let fixture = QueueFixture::shared("slots");
    let permits = Arc::new(Semaphore::new(0));
    let handler = {
        let permits = Arc::clone(&permits);
        move |job: Count, slot: JobSlot<Count>| {
            let permits = Arc::clone(&permits);
            async move {
                // Odd ones keep theirs until they end.
                if job.number.is_multiple_of(2) {
                    slot.free();
                    slot.free();
                }
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        }
    };
    let capacity = Capacity {
        slots: 2,
        in_flight_max: 4,
        finishing_max: 5,
    };
    let worker = fixture.worker_with_slots("a", capacity, handler);
    fixture.push((0..20).map(|number| number * 2)).await;
    until("five have freed their slots", async || {
        fixture.runs.total() == 5
    })
    .await;
    let since = Instant::now();
    let passed = async || since.elapsed() > Duration::from_millis(300);
    until("some time has passed", passed).await;
    assert_eq!(fixture.runs.total(), 5, "no further job starts");
    permits.add_permits(15);
    until("others have started", async || fixture.runs.total() == 20).await;
    permits.add_permits(5);
    until("all are done", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    fixture.push((0..20).map(|number| number * 2 + 1)).await;
    until("the slots are used", async || fixture.runs.total() == 22).await;
    let since = Instant::now();
    let passed = async || since.elapsed() > Duration::from_millis(300);
    until("some time has passed", passed).await;
    assert_eq!(fixture.runs.total(), 22, "two keep their slots");
    permits.add_permits(20);
    until("all are done", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert_eq!(fixture.runs.total(), 40);
    assert!(fixture.runs.all_once());
    worker.stop().await;
}

#[tokio::test]
async fn consumers_of_dead_workers_are_deleted() {
    let settings = QueueSettings {
        consumer_idle_max: Duration::from_millis(50),
        ..fast()
    };
    let fixture = QueueFixture::shared_with("consumers", settings);
    let doomed = fixture.worker("doomed", 1, 1, |_| async { Ok(JobEnd::Done) });
    fixture.push([1]).await;
    until("it is done", async || {
        fixture.depth().await == Depth::default() && fixture.runs.of(1) == 1
    })
    .await;
    assert_eq!(fixture.consumers().await, ["doomed"]);
    doomed.kill();
    let quiet = fixture.worker("quiet", 1, 1, |_| async { Ok(JobEnd::Done) });
    let other = fixture.worker("other", 1, 1, |_| async { Ok(JobEnd::Done) });
    until("it is removed", async || {
        !fixture.consumers().await.contains(&"doomed".to_owned())
    })
    .await;
    // Consumers that were only idle, and deleted too, still get jobs.
    fixture.push(2..100).await;
    until("all have run", async || fixture.runs.total() == 99).await;
    assert!(fixture.runs.all_once());
    quiet.stop().await;
    other.stop().await;
    assert!(fixture.consumers().await.is_empty());
}

// --- stopping -----------------------------------------------------------------

#[tokio::test]
async fn a_stopping_worker_releases_the_jobs_it_has_not_started() {
    let fixture = QueueFixture::shared("handback");
    let permits = Arc::new(Semaphore::new(0));
    let stopping_worker = {
        let permits = Arc::clone(&permits);
        fixture.worker("stopping", 2, 10, move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        })
    };
    fixture.push(0..10).await;
    until("all are fetched, two started", async || {
        fixture.depth().await.fetched == 10 && fixture.runs.total() == 2
    })
    .await;
    let stopping = tokio::spawn(stopping_worker.stop());
    // They come back while the two still run, and long before a lease ends.
    until("eight are back", async || {
        fixture.depth().await.waiting == 8
    })
    .await;
    let successor = fixture.worker("successor", 4, 8, |_| async { Ok(JobEnd::Done) });
    until("they have run", async || fixture.runs.total() == 10).await;
    assert!(!stopping.is_finished());
    permits.add_permits(2);
    stopping.await.unwrap();
    assert_eq!(fixture.depth().await, Depth::default());
    assert!(fixture.runs.all_once());
    assert_eq!(fixture.consumers().await, ["successor"]);
    successor.stop().await;
}

// --- failures of Redis ----------------------------------------------------------

#[tokio::test]
async fn a_worker_continues_after_redis_was_emptied() {
    let fixture = QueueFixture::private("emptied").await;
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    for round in 0..5 {
        fixture.push(round * 10..round * 10 + 10).await;
        until("they have run", async || {
            (round * 10..round * 10 + 10).all(|number| fixture.runs.of(number) >= 1)
        })
        .await;
        fixture.command("FLUSHALL").await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_continues_after_its_connections_were_killed() {
    let fixture = QueueFixture::private("killed").await;
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    for round in 0..10 {
        let numbers = round * 50..round * 50 + 50;
        until("they are pushed", async || {
            let jobs: Vec<_> = numbers.clone().map(job).collect();
            fixture.queue.push(&jobs).await.is_ok()
        })
        .await;
        let mut kill = redis::cmd("CLIENT");
        kill.arg("KILL").arg("TYPE").arg("normal");
        kill.query_async::<()>(&mut fixture.redis().await)
            .await
            .unwrap();
        until("they have run", async || {
            numbers.clone().all(|number| fixture.runs.of(number) >= 1)
        })
        .await;
    }
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_continues_after_redis_was_down() {
    let mut fixture = QueueFixture::private("away").await;
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    fixture.push([1]).await;
    until("it has run", async || fixture.runs.of(1) == 1).await;
    fixture.stop_redis().await;
    until("a push is refused", async || {
        fixture.queue.push(&[job(2)]).await.is_err()
    })
    .await;
    fixture.start_redis().await;
    until("a push is taken", async || {
        fixture.queue.push(&[job(3)]).await.is_ok()
    })
    .await;
    until("it has run", async || fixture.runs.of(3) == 1).await;
    worker.stop().await;
}

#[tokio::test]
async fn a_worker_can_stop_while_redis_is_down() {
    let settings = QueueSettings {
        close_within: Duration::from_millis(300),
        ..fast()
    };
    let mut fixture = QueueFixture::private_with("stop-away", settings).await;
    let worker = fixture.worker("a", 4, 8, |_| async { Ok(JobEnd::Done) });
    fixture.push([1]).await;
    until("it has run", async || fixture.runs.of(1) == 1).await;
    fixture.stop_redis().await;
    worker.stop().await;
}

// --- inspection ------------------------------------------------------------------

#[tokio::test]
async fn the_oldest_waiting_job_is_known_in_every_state() {
    let fixture = QueueFixture::private("oldest").await;
    let oldest = async || fixture.queue.waiting().await.unwrap().oldest;
    assert_eq!(oldest().await, None, "no stream");

    let first = fixture.clock.now();
    fixture.push([1]).await;
    fixture.clock.advance(TimeDelta::minutes(1));
    let second = fixture.clock.now();
    fixture.push([2]).await;
    assert_eq!(
        oldest().await,
        Some(first),
        "a stream without a group: all of it waits"
    );

    let permits = Arc::new(Semaphore::new(0));
    let handler = {
        let permits = Arc::clone(&permits);
        move |_| {
            let permits = Arc::clone(&permits);
            async move {
                permits.acquire().await.unwrap().forget();
                Ok(JobEnd::Done)
            }
        }
    };
    let worker = fixture.worker("a", 1, 1, handler);
    until("the first is fetched", async || {
        fixture.depth().await.fetched == 1
    })
    .await;
    assert_eq!(
        oldest().await,
        Some(second),
        "the first is fetched, the second waits"
    );
    permits.add_permits(1);
    until("the second is fetched", async || fixture.runs.of(2) == 1).await;
    assert_eq!(oldest().await, None, "all are fetched, none is done");
    permits.add_permits(1);
    until("all are done", async || {
        fixture.depth().await == Depth::default()
    })
    .await;
    assert_eq!(oldest().await, None, "all are done");
    worker.stop().await;

    fixture.push([3]).await;
    assert_eq!(
        oldest().await,
        Some(second),
        "one waits and nobody is there"
    );
    fixture.command("FLUSHALL").await;
    assert_eq!(oldest().await, None, "Redis was emptied");
}
