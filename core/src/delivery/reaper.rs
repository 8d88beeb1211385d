//! The reaper: takes back the chunks of a dead worker. Its open attempts may have reached a
//! provider, so they become UNKNOWN; the recipients that were not tried go back to QUEUED.
//! A chunk that has lost its worker too often becomes a dead letter
//! ([`super::dead_letter`]).

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, query};
use uuid::Uuid;

use super::attempt::NewAttempt;
use super::dead_letter::{self, LossCause};
use super::job::SendJob;
use super::lease::{columns, finish, job};
use super::outcome::{self, AttemptOutcome};
use super::retry::{self, RetryContext, RetryMoment, RetryState};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::config::SendingSettings;
use crate::db::OrFault;
use crate::fault::{Fault, FaultKind};
use crate::ids::{Ids, MessageId, OrganizationId, ProviderAccountId, SendAttemptId, WorkerId};
use crate::message::CHUNK_RECIPIENTS;
use crate::message::store::refresh_aggregates;
use crate::provider::outcome::SendOutcome;
use crate::routing::rule::OnUnknown;

/// The most chunks in one transaction.
const CHUNKS_MAX: i64 = 500;
/// The reason of attempts that become UNKNOWN.
const WORKER_LOST: &str = "the worker was lost during the call";

/// What one transaction of the reaper did.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Jobs that are due now.
    pub due: Vec<SendJob>,
    pub chunks: usize,
    /// Attempts that became UNKNOWN.
    pub unknown: usize,
}

/// Finds a worker whose leases have ended, except those in `skipped`. Its row stays locked
/// until the transaction ends, so it can neither renew its leases nor lease a chunk.
pub async fn find_dead(
    connection: &mut PgConnection,
    skipped: &[WorkerId],
) -> Result<Option<WorkerId>, Fault> {
    let skipped: Vec<Uuid> = skipped.iter().map(|worker| worker.0).collect();
    let row = query!(
        "SELECT id
         FROM workers
         WHERE leased_until <= now() AND id <> ALL($1)
         ORDER BY leased_until
         LIMIT 1
         FOR UPDATE SKIP LOCKED",
        &skipped,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find dead workers")?;
    Ok(row.map(|row| WorkerId(row.id)))
}

/// Finds a worker that holds leases and has no row: a failover to a replica may lose it, for
/// example. It reads the whole outbox, so it should run rarely.
pub async fn find_unregistered(connection: &mut PgConnection) -> Result<Option<WorkerId>, Fault> {
    let row = query!(
        r#"SELECT leased_by AS "leased_by!"
           FROM outbox o
           WHERE leased_by IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = o.leased_by)
           LIMIT 1"#
    )
    .fetch_optional(connection)
    .await
    .or_fault("find workers without a row")?;
    Ok(row.map(|row| WorkerId(row.leased_by)))
}

/// Takes back up to a fixed number of chunks of a worker: of a dead one, in the transaction
/// in which [`find_dead`] found it, repeated until no dead worker is left; or of this worker
/// itself at shutdown. A chunk whose outcomes Postgres refuses becomes a dead letter.
pub async fn take_back(
    connection: &mut PgConnection,
    worker: WorkerId,
    cause: LossCause<'_>,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Reaped, Fault> {
    let taking_back = TakingBack {
        worker,
        cause,
        settings,
        ids,
        now,
    };
    taking_back.some(connection).await
}

/// Takes back one chunk of a running worker, because its handler panicked with this reason.
/// Does nothing if the worker does not hold it any more.
pub async fn take_back_one(
    connection: &mut PgConnection,
    (worker, job): (WorkerId, SendJob),
    reason: &str,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Reaped, Fault> {
    let held = query!(
        "SELECT 1 AS one
         FROM outbox
         WHERE message_id = $1 AND chunk = $2 AND leased_by = $3
         FOR UPDATE",
        job.message_id.0,
        job.chunk,
        worker.0,
    )
    .fetch_optional(&mut *connection)
    .await
    .or_fault("take back a chunk")?;
    if held.is_none() {
        return Ok(Reaped::default());
    }
    let taking_back = TakingBack {
        worker,
        cause: LossCause::Panic(reason),
        settings,
        ids,
        now,
    };
    taking_back.all(connection, &[job]).await
}

/// Takes back chunks of one worker.
#[derive(Clone, Copy)]
struct TakingBack<'a> {
    worker: WorkerId,
    cause: LossCause<'a>,
    settings: &'a SendingSettings,
    ids: &'a Ids,
    now: Timestamp,
}

