//! The reaper: takes back what a dead worker held. Its open attempts may have
//! reached a provider, so they become UNKNOWN; what it had leased and not tried
//! goes back to QUEUED. Chunks that lose their workers again and again are parked
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

/// Chunks taken back in one transaction.
const CHUNKS_MAX: i64 = 500;
/// Why nobody knows what came of an attempt.
const LOST: &str = "the worker was lost during the call";

/// What one step of the reaper did.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Jobs that may run again at once.
    pub due: Vec<SendJob>,
    pub chunks: usize,
    pub unknown: usize,
}

/// A worker whose leases have ended, if there is one, locked until the transaction
/// ends: its heartbeat cannot revive it, and none of its claims is under way.
/// `passed_over` are those that could not be dealt with a moment ago.
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

/// Takes back a bounded part of what a worker held: a dead one, in the transaction that
/// [`find_dead`] found it in, to be repeated until that finds none; or one that was told
/// to stop, by itself, for which nobody is to blame. A chunk that cannot be settled is
/// parked.
pub async fn take_back(
    connection: &mut PgConnection,
    worker: WorkerId,
    blame: LossCause<'_>,
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<Reaped, Fault> {
    let hand = Hand {
        worker,
        blame,
        settings,
        ids,
        now,
    };
    hand.take_back_some(connection).await
}

/// Takes back one chunk of a worker that lives on, because its handler panicked with
/// this message. Nothing where the worker does not hold it any more.
pub async fn take_from(
    connection: &mut PgConnection,
    (worker, job): (WorkerId, SendJob),
    message: &str,
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
    let blame = LossCause::Proof(message);
    let hand = Hand {
        worker,
        blame,
        settings,
        ids,
        now,
    };
    hand.take_back_all(connection, &[job]).await
}

/// What is taken back, from whom, and why.
#[derive(Clone, Copy)]
struct Hand<'a> {
    worker: WorkerId,
    blame: LossCause<'a>,
    settings: &'a SendingSettings,
    ids: &'a Ids,
    now: Timestamp,
}

impl Hand<'_> {
    async fn take_back_some(self, connection: &mut PgConnection) -> Result<Reaped, Fault> {
        let jobs = lock_chunks(&mut *connection, self.worker).await?;
        if jobs.is_empty() {
            // A chunk that a late outcome is being written for was passed over, and
            // keeps its worker on the list until the next step.
            query!(
                "DELETE FROM workers w
                 WHERE w.id = $1 AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.leased_by = w.id)",
                self.worker.0
            )
            .execute(connection)
            .await
            .or_fault("forget a dead worker")?;
            return Ok(Reaped::default());
        }
        self.take_back_all(connection, &jobs).await
    }

    /// Each part in a savepoint: where Postgres refuses something of one chunk, that
    /// one is parked, and the others do not wait for it.
    async fn take_back_all(
        self,
        connection: &mut PgConnection,
        jobs: &[SendJob],
    ) -> Result<Reaped, Fault> {
        match self.take_back_part(&mut *connection, jobs).await {
            Err(fault) if fault.kind() == FaultKind::Internal => {}
            taken => return taken,
        }
        let mut reaped = Reaped::default();
        for job in jobs {
            let one = std::slice::from_ref(job);
            match self.take_back_part(&mut *connection, one).await {
                Ok(taken) => {
                    reaped.due.extend(taken.due);
                    reaped.unknown += taken.unknown;
                }
                Err(fault) if fault.kind() == FaultKind::Internal => {
                    let reason = format!("it cannot be settled: {}", fault.chain());
                    dead_letter::park(&mut *connection, one, &reason, self.now).await?;
                }
                Err(fault) => return Err(fault),
            }
            reaped.chunks += 1;
        }
        Ok(reaped)
    }

    async fn take_back_part(
        self,
        connection: &mut PgConnection,
        jobs: &[SendJob],
    ) -> Result<Reaped, Fault> {
        const DOING: &str = "take back chunks";
        let now = self.now;
        let mut part = connection.begin().await.or_fault(DOING)?;
        let unknown = settle_lost(&mut part, jobs, self.settings, self.ids, now).await?;
        match self.blame {
            LossCause::Suspicion => {
                dead_letter::store::count_losses(&mut part, jobs, false).await?
            }
            LossCause::Proof(_) => dead_letter::store::count_losses(&mut part, jobs, true).await?,
            LossCause::Nobody => {}
        }
        // The next look is left to the relay only where the caller's push fails; what
        // panicked need not come back at once.
        let relay_grace = match self.blame {
            LossCause::Suspicion | LossCause::Nobody => Duration::ZERO,
            LossCause::Proof(_) => self.settings.relay_grace,
        };
        let left = finish(&mut part, self.worker, jobs, relay_grace).await?;
        let parked = dead_letter::park_used_up(&mut part, jobs, self.blame, now).await?;
        let messages: Vec<MessageId> = jobs.iter().map(|job| job.message_id).collect();
        refresh_aggregates(&mut part, &messages).await?;
        part.commit().await.or_fault(DOING)?;
        Ok(Reaped {
            due: left
                .iter()
                .filter(|left| left.due_at <= now && !parked.contains(&left.job))
                .map(|left| left.job)
                .collect(),
            chunks: jobs.len(),
            unknown,
        })
    }
}

