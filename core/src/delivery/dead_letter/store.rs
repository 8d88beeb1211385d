//! Quarantined chunks and dead letters in Postgres: columns of their outbox rows.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::{DeadLetter, DeadLetterSelection, QUARANTINE_FROM};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::delivery::job::SendJob;
use crate::delivery::lease::{columns, job};
use crate::fault::Fault;
use crate::ids::{MessageId, WorkerId};
use crate::message::CHUNK_RECIPIENTS;

/// Records that a worker starts a quarantined chunk. False if it does not hold the chunk any
/// more.
pub async fn record_start(
    connection: &mut PgConnection,
    worker: WorkerId,
    job: SendJob,
    now: Timestamp,
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE outbox SET begun_at = $4 WHERE message_id = $1 AND chunk = $2 AND leased_by = $3",
        job.message_id.0,
        job.chunk,
        worker.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("start a quarantined chunk")?;
    Ok(done.rows_affected() == 1)
}

/// Counts a loss against each chunk. Without `is_proven`, not against quarantined chunks that
/// were not started.
pub(in crate::delivery) async fn count_losses(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    is_proven: bool,
) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"UPDATE outbox o
           SET losses = least(o.losses + 1, 1000), begun_at = NULL
           FROM UNNEST($1::uuid[], $2::int[]) AS lost (message_id, chunk)
           WHERE o.message_id = lost.message_id AND o.chunk = lost.chunk
             AND ($3 OR o.losses < $4 OR o.begun_at IS NOT NULL)"#,
        &ids,
        &chunks,
        is_proven,
        QUARANTINE_FROM,
    )
    .execute(connection)
    .await
    .or_fault("count losses")?;
    Ok(())
}

/// Makes dead letters of the chunks with at least this many losses. Their `wake_at` is in
/// the year 9999 and not `infinity`, which most clients cannot read.
pub(super) async fn dead_letter_exhausted(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    losses: i16,
    reason: &str,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let (ids, chunks) = columns(jobs);
    let rows = query!(
        r#"UPDATE outbox o
           SET dead_at = $5, dead_reason = $4, wake_at = '9999-12-31'
           FROM UNNEST($1::uuid[], $2::int[]) AS lost (message_id, chunk)
           WHERE o.message_id = lost.message_id AND o.chunk = lost.chunk
             AND o.losses >= $3 AND o.leased_by IS NULL
           RETURNING o.message_id, o.chunk, o.organization_id"#,
        &ids,
        &chunks,
        losses,
        reason,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("make dead letters")?;
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}

/// Makes dead letters of chunks and ends their leases.
pub(super) async fn dead_letter(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    reason: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"UPDATE outbox o
           SET dead_at = $4, dead_reason = $3, wake_at = '9999-12-31', leased_by = NULL, begun_at = NULL
           FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
           WHERE o.message_id = given.message_id AND o.chunk = given.chunk"#,
        &ids,
        &chunks,
        reason,
        now,
    )
    .execute(connection)
    .await
    .or_fault("make dead letters")?;
    Ok(())
}

/// Makes dead letters of all chunks, leased or not, except those of messages that are scheduled
/// for later. No worker may run.
pub(super) async fn hold_all(
    connection: &mut PgConnection,
    reason: &str,
    now: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let rows = query!(
        r#"UPDATE outbox o
           SET dead_at = $2, dead_reason = $1, wake_at = '9999-12-31', leased_by = NULL, begun_at = NULL
           WHERE o.dead_at IS NULL AND (o.due_at IS NULL OR o.due_at <= $2)
           RETURNING o.message_id, o.chunk, o.organization_id"#,
        reason,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("hold the queued mail")?;
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}

/// The dead letters, the oldest first.
pub async fn list(connection: &mut PgConnection, limit: i64) -> Result<Vec<DeadLetter>, Fault> {
    let rows = query!(
        r#"SELECT o.message_id, o.chunk, o.organization_id, o.losses, o.dead_at AS "dead_at!",
                  coalesce(o.dead_reason, '') AS "reason!",
                  (SELECT count(*)
                   FROM recipients r
                   WHERE r.message_id = o.message_id
                     AND r.position >= o.chunk * $2 AND r.position < (o.chunk + 1) * $2
                     AND r.status IN ('QUEUED', 'SENDING')) AS "recipients!"
           FROM outbox o
           WHERE o.dead_at IS NOT NULL
           ORDER BY o.dead_at, o.message_id, o.chunk
           LIMIT $1"#,
        limit,
        CHUNK_RECIPIENTS,
    )
    .fetch_all(connection)
    .await
    .or_fault("list dead letters")?;
    let dead = rows.into_iter().map(|row| DeadLetter {
        job: job(row.message_id, row.chunk, row.organization_id),
        recipients: row.recipients,
        losses: row.losses,
        dead_since: row.dead_at,
        reason: row.reason,
    });
    Ok(dead.collect())
}

/// The selected dead letters, locked until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    selection: DeadLetterSelection,
) -> Result<Vec<SendJob>, Fault> {
    let (message_id, chunk): (Option<Uuid>, Option<i32>) = match selection {
        DeadLetterSelection::All => (None, None),
        DeadLetterSelection::Of { message_id, chunk } => (Some(message_id.0), chunk),
    };
    let rows = query!(
        r#"SELECT message_id, chunk, organization_id
           FROM outbox
           WHERE dead_at IS NOT NULL AND leased_by IS NULL
             AND ($1::uuid IS NULL OR message_id = $1) AND ($2::int IS NULL OR chunk = $2)
           ORDER BY message_id, chunk
           FOR UPDATE"#,
        message_id,
        chunk,
    )
    .fetch_all(connection)
    .await
    .or_fault("find dead letters")?;
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}

/// Whether a message with this id exists.
pub async fn is_known(connection: &mut PgConnection, id: MessageId) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM messages WHERE id = $1) AS "exists!""#,
        id.0
    )
    .fetch_one(connection)
    .await
    .or_fault("find a message")
}

/// Makes dead letters due again, with no losses.
pub(super) async fn requeue(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    now: Timestamp,
) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"UPDATE outbox o
           SET dead_at = NULL, dead_reason = NULL, losses = 0, wake_at = $3
           FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
           WHERE o.message_id = given.message_id AND o.chunk = given.chunk"#,
        &ids,
        &chunks,
        now,
    )
    .execute(connection)
    .await
    .or_fault("requeue dead letters")?;
    Ok(())
}

/// Sets the recipients of a chunk without a final status to FAILED, and returns their
/// positions.
pub(super) async fn fail(
    connection: &mut PgConnection,
    job: SendJob,
    reason: &str,
    now: Timestamp,
) -> Result<Vec<i32>, Fault> {
    query_scalar!(
        r#"UPDATE recipients
           SET status = 'FAILED', last_error = $4, next_attempt_at = $5
           WHERE message_id = $1 AND position >= $2 * $3::int AND position < ($2 + 1) * $3::int
             AND status IN ('QUEUED', 'SENDING')
           RETURNING position"#,
        job.message_id.0,
        job.chunk,
        CHUNK_RECIPIENTS,
        reason,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("fail the recipients of a dead letter")
}

/// Deletes chunks with nothing left to send.
pub(super) async fn delete(connection: &mut PgConnection, jobs: &[SendJob]) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"DELETE FROM outbox o
           USING UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
           WHERE o.message_id = given.message_id AND o.chunk = given.chunk"#,
        &ids,
        &chunks,
    )
    .execute(connection)
    .await
    .or_fault("delete dead letters")?;
    Ok(())
}
