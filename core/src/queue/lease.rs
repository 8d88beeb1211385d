//! Leases. A worker leases chunks, and all its leases end together: when its
//! heartbeat stops for longer than the lease. So a heartbeat is one small update
//! whatever the worker holds. Time here is Postgres' own, since what is compared
//! are the lives of processes on different machines.

use std::collections::HashMap;
use std::time::Duration;

use chrono::TimeDelta;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::jobs::SendJob;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, WorkerId};
use crate::message::compose::MessageContent;
use crate::message::{CHUNK_RECIPIENTS, MessageStatus};

/// Registers a worker; its leases count from now on.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn register(
    connection: &mut PgConnection,
    worker: WorkerId,
    name: &str,
    lease: Duration,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO workers (id, name, started_at, leased_until)
         VALUES ($1, $2, now(), now() + $3)",
        worker.0,
        name,
        interval(lease) as _,
    )
    .execute(connection)
    .await
    .or_fault("register a worker")?;
    Ok(())
}

/// Moves the end of all leases of a worker on. False where the worker is not
/// known any more: its leases have ended.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn renew(
    connection: &mut PgConnection,
    worker: WorkerId,
    lease: Duration,
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE workers SET leased_until = now() + $2 WHERE id = $1 AND leased_until > now()",
        worker.0,
        interval(lease) as _,
    )
    .execute(connection)
    .await
    .or_fault("renew a worker's leases")?;
    Ok(done.rows_affected() == 1)
}

/// Takes a worker off the list that holds nothing any more. One that still holds
/// leases stays, and the reaper deals with it when they end.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn unregister(connection: &mut PgConnection, worker: WorkerId) -> Result<(), Fault> {
    query!(
        "DELETE FROM workers w
         WHERE w.id = $1 AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.leased_by = w.id)",
        worker.0,
    )
    .execute(connection)
    .await
    .or_fault("unregister a worker")?;
    Ok(())
}

/// A leased chunk and those of its recipients that are due.
#[derive(Debug)]
pub struct LeasedChunk {
    /// The job that it was leased for.
    pub job: SendJob,
    /// The recipients, now SENDING; empty where none is due.
    pub recipients: Vec<LeasedRecipient>,
}

/// A recipient to send to.
#[derive(Debug)]
pub struct LeasedRecipient {
    /// Its place in the message.
    pub position: i32,
    /// Its mailbox, sealed.
    pub address_sealed: Vec<u8>,
    /// Attempts used up.
    pub attempts: i32,
    /// Attempts whose outcome nobody knows.
    pub unknowns: i32,
}

