//! Changes of messages that wait, in Postgres.

use sqlx::{PgConnection, query};

use super::CANCELLED;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::delivery::job::SendJob;
use crate::delivery::lease::job;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::message::MessageStatus;

/// A chunk of a message that has work left.
pub(super) struct ChunkRow {
    pub(super) job: SendJob,
    pub(super) is_leased: bool,
    pub(super) is_dead: bool,
}

/// A message that is to be changed.
pub(super) struct FoundMessage {
    pub(super) status: MessageStatus,
    pub(super) scheduled_at: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
    /// Whether a provider was called for it, or its owner retried it.
    pub(super) has_begun: bool,
    pub(super) counts: Counts,
}

/// How many recipients of a message are in which state.
pub(super) struct Counts {
    /// QUEUED or SENDING.
    pub(super) waiting: i64,
    pub(super) sent: i64,
    pub(super) cancelled: i64,
}

/// The chunks of a message that have work left. They stay locked until the transaction ends, so
/// that no worker leases them meanwhile.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Vec<ChunkRow>, Fault> {
    let rows = query!(
        r#"SELECT message_id, chunk, organization_id, leased_by IS NOT NULL AS "is_leased!",
                  dead_at IS NOT NULL AS "is_dead!"
           FROM outbox
           WHERE message_id = $2 AND organization_id = $1
           ORDER BY chunk
           FOR UPDATE"#,
        organization_id.0,
        id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("lock the chunks of a message")?;
    let rows = rows.into_iter().map(|row| ChunkRow {
        job: job(row.message_id, row.chunk, row.organization_id),
        is_leased: row.is_leased,
        is_dead: row.is_dead,
    });
    Ok(rows.collect())
}

/// The message, with the state of its recipients. `None` if there is no such message.
pub(super) async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<FoundMessage>, Fault> {
    let row = query!(
        r#"SELECT m.status AS "status: MessageStatus", m.scheduled_at, m.expires_at,
                  (m.retried_at IS NOT NULL
                   OR EXISTS (SELECT 1 FROM send_attempts a WHERE a.message_id = $2)) AS "has_begun!",
                  r.waiting AS "waiting!", r.sent AS "sent!", r.cancelled AS "cancelled!"
           FROM messages m
           CROSS JOIN LATERAL (
               SELECT count(*) FILTER (WHERE r.status IN ('QUEUED', 'SENDING')) AS waiting,
                      count(*) FILTER (WHERE r.status IN ('SENT', 'DELIVERED', 'BOUNCED')) AS sent,
                      count(*) FILTER (WHERE r.status = 'FAILED' AND r.last_error = $3) AS cancelled
               FROM recipients r
               WHERE r.message_id = $2
           ) r
           WHERE m.id = $2 AND m.organization_id = $1"#,
        organization_id.0,
        id.0,
        CANCELLED,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a message to change")?;
    Ok(row.map(|row| FoundMessage {
        status: row.status,
        scheduled_at: row.scheduled_at,
        expires_at: row.expires_at,
        has_begun: row.has_begun,
        counts: Counts {
            waiting: row.waiting,
            sent: row.sent,
            cancelled: row.cancelled,
        },
    }))
}

/// Moves the time of a message to `begins`. Its chunks are pushed at `due_at`; `None` if they
/// are due now and the caller pushes them.
pub(super) async fn reschedule(
    connection: &mut PgConnection,
    (organization_id, id): (OrganizationId, MessageId),
    begins: Timestamp,
    due_at: Option<Timestamp>,
    wake_at: Timestamp,
) -> Result<(), Fault> {
    const DOING: &str = "move the time of a message";
    query!(
        "UPDATE recipients
         SET next_attempt_at = $3, last_error = NULL, failover = 0, rounds = 0, recoverable = false
         WHERE message_id = $2 AND organization_id = $1 AND status = 'QUEUED'",
        organization_id.0,
        id.0,
        due_at.unwrap_or(Timestamp::UNIX_EPOCH),
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE outbox SET wake_at = $3, due_at = $4 WHERE message_id = $2 AND organization_id = $1",
        organization_id.0,
        id.0,
        wake_at,
        due_at,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE messages SET scheduled_at = $3 WHERE id = $2 AND organization_id = $1",
        organization_id.0,
        id.0,
        begins,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(())
}
