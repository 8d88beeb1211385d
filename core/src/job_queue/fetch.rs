//! The fetcher: the one task that brings jobs to a consumer's desk. It reads new
//! ones with a blocking call, takes over those of workers that died, and after a
//! lost connection picks up those that Redis had handed to it in vain. Because
//! nobody else fetches, the desk is an exact account of what this consumer has.

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

/// How often, at the least, dead workers' jobs are looked for.
const TAKE_OVER_EVERY_MAX: Duration = Duration::from_secs(1);
/// A breath before a lost group is made anew, in case Redis is being emptied
/// again and again.
const NO_GROUP_PAUSE: Duration = Duration::from_millis(5);

pub(super) async fn run<J: Job>(consumer: Arc<Consumer<J>>) {
    let settings = consumer.queue.settings();
    let every = (settings.lease / 3).min(TAKE_OVER_EVERY_MAX);
    let mut fetcher = JobFetcher {
        line: consumer
            .queue
            .line(&consumer.lines_down)
            .blocking(settings.block),
        consumer: &consumer,
    };
    let mut take_over_at = Instant::now();
    while let Some(room) = consumer.desk.room().await {
        let outcome = if fetcher.line.is_closed() {
            fetcher.begin(room).await
        } else if take_over_at <= Instant::now() {
            take_over_at = Instant::now() + every;
            fetcher.claim(ClaimedEntries::OfDeadWorkers, room).await
        } else {
            let left = take_over_at.saturating_duration_since(Instant::now());
            fetcher.read(room, settings.block.min(left)).await
        };
        if outcome == Err(CallError::NoGroup) {
            tokio::time::sleep(NO_GROUP_PAUSE).await;
            // A failure shows again at the next read.
            let _ = fetcher.make_group().await;
        }
    }
    consumer.desk.note_fetcher_gone();
}

struct JobFetcher<'a, J> {
    consumer: &'a Consumer<J>,
    line: ReconnectingConnection,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ClaimedEntries {
    /// Jobs whose lease has run out, whoever had them.
    OfDeadWorkers,
    /// Jobs that are ours by Redis' account but not by our own: the answer that
    /// carried them was lost with its connection.
    LostOnTheWay,
}

