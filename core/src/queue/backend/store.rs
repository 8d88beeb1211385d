//! A queue as it lies in Redis: its keys, its entries, its scripts; and the
//! producing side.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use deadpool_redis::Pool;
use redis::{Client, Pipeline, ScriptInvocation};
use serde::{Deserialize, Serialize};

use super::desk::{Consumer, Desk};
use super::line::Line;
use super::scripts::{CREATE_GROUP, LOOK, PROMOTE, SWEEP};
use super::trunk::Trunk;
use super::{Job, QueueSettings, StreamBackend};
use crate::clock::{Clock, Timestamp};
use crate::fault::Fault;

/// The one consumer group of every queue.
pub(super) const GROUP: &str = "workers";
/// The most jobs pushed in one round trip.
const PUSH_MAX: usize = 1_000;

/// The producing side of a queue, and the place to look in. Cheap to clone.
#[derive(Debug)]
pub struct Queue<J>(Arc<Inner<J>>);

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<J> {
    pool: Pool,
    trunk: Trunk,
    client: Client,
    name: &'static str,
    keys: Keys,
    clock: Clock,
    settings: QueueSettings,
    job: PhantomData<fn() -> J>,
}

impl<J> std::fmt::Debug for Inner<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The keys of a queue.
#[derive(Debug)]
pub(super) struct Keys {
    /// Jobs to run: a stream of entries with the fields `j` (the job), `at` (when
    /// it was pushed, in ms) and, unless 0, `n` (failed attempts).
    pub(super) stream: String,
    /// Delayed jobs: a sorted set of `<n>:<job>` by the time due, in ms.
    delayed: String,
    /// Dead jobs, the newest first.
    dead: String,
}

/// How many jobs of a queue are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Pushed, and fetched by no worker.
    pub waiting: u64,
    /// Fetched by a worker and not acknowledged.
    pub fetched: u64,
    /// To be run later.
    pub delayed: u64,
    /// Given up.
    pub dead: u64,
}

/// A job that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadJob {
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: String,
    /// The job as it was in the stream, decodable or not.
    pub payload: String,
}

#[derive(Serialize, Deserialize)]
struct DeadEntry {
    at: i64,
    reason: String,
    payload: String,
}

impl<J: Job> Queue<J> {
    /// The queue `name` in Redis under `prefix`. `pool` serves those who look into
    /// the queue; pushes and consumers have connections of their own, by `client`.
    #[must_use]
    pub fn new(
        pool: Pool,
        client: Client,
        prefix: &str,
        name: &'static str,
        clock: Clock,
        settings: QueueSettings,
    ) -> Self {
        let tag = if prefix.is_empty() {
            format!("{{{name}}}")
        } else {
            format!("{{{prefix}:{name}}}")
        };
        Self(Arc::new(Inner {
            pool,
            trunk: Trunk::new(client.clone(), settings.answer_within),
            client,
            name,
            keys: Keys {
                stream: format!("{tag}:s"),
                delayed: format!("{tag}:z"),
                dead: format!("{tag}:dead"),
            },
            clock,
            settings,
            job: PhantomData,
        }))
    }

    /// Pushes jobs to be run now, a thousand in a round trip.
    ///
    /// # Errors
    ///
    /// When Redis does not take them. The caller may go on: the relay repairs it.
    pub async fn push(&self, jobs: &[J]) -> Result<(), Fault> {
        for jobs in jobs.chunks(PUSH_MAX) {
            let mut pipeline = Pipeline::with_capacity(jobs.len());
            for job in jobs {
                self.add_entry(&mut pipeline, &encode(job)?, 0);
            }
            self.send(&pipeline).await?;
        }
        Ok(())
    }

    /// Pushes jobs to be run when their time comes, to within a tick. A job that is
    /// delayed already keeps the earlier of its times: it reads the truth when it
    /// runs, and a repeated push must not pile up copies.
    ///
    /// # Errors
    ///
    /// When Redis does not take them.
    pub async fn push_at(&self, jobs: &[(J, Timestamp)]) -> Result<(), Fault> {
        for jobs in jobs.chunks(PUSH_MAX) {
            let mut pipeline = Pipeline::with_capacity(jobs.len());
            for (job, at) in jobs {
                self.add_delayed_until(&mut pipeline, &encode(job)?, 0, at.timestamp_millis());
            }
            self.send(&pipeline).await?;
        }
        Ok(())
    }

    /// When the oldest job that no worker has fetched was pushed; `None` when none
    /// waits. Without a group (no worker has been here since Redis was emptied)
    /// every job in the stream is waiting.
    ///
    /// # Errors
    ///
    /// When Redis does not answer.
    pub async fn oldest_waiting(&self) -> Result<Option<Timestamp>, Fault> {
        let (_, oldest) = self.look().await?;
        Ok(oldest.and_then(Timestamp::from_timestamp_millis))
    }

    /// How many jobs are where.
    ///
    /// # Errors
    ///
    /// When Redis does not answer.
    pub async fn depth(&self) -> Result<Depth, Fault> {
        Ok(self.look().await?.0)
    }

    /// The latest dead jobs, the newest first.
    ///
    /// # Errors
    ///
    /// When Redis does not answer.
    pub async fn dead(&self, limit: usize) -> Result<Vec<DeadJob>, Fault> {
        let Some(last) = limit.checked_sub(1) else {
            return Ok(Vec::new());
        };
        let mut connection = self.connection().await?;
        let entries: Vec<Vec<u8>> = redis::cmd("LRANGE")
            .arg(&self.0.keys.dead)
            .arg(0)
            .arg(last)
            .query_async(&mut connection)
            .await
            .map_err(|error| Fault::unavailable("read the dead jobs", error))?;
        let dead = entries.iter().filter_map(|entry| {
            let entry: DeadEntry = serde_json::from_slice(entry).ok()?;
            Some(DeadJob {
                at: Timestamp::from_timestamp_millis(entry.at)?,
                reason: entry.reason,
                payload: entry.payload,
            })
        });
        Ok(dead.collect())
    }

