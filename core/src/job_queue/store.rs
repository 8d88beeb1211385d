//! A queue in Redis: its keys, its entries, the calls of its scripts; and the producing side.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::{Pipeline, Script, ScriptInvocation};
use serde::Serialize;

use super::connection::{ReconnectingConnection, RedisCall};
use super::fairness::{END, PROMOTE, PUSH, REPAIR};
use super::in_flight::{Consumer, InFlight, StreamEntry};
use super::producer::ProducerConnection;
use super::scripts::{CREATE_GROUP, INSPECT, PROBE, REMOVE_CONSUMERS};
use super::{Capacity, FairnessKey, Job, QueueSettings, StreamBackend};
use crate::clock::{Clock, Timestamp};
use crate::fault::Fault;
use crate::redis::connector::Connector;
use crate::redis::{Pool, PooledConnection, Redis};

/// The one consumer group of every queue.
pub(super) const GROUP: &str = "workers";
/// The most jobs pushed in one round trip.
const PUSH_MAX: usize = 1_000;
/// The longest stream, in entries, that is counted again: Redis does nothing else
/// meanwhile.
const REPAIR_LENGTH_MAX: usize = 20_000;

/// The producing side of a queue, and the place to inspect it. Cheap to clone.
#[derive(Debug)]
pub struct Queue<J>(Arc<QueueInner<J>>);

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct QueueInner<J> {
    pool: Pool,
    producer: ProducerConnection,
    connector: Connector,
    name: &'static str,
    keys: QueueKeys,
    clock: Clock,
    settings: QueueSettings,
    /// How many connections of this process's consumers are broken.
    broken_connections: Arc<AtomicUsize>,
    job: PhantomData<fn() -> J>,
}

impl<J> std::fmt::Debug for QueueInner<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The keys of a queue.
#[derive(Debug)]
pub(super) struct QueueKeys {
    /// Jobs to run: a stream of entries with the fields `j` (the job), `at` (when it was
    /// pushed, in ms), `l` (its fairness key), and `in` (when it was added to the stream, in
    /// ms, if that was not when it was pushed).
    pub(super) stream: String,
    /// Delayed jobs: a sorted set of `<fairness key>:<job>` by the time due, in ms.
    delayed: String,
    /// How many entries of each fairness key the stream contains: a hash.
    counts: String,
    /// The watermarks of keys with a backlog: a hash of times in ms. Once the backlog is
    /// empty, `/` and the push time of its last job follow.
    watermarks: String,
    /// The prefix of the backlogs' names; the fairness key follows. Their items are
    /// `<pushed at, in ms>:<job>`.
    backlog: String,
    /// Exists for a while after the counts were repaired.
    repaired: String,
    /// A stream to which what asks whether Redis takes pushes writes.
    probe: String,
}

/// Since when jobs wait in a queue, by their push times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueWait {
    /// The oldest waiting job of all keys that are not in `backlogged`; `None` if no job waits.
    pub oldest: Option<Timestamp>,
    /// The fairness keys with a backlog, each with its watermark: its waiting jobs were
    /// pushed later, except for those that run at the same time.
    pub backlogged: HashMap<FairnessKey, Timestamp>,
}

/// How many jobs of a queue are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Pushed, and not fetched by a worker: in the stream or in a backlog.
    pub waiting: u64,
    /// Fetched by a worker and not acknowledged.
    pub fetched: u64,
    pub delayed: u64,
}

impl<J: Job> Queue<J> {
    /// The queue `name`. Inspections use the pool of `redis`; pushes and consumers have their
    /// own connections.
    #[must_use]
    pub fn new(redis: &Redis, name: &'static str, clock: Clock, settings: QueueSettings) -> Self {
        let (prefix, connector) = (&redis.prefix, redis.connector.clone());
        let tag = if prefix.is_empty() {
            format!("{{{name}}}")
        } else {
            format!("{{{prefix}:{name}}}")
        };
        Self(Arc::new(QueueInner {
            pool: redis.pool.clone(),
            producer: ProducerConnection::new(connector.clone(), settings.answer_within),
            connector,
            name,
            keys: QueueKeys {
                stream: format!("{tag}:s"),
                delayed: format!("{tag}:z"),
                counts: format!("{tag}:n"),
                watermarks: format!("{tag}:f"),
                backlog: format!("{tag}:o:"),
                repaired: format!("{tag}:m"),
                probe: format!("{tag}:p"),
            },
            clock,
            settings,
            broken_connections: Arc::new(AtomicUsize::new(0)),
            job: PhantomData,
        }))
    }