/// Settles what is in doubt of chunks that nobody works on any more, and says how
/// many of their attempts became UNKNOWN.
pub(super) async fn settle_lost(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<usize, Fault> {
    let unknown = settle_open_attempts(&mut *connection, jobs, settings, ids, now).await?;
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

/// Closes the open attempts of chunks as UNKNOWN, and lets their recipients wait, be
/// sent again or fail: as their rules say ([`retry::decide`]), and in the way in which
/// a worker's own outcomes are recorded. Answers how many there were.
async fn settle_open_attempts(
    connection: &mut PgConnection,
    jobs: &[SendJob],
    settings: &SendingSettings,
    ids: &Ids,
    now: Timestamp,
) -> Result<usize, Fault> {
    let open = open_attempts(&mut *connection, jobs).await?;
    let outcomes: Vec<AttemptOutcome> = open
        .into_iter()
        .map(|(attempt, standing)| {
            let outcome = SendOutcome::Unknown {
                reason: LOST.to_owned(),
            };
            // Clocks of different machines may disagree: see the worker.
            let now = now.max(standing.tried_since);
            let here = RetryMoment {
                now,
                fraction: ids.fraction(),
                answered: false,
            };
            let next_state = retry::decide(&outcome, standing, settings, here);
            AttemptOutcome {
                attempt,
                attempted: true,
                outcome,
                status_code: None,
                finished_at: now,
                next_state,
                event_id: ids.next_at(now),
            }
        })
        .collect();
    // No address is found to have no mailbox: nobody answered.
    outcome::record(connection, &outcomes).await?;
    Ok(outcomes.len())
}

/// The open attempts of chunks, and where their recipients stood.
async fn open_attempts(
    connection: &mut PgConnection,
    jobs: &[SendJob],
) -> Result<Vec<(NewAttempt, RetryContext)>, Fault> {
    let (ids, chunks) = columns(jobs);
    let rows = query!(
        r#"SELECT a.message_id, a.id, a.organization_id, a.position, a.provider_account_id, a.started_at,
                  r.address_hash AS "address_hash: AddressHash", r.unknowns, r.failover, r.rounds, r.recoverable,
                  coalesce(m.retried_at, m.created_at) AS "tried_since!", rule.on_unknown AS "on_unknown?"
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
        };
        let on_unknown = row.on_unknown.as_deref().and_then(OnUnknown::parse);
        let standing = RetryContext {
            unknowns: row.unknowns,
            tried_since: row.tried_since,
            on_unknown: on_unknown.unwrap_or(OnUnknown::Wait),
            retry_state: RetryState::stored(row.failover, row.rounds, row.recoverable),
            // A worker's death says nothing of the account: no other is tried.
            tried: 0,
            candidates: 1,
            passed_over: 0,
        };
        (attempt, standing)
    });
    Ok(open.collect())
}

/// Closes the open attempts of chunks as UNKNOWN, and leaves the recipients to the
/// caller.
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
        LOST,
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
