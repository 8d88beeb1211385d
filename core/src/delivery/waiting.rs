//! Ends the waiting of recipients without a send: their message was cancelled, or expired.

use serde_json::json;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::job::SendJob;
use super::lease::columns;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId};
use crate::message::CHUNK_RECIPIENTS;
use crate::message::store::refresh_aggregates;

/// Why recipients are not waited for any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The owner of the message cancelled it.
    Cancel,
    /// The time from which it is not sent has come.
    Expiry,
}

impl EndedBy {
    /// The reason of the DROPPED event, and the recipient's last error.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Cancel => super::change::CANCELLED,
            Self::Expiry => super::expiry::EXPIRED,
        }
    }
}

/// Fails the recipients of chunks that wait to be sent to, and deletes the outbox rows of which
/// nothing is left. The caller has locked the rows, and no worker has leased them. Returns how
/// many recipients there were.
///
/// A recipient that waits for evidence about an attempt is left as it is: the mail may have
/// been sent. So is, for a cancellation, one that is to be sent to again after such an attempt.
pub(super) async fn end(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    by: EndedBy,
    ids: &Ids,
    now: Timestamp,
) -> Result<usize, Fault> {
    if jobs.is_empty() {
        return Ok(0);
    }
    let events = fail(&mut *connection, jobs, by, ids, now).await?;
    event::store::insert(&mut *connection, &events).await?;
    delete_finished(&mut *connection, jobs, by).await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(events.len())
}

/// Sets recipients to FAILED, and returns their events.
async fn fail(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    by: EndedBy,
    ids: &Ids,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Fault> {
    let (message_ids, chunks) = columns(jobs);
    let may_be_sent = match by {
        EndedBy::Cancel => false,
        EndedBy::Expiry => true,
    };
    let rows = query!(
        r#"WITH waiting AS (
               SELECT r.message_id, r.position
               FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
               JOIN recipients r ON r.message_id = given.message_id AND r.message_id = ANY($1)
                                AND r.position >= given.chunk * $3 AND r.position < (given.chunk + 1) * $3
               WHERE r.status = 'QUEUED' AND ($4 OR r.unknowns = 0)
               ORDER BY r.message_id, r.position
               FOR NO KEY UPDATE OF r
           )
           UPDATE recipients r
           SET status = 'FAILED', last_error = $5, next_attempt_at = $6
           FROM waiting w
           WHERE r.message_id = w.message_id AND r.message_id = ANY($1) AND r.position = w.position
           RETURNING r.message_id, r.organization_id, r.position"#,
        &message_ids,
        &chunks,
        CHUNK_RECIPIENTS,
        may_be_sent,
        by.reason(),
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("fail recipients that wait")?;
    let events = rows.into_iter().map(|row| NewEvent {
        id: ids.next_at(now),
        message_id: MessageId(row.message_id),
        organization_id: OrganizationId(row.organization_id),
        position: row.position,
        event_type: EventType::Dropped,
        occurred_at: now,
        data: Some(json!({ "reason": by.reason() })),
    });
    Ok(events.collect())
}

/// Deletes the outbox rows of which nothing is left. The others wait for evidence; their expiry
/// has been dealt with.
async fn delete_finished(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    by: EndedBy,
) -> Result<(), Fault> {
    const DOING: &str = "delete chunks with nothing left to send";
    let (ids, chunks) = columns(jobs);
    let left = query!(
        r#"WITH given AS (
               SELECT given.message_id, given.chunk,
                      EXISTS (SELECT 1
                              FROM recipients r
                              WHERE r.message_id = given.message_id AND r.message_id = ANY($1)
                                AND r.position >= given.chunk * $3 AND r.position < (given.chunk + 1) * $3
                                AND r.status IN ('QUEUED', 'SENDING')) AS is_left
               FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
           ), deleted AS (
               DELETE FROM outbox o
               USING given g
               WHERE o.message_id = g.message_id AND o.chunk = g.chunk AND NOT g.is_left
           )
           SELECT message_id AS "message_id!", chunk AS "chunk!" FROM given WHERE is_left"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    if by == EndedBy::Cancel || left.is_empty() {
        return Ok(());
    }
    let (ids, chunks): (Vec<Uuid>, Vec<i32>) = left
        .into_iter()
        .map(|row| (row.message_id, row.chunk))
        .unzip();
    query!(
        r#"UPDATE outbox o
           SET expires_at = NULL
           FROM UNNEST($1::uuid[], $2::int[]) AS given (message_id, chunk)
           WHERE o.message_id = given.message_id AND o.chunk = given.chunk"#,
        &ids,
        &chunks,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(())
}
