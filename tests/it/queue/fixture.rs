//! The fixture of the queue's tests: a queue with its Redis, its clock and its workers,
//! and a record of the jobs that have run.

use std::collections::BTreeMap;
use std::future::Future;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use apalis::prelude::*;
use chrono::DateTime;
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waypost_core::clock::Clock;
use waypost_core::job_queue::{
    Capacity, Depth, FairnessKey, Job, JobEnd, JobSlot, Queue, QueueSettings,
};
use waypost_core::redis::Redis;
use waypost_tests::{redis_connection, wait_within};

/// The job of these tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Count {
    pub(super) number: u32,
    pub(super) key: u32,
}

impl Job for Count {
    fn fairness_key(&self) -> FairnessKey {
        key(self.key)
    }
}

/// A queue, its Redis and its clock.
pub(super) struct QueueFixture {
    pub(super) queue: Queue<Count>,
    pub(super) queue_settings: QueueSettings,
    url: String,
    pub(super) clock: Clock,
    pub(super) runs: Runs,
    tag: String,
    server: Option<(Child, u16)>,
}

pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(BOUND, self.task)
            .await
            .expect("a worker stops in time")
            .expect("a worker does not panic");
    }

    /// Like `kill -9`: it sends nothing and finishes nothing.
    pub(super) fn kill(self) {
        self.task.abort();
    }
}

/// The jobs that have started, in order.
#[derive(Clone, Default)]
pub(super) struct Runs(Arc<Mutex<Vec<u32>>>);

impl Runs {
    fn note(&self, number: u32) {
        self.0.lock().unwrap().push(number);
    }

    pub(super) fn of(&self, number: u32) -> usize {
        let started = self.0.lock().unwrap();
        started.iter().filter(|other| **other == number).count()
    }

    pub(super) fn total(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(super) fn all_once(&self) -> bool {
        let mut started = self.in_order();
        let total = started.len();
        started.sort_unstable();
        started.dedup();
        started.len() == total
    }

    pub(super) fn in_order(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }
}

const BOUND: Duration = Duration::from_secs(20);

/// A job with a fairness key of its own.
pub(super) fn job(number: u32) -> Count {
    Count {
        number,
        key: 1_000_000 + number,
    }
}

pub(super) fn key(number: u32) -> FairnessKey {
    FairnessKey(Uuid::from_u128(number.into()))
}

/// Short times, so that tests do not wait.
pub(super) fn fast() -> QueueSettings {
    QueueSettings {
        lease: Duration::from_millis(400),
        promote_every: Duration::from_millis(10),
        ..QueueSettings::default()
    }
}

pub(super) async fn until(what: &str, reached: impl AsyncFn() -> bool) {
    let is_reached = wait_within(BOUND, reached).await;
    assert!(is_reached, "not reached in {BOUND:?}: {what}");
}

impl QueueFixture {
    pub(super) fn shared(name: &str) -> Self {
        Self::shared_with(name, fast())
    }

    pub(super) fn shared_with(name: &str, settings: QueueSettings) -> Self {
        let url = setting("WAYPOST_TEST_REDIS_URL", "redis://127.0.0.1:6379");
        Self::at(&url, name, settings, None)
    }

    pub(super) async fn private(name: &str) -> Self {
        Self::private_with(name, fast()).await
    }

    pub(super) async fn private_with(name: &str, settings: QueueSettings) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = start_redis(port).await;
        let url = format!("redis://127.0.0.1:{port}");
        Self::at(&url, name, settings, Some((server, port)))
    }

