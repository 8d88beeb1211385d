//! Retrying a message, in Postgres.

use sqlx::{PgConnection, query, query_scalar};

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::delivery::job::SendJob;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::message::CHUNK_RECIPIENTS;

/// Whether a message still has a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredBody {
    Kept,
    Gone,
}

/// Whether a message still has a body. `None` if there is no such message.
pub(super) async fn find_body(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<StoredBody>, Fault> {
    let is_kept = query_scalar!(
        r#"SELECT EXISTS (SELECT 1
                          FROM message_bodies
                          WHERE message_id = $2 AND organization_id = $1
                            AND (html IS NOT NULL OR text IS NOT NULL)) AS "is_kept!"
           FROM messages
           WHERE id = $2 AND organization_id = $1"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the bodies of a message")?;
    Ok(is_kept.map(|is_kept| {
        if is_kept {
            StoredBody::Kept
        } else {
            StoredBody::Gone
        }
    }))
}

/// Resets the failed recipients of a message to their state at acceptance, due at once, and
/// returns their positions. A mail that a provider accepted and then dropped no longer counts
/// as sent: a later proof of sending must be one of the next mail.
pub(super) async fn requeue_failed(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    now: Timestamp,
) -> Result<Vec<i32>, Fault> {
    query_scalar!(
        r#"WITH failed AS (
               SELECT position
               FROM recipients
               WHERE message_id = $2 AND organization_id = $1 AND status = 'FAILED' AND erased_at IS NULL
               ORDER BY position
               FOR NO KEY UPDATE
           )
           UPDATE recipients r
           SET status = 'QUEUED', attempts = 0, unknowns = 0, failover = 0, rounds = 0, recoverable = false,
               next_attempt_at = $3,
               first_sent_at = coalesce(r.first_sent_at, r.sent_at), sent_at = NULL, provider_message_id = NULL
           FROM failed f
           WHERE r.message_id = $2 AND r.position = f.position
           RETURNING r.position"#,
        organization_id.0,
        id.0,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("queue failed recipients again")
}

/// Inserts the outbox rows of chunks again, and returns their jobs. A row that is not leased
/// is replaced and not updated: a transaction that is about to delete it, because nothing was
/// left to send, then finds it gone and does not see the new one. A leased row stays: at the
/// end of the lease the worker finds the recipients. A dead letter stays until the operator
/// decides.
pub(super) async fn queue_chunks(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    positions: &[i32],
    wake_at: Timestamp,
) -> Result<Vec<SendJob>, Fault> {
    let mut chunks: Vec<i32> = positions
        .iter()
        .map(|position| position / CHUNK_RECIPIENTS)
        .collect();
    chunks.sort_unstable();
    chunks.dedup();
    query!(
        "DELETE FROM outbox
         WHERE message_id = $2 AND chunk = ANY($3) AND organization_id = $1 AND leased_by IS NULL
           AND dead_at IS NULL",
        organization_id.0,
        id.0,
        &chunks,
    )
    .execute(&mut *connection)
    .await
    .or_fault("queue chunks again")?;
    query!(
        "INSERT INTO outbox (message_id, chunk, organization_id, wake_at, expires_at)
         SELECT $2, chunk, $1, $4, (SELECT expires_at FROM messages WHERE id = $2)
         FROM UNNEST($3::int[]) AS given (chunk)
         ORDER BY chunk
         ON CONFLICT (message_id, chunk) DO UPDATE
         SET wake_at = least(outbox.wake_at, excluded.wake_at)
         WHERE outbox.dead_at IS NULL",
        organization_id.0,
        id.0,
        &chunks,
        wake_at,
    )
    .execute(connection)
    .await
    .or_fault("queue chunks again")?;
    let jobs = chunks.into_iter().map(|chunk| SendJob {
        message_id: id,
        chunk,
        organization_id,
    });
    Ok(jobs.collect())
}

/// Lets the retry horizon of a message begin again.
pub(super) async fn mark_retried(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE messages SET retried_at = $3 WHERE id = $2 AND organization_id = $1",
        organization_id.0,
        id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("mark a message as retried")?;
    Ok(())
}