    /// A consuming side. `consumer` must be unique among all that live, over all
    /// processes. `room` is how many jobs it may hold at once: the worker's
    /// concurrency, and some more that are ready to start or being acknowledged.
    pub fn backend(&self, consumer: String, room: usize) -> StreamBackend<J> {
        StreamBackend::new(Consumer {
            queue: self.clone(),
            name: consumer,
            desk: Desk::new(room),
            fetcher_id: 0.into(),
            lines_down: Arc::new(AtomicUsize::new(0)),
        })
    }

    async fn look(&self) -> Result<(Depth, Option<i64>), Fault> {
        let keys = &self.0.keys;
        let mut connection = self.connection().await?;
        let (waiting, fetched, delayed, dead, oldest) = LOOK
            .key(&keys.stream)
            .key(&keys.delayed)
            .key(&keys.dead)
            .arg(GROUP)
            .invoke_async::<(i64, i64, u64, u64, Option<i64>)>(&mut connection)
            .await
            .map_err(|error| Fault::unavailable("look into a queue", error))?;
        let depth = Depth {
            waiting: u64::try_from(waiting).unwrap_or(0),
            fetched: u64::try_from(fetched).unwrap_or(0),
            delayed,
            dead,
        };
        Ok((depth, oldest))
    }

    async fn send(&self, pipeline: &Pipeline) -> Result<(), Fault> {
        let sent = self.0.trunk.send(pipeline).await;
        sent.map_err(|error| Fault::unavailable("push jobs", error))
    }

    async fn connection(&self) -> Result<deadpool_redis::Connection, Fault> {
        let connection = self.0.pool.get().await;
        connection.map_err(|error| Fault::unavailable("reach Redis", error))
    }
}

/// What the tasks of a consumer need.
impl<J> Queue<J> {
    pub(super) fn name(&self) -> &'static str {
        self.0.name
    }

    pub(super) fn settings(&self) -> &QueueSettings {
        &self.0.settings
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(super) fn line(&self, lines_down: &Arc<AtomicUsize>) -> Line {
        Line::new(
            self.0.client.clone(),
            self.0.name,
            self.0.settings.answer_within,
            Arc::clone(lines_down),
        )
    }

    pub(super) fn add_entry(&self, pipeline: &mut Pipeline, payload: &[u8], attempts: u32) {
        let add = pipeline.cmd("XADD").arg(&self.0.keys.stream).arg("*");
        add.arg("j").arg(payload).arg("at").arg(self.now_ms());
        if attempts > 0 {
            add.arg("n").arg(attempts);
        }
        add.ignore();
    }

    pub(super) fn add_delayed(
        &self,
        pipeline: &mut Pipeline,
        payload: &[u8],
        attempts: u32,
        after: Duration,
    ) {
        let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        let due_ms = self.now_ms().saturating_add(after_ms);
        self.add_delayed_until(pipeline, payload, attempts, due_ms);
    }

    fn add_delayed_until(
        &self,
        pipeline: &mut Pipeline,
        payload: &[u8],
        attempts: u32,
        due_ms: i64,
    ) {
        let mut member = attempts.to_string().into_bytes();
        member.push(b':');
        member.extend_from_slice(payload);
        let add = pipeline.cmd("ZADD").arg(&self.0.keys.delayed);
        add.arg("LT").arg(due_ms).arg(member).ignore();
    }

    pub(super) fn add_dead(&self, pipeline: &mut Pipeline, payload: &[u8], reason: &str) {
        let entry = DeadEntry {
            at: self.now_ms(),
            reason: reason.to_owned(),
            payload: String::from_utf8_lossy(payload).into_owned(),
        };
        let entry = serde_json::to_vec(&entry).expect("two strings and a number are always JSON");
        pipeline
            .cmd("LPUSH")
            .arg(&self.0.keys.dead)
            .arg(entry)
            .ignore();
    }

    pub(super) fn trim_dead(&self, pipeline: &mut Pipeline) {
        let last = self.0.settings.dead_max.saturating_sub(1);
        pipeline
            .cmd("LTRIM")
            .arg(&self.0.keys.dead)
            .arg(0)
            .arg(last)
            .ignore();
    }

    pub(super) fn create_group(&self) -> ScriptInvocation<'_> {
        let mut script = CREATE_GROUP.key(&self.0.keys.stream);
        script.arg(GROUP);
        script
    }

    pub(super) fn promote(&self) -> ScriptInvocation<'_> {
        let mut script = PROMOTE.key(&self.0.keys.delayed);
        script.key(&self.0.keys.stream);
        script.arg(self.now_ms()).arg(self.0.settings.promote_max);
        script
    }

    /// Removes consumers that hold nothing and have been silent for long; and
    /// `name`, our own, when it is leaving.
    pub(super) fn sweep(&self, name: &str, leaving: bool) -> ScriptInvocation<'_> {
        let idle_max_ms = millis(self.0.settings.consumer_idle_max);
        let mut script = SWEEP.key(&self.0.keys.stream);
        script.arg(GROUP).arg(name);
        script.arg(idle_max_ms).arg(u8::from(leaving));
        script
    }

    fn now_ms(&self) -> i64 {
        self.0.clock.now().timestamp_millis()
    }
}

fn encode<J: Serialize>(job: &J) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(job).map_err(|error| Fault::internal("encode a job", error))
}

/// A duration as Redis takes it.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
