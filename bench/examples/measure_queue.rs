//! Measures the job queue by itself: pushing, consuming jobs that do nothing, and the
//! time until an idle worker starts a job. With the jobs of one organization and of a
//! hundred.
//!
//! ```text
//! WAYPOST_TEST_REDIS_URL=… cargo run -p waypost-bench --example measure_queue
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apalis::prelude::*;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;
use waypost_core::clock::Clock;
use waypost_core::delivery::job::SendJob;
use waypost_core::ids::{MessageId, OrganizationId};
use waypost_core::job_queue::{Capacity, JobEnd, Queue, QueueSettings};
use waypost_core::redis::Redis;

/// Jobs per round.
const JOBS: usize = 50_000;
/// Jobs per push.
const BATCH: usize = 1_000;
/// Jobs that a worker runs at once.
const SLOTS: usize = 64;
/// Jobs whose start is timed.
const SAMPLES: usize = 500;

#[tokio::main]
async fn main() {
    for organizations in [1, 100] {
        for _ in 0..3 {
            round(organizations).await;
        }
    }
    idle().await;
}

fn queue(name: &str) -> Queue<SendJob> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the person who runs it sets the URL"
    )]
    let url = std::env::var("WAYPOST_TEST_REDIS_URL").expect("WAYPOST_TEST_REDIS_URL is set");
    let prefix = format!("measure-{name}-{}", std::process::id());
    let redis = Redis::new(&url.into(), &prefix).expect("the URL can be read");
    Queue::new(&redis, "send", Clock::system(), QueueSettings::default())
}

fn job(number: usize, organizations: usize) -> SendJob {
    SendJob {
        message_id: MessageId(Uuid::from_u128(number as u128)),
        chunk: 0,
        organization_id: OrganizationId(Uuid::from_u128((number % organizations) as u128)),
    }
}

async fn round(organizations: usize) {
    let queue = queue(&format!("round-{organizations}"));
    let jobs: Vec<SendJob> = (0..JOBS).map(|number| job(number, organizations)).collect();
    let began = Instant::now();
    for jobs in jobs.chunks(BATCH) {
        queue.push(jobs).await.expect("Redis takes them");
    }
    let pushed = began.elapsed();
    let began = Instant::now();
    let (count, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let worker = {
        let (count, done) = (Arc::clone(&count), Arc::clone(&done));
        start(&queue, move || {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == JOBS {
                done.notify_one();
            }
        })
    };
    done.notified().await;
    while queue.depth().await.expect("Redis answers").fetched > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let consumed = began.elapsed();
    worker.abort();
    println!(
        "{organizations:>3} organizations: pushed {:>6}/s, consumed {:>6}/s",
        rate(pushed),
        rate(consumed)
    );
}

async fn idle() {
    let queue = queue("idle");
    let started = Arc::new(Notify::new());
    let worker = {
        let started = Arc::clone(&started);
        start(&queue, move || started.notify_one())
    };
    let mut times = Vec::new();
    for number in 0..SAMPLES {
        tokio::time::sleep(Duration::from_millis(3)).await;
        let began = Instant::now();
        queue.push(&[job(number, 7)]).await.expect("Redis takes it");
        started.notified().await;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    worker.abort();
    println!(
        "idle: p50 {:?}, p99 {:?}",
        times[SAMPLES / 2],
        times[SAMPLES * 99 / 100]
    );
}

fn start(
    queue: &Queue<SendJob>,
    run: impl Fn() + Clone + Send + Sync + 'static,
) -> JoinHandle<Result<(), WorkerError>> {
    let capacity = Capacity {
        slots: SLOTS,
        in_flight_max: SLOTS * 2,
        finishing_max: 0,
    };
    let worker = WorkerBuilder::new("measure")
        .backend(queue.backend("measure".to_owned(), capacity))
        .concurrency(SLOTS)
        .parallelize(tokio::spawn)
        .build(move |_: SendJob| {
            run();
            async { Ok::<_, BoxDynError>(JobEnd::Done) }
        });
    let forever = std::future::pending::<Result<(), std::io::Error>>();
    tokio::spawn(worker.run_until(forever))
}

fn rate(elapsed: Duration) -> u64 {
    (JOBS as f64 / elapsed.as_secs_f64()) as u64
}