impl<J: Job> JobFetcher<'_, J> {
    /// A new connection: tells who we are, sees that the group exists and picks up
    /// what the last connection lost.
    async fn begin(&mut self, room: usize) -> Result<(), CallError> {
        let mut who = redis::pipe();
        // Some users may not ask this. They then leave when a blocking read ends.
        who.cmd("CLIENT").arg("ID").ignore_errors();
        let ids: Vec<RedisResult<i64>> = self.line.ask(RedisCall::Pipeline(&who)).await?;
        let id = ids.into_iter().find_map(Result::ok).unwrap_or(0);
        self.consumer.fetcher_id.store(id, Ordering::Relaxed);
        self.make_group().await?;
        self.claim(ClaimedEntries::LostOnTheWay, room).await
    }

    /// Makes the group, from the first entry on: all that lies in the stream then
    /// is waiting.
    async fn make_group(&mut self) -> Result<(), CallError> {
        let create = self.consumer.queue.create_group();
        self.line.ask::<Value>(RedisCall::Script(&create)).await?;
        Ok(())
    }

    async fn read(&mut self, room: usize, block: Duration) -> Result<(), CallError> {
        let queue = &self.consumer.queue;
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer.name);
        read.arg("COUNT").arg(room.min(queue.settings().batch_max));
        // BLOCK 0 would be for ever.
        read.arg("BLOCK").arg(millis(block).max(1));
        read.arg("STREAMS").arg(&queue.keys().stream).arg(">");
        let answer: Value = self.line.ask(RedisCall::Command(&read)).await?;
        let entries = stream_entries(answer);
        self.take_in(entries);
        Ok(())
    }

    /// Makes pending entries ours and puts them on the desk. One that was handed
    /// out too often without ever ending is taken for the killer of its workers.
    async fn claim(&mut self, what: ClaimedEntries, room: usize) -> Result<(), CallError> {
        let queue = &self.consumer.queue;
        let settings = queue.settings();
        let pending: Vec<(String, String, u64, u32)> = self
            .line
            .ask(RedisCall::Command(&self.pending(what, room)))
            .await?;
        let wanted: Vec<(EntryId, u32)> = pending
            .into_iter()
            .filter_map(|(id, _, _, deliveries)| Some((EntryId::parse(&id)?, deliveries)))
            .filter(|(id, _)| !self.consumer.desk.holds(*id))
            .take(room)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let min_idle = match what {
            ClaimedEntries::OfDeadWorkers => millis(settings.lease),
            ClaimedEntries::LostOnTheWay => 0,
        };
        let mut claim = redis::cmd("XCLAIM");
        claim.arg(&queue.keys().stream).arg(GROUP);
        claim.arg(&self.consumer.name).arg(min_idle);
        for (id, _) in &wanted {
            claim.arg(id.to_string());
        }
        let answer: Value = self.line.ask(RedisCall::Command(&claim)).await?;
        let mut entries = entries(answer);
        if what == ClaimedEntries::OfDeadWorkers {
            entries.retain(|found| self.is_worth_another_try(found, &wanted));
        }
        self.take_in(entries);
        Ok(())
    }

    fn pending(&self, what: ClaimedEntries, room: usize) -> Cmd {
        let queue = &self.consumer.queue;
        let mut pending = redis::cmd("XPENDING");
        pending.arg(&queue.keys().stream).arg(GROUP);
        match what {
            ClaimedEntries::OfDeadWorkers => {
                let count = room.min(queue.settings().batch_max);
                pending.arg("IDLE").arg(millis(queue.settings().lease));
                pending.arg("-").arg("+").arg(count);
            }
            ClaimedEntries::LostOnTheWay => {
                // What is held comes back too, so look beyond it.
                let count = room + self.consumer.desk.held().len();
                pending
                    .arg("-")
                    .arg("+")
                    .arg(count)
                    .arg(&self.consumer.name);
            }
        }
        pending
    }

    fn is_worth_another_try(&self, found: &ParsedEntry, wanted: &[(EntryId, u32)]) -> bool {
        let ParsedEntry::StreamEntry(entry) = found else {
            return true;
        };
        let deliveries = wanted
            .iter()
            .find(|(id, _)| *id == entry.id)
            .map_or(0, |(_, deliveries)| *deliveries);
        if deliveries < self.consumer.queue.settings().deliveries_max {
            return true;
        }
        let reason = format!("handed out {deliveries} times, and its worker died each time");
        self.consumer.desk.lay_dead(entry.clone(), reason);
        false
    }

    fn take_in(&self, found: Vec<ParsedEntry>) {
        let mut jobs = Vec::with_capacity(found.len());
        for found in found {
            match found {
                ParsedEntry::StreamEntry(entry) => {
                    match serde_json::from_slice::<J>(&entry.payload) {
                        Ok(job) => jobs.push((entry, job)),
                        Err(error) => {
                            let reason = format!("cannot be decoded: {error}");
                            self.consumer.desk.lay_dead(entry, reason);
                        }
                    }
                }
                ParsedEntry::Stranger(entry) => {
                    let reason = "is not an entry of this queue".to_owned();
                    self.consumer.desk.lay_dead(entry, reason);
                }
            }
        }
        if !jobs.is_empty() {
            self.consumer.desk.lay(jobs);
        }
    }
}

enum ParsedEntry {
    StreamEntry(StreamEntry),
    /// An entry without a job, put there by somebody else.
    Stranger(StreamEntry),
}

/// The entries in XREADGROUP's answer for one stream.
fn stream_entries(answer: Value) -> Vec<ParsedEntry> {
    let Value::Array(streams) = answer else {
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

/// The entries in a list of them. What was deleted meanwhile is left out.
fn entries(answer: Value) -> Vec<ParsedEntry> {
    let Value::Array(items) = answer else {
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
    let mut lane = None;
    let mut at_ms = 0;
    let mut fields = fields.into_iter();
    while let (Some(Value::BulkString(name)), Some(Value::BulkString(value))) =
        (fields.next(), fields.next())
    {
        match name.as_slice() {
            b"j" => payload = Some(value),
            b"n" => attempts = parsed(&value).unwrap_or(0),
            b"l" => lane = parsed(&value).map(FairnessKey),
            b"at" => at_ms = parsed(&value).unwrap_or(0),
            _ => {}
        }
    }
    let is_ours = payload.is_some();
    let entry = StreamEntry {
        id,
        payload: payload.unwrap_or_default(),
        attempts,
        lane,
        at_ms,
    };
    Some(if is_ours {
        ParsedEntry::StreamEntry(entry)
    } else {
        ParsedEntry::Stranger(entry)
    })
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
