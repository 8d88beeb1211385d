//! What the jobs of this worker write to Postgres: leases, attempts and outcomes.
//!
//! Each of the three has a batcher, and each batch is one transaction ([`lease`],
//! [`attempt`], [`outcome`]): statements and commits per message are what limits the rate
//! of sending.

mod attempt;
mod held_leases;
mod lease;
mod leased_chunk;
mod outcome;
mod sending_status;

use std::sync::Arc;
use std::time::Duration;

use tracing::error;
use waypost_core::batcher::{Batcher, BatcherSettings, Cooldown};
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::db::{self, PgPool};
use waypost_core::delivery::attempt::NewAttempt;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::LeaseRequest;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::WorkerId;
use waypost_core::job_queue::Queue;
use waypost_core::suppression::Suppressions;
use waypost_core::warn_seldom;

use crate::worker_lease::WorkerLease;
use held_leases::HeldLeases;
pub(crate) use leased_chunk::{LeasedChunk, OutcomeRecord, PrewrittenAttempt};

/// How often a transaction is run that Postgres ends because of a deadlock.
const DEADLOCK_TRIES: u32 = 4;
/// Transactions of one batcher at the same time.
const FLUSHES_MAX: usize = 2;
/// The connections of the store: for three batchers, and one for [`sending_status`]. They
/// are its own, so that it does not wait for other work. Few, because each connection
/// caches the metadata of all tables.
pub(crate) const CONNECTIONS: u32 = 3 * FLUSHES_MAX as u32 + 1;
/// Leases or attempts that start another transaction while one is running.
const BATCH_MIN: usize = 64;
/// Leases or attempts in one transaction, roughly.
const BATCH_MAX: usize = 200;
/// The same for outcomes. No mail waits for them, and the more of them share a transaction, the fewer
/// rows of counts it writes: with 64 and 200, a flood of a hundred organizations wrote 0.87 rows of
/// metrics for each message.
pub(crate) const OUTCOMES_MIN: usize = 200;
const OUTCOMES_MAX: usize = 400;
/// The longest pause of a batcher. With 30 ms instead of 10, four workers and two APIs on
/// two processors delivered a quarter more (`make bench ONLY=processes`, three runs and two,
/// one after the other).
const COOLDOWN_MAX: Duration = Duration::from_millis(30);
/// Transactions of leases and attempts that take no longer are followed by no pause:
/// processors are not short, and mails wait for these transactions. At 2,000 sends a second
/// on two processors half of the mails arrived within 7 ms; with a pause after every
/// transaction it was 17 ms (`make bench ONLY=latency`, three runs each, one after the
/// other; with 4 ms p99 was 43 ms instead of 26). No mail waits for outcomes, so their
/// batcher always pauses.
const COOLDOWN_UNLESS: Duration = Duration::from_millis(8);
/// The pause between transactions that record accepted mails only. Their status is as much
/// later, and if the worker is killed, their attempts are of unknown outcome.
const SENT_WAIT: Duration = Duration::from_millis(100);
/// Items that may wait for a transaction.
const QUEUE_MAX: usize = 4_096;
/// The first and the longest wait between tries to record an outcome while Postgres does
/// not answer.
const RECORD_RETRY_FIRST: Duration = Duration::from_millis(100);
const RECORD_RETRY_LONGEST: Duration = Duration::from_secs(5);

/// Writes to Postgres for the jobs of a worker. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SendStore {
    leases: Batcher<LeaseRequest, Option<LeasedChunk>>,
    attempts: Batcher<(WorkerId, NewAttempt), bool>,
    outcomes: Batcher<OutcomeRecord, ()>,
    worker_lease: WorkerLease,
    held: HeldLeases,
}

/// What the transactions of all three batchers need.
struct StoreWriter {
    held: HeldLeases,
    pool: LifoPool,
    suppressions: Suppressions,
    queue: Queue<SendJob>,
    worker_lease: WorkerLease,
    clock: Clock,
    settings: SendingSettings,
}