    /// Pushes jobs to run now, a thousand in a round trip. Those beyond the quota of their
    /// key wait in its backlog.
    ///
    /// # Errors
    ///
    /// If Redis does not take them. The caller may continue: the relay pushes them again.
    pub async fn push(&self, jobs: &[J]) -> Result<(), Fault> {
        for jobs in jobs.chunks(PUSH_MAX) {
            let mut script = self.fairness_script(&PUSH);
            for job in jobs {
                script.arg(job.fairness_key().to_string()).arg(encode(job)?);
            }
            self.send(RedisCall::Script(&script)).await?;
        }
        Ok(())
    }

    /// Pushes jobs to run when they are due, to within a tick. A job that is delayed already
    /// keeps the earlier of its times: it reads the truth when it runs, and repeated pushes
    /// must not add it several times.
    ///
    /// # Errors
    ///
    /// If Redis does not take them.
    pub async fn push_at(&self, jobs: &[(J, Timestamp)]) -> Result<(), Fault> {
        for jobs in jobs.chunks(PUSH_MAX) {
            let mut pipeline = Pipeline::with_capacity(jobs.len());
            for (job, at) in jobs {
                let member = member(Some(job.fairness_key()), &encode(job)?);
                let add = pipeline.cmd("ZADD").arg(&self.0.keys.delayed);
                add.arg("LT").arg(at.timestamp_millis()).arg(member);
                add.ignore();
            }
            self.send(RedisCall::Pipeline(&pipeline)).await?;
        }
        Ok(())
    }

    /// Checks that Redis takes pushes, which a read would not show.
    ///
    /// # Errors
    ///
    /// If it does not.
    pub async fn check_pushes(&self) -> Result<(), Fault> {
        let mut connection = self.connection().await?;
        let probed = self.probe().invoke_async::<()>(&mut *connection).await;
        probed.map_err(|error| Fault::unavailable("push to Redis", error))
    }

    /// Since when jobs wait that no worker has fetched. Without a group (no worker was
    /// connected since Redis was emptied) every job in the stream waits.
    ///
    /// # Errors
    ///
    /// If Redis does not answer.
    pub async fn waiting(&self) -> Result<QueueWait, Fault> {
        Ok(self.inspect().await?.1)
    }

    /// How many jobs are in which state.
    ///
    /// # Errors
    ///
    /// If Redis does not answer.
    pub async fn depth(&self) -> Result<Depth, Fault> {
        Ok(self.inspect().await?.0)
    }

    /// A consuming side. The name `consumer` must be unique among the running consumers of all
    /// processes.
    pub fn backend(&self, consumer: String, capacity: Capacity) -> StreamBackend<J> {
        StreamBackend::new(Consumer {
            queue: self.clone(),
            name: consumer,
            in_flight: InFlight::new(capacity),
            fetcher_id: 0.into(),
        })
    }

    /// Whether a consumer of this process has lost Redis, or Redis refuses its writes. False
    /// if this process has no consumer.
    #[must_use]
    pub fn has_lost_redis(&self) -> bool {
        self.0.broken_connections.load(Ordering::Relaxed) > 0
    }

    async fn inspect(&self) -> Result<(Depth, QueueWait), Fault> {
        let keys = &self.0.keys;
        let mut connection = self.connection().await?;
        let (waiting, fetched, delayed, oldest, watermarks) = INSPECT
            .key(&keys.stream)
            .key(&keys.delayed)
            .key(&keys.watermarks)
            .key(&keys.backlog)
            .arg(GROUP)
            .invoke_async::<(i64, i64, u64, Option<i64>, Vec<(String, i64)>)>(&mut *connection)
            .await
            .map_err(|error| Fault::unavailable("inspect a queue", error))?;
        let depth = Depth {
            waiting: u64::try_from(waiting).unwrap_or(0),
            fetched: u64::try_from(fetched).unwrap_or(0),
            delayed,
        };
        let backlogged = watermarks.into_iter().filter_map(|(key, watermark)| {
            let key = FairnessKey(key.parse().ok()?);
            Some((key, Timestamp::from_timestamp_millis(watermark)?))
        });
        let waiting = QueueWait {
            oldest: oldest.and_then(Timestamp::from_timestamp_millis),
            backlogged: backlogged.collect(),
        };
        Ok((depth, waiting))
    }

