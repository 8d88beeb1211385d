//! Poisoned chunks: those whose work kills the worker that does it, makes its
//! handler panic, or cannot be recorded. The relay would bring them back for ever,
//! so they are *parked* after a bounded number of losses: nobody leases them until
//! the operator retries or drops them. Their recipients stay as they are.
//!
//! Who is to blame is the difficulty. A worker that dies takes dozens of innocent
//! chunks with it, and as all of them are handed out again at once they would meet
//! the poison again, and be parked with it. So the first losses only make a chunk a
//! *suspect*: from [`SUSPECT_FROM`] on a worker works on one suspect at a time,
//! notes in Postgres when it begins (`begun_at`), and a lost worker is blamed on
//! that one suspect and on no other. What follows:
//!
//! - A poison is alone among suspects when it kills, so each further death is
//!   counted against it: it is parked after [`LOSSES_MAX`].
//! - Two poisons are never under way in one worker once they are suspects. What
//!   shares both early losses of one poison and, as the one suspect at work, both of
//!   another has [`LOSSES_MAX`] less one.
//! - A worker killed from outside, however often, costs one suspect at a time a
//!   loss; for an innocent one to be parked it must be the one at work three times.
//! - A panic needs no suspicion: it is counted against its own chunk.
//!
//! The count goes back to 0 where a pass of a suspect ends well and a recipient of
//! it has reached an end, which can happen only as often as there are recipients. A
//! worker that is told to stop blames nobody.

pub mod store;

use tracing::error;

use super::job::SendJob;
use super::lease::{LeasedChunk, put_back};
use super::reaper;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Timestamp;
use crate::config::SendingSettings;
use crate::db::PgConnection;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId};
use crate::message::store::refresh_aggregates;

/// From so many losses on a chunk is worked on alone. One loss says little: most of
/// what a worker holds when it dies is innocent.
pub const SUSPECT_FROM: i16 = 2;
/// After so many losses a chunk is parked: twice what one poison costs those that
/// travel with it before they are kept apart, and one.
pub const LOSSES_MAX: i16 = 2 * SUSPECT_FROM + 1;
/// The longest reason that is kept, in characters.
const REASON_CHARS_MAX: usize = 300;
/// What the history says of a recipient that the operator gave up.
const DROPPED: &str = "dropped by the operator";

/// What a chunk lost its worker to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause<'a> {
    /// The worker was lost, and the chunk may or may not be why.
    Suspicion,
    /// The chunk's own handler failed, with this message.
    Proof(&'a str),
    /// The worker was told to stop.
    Nobody,
}

/// A chunk that waits for the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The job that it would be.
    pub job: SendJob,
    /// Its recipients that have not reached an end.
    pub recipients: i64,
    /// How often it lost its worker.
    pub losses: i16,
    pub parked_at: Timestamp,
    pub reason: String,
}

/// Which parked chunks the operator means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadLetterSelection {
    All,
    /// Those of a message, or one of them.
    Of {
        message_id: MessageId,
        /// Which of its chunks; all where none is named.
        chunk: Option<i32>,
    },
}

/// Parks the chunks of messages that have no row or no body any more: they can never be
/// sent. To be run in a transaction that holds their leases.
pub async fn park_orphans(
    connection: &mut PgConnection,
    orphans: &[&LeasedChunk],
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
    park(
        &mut *connection,
        &jobs,
        "its message or its bodies are missing",
        now,
    )
    .await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await
}

/// Parks chunks whatever their losses, and ends their leases.
pub(super) async fn park(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    reason: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    store::park(connection, jobs, &bounded(reason), now).await?;
    jobs.iter().for_each(|job| log_parked(*job));
    Ok(())
}

/// Parks those of the chunks that have used up their losses; they are answered.
pub(super) async fn park_used_up(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    blame: LossCause<'_>,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let reason = match blame {
        LossCause::Nobody => return Ok(Vec::new()),
        LossCause::Suspicion => "its worker was lost each time".to_owned(),
        LossCause::Proof(message) => bounded(message),
    };
    let parked = store::park_used_up(connection, jobs, LOSSES_MAX, &reason, now).await?;
    parked.iter().for_each(|job| log_parked(*job));
    Ok(parked)
}

/// Lets parked chunks be worked on again, with a clean record. What was in doubt of
/// them is settled first. Those that were parked are answered, to be pushed.
///
/// # Errors
/// A fault when Postgres is away, or refuses what it refused when they were parked.
pub async fn retry(
    connection: &mut PgConnection,
    choice: DeadLetterSelection,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let jobs = store::lock(&mut *connection, choice).await?;
    reaper::settle_lost(&mut *connection, &jobs, settings, ids, now).await?;
    store::unpark(&mut *connection, &jobs, now).await?;
    for (job, origin) in with_origins(&jobs) {
        let change = AuditChange::new("message.unparked", job.message_id)
            .with(serde_json::json!({ "chunk": job.chunk }));
        audit::store::insert(connection, job.organization_id, &origin, &change, ids, now).await?;
    }
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(jobs)
}

/// Gives up parked chunks: their recipients that have not reached an end fail. How
/// many those are is answered with each chunk.
pub async fn give_up(
    connection: &mut PgConnection,
    choice: DeadLetterSelection,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<(SendJob, usize)>, Fault> {
    let jobs = store::lock(&mut *connection, choice).await?;
    reaper::close_open_attempts(&mut *connection, &jobs, now).await?;
    let mut given_up = Vec::with_capacity(jobs.len());
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
        given_up.push((job, positions.len()));
    }
    store::delete(&mut *connection, &jobs).await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(given_up)
}

fn with_origins(jobs: &[SendJob]) -> impl Iterator<Item = (SendJob, Origin)> {
    jobs.iter()
        .map(|job| (*job, Origin::system(job.message_id)))
}

fn log_parked(job: SendJob) {
    let SendJob {
        message_id,
        chunk,
        organization_id,
    } = job;
    error!(message.id = %message_id, chunk, organization.id = %organization_id, "Parked a chunk: `waypost-api jobs list` says why");
}

fn bounded(reason: &str) -> String {
    let visible = reason.chars().filter(|c| !c.is_control());
    visible.take(REASON_CHARS_MAX).collect()
}
