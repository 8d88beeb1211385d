//! A queue as it lies in Redis: its keys, its entries, its scripts; and the
//! producing side.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool_redis::Pool;
use redis::{Client, Pipeline, Script, ScriptInvocation};
use serde::{Deserialize, Serialize};

use super::connection::{ReconnectingConnection, RedisCall};
use super::fairness::{END, MEND, PROMOTE, PUSH};
use super::in_flight::{Consumer, InFlight, StreamEntry};
use super::producer::ProducerConnection;
use super::scripts::{CREATE_GROUP, LOOK, PROBE, SWEEP};
use super::{Capacity, FairnessKey, Job, QueueSettings, StreamBackend};
use crate::clock::{Clock, Timestamp};
use crate::fault::Fault;

/// The one consumer group of every queue.
pub(super) const GROUP: &str = "workers";
/// The most jobs pushed in one round trip.
const PUSH_MAX: usize = 1_000;
/// The longest stream, in entries, that is counted anew: Redis does nothing else
/// meanwhile.
const MEND_LENGTH_MAX: usize = 20_000;

/// The producing side of a queue, and the place to look in. Cheap to clone.
#[derive(Debug)]
pub struct Queue<J>(Arc<QueueInner<J>>);

impl<J> Clone for Queue<J> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct QueueInner<J> {
    pool: Pool,
    trunk: ProducerConnection,
    client: Client,
    name: &'static str,
    keys: QueueKeys,
    clock: Clock,
    settings: QueueSettings,
    /// How many connections of this process's consumers are broken now.
    lines_down: Arc<AtomicUsize>,
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
    /// Jobs to run: a stream of entries with the fields `j` (the job), `at` (when
    /// it was pushed, in ms), `l` (its lane), unless 0 `n` (failed attempts), and of
    /// those that had to wait for it `in` (when they came into the stream, in ms).
    pub(super) stream: String,
    /// Delayed jobs: a sorted set of `<n>/<lane>:<job>` by the time due, in ms.
    delayed: String,
    /// Dead jobs, the newest first.
    dead: String,
    /// How many entries of each lane the stream holds: a hash.
    counts: String,
    /// The floors of lanes that overflow: a hash of times in ms, with `/` and the push
    /// time of the last job let in where none waits any more.
    floors: String,
    /// How the lists of jobs that wait for the stream begin; the lane follows. Their
    /// items are `<pushed at, in ms>:<n>:<job>`.
    overflow: String,
    /// There while the counts were mended a moment ago.
    mended: String,
    /// A stream that only probes write to.
    probe: String,
}

/// Since when jobs wait in a queue, by the times of their pushes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueueWait {
    /// The oldest of all lanes but those in `overflowing`; `None` when nobody waits.
    pub oldest: Option<Timestamp>,
    /// Lanes of which more wait than the stream takes, and a time before which none
    /// of a lane's waiting jobs was pushed, give or take what runs at once.
    pub overflowing: HashMap<FairnessKey, Timestamp>,
}

/// How many jobs of a queue are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Depth {
    /// Pushed, and fetched by no worker: in the stream or waiting for it.
    pub waiting: u64,
    /// Fetched by a worker and not acknowledged.
    pub fetched: u64,
    pub delayed: u64,
    pub dead: u64,
}