/// Leases those of the wanted chunks that nobody holds, and moves their due
/// recipients to SENDING. To be run in a transaction, with
/// [`crate::message::store::refresh_aggregates`] after it.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn lease(
    connection: &mut PgConnection,
    worker: WorkerId,
    jobs: &[SendJob],
    now: Timestamp,
) -> Result<Vec<LeasedChunk>, Fault> {
    let (ids, chunks) = columns(jobs);
    let leased = query!(
        r#"UPDATE outbox o
           SET leased_by = $3
           FROM (
               SELECT o.message_id, o.chunk
               FROM outbox o
               JOIN UNNEST($1::uuid[], $2::int[]) AS wanted (message_id, chunk) USING (message_id, chunk)
               WHERE o.leased_by IS NULL
               FOR UPDATE OF o SKIP LOCKED
           ) free
           WHERE o.message_id = free.message_id AND o.chunk = free.chunk
           RETURNING o.message_id, o.chunk"#,
        &ids,
        &chunks,
        worker.0,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("lease chunks")?;
    let mut found: HashMap<SendJob, Vec<LeasedRecipient>> = leased
        .into_iter()
        .map(|row| (job(row.message_id, row.chunk), Vec::new()))
        .collect();
    let (ids, chunks) = columns(&found.keys().copied().collect::<Vec<_>>());
    let due = query!(
        r#"UPDATE recipients r
           SET status = 'SENDING'
           FROM UNNEST($1::uuid[], $2::int[]) AS leased (message_id, chunk)
           WHERE r.message_id = leased.message_id
             AND r.position >= leased.chunk * $3 AND r.position < (leased.chunk + 1) * $3
             AND r.status IN ('QUEUED', 'SENDING')
             AND r.next_attempt_at <= $4
           RETURNING r.message_id, r.position, r.address_sealed, r.attempts, r.unknowns"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
        now,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("lease recipients")?;
    for row in due {
        let of = job(row.message_id, row.position / CHUNK_RECIPIENTS);
        found.entry(of).or_default().push(LeasedRecipient {
            position: row.position,
            address_sealed: row.address_sealed,
            attempts: row.attempts,
            unknowns: row.unknowns,
        });
    }
    let chunks = found
        .into_iter()
        .map(|(job, recipients)| LeasedChunk { job, recipients });
    Ok(chunks.collect())
}

/// What a worker needs to know of a message besides its recipients.
#[derive(Debug, Clone)]
pub struct LeasedMessage {
    /// What all copies share.
    pub content: MessageContent,
    /// The account resolved at acceptance.
    pub provider_account_id: ProviderAccountId,
    /// When it was accepted.
    pub accepted_at: Timestamp,
}

/// Reads messages with their bodies.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn load(
    connection: &mut PgConnection,
    ids: &[MessageId],
) -> Result<HashMap<MessageId, LeasedMessage>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = query!(
        r#"SELECT m.id, m.organization_id, m.provider_account_id, m.subject, m.tags, m.created_at,
                  b.from_mailbox, b.reply_to, b.html, b.text
           FROM messages m
           JOIN message_bodies b ON b.message_id = m.id
           WHERE m.id = ANY($1) AND b.message_id = ANY($1)"#,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("read messages to send")?;
    let messages = rows.into_iter().map(|row| {
        let id = MessageId(row.id);
        let content = MessageContent {
            id,
            organization_id: OrganizationId(row.organization_id),
            from_mailbox: row.from_mailbox,
            reply_to: row.reply_to,
            subject: row.subject,
            html: row.html,
            text: row.text,
            tags: row.tags,
        };
        let message = LeasedMessage {
            content,
            provider_account_id: ProviderAccountId(row.provider_account_id),
            accepted_at: row.created_at,
        };
        (id, message)
    });
    Ok(messages.collect())
}

/// Gives up recipients that were leased but not tried: back to QUEUED.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn put_back(
    connection: &mut PgConnection,
    message_id: MessageId,
    positions: &[i32],
    now: Timestamp,
) -> Result<(), Fault> {
    let queued = MessageStatus::Sending
        .advance(MessageStatus::Queued)
        .map_err(|error| Fault::internal("put recipients back", error))?;
    query!(
        r#"UPDATE recipients
           SET status = $3
           WHERE message_id = $1 AND position = ANY($2) AND status = 'SENDING' AND next_attempt_at <= $4"#,
        message_id.0,
        positions,
        queued as MessageStatus,
        now,
    )
    .execute(connection)
    .await
    .or_fault("put recipients back")?;
    Ok(())
}

/// A chunk whose lease ended with something left to do, and from when on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rescheduled {
    /// The job.
    pub job: SendJob,
    /// When its next recipient is due.
    pub due_at: Timestamp,
}

/// Ends leases: an outbox row whose recipients have all reached a final state is
/// deleted; another is left for when its next recipient is due.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn finish(
    connection: &mut PgConnection,
    worker: WorkerId,
    jobs: &[SendJob],
    relay_grace: Duration,
) -> Result<Vec<Rescheduled>, Fault> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let (ids, chunks) = columns(jobs);
    let rows = query!(
        r#"WITH ended AS (
               SELECT o.message_id, o.chunk,
                      (SELECT min(r.next_attempt_at)
                       FROM recipients r
                       WHERE r.message_id = o.message_id
                         AND r.position >= o.chunk * $4 AND r.position < (o.chunk + 1) * $4
                         AND r.status IN ('QUEUED', 'SENDING')) AS due_at
               FROM outbox o
               JOIN UNNEST($1::uuid[], $2::int[]) AS mine (message_id, chunk) USING (message_id, chunk)
               WHERE o.leased_by = $3
           ), deleted AS (
               DELETE FROM outbox o
               USING ended e
               WHERE o.message_id = e.message_id AND o.chunk = e.chunk AND e.due_at IS NULL
           )
           UPDATE outbox o
           SET leased_by = NULL, wake_at = e.due_at + $5
           FROM ended e
           WHERE o.message_id = e.message_id AND o.chunk = e.chunk AND e.due_at IS NOT NULL
           RETURNING o.message_id, o.chunk, e.due_at AS "due_at!""#,
        &ids,
        &chunks,
        worker.0,
        CHUNK_RECIPIENTS,
        interval(relay_grace) as _,
    )
    .fetch_all(connection)
    .await
    .or_fault("end leases")?;
    let left = rows.into_iter().map(|row| Rescheduled {
        job: job(row.message_id, row.chunk),
        due_at: row.due_at,
    });
    Ok(left.collect())
}

pub(super) fn columns(jobs: &[SendJob]) -> (Vec<Uuid>, Vec<i32>) {
    jobs.iter().map(|job| (job.message_id.0, job.chunk)).unzip()
}

pub(super) fn job(message_id: Uuid, chunk: i32) -> SendJob {
    SendJob {
        message_id: MessageId(message_id),
        chunk,
    }
}

pub(super) fn interval(span: Duration) -> TimeDelta {
    TimeDelta::from_std(span).unwrap_or(TimeDelta::MAX)
}
