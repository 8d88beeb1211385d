//! The reaper: takes back what a dead worker held. Its open attempts may have
//! reached a provider, so they become UNKNOWN; what it had leased and not tried
//! goes back to QUEUED.

use std::time::Duration;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::jobs::SendJob;
use super::lease::{columns, finish, job};
use crate::clock::{Timestamp, delta};
use crate::config::SendingSettings;
use crate::db::OrFault;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId, WorkerId};
use crate::message::CHUNK_RECIPIENTS;
use crate::message::store::refresh_aggregates;

/// Chunks taken back in one transaction.
const CHUNKS_MAX: i64 = 500;

/// What one step of the reaper did.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Jobs that may run again at once.
    pub due: Vec<SendJob>,
    /// Chunks taken back.
    pub chunks: usize,
    /// Attempts that became UNKNOWN.
    pub unknown: usize,
}

/// A worker whose leases have ended, if there is one, locked until the transaction
/// ends: its heartbeat cannot revive it, and none of its claims is under way.
/// `passed_over` are those that could not be dealt with a moment ago.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn find_dead(
    connection: &mut PgConnection,
    passed_over: &[WorkerId],
) -> Result<Option<WorkerId>, Fault> {
    let passed_over: Vec<Uuid> = passed_over.iter().map(|worker| worker.0).collect();
    let row = query!(
        "SELECT id
         FROM workers
         WHERE leased_until <= now() AND id <> ALL($1)
         ORDER BY leased_until
         LIMIT 1
         FOR UPDATE SKIP LOCKED",
        &passed_over,
    )
    .fetch_optional(connection)
    .await
    .or_fault("look for dead workers")?;
    Ok(row.map(|row| WorkerId(row.id)))
}

/// A worker that holds leases and is not on the list: one that a failover to a
/// replica forgot, say. It reads the whole outbox and is for a slow rhythm.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn find_forgotten(connection: &mut PgConnection) -> Result<Option<WorkerId>, Fault> {
    let row = query!(
        r#"SELECT leased_by AS "leased_by!"
           FROM outbox o
           WHERE leased_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = o.leased_by)
           LIMIT 1"#
    )
    .fetch_optional(connection)
    .await
    .or_fault("look for forgotten workers")?;
    Ok(row.map(|row| WorkerId(row.leased_by)))
}

/// Takes back a bounded part of what a dead worker held, in the transaction that
/// [`find_dead`] found it in, to be repeated until that finds none.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn take_back(
    connection: &mut PgConnection,
    worker: WorkerId,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Reaped, Fault> {
    let jobs = lock_chunks(&mut *connection, worker).await?;
    if jobs.is_empty() {
        // A chunk that a late outcome is being written for was passed over, and
        // keeps its worker on the list until the next step.
        query!(
            "DELETE FROM workers w
             WHERE w.id = $1 AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.leased_by = w.id)",
            worker.0
        )
        .execute(connection)
        .await
        .or_fault("forget a dead worker")?;
        return Ok(Reaped::default());
    }
    let unknown = close_open_attempts(&mut *connection, &jobs, now).await?;
    settle_unknown(&mut *connection, &unknown, settings.unknown_wait, ids, now).await?;
    requeue_untried(&mut *connection, &jobs, now).await?;
    // The next look is left to the relay only where the hand-over below fails.
    let left = finish(&mut *connection, worker, &jobs, Duration::ZERO).await?;
    let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
    refresh_aggregates(connection, &messages).await?;
    Ok(Reaped {
        due: left
            .iter()
            .filter(|left| left.due_at <= now)
            .map(|left| left.job)
            .collect(),
        chunks: jobs.len(),
        unknown: unknown.len(),
    })
}

async fn lock_chunks(
    connection: &mut PgConnection,
    worker: WorkerId,
) -> Result<Vec<SendJob>, Fault> {
    let rows = query!(
        "SELECT message_id, chunk, organization_id
         FROM outbox
         WHERE leased_by = $1
         LIMIT $2
         FOR UPDATE SKIP LOCKED",
        worker.0,
        CHUNKS_MAX,
    )
    .fetch_all(connection)
    .await
    .or_fault("take back the chunks of a dead worker")?;
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}

/// An attempt of which nobody knows what came.
struct LostAttempt {
    message_id: Uuid,
    position: i32,
}

async fn close_open_attempts(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    now: Timestamp,
) -> Result<Vec<LostAttempt>, Fault> {
    let (ids, chunks) = columns(jobs);
    let rows = query!(
        r#"UPDATE send_attempts a
           SET outcome = 'UNKNOWN', finished_at = $4, reason = 'the worker was lost during the call'
           FROM UNNEST($1::uuid[], $2::int[]) AS held (message_id, chunk)
           WHERE a.message_id = held.message_id AND a.message_id = ANY($1)
             AND a.position >= held.chunk * $3 AND a.position < (held.chunk + 1) * $3
             AND a.outcome IS NULL
           RETURNING a.message_id, a.position"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("close the attempts of a dead worker")?;
    let lost = rows.into_iter().map(|row| LostAttempt {
        message_id: row.message_id,
        position: row.position,
    });
    Ok(lost.collect())
}

/// Lets recipients wait for evidence, or gives them up where an answer was lost
/// before: the same rule as `retry::decide` has for an unknown outcome.
async fn settle_unknown(
    connection: &mut PgConnection,
    lost: &[LostAttempt],
    unknown_wait: Duration,
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let rows = query!(
        r#"UPDATE recipients r
           SET status = CASE WHEN r.unknowns = 0 THEN 'SENDING' ELSE 'FAILED' END::message_status,
               unknowns = r.unknowns + 1,
               attempts = r.attempts + 1,
               last_error = 'the worker was lost during the call',
               next_attempt_at = $3
           FROM UNNEST($1::uuid[], $2::int[]) AS lost (message_id, position)
           WHERE r.message_id = lost.message_id AND r.message_id = ANY($1) AND r.position = lost.position AND r.status = 'SENDING'
           RETURNING r.message_id, r.organization_id, r.position, r.status = 'FAILED' AS "failed!""#,
        &lost.iter().map(|attempt| attempt.message_id).collect::<Vec<_>>(),
        &lost.iter().map(|attempt| attempt.position).collect::<Vec<_>>(),
        now + delta(unknown_wait),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("settle the recipients of a dead worker")?;
    let dropped = rows
        .into_iter()
        .filter(|row| row.failed)
        .map(|row| NewEvent {
            id: ids.next_at(now),
            message_id: MessageId(row.message_id),
            organization_id: OrganizationId(row.organization_id),
            position: row.position,
            event_type: EventType::Dropped,
            occurred_at: now,
            data: Some(serde_json::json!({ "reason": "the provider's answer was lost twice" })),
        });
    event::store::insert(connection, &dropped.collect::<Vec<_>>()).await
}

async fn requeue_untried(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    now: Timestamp,
) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"UPDATE recipients r
           SET status = 'QUEUED'
           FROM UNNEST($1::uuid[], $2::int[]) AS held (message_id, chunk)
           WHERE r.message_id = held.message_id AND r.message_id = ANY($1)
             AND r.position >= held.chunk * $3 AND r.position < (held.chunk + 1) * $3
             AND r.status = 'SENDING' AND r.next_attempt_at <= $4"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
        now,
    )
    .execute(connection)
    .await
    .or_fault("requeue the recipients of a dead worker")?;
    Ok(())
}