    fn at(url: &str, name: &str, settings: QueueSettings, server: Option<(Child, u16)>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("test-{name}-{}-{nth}", std::process::id());
        let redis = Redis::new(&url.into(), &prefix).unwrap();
        let clock = Clock::manual(DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        Self {
            queue: Queue::new(&redis, "count", clock.clone(), settings.clone()),
            queue_settings: settings,
            url: url.to_owned(),
            clock,
            runs: Runs::default(),
            tag: format!("{{{prefix}:count}}"),
            server,
        }
    }

    pub(super) fn worker<F>(
        &self,
        name: &str,
        concurrency: usize,
        in_flight_max: usize,
        handler: impl Fn(Count) -> F + Clone + Send + Sync + 'static,
    ) -> Running
    where
        F: Future<Output = Result<JobEnd, BoxDynError>> + Send + 'static,
    {
        let capacity = Capacity {
            slots: concurrency,
            in_flight_max,
            finishing_max: 0,
        };
        self.worker_with_slots(name, capacity, move |job, _| handler(job))
    }

    /// A worker whose jobs may free their slots before they end.
    pub(super) fn worker_with_slots<F>(
        &self,
        name: &str,
        capacity: Capacity,
        handler: impl Fn(Count, JobSlot<Count>) -> F + Clone + Send + Sync + 'static,
    ) -> Running
    where
        F: Future<Output = Result<JobEnd, BoxDynError>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let runs = self.runs.clone();
        let worker = WorkerBuilder::new(name)
            .backend(self.queue.backend(name.to_owned(), capacity))
            .concurrency(capacity.slots + capacity.finishing_max)
            .build(move |job: Count, slot: Data<JobSlot<Count>>| {
                runs.note(job.number);
                handler(job, slot.0)
            });
        let task = tokio::spawn(async move {
            let signal = async move {
                stopped.cancelled().await;
                Ok::<(), std::io::Error>(())
            };
            worker
                .run_until(signal)
                .await
                .expect("a worker never fails");
        });
        Running { stop, task }
    }

    pub(super) async fn push(&self, numbers: impl IntoIterator<Item = u32>) {
        let jobs: Vec<_> = numbers.into_iter().map(job).collect();
        self.queue.push(&jobs).await.unwrap();
    }

    /// Pushes jobs with one fairness key.
    pub(super) async fn push_in(&self, key: u32, numbers: impl IntoIterator<Item = u32>) {
        let jobs = numbers.into_iter().map(|number| Count { number, key });
        let jobs: Vec<_> = jobs.collect();
        self.queue.push(&jobs).await.unwrap();
    }

    pub(super) async fn depth(&self) -> Depth {
        self.queue.depth().await.unwrap()
    }

    pub(super) fn stream(&self) -> String {
        self.redis_key("s")
    }

    /// A Redis key of the queue, by the end of its name.
    pub(super) fn redis_key(&self, end: &str) -> String {
        format!("{}:{end}", self.tag)
    }

    /// Runs a Redis command.
    pub(super) async fn ask<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query_async(&mut self.redis().await).await.unwrap()
    }

    /// The number of entries in the stream.
    pub(super) async fn in_stream(&self) -> u32 {
        self.ask(&["XLEN", &self.stream()]).await
    }

    /// The number of entries in the stream by fairness key, as the queue counts them.
    pub(super) async fn counts(&self) -> BTreeMap<String, u32> {
        self.ask(&["HGETALL", &self.redis_key("n")]).await
    }

    pub(super) async fn consumers(&self) -> Vec<String> {
        let mut redis = self.redis().await;
        let mut info = redis::cmd("XINFO");
        info.arg("CONSUMERS").arg(self.stream()).arg("workers");
        let consumers: Vec<BTreeMap<String, redis::Value>> =
            info.query_async(&mut redis).await.unwrap_or_default();
        consumers
            .into_iter()
            .map(|mut consumer| redis::from_redis_value(consumer.remove("name").unwrap()).unwrap())
            .collect()
    }

    pub(super) async fn redis(&self) -> redis::aio::MultiplexedConnection {
        redis_connection(&self.url).await.unwrap()
    }

    pub(super) async fn command(&self, command: &str) {
        redis::cmd(command)
            .query_async::<()>(&mut self.redis().await)
            .await
            .unwrap();
    }

    pub(super) async fn stop_redis(&mut self) {
        let (server, _) = self.server.as_mut().expect("a server of its own");
        server.kill().await.unwrap();
    }

    pub(super) async fn start_redis(&mut self) {
        let (server, port) = self.server.as_mut().expect("a server of its own");
        *server = start_redis(*port).await;
    }
}

async fn start_redis(port: u16) -> Child {
    let program = setting("WAYPOST_TEST_REDIS_SERVER", "redis-server");
    let server = Command::new(program)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(["--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("redis-server can be started");
    let url = format!("redis://127.0.0.1:{port}");
    until("Redis answers", async || {
        match redis_connection(&url).await {
            Ok(mut redis) => redis::cmd("PING")
                .query_async::<()>(&mut redis)
                .await
                .is_ok(),
            Err(_) => false,
        }
    })
    .await;
    server
}

fn setting(name: &str, otherwise: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by their runner where Redis is"
    )]
    let value = std::env::var(name);
    value.unwrap_or_else(|_| otherwise.to_owned())
}