impl SendStore {
    pub(crate) fn start(
        pool: PgPool,
        queue: Queue<SendJob>,
        worker_lease: WorkerLease,
        clock: Clock,
        settings: SendingSettings,
        suppressions: Suppressions,
    ) -> Self {
        let held = HeldLeases::default();
        let writer = Arc::new(StoreWriter {
            held: held.clone(),
            pool: LifoPool::new(pool),
            suppressions,
            queue,
            worker_lease: worker_lease.clone(),
            clock,
            settings,
        });
        tokio::spawn(sending_status::run(held.clone(), Arc::downgrade(&writer)));
        let (for_leases, for_attempts) = (Arc::clone(&writer), Arc::clone(&writer));
        let urgent = batching(COOLDOWN_UNLESS);
        let patient = BatcherSettings {
            batch_weight_max: OUTCOMES_MAX,
            batch_min: OUTCOMES_MIN,
            ..batching(Duration::ZERO)
        };
        Self {
            leases: Batcher::start("leases", urgent, move |requests| {
                let writer = Arc::clone(&for_leases);
                async move { writer.lease(requests).await }
            }),
            attempts: Batcher::start("send_attempts", urgent, move |attempts| {
                let writer = Arc::clone(&for_attempts);
                async move { writer.insert_attempts(attempts).await }
            }),
            outcomes: Batcher::start("outcomes", patient, move |records| {
                let writer = Arc::clone(&writer);
                async move { writer.record(records).await }
            }),
            worker_lease,
            held,
        }
    }

    /// Leases the chunk of a job. `None` if another worker holds it, if it is done, or if
    /// none of its recipients is due.
    pub(crate) async fn lease(&self, request: LeaseRequest) -> Result<Option<LeasedChunk>, Fault> {
        self.leases.run(request, 1).await
    }

    /// Notes that nothing about a lease is left to record: its chunk may be leased again.
    pub(crate) fn release(&self, worker: WorkerId, job: SendJob) {
        self.held.release((worker, job));
    }

    /// Writes an attempt before its call. False if the recipient is suppressed or not to
    /// be sent to any more: then the attempt is not written, and the call must not be made.
    pub(crate) async fn insert_attempt(
        &self,
        worker: WorkerId,
        attempt: NewAttempt,
    ) -> Result<bool, Fault> {
        self.attempts.run((worker, attempt), 1).await
    }

    /// Writes an outcome record, and retries for as long as Postgres does not answer. False
    /// if it cannot be written for another reason: the worker's lease is then invalidated,
    /// the chunk is left to the reaper, and its lease must not be ended.
    pub(crate) async fn record(&self, record: OutcomeRecord) -> bool {
        let worker = record.worker;
        let mut wait = RECORD_RETRY_FIRST;
        loop {
            // Nobody waits for the record of a mail that was accepted for a message's only
            // recipient: its slot is free, and nothing is left to send.
            let recording = if record.sent().is_some() {
                self.outcomes
                    .run_deferred(record.clone(), 1, SENT_WAIT)
                    .await
            } else {
                self.outcomes.run(record.clone(), 1).await
            };
            match recording {
                Ok(()) => return true,
                Err(fault) if fault.kind() == FaultKind::Unavailable => {
                    let cause = fault.chain();
                    warn_seldom!(cause, "An outcome could not be recorded yet");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RECORD_RETRY_LONGEST);
                }
                Err(fault) => {
                    error!(cause = fault.chain(), "An outcome could not be recorded");
                    self.worker_lease.invalidate(worker);
                    return false;
                }
            }
        }
    }
}

/// The settings of a batcher that does not pause after transactions which took no longer
/// than `unless`.
fn batching(unless: Duration) -> BatcherSettings {
    BatcherSettings {
        flushes_max: FLUSHES_MAX,
        batch_weight_max: BATCH_MAX,
        batch_min: BATCH_MIN,
        queue_max: QUEUE_MAX,
        cooldown: Cooldown {
            unless,
            longest: COOLDOWN_MAX,
        },
    }
}

/// Runs a transaction, bounded in time, and again after a deadlock. Provider events are
/// recorded without the lease of the recipients' chunk and lock the rows in another order,
/// so deadlocks happen.
async fn retry_deadlocks<T, F>(transaction: impl Fn() -> F, doing: &'static str) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let bounded = || db::bounded(doing, transaction());
    db::retry_deadlocks(DEADLOCK_TRIES, bounded, db::is_deadlock).await
}