    async fn send(&self, jobs: RedisCall<'_>) -> Result<(), Fault> {
        let sent = self.0.producer.send(jobs).await;
        sent.map_err(|error| Fault::unavailable("push jobs", error))
    }

    async fn connection(&self) -> Result<PooledConnection, Fault> {
        let connection = self.0.pool.get().await;
        connection.map_err(|error| Fault::unavailable("reach Redis", error))
    }
}

/// For the tasks of a consumer.
impl<J> Queue<J> {
    pub(super) fn name(&self) -> &'static str {
        self.0.name
    }

    pub(super) fn settings(&self) -> &QueueSettings {
        &self.0.settings
    }

    pub(super) fn keys(&self) -> &QueueKeys {
        &self.0.keys
    }

    pub(super) fn reconnecting(&self) -> ReconnectingConnection {
        ReconnectingConnection::new(
            self.0.connector.clone(),
            self.0.name,
            self.0.settings.answer_within,
            Arc::clone(&self.0.broken_connections),
        )
    }

    /// A script of [`fairness`](super::fairness), with the common keys and arguments.
    fn fairness_script(&self, script: &'static Script) -> ScriptInvocation<'static> {
        let keys = &self.0.keys;
        let mut script = script.key(&keys.stream);
        script
            .key(&keys.counts)
            .key(&keys.watermarks)
            .key(&keys.backlog);
        script.arg(self.now_ms()).arg(self.0.settings.quota);
        script
    }

    /// Ends jobs. The caller adds what to do with each.
    pub(super) fn end(&self) -> ScriptInvocation<'static> {
        let keys = &self.0.keys;
        let mut script = self.fairness_script(&END);
        script.key(&keys.delayed).arg(GROUP);
        script
    }

    pub(super) fn push_back(&self, script: &mut ScriptInvocation<'static>, entry: &StreamEntry) {
        script.arg("again").arg(key_text(entry.key));
        script.arg(&entry.payload).arg(entry.at_ms);
    }

    pub(super) fn delay(
        &self,
        script: &mut ScriptInvocation<'static>,
        entry: &StreamEntry,
        after: Duration,
    ) {
        let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        let due_ms = self.now_ms().saturating_add(after_ms);
        let member = member(entry.key, &entry.payload);
        script.arg("later").arg(member).arg(due_ms);
    }

    pub(super) fn create_group(&self) -> ScriptInvocation<'_> {
        let mut script = CREATE_GROUP.key(&self.0.keys.stream);
        script.arg(GROUP);
        script
    }

    pub(super) fn probe(&self) -> ScriptInvocation<'static> {
        PROBE.key(&self.0.keys.probe)
    }

    pub(super) fn promote(&self) -> ScriptInvocation<'static> {
        let mut script = self.fairness_script(&PROMOTE);
        script.key(&self.0.keys.delayed);
        script.key(&self.0.keys.probe);
        script.arg(self.0.settings.promote_max);
        script
    }

    pub(super) fn repair(&self) -> ScriptInvocation<'static> {
        let mut script = self.fairness_script(&REPAIR);
        script.key(&self.0.keys.repaired);
        // The first of all consumers does it in each period.
        let period_ms = millis(self.0.settings.repair_every).max(2) - 1;
        script.arg(period_ms).arg(REPAIR_LENGTH_MAX);
        script
    }

    /// Removes consumers without jobs that are idle for too long. The consumer `own` is
    /// removed if `is_closing`, and otherwise kept.
    pub(super) fn remove_consumers(&self, own: &str, is_closing: bool) -> ScriptInvocation<'_> {
        let idle_max_ms = millis(self.0.settings.consumer_idle_max);
        let mut script = REMOVE_CONSUMERS.key(&self.0.keys.stream);
        script.arg(GROUP).arg(own);
        script.arg(idle_max_ms).arg(u8::from(is_closing));
        script
    }

    fn now_ms(&self) -> i64 {
        self.0.clock.now().timestamp_millis()
    }
}

/// A fairness key as an argument of a script: empty if there is none.
pub(super) fn key_text(key: Option<FairnessKey>) -> String {
    key.map(|key| key.to_string()).unwrap_or_default()
}

fn member(key: Option<FairnessKey>, payload: &[u8]) -> Vec<u8> {
    let mut member = format!("{}:", key_text(key)).into_bytes();
    member.extend_from_slice(payload);
    member
}

fn encode<J: Serialize>(job: &J) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(job).map_err(|error| Fault::internal("encode a job", error))
}

/// A duration in ms, as an argument for Redis.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
