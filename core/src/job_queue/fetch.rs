//! The fetcher: the one task that fetches jobs for a consumer. It reads new ones with a
//! blocking call, takes over those of dead consumers, and after a lost connection those
//! in replies that were lost. No other task fetches, so [`super::in_flight`] knows
//! exactly which jobs this consumer has.

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use redis::{Cmd, RedisResult, Value};
use tokio::time::Instant;

use super::connection::{CallError, ReconnectingConnection, RedisCall};
use super::in_flight::{Consumer, EntryId, StreamEntry};
use super::store::{GROUP, millis};
use super::{FairnessKey, Job};

/// The longest interval between two checks for jobs of dead consumers.
const TAKE_OVER_EVERY_MAX: Duration = Duration::from_secs(5);
/// The pause before a lost group is created again, in case Redis is emptied repeatedly.
const NO_GROUP_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let settings = consumer.queue.settings();
    let every = (settings.lease / 3).min(TAKE_OVER_EVERY_MAX);
    let mut fetcher = JobFetcher {
        connection: consumer.connection().blocking(settings.block),
        consumer: &consumer,
    };
    let mut take_over_at = Instant::now();
    while let Some(max) = consumer.in_flight.free_capacity().await {
        let result = if fetcher.connection.is_closed() {
            fetcher.connect(max).await
        } else if take_over_at <= Instant::now() {
            take_over_at = Instant::now() + every;
            fetcher.take_over(max).await
        } else {
            let left = take_over_at.saturating_duration_since(Instant::now());
            fetcher.read(max, settings.block.min(left)).await
        };
        if result == Err(CallError::NoGroup) {
            tokio::time::sleep(NO_GROUP_PAUSE).await;
            // If this fails, the next read fails too.
            let _ = fetcher.create_group().await;
        }
    }
    consumer.in_flight.mark_fetcher_stopped();
}

struct JobFetcher<'a, J> {
    consumer: &'a Consumer<J>,
    connection: ReconnectingConnection,
}

/// An entry as Redis returns it: its id, and its fields with their values. Not the type of the
/// crate (`StreamReadReply`), which copies the whole reply and refuses it for one field whose
/// name is not UTF-8.
type RawEntry = (String, Vec<(Vec<u8>, Vec<u8>)>);

