//! Dead letters: chunks whose work kills the worker, makes its handler panic, or cannot be
//! recorded. The relay would push them for ever, so after a limited number of *losses* no
//! worker leases them until the operator retries or drops them. Their recipients stay as
//! they are.
//!
//! A lost worker loses all its chunks, often dozens, and one of them may be the reason. If
//! all were retried alike, they would meet that chunk again and become dead letters with it.
//! So a chunk with [`QUARANTINE_FROM`] losses is *quarantined*: a worker sends one
//! quarantined chunk at a time and records its start in Postgres (`begun_at`), and the loss
//! of the worker counts against that one only. This means:
//!
//! - A poisoned chunk is the only quarantined one at work when it kills, so each further
//!   loss counts against it: it becomes a dead letter at [`LOSSES_MAX`].
//! - Two poisoned chunks are never sent by one worker at the same time once they are
//!   quarantined. A chunk that shares both early losses of one, and both of another while it
//!   is itself the quarantined one at work, has one loss less than [`LOSSES_MAX`].
//! - A worker that is killed from outside costs one quarantined chunk at a time a loss. An
//!   innocent chunk becomes a dead letter only if it is the one at work three times.
//! - A panic counts against the handler's own chunk, quarantined or not.
//!
//! The losses are reset if a quarantined chunk is sent and one of its recipients gets a
//! final status, which can happen only as often as it has recipients. A worker that is
//! stopped costs no loss.

pub mod store;

use tracing::error;

use super::job::SendJob;
use super::lease::{ChunkLease, put_back};
use super::reaper;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Timestamp;
use crate::config::SendingSettings;
use crate::db::PgConnection;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId};
use crate::message::store::refresh_aggregates;

/// With this many losses a chunk is quarantined. One loss says little: most chunks of a lost
/// worker are not the reason.
pub const QUARANTINE_FROM: i16 = 2;
/// With this many losses a chunk becomes a dead letter: one more than two poisoned chunks
/// together cost another chunk before they are quarantined.
pub const LOSSES_MAX: i16 = 2 * QUARANTINE_FROM + 1;
/// The longest reason that is stored, in characters.
const REASON_CHARS_MAX: usize = 300;
/// The error of recipients that the operator dropped.
const DROPPED: &str = "dropped by the operator";
/// The reason of dead letters that the operator held after a restore.
const HELD: &str = "held after a restore: it may have been sent after the backup";

/// Why a chunk lost its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause<'a> {
    /// The worker was lost; the chunk may be the reason.
    WorkerLost,
    /// The handler of the chunk panicked, with this reason.
    Panic(&'a str),
    /// The worker was stopped. Not counted as a loss.
    Shutdown,
}

/// A chunk that waits for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub job: SendJob,
    /// How many of its recipients have no final status.
    pub recipients: i64,
    pub losses: i16,
    pub dead_since: Timestamp,
    pub reason: String,
}

/// The dead letters that the operator selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterSelection {
    All,
    /// Those of a message, or only one chunk of it.
    Of {
        message_id: MessageId,
        chunk: Option<i32>,
    },
}

/// Makes dead letters of chunks whose message has no row or no body any more: they can never
/// be sent. Runs in a transaction that holds their leases.
pub async fn dead_letter_orphans(
    connection: &mut PgConnection,
    orphans: &[&ChunkLease],
    now: Timestamp,
) -> Result<(), Fault> {
    if orphans.is_empty() {
        return Ok(());
    }
    let recipients: Vec<(MessageId, i32)> = orphans
        .iter()
        .flat_map(|chunk| {
            let id = chunk.job.message_id;
            chunk.recipients.iter().map(move |r| (id, r.position))
        })
        .collect();
    put_back(&mut *connection, &recipients, now).await?;
    let jobs: Vec<SendJob> = orphans.iter().map(|chunk| chunk.job).collect();
    let reason = "its message or its bodies are missing";
    dead_letter(&mut *connection, &jobs, reason, now).await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await
}

/// Makes dead letters of chunks, independent of their losses, and ends their leases.
pub(super) async fn dead_letter(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    reason: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    store::dead_letter(connection, jobs, &bounded(reason), now).await?;
    jobs.iter().for_each(|job| log_dead_letter(*job));
    Ok(())
}

