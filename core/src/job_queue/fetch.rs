//! The fetcher: the one task that fetches jobs for a consumer. It reads new ones with a
//! blocking call, takes over those of dead consumers, and after a lost connection claims the
//! jobs in replies that were lost. No other task fetches, so [`super::in_flight`] knows
//! exactly which jobs this consumer has.

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
const TAKE_OVER_EVERY_MAX: Duration = Duration::from_secs(1);
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
            fetcher.claim(ClaimedEntries::OfDeadConsumers, max).await
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimedEntries {
    /// Jobs whose lease has ended, of any consumer.
    OfDeadConsumers,
    /// Jobs that Redis delivered to this consumer in a reply that was lost with its
    /// connection.
    OfLostReplies,
}

impl<J: Job> JobFetcher<'_, J> {
    /// Connects: reads the id of the connection, creates the group if it is missing, and
    /// claims the jobs that the last connection lost.
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
        self.claim(ClaimedEntries::OfLostReplies, max).await
    }

    /// Creates the group. It begins with the first entry: all entries are waiting then.
    async fn create_group(&mut self) -> Result<(), CallError> {
        let create = self.consumer.queue.create_group();
        let call = RedisCall::Script(&create);
        self.connection.call::<Value>(call).await?;
        Ok(())
    }

    async fn read(&mut self, max: usize, block: Duration) -> Result<(), CallError> {
        let queue = &self.consumer.queue;
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer.name);
        read.arg("COUNT").arg(max.min(queue.settings().batch_max));
        // BLOCK 0 would wait for ever.
        read.arg("BLOCK").arg(millis(block).max(1));
        read.arg("STREAMS").arg(&queue.keys().stream).arg(">");
        let reply: Value = self.connection.call(RedisCall::Command(&read)).await?;
        self.push(stream_entries(reply));
        Ok(())
    }

    /// Claims pending entries and adds them to the jobs in flight. An entry that was delivered
    /// too often without an end is dead: it probably kills its workers.
    async fn claim(&mut self, what: ClaimedEntries, max: usize) -> Result<(), CallError> {
        let queue = &self.consumer.queue;
        let settings = queue.settings();
        let pending = self.pending(what, max);
        let pending: Vec<(String, String, u64, u32)> =
            self.connection.call(RedisCall::Command(&pending)).await?;
        let wanted: Vec<(EntryId, u32)> = pending
            .into_iter()
            .filter_map(|(id, _, _, deliveries)| Some((EntryId::parse(&id)?, deliveries)))
            .filter(|(id, _)| !self.consumer.in_flight.holds(*id))
            .take(max)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let min_idle = match what {
            ClaimedEntries::OfDeadConsumers => millis(settings.lease),
            ClaimedEntries::OfLostReplies => 0,
        };
        let mut claim = redis::cmd("XCLAIM");
        claim.arg(&queue.keys().stream).arg(GROUP);
        claim.arg(&self.consumer.name).arg(min_idle);
        for (id, _) in &wanted {
            claim.arg(id.to_string());
        }
        let reply: Value = self.connection.call(RedisCall::Command(&claim)).await?;
        let mut entries = entries(reply);
        if what == ClaimedEntries::OfDeadConsumers {
            entries.retain(|entry| self.may_run_again(entry, &wanted));
        }
        self.push(entries);
        Ok(())
    }

    fn pending(&self, what: ClaimedEntries, max: usize) -> Cmd {
        let queue = &self.consumer.queue;
        let mut pending = redis::cmd("XPENDING");
        pending.arg(&queue.keys().stream).arg(GROUP);
        match what {
            ClaimedEntries::OfDeadConsumers => {
                let count = max.min(queue.settings().batch_max);
                pending.arg("IDLE").arg(millis(queue.settings().lease));
                pending.arg("-").arg("+").arg(count);
            }
            ClaimedEntries::OfLostReplies => {
                // Redis returns the jobs in flight too.
                let count = max + self.consumer.in_flight.held().len();
                pending
                    .arg("-")
                    .arg("+")
                    .arg(count)
                    .arg(&self.consumer.name);
            }
        }
        pending
    }

    fn may_run_again(&self, entry: &ParsedEntry, wanted: &[(EntryId, u32)]) -> bool {
        let ParsedEntry::Job(entry) = entry else {
            return true;
        };
        let deliveries = wanted
            .iter()
            .find(|(id, _)| *id == entry.id)
            .map_or(0, |(_, deliveries)| *deliveries);
        if deliveries < self.consumer.queue.settings().deliveries_max {
            return true;
        }
        let reason = format!("delivered {deliveries} times, and its worker died each time");
        self.consumer.in_flight.push_dead(entry.clone(), reason);
        false
    }

    /// Adds entries to the jobs in flight; those that cannot be decoded as dead.
    fn push(&self, entries: Vec<ParsedEntry>) {
        let in_flight = &self.consumer.in_flight;
        let mut jobs = Vec::with_capacity(entries.len());
        for entry in entries {
            match entry {
                ParsedEntry::Job(entry) => match serde_json::from_slice::<J>(&entry.payload) {
                    Ok(job) => jobs.push((entry, job)),
                    Err(error) => {
                        in_flight.push_dead(entry, format!("cannot be decoded: {error}"));
                    }
                },
                ParsedEntry::Foreign(entry) => {
                    let reason = "is not an entry of this queue".to_owned();
                    in_flight.push_dead(entry, reason);
                }
            }
        }
        if !jobs.is_empty() {
            in_flight.push(jobs);
        }
    }
}

enum ParsedEntry {
    Job(StreamEntry),
    /// An entry without a job, which another program added.
    Foreign(StreamEntry),
}

/// The entries in the reply of XREADGROUP for one stream.
fn stream_entries(reply: Value) -> Vec<ParsedEntry> {
    let Value::Array(streams) = reply else {
        return Vec::new();
    };
    let Some(Value::Array(name_and_entries)) = streams.into_iter().next() else {
        return Vec::new();
    };
    name_and_entries
        .into_iter()
        .nth(1)
        .map(entries)
        .unwrap_or_default()
}

/// The entries of a list, without those that were deleted meanwhile.
fn entries(reply: Value) -> Vec<ParsedEntry> {
    let Value::Array(items) = reply else {
        return Vec::new();
    };
    items.into_iter().filter_map(entry).collect()
}

fn entry(item: Value) -> Option<ParsedEntry> {
    let Value::Array(id_and_fields) = item else {
        return None;
    };
    let mut parts = id_and_fields.into_iter();
    let (Some(Value::BulkString(id)), Some(Value::Array(fields))) = (parts.next(), parts.next())
    else {
        return None;
    };
    let id = EntryId::parse(std::str::from_utf8(&id).ok()?)?;
    let mut payload = None;
    let mut attempts = 0;
    let mut key = None;
    let mut at_ms = 0;
    let mut fields = fields.into_iter();
    while let (Some(Value::BulkString(name)), Some(Value::BulkString(value))) =
        (fields.next(), fields.next())
    {
        match name.as_slice() {
            b"j" => payload = Some(value),
            b"n" => attempts = parsed(&value).unwrap_or(0),
            b"l" => key = parsed(&value).map(FairnessKey),
            b"at" => at_ms = parsed(&value).unwrap_or(0),
            _ => {}
        }
    }
    let is_job = payload.is_some();
    let entry = StreamEntry {
        id,
        payload: payload.unwrap_or_default(),
        attempts,
        key,
        at_ms,
    };
    Some(if is_job {
        ParsedEntry::Job(entry)
    } else {
        ParsedEntry::Foreign(entry)
    })
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