impl<J: Job> JobFetcher<'_, J> {
    /// Connects: reads the id of the connection, creates the group if it is missing, and
    /// fetches the jobs that the last connection lost.
    async fn connect(&mut self, max: usize) -> Result<(), CallError> {
        let mut client_id = redis::pipe();
        // Some Redis users may not run this. Without the id, closing waits for the end of the
        // blocking read.
        client_id.cmd("CLIENT").arg("ID").ignore_errors();
        let call = RedisCall::Pipeline(&client_id);
        let ids: Vec<RedisResult<i64>> = self.connection.call(call).await?;
        let id = ids.into_iter().find_map(Result::ok).unwrap_or(0);
        self.consumer.fetcher_id.store(id, Ordering::Relaxed);
        self.create_group().await?;
        self.read_lost(max).await
    }

    /// Creates the group. It begins with the first entry: all entries are waiting then.
    async fn create_group(&mut self) -> Result<(), CallError> {
        let create = self.consumer.queue.create_group();
        let call = RedisCall::Script(&create);
        self.connection.call::<Value>(call).await?;
        Ok(())
    }

    /// Reads new entries, and waits for them.
    async fn read(&mut self, max: usize, block: Duration) -> Result<(), CallError> {
        let mut read = self.read_group(max.min(self.consumer.queue.settings().batch_max));
        // BLOCK 0 would wait for ever.
        read.arg("BLOCK").arg(millis(block).max(1));
        let entries = self.read_from(read, ">").await?;
        self.push(entries);
        Ok(())
    }

    /// Reads entries that Redis delivered to this consumer in a reply that was lost with its
    /// connection.
    async fn read_lost(&mut self, max: usize) -> Result<(), CallError> {
        // Redis returns the jobs in flight too, some of which may end before the reply is here.
        let held: HashSet<EntryId> = self.consumer.in_flight.held().into_iter().collect();
        let read = self.read_group(max + held.len());
        let mut entries = self.read_from(read, "0").await?;
        entries.retain(|(id, _)| EntryId::parse(id).is_some_and(|id| !held.contains(&id)));
        self.push(entries);
        Ok(())
    }

    fn read_group(&self, count: usize) -> Cmd {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer.name);
        read.arg("COUNT").arg(count);
        read
    }

    async fn read_from(&mut self, mut read: Cmd, id: &str) -> Result<Vec<RawEntry>, CallError> {
        let stream = &self.consumer.queue.keys().stream;
        read.arg("STREAMS").arg(stream).arg(id);
        let call = RedisCall::Command(&read);
        let streams: Vec<(Value, Vec<RawEntry>)> = self.connection.call(call).await?;
        Ok(streams
            .into_iter()
            .flat_map(|(_, entries)| entries)
            .collect())
    }

    /// Claims jobs whose lease has ended, of any consumer. Not by XAUTOCLAIM, which ends after
    /// ten times as many pending entries as it may return, whether their leases have ended or
    /// not.
    async fn take_over(&mut self, max: usize) -> Result<(), CallError> {
        let queue = &self.consumer.queue;
        let stream = &queue.keys().stream;
        let lease = millis(queue.settings().lease);
        let mut pending = redis::cmd("XPENDING");
        pending.arg(stream).arg(GROUP).arg("IDLE").arg(lease);
        pending.arg("-").arg("+");
        pending.arg(max.min(queue.settings().batch_max));
        let pending: Vec<(String, Value, Value, Value)> =
            self.connection.call(RedisCall::Command(&pending)).await?;
        let in_flight = &self.consumer.in_flight;
        let wanted: Vec<EntryId> = pending
            .iter()
            .filter_map(|(id, ..)| EntryId::parse(id))
            .filter(|id| !in_flight.holds(*id))
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut claim = redis::cmd("XCLAIM");
        claim.arg(stream).arg(GROUP);
        claim.arg(&self.consumer.name).arg(lease);
        for id in wanted {
            claim.arg(id.to_string());
        }
        // An entry that was deleted is nil, or missing.
        let call = RedisCall::Command(&claim);
        let claimed: Vec<Option<RawEntry>> = self.connection.call(call).await?;
        self.push(claimed.into_iter().flatten().collect());
        Ok(())
    }

    /// Adds entries to the jobs in flight. Those without a job that can be decoded are deleted:
    /// the relay pushes the jobs that are due.
    fn push(&self, entries: Vec<RawEntry>) {
        let in_flight = &self.consumer.in_flight;
        let queue = self.consumer.queue.name();
        let mut jobs = Vec::with_capacity(entries.len());
        for entry in entries.into_iter().filter_map(entry) {
            match serde_json::from_slice::<J>(&entry.payload) {
                Ok(job) => jobs.push((entry, job)),
                Err(error) => {
                    let id = entry.id;
                    crate::warn_seldom!(queue, job.entry = %id, "Deleted an entry of the queue that is not a job: {error}");
                    in_flight.push_unreadable(entry);
                }
            }
        }
        if !jobs.is_empty() {
            in_flight.push(jobs);
        }
    }
}

/// Without a job, the payload is empty.
fn entry((id, fields): RawEntry) -> Option<StreamEntry> {
    let mut entry = StreamEntry {
        id: EntryId::parse(&id)?,
        payload: Vec::new(),
        key: None,
        at_ms: 0,
    };
    for (name, value) in fields {
        match name.as_slice() {
            b"j" => entry.payload = value,
            b"l" => entry.key = parsed(&value).map(FairnessKey),
            b"at" => entry.at_ms = parsed(&value).unwrap_or(0),
            _ => {}
        }
    }
    Some(entry)
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