/// A job that was given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadJob {
    pub at: Timestamp,
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
        Self(Arc::new(QueueInner {
            pool,
            trunk: ProducerConnection::new(client.clone(), settings.answer_within),
            client,
            name,
            keys: QueueKeys {
                stream: format!("{tag}:s"),
                delayed: format!("{tag}:z"),
                dead: format!("{tag}:dead"),
                counts: format!("{tag}:n"),
                floors: format!("{tag}:f"),
                overflow: format!("{tag}:o:"),
                mended: format!("{tag}:m"),
                probe: format!("{tag}:p"),
            },
            clock,
            settings,
            lines_down: Arc::new(AtomicUsize::new(0)),
            job: PhantomData,
        }))
    }

    /// Pushes jobs to be run now, a thousand in a round trip. Those beyond their lane's
    /// window wait until its others have ended.
    ///
    /// # Errors
    ///
    /// When Redis does not take them. The caller may go on: the relay repairs it.
    pub async fn push(&self, jobs: &[J]) -> Result<(), Fault> {
        for jobs in jobs.chunks(PUSH_MAX) {
            let mut script = self.within_lanes(&PUSH);
            for job in jobs {
                script.arg(job.lane().to_string()).arg(encode(job)?);
            }
            self.send(RedisCall::Script(&script)).await?;
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
                let member = member(Some(job.lane()), 0, &encode(job)?);
                let add = pipeline.cmd("ZADD").arg(&self.0.keys.delayed);
                add.arg("LT").arg(at.timestamp_millis()).arg(member);
                add.ignore();
            }
            self.send(RedisCall::Pipeline(&pipeline)).await?;
        }
        Ok(())
    }

    /// Whether Redis takes pushes: reads alone say nothing of that.
    ///
    /// # Errors
    ///
    /// When it does not.
    pub async fn check_pushes(&self) -> Result<(), Fault> {
        let mut connection = self.connection().await?;
        let probed = self.probe().invoke_async::<()>(&mut connection).await;
        probed.map_err(|error| Fault::unavailable("push to Redis", error))
    }

    /// Since when jobs wait that no worker has fetched. Without a group (no worker has
    /// been here since Redis was emptied) every job in the stream is waiting.
    ///
    /// # Errors
    ///
    /// When Redis does not answer.
    pub async fn waiting(&self) -> Result<QueueWait, Fault> {
        Ok(self.look().await?.1)
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
    /// processes.
    pub fn backend(&self, consumer: String, capacity: Capacity) -> StreamBackend<J> {
        StreamBackend::new(Consumer {
            queue: self.clone(),
            name: consumer,
            desk: InFlight::new(capacity),
            fetcher_id: 0.into(),
            lines_down: Arc::clone(&self.0.lines_down),
        })
    }

    /// Whether a consumer of this process has lost Redis and not got it back, or sees it
    /// refuse pushes: false where there is no consumer.
    #[must_use]
    pub fn has_lost_redis(&self) -> bool {
        self.0.lines_down.load(Ordering::Relaxed) > 0
    }

    async fn look(&self) -> Result<(Depth, QueueWait), Fault> {
        let keys = &self.0.keys;
        let mut connection = self.connection().await?;
        let (waiting, fetched, delayed, dead, oldest, floors) = LOOK
            .key(&keys.stream)
            .key(&keys.delayed)
            .key(&keys.dead)
            .key(&keys.floors)
            .key(&keys.overflow)
            .arg(GROUP)
            .invoke_async::<(i64, i64, u64, u64, Option<i64>, Vec<(String, i64)>)>(&mut connection)
            .await
            .map_err(|error| Fault::unavailable("look into a queue", error))?;
        let depth = Depth {
            waiting: u64::try_from(waiting).unwrap_or(0),
            fetched: u64::try_from(fetched).unwrap_or(0),
            delayed,
            dead,
        };
        let overflowing = floors.into_iter().filter_map(|(lane, floor)| {
            let lane = FairnessKey(lane.parse().ok()?);
            Some((lane, Timestamp::from_timestamp_millis(floor)?))
        });
        let waiting = QueueWait {
            oldest: oldest.and_then(Timestamp::from_timestamp_millis),
            overflowing: overflowing.collect(),
        };
        Ok((depth, waiting))
    }

    async fn send(&self, jobs: RedisCall<'_>) -> Result<(), Fault> {
        let sent = self.0.trunk.send(jobs).await;
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

    pub(super) fn keys(&self) -> &QueueKeys {
        &self.0.keys
    }

    pub(super) fn line(&self, lines_down: &Arc<AtomicUsize>) -> ReconnectingConnection {
        ReconnectingConnection::new(
            self.0.client.clone(),
            self.0.name,
            self.0.settings.answer_within,
            Arc::clone(lines_down),
        )
    }

    /// A script of [`lanes`](super::fairness), with what all of them take.
    fn within_lanes(&self, script: &'static Script) -> ScriptInvocation<'static> {
        let keys = &self.0.keys;
        let mut script = script.key(&keys.stream);
        script
            .key(&keys.counts)
            .key(&keys.floors)
            .key(&keys.overflow);
        script.arg(self.now_ms()).arg(self.0.settings.window);
        script
    }

    /// Ends jobs; what follows from each is still to be added.
    pub(super) fn end(&self) -> ScriptInvocation<'static> {
        let keys = &self.0.keys;
        let mut script = self.within_lanes(&END);
        script.key(&keys.delayed).key(&keys.dead);
        script.arg(GROUP).arg(self.0.settings.dead_max);
        script
    }

    pub(super) fn again(&self, script: &mut ScriptInvocation<'static>, entry: &StreamEntry) {
        script.arg("again").arg(text(entry.lane));
        script.arg(&entry.payload).arg(entry.at_ms);
        script.arg(entry.attempts);
    }

    pub(super) fn later(
        &self,
        script: &mut ScriptInvocation<'static>,
        entry: &StreamEntry,
        attempts: u32,
        after: Duration,
    ) {
        let after_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
        let due_ms = self.now_ms().saturating_add(after_ms);
        let member = member(entry.lane, attempts, &entry.payload);
        script.arg("later").arg(member).arg(due_ms);
    }

    pub(super) fn bury(
        &self,
        script: &mut ScriptInvocation<'static>,
        entry: &StreamEntry,
        reason: &str,
    ) {
        let entry = DeadEntry {
            at: self.now_ms(),
            reason: reason.to_owned(),
            payload: String::from_utf8_lossy(&entry.payload).into_owned(),
        };
        let entry = serde_json::to_vec(&entry).expect("two strings and a number are always JSON");
        script.arg("dead").arg(entry);
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
        let mut script = self.within_lanes(&PROMOTE);
        script.key(&self.0.keys.delayed);
        script.arg(self.0.settings.promote_max);
        script
    }

    pub(super) fn mend(&self) -> ScriptInvocation<'static> {
        let mut script = self.within_lanes(&MEND);
        script.key(&self.0.keys.mended);
        // One of all consumers does it in a period, whoever comes first.
        let period_ms = millis(self.0.settings.mend_every).max(2) - 1;
        script.arg(period_ms).arg(MEND_LENGTH_MAX);
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

/// A lane as Redis takes it: nothing where there is none.
pub(super) fn text(lane: Option<FairnessKey>) -> String {
    lane.map(|lane| lane.to_string()).unwrap_or_default()
}

fn member(lane: Option<FairnessKey>, attempts: u32, payload: &[u8]) -> Vec<u8> {
    let mut member = format!("{attempts}/{}:", text(lane)).into_bytes();
    member.extend_from_slice(payload);
    member
}

fn encode<J: Serialize>(job: &J) -> Result<Vec<u8>, Fault> {
    serde_json::to_vec(job).map_err(|error| Fault::internal("encode a job", error))
}

/// A duration as Redis takes it.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