impl TakingBack<'_> {
    async fn some(self, connection: &mut PgConnection) -> Result<Reaped, Fault> {
        let jobs = lock_chunks(&mut *connection, self.worker).await?;
        if jobs.is_empty() {
            // If a late outcome of a chunk is being recorded, its row was skipped, and the
            // worker keeps its row until the next transaction.
            query!(
                "DELETE FROM workers w
                 WHERE w.id = $1 AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.leased_by = w.id)",
                self.worker.0
            )
            .execute(connection)
            .await
            .or_fault("delete a dead worker")?;
            return Ok(Reaped::default());
        }
        self.all(connection, &jobs).await
    }

    /// Takes back all, in a savepoint. If Postgres refuses, each chunk gets a savepoint of
    /// its own, and one that is refused becomes a dead letter.
    async fn all(self, connection: &mut PgConnection, jobs: &[SendJob]) -> Result<Reaped, Fault> {
        match self.part(&mut *connection, jobs).await {
            Err(fault) if fault.kind() == FaultKind::Internal => {}
            taken => return taken,
        }
        let mut reaped = Reaped::default();
        for job in jobs {
            let one = std::slice::from_ref(job);
            match self.part(&mut *connection, one).await {
                Ok(taken) => {
                    reaped.due.extend(taken.due);
                    reaped.unknown += taken.unknown;
                }
                Err(fault) if fault.kind() == FaultKind::Internal => {
                    let reason = format!("its outcomes cannot be recorded: {}", fault.chain());
                    dead_letter::dead_letter(&mut *connection, one, &reason, self.now).await?;
                }
                Err(fault) => return Err(fault),
            }
            reaped.chunks += 1;
        }
        Ok(reaped)
    }

    /// Takes back chunks in a savepoint.
    async fn part(self, connection: &mut PgConnection, jobs: &[SendJob]) -> Result<Reaped, Fault> {
        const DOING: &str = "take back chunks";
        let now = self.now;
        let mut part = connection.begin().await.or_fault(DOING)?;
        let unknown = close_lost(&mut part, jobs, self.settings, self.ids, now).await?;
        match self.cause {
            LossCause::WorkerLost => {
                dead_letter::store::count_losses(&mut part, jobs, false).await?
            }
            LossCause::Panic(_) => dead_letter::store::count_losses(&mut part, jobs, true).await?,
            LossCause::Shutdown => {}
        }
        // The caller pushes the due jobs at once, and the relay if that fails. After a panic
        // the queue retries the job, a little later.
        let relay_grace = match self.cause {
            LossCause::WorkerLost | LossCause::Shutdown => Duration::ZERO,
            LossCause::Panic(_) => self.settings.relay_grace,
        };
        let rescheduled = finish(&mut part, self.worker, jobs, relay_grace).await?;
        let dead = dead_letter::dead_letter_exhausted(&mut part, jobs, self.cause, now).await?;
        let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
        refresh_aggregates(&mut part, &messages).await?;
        part.commit().await.or_fault(DOING)?;
        Ok(Reaped {
            due: rescheduled
                .iter()
                .filter(|chunk| chunk.due_at <= now && !dead.contains(&chunk.job))
                .map(|chunk| chunk.job)
                .collect(),
            chunks: jobs.len(),
            unknown,
        })
    }
}