/// Makes dead letters of those of the chunks that have [`LOSSES_MAX`] losses, and returns
/// them.
pub(super) async fn dead_letter_exhausted(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    cause: LossCause<'_>,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let reason = match cause {
        LossCause::Shutdown => return Ok(Vec::new()),
        LossCause::WorkerLost => "its worker was lost each time".to_owned(),
        LossCause::Panic(reason) => bounded(reason),
    };
    let dead = store::dead_letter_exhausted(connection, jobs, LOSSES_MAX, &reason, now).await?;
    dead.iter().for_each(|job| log_dead_letter(*job));
    Ok(dead)
}

/// Makes dead letters of all queued mail after a restore, except mail that is scheduled for
/// later, because it may have been sent after the backup. No worker may run. The operator then
/// retries or drops it.
pub async fn hold_restored(
    connection: &mut PgConnection,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let jobs = store::hold_all(&mut *connection, HELD, now).await?;
    for (job, origin) in with_origins(&jobs) {
        let change = AuditChange::new("message.held", job.message_id)
            .with(serde_json::json!({ "chunk": job.chunk }));
        audit::store::insert(connection, job.organization_id, &origin, &change, ids, now).await?;
    }
    Ok(jobs)
}

/// Makes dead letters due again, with no losses, and returns them to be pushed. Their open
/// attempts become UNKNOWN.
///
/// # Errors
/// A fault if Postgres does not answer, or refuses their outcomes again.
pub async fn retry(
    connection: &mut PgConnection,
    selection: DeadLetterSelection,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let jobs = store::lock(&mut *connection, selection).await?;
    reaper::close_lost(&mut *connection, &jobs, settings, ids, now).await?;
    store::requeue(&mut *connection, &jobs, now).await?;
    for (job, origin) in with_origins(&jobs) {
        let change = AuditChange::new("message.requeued", job.message_id)
            .with(serde_json::json!({ "chunk": job.chunk }));
        audit::store::insert(connection, job.organization_id, &origin, &change, ids, now).await?;
    }
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(jobs)
}

/// Drops dead letters: their recipients without a final status fail. Returns how many, with
/// each chunk.
pub async fn discard(
    connection: &mut PgConnection,
    selection: DeadLetterSelection,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<(SendJob, usize)>, Fault> {
    let jobs = store::lock(&mut *connection, selection).await?;
    reaper::close_open_attempts(&mut *connection, &jobs, now).await?;
    let mut discarded = Vec::with_capacity(jobs.len());
    for (job, origin) in with_origins(&jobs) {
        let positions = store::fail(&mut *connection, job, DROPPED, now).await?;
        let events: Vec<NewEvent> = positions
            .iter()
            .map(|position| NewEvent {
                id: ids.next_at(now),
                message_id: job.message_id,
                organization_id: job.organization_id,
                position: *position,
                event_type: EventType::Dropped,
                occurred_at: now,
                data: Some(serde_json::json!({ "reason": DROPPED })),
            })
            .collect();
        event::store::insert(&mut *connection, &events).await?;
        let change = AuditChange::new("message.dropped", job.message_id)
            .with(serde_json::json!({ "chunk": job.chunk, "recipients": positions.len() }));
        let organization_id = job.organization_id;
        audit::store::insert(connection, organization_id, &origin, &change, ids, now).await?;
        discarded.push((job, positions.len()));
    }
    store::delete(&mut *connection, &jobs).await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(discarded)
}

fn with_origins(jobs: &[SendJob]) -> impl Iterator<Item = (SendJob, Origin)> {
    jobs.iter()
        .map(|job| (*job, Origin::system(job.message_id)))
}

fn log_dead_letter(job: SendJob) {
    let SendJob {
        message_id,
        chunk,
        organization_id,
    } = job;
    error!(message.id = %message_id, chunk, organization.id = %organization_id, "A job is a dead letter: `waypost-api jobs list` says why");
}

fn bounded(reason: &str) -> String {
    let visible = reason.chars().filter(|c| !c.is_control());
    visible.take(REASON_CHARS_MAX).collect()
}