/// Closes the open attempts of chunks that no worker sends any more, and requeues the
/// recipients that were not tried. Returns how many attempts became UNKNOWN.
pub(super) async fn close_lost(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<usize, Fault> {
    let unknown = close_as_unknown(&mut *connection, jobs, settings, ids, now).await?;
    requeue_untried(connection, jobs, now).await?;
    Ok(unknown)
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

/// Closes the open attempts of chunks as UNKNOWN. Their recipients wait, are retried or
/// fail, as their routing rule says ([`retry::decide`]); it is recorded like an outcome of a
/// worker. Returns how many there were.
async fn close_as_unknown(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<usize, Fault> {
    let open = open_attempts(&mut *connection, jobs).await?;
    let outcomes: Vec<AttemptOutcome> = open
        .into_iter()
        .map(|(attempt, ctx)| {
            let outcome = SendOutcome::Unknown {
                reason: WORKER_LOST.to_owned(),
            };
            // The clocks of different machines may disagree. Nothing happens to a message
            // before it was accepted.
            let now = now.max(ctx.tried_since);
            let moment = RetryMoment {
                now,
                fraction: ids.fraction(),
                answered: false,
            };
            let next_state = retry::decide(&outcome, ctx, settings, moment);
            AttemptOutcome {
                attempt,
                attempted: true,
                outcome,
                status_code: None,
                finished_at: now,
                next_state,
                event_id: ids.next_at(now),
                // Nothing follows of a call without an answer.
                test_outcome: None,
            }
        })
        .collect();
    // No address is returned: none of these calls had a reply.
    outcome::record(connection, &outcomes).await?;
    Ok(outcomes.len())
}

/// The open attempts of chunks, with the retry context of their recipients.
async fn open_attempts(
    connection: &mut PgConnection,
    jobs: &[SendJob],
) -> Result<Vec<(NewAttempt, RetryContext)>, Fault> {
    let (ids, chunks) = columns(jobs);
    let rows = query!(
        r#"SELECT a.message_id, a.id, a.organization_id, a.position, a.provider_account_id, a.started_at,
                  r.address_hash AS "address_hash: AddressHash", r.unknowns, r.failover, r.rounds, r.recoverable,
                  coalesce(m.retried_at, greatest(m.created_at, m.scheduled_at)) AS "tried_since!",
                  m.expires_at, rule.on_unknown AS "on_unknown?"
           FROM UNNEST($1::uuid[], $2::int[]) AS held (message_id, chunk)
           JOIN send_attempts a
             ON a.message_id = held.message_id AND a.message_id = ANY($1)
            AND a.position >= held.chunk * $3 AND a.position < (held.chunk + 1) * $3
            AND a.outcome IS NULL
           JOIN recipients r
             ON r.message_id = a.message_id AND r.message_id = ANY($1) AND r.position = a.position
           JOIN messages m ON m.id = a.message_id AND m.id = ANY($1)
           LEFT JOIN routing_rules rule
             ON rule.id = m.routing_rule_id AND rule.organization_id = m.organization_id"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the open attempts of a dead worker")?;
    let open = rows.into_iter().map(|row| {
        let attempt = NewAttempt {
            id: SendAttemptId(row.id),
            message_id: MessageId(row.message_id),
            organization_id: OrganizationId(row.organization_id),
            position: row.position,
            address_hash: row.address_hash,
            provider_account_id: ProviderAccountId(row.provider_account_id),
            started_at: row.started_at,
            expires_at: row.expires_at,
        };
        let on_unknown = row.on_unknown.as_deref().and_then(OnUnknown::parse);
        let ctx = RetryContext {
            unknowns: row.unknowns,
            tried_since: row.tried_since,
            expires_at: row.expires_at,
            on_unknown: on_unknown.unwrap_or(OnUnknown::Wait),
            retry_state: RetryState::stored(row.failover, row.rounds, row.recoverable),
            // The loss of the worker says nothing about the account, so no other is tried.
            tried: 0,
            candidates: 1,
            skipped: 0,
        };
        (attempt, ctx)
    });
    Ok(open.collect())
}

/// Closes the open attempts of chunks as UNKNOWN, without changing their recipients.
pub(super) async fn close_open_attempts(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    now: Timestamp,
) -> Result<(), Fault> {
    let (ids, chunks) = columns(jobs);
    query!(
        r#"UPDATE send_attempts a
           SET outcome = 'UNKNOWN', finished_at = $4, reason = $5
           FROM UNNEST($1::uuid[], $2::int[]) AS held (message_id, chunk)
           WHERE a.message_id = held.message_id AND a.message_id = ANY($1)
             AND a.position >= held.chunk * $3 AND a.position < (held.chunk + 1) * $3
             AND a.outcome IS NULL"#,
        &ids,
        &chunks,
        CHUNK_RECIPIENTS,
        now,
        WORKER_LOST,
    )
    .execute(connection)
    .await
    .or_fault("close the attempts of a dead worker")?;
    Ok(())
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
