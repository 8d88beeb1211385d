//! Isolates chunks that may be the reason why their workers were lost, and gives back the
//! chunks of handlers that panicked.
//!
//! [`waypost_core::delivery::dead_letter`] says what is counted and why. This module
//! ensures that a worker sends one quarantined chunk at a time, and that a panic is
//! counted against its own chunk only.

use std::any::Any;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::error;
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::delivery::attempt::{self, AttemptKey};
use waypost_core::delivery::dead_letter::{self, QUARANTINE_FROM};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::reaper;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::job_queue::JobEnd;
use waypost_core::warn_seldom;

use crate::store::LeasedChunk;
use crate::worker_lease::WorkerLease;

/// Quarantined chunks that may wait in this worker. Few, because their jobs keep slots.
/// The others are given back and retried later.
const WAITING_MAX: usize = 4;
/// When a job is retried whose handler panicked.
const AFTER_PANIC: Duration = Duration::from_secs(2);
/// The first and the longest wait between tries to give a chunk back while Postgres does
/// not answer.
const GIVE_BACK_RETRY_FIRST: Duration = Duration::from_millis(100);
const GIVE_BACK_RETRY_LONGEST: Duration = Duration::from_secs(5);

/// The quarantined chunks of this worker.
pub(crate) struct Quarantine {
    pool: PgPool,
    worker_lease: WorkerLease,
    ids: Ids,
    clock: Clock,
    settings: SendingSettings,
    isolated: Semaphore,
    waiting: Semaphore,
}

/// Whether a chunk may be sent.
pub(crate) enum Admission<'a> {
    /// Now, beside other chunks.
    Unrestricted,
    /// Now. No other quarantined chunk is started until this is dropped.
    Isolated { _permit: SemaphorePermit<'a> },
    /// Not now: the chunk is to be given back untried, which puts its job off.
    Postponed,
}

impl Quarantine {
    pub(crate) fn new(
        pool: PgPool,
        worker_lease: WorkerLease,
        ids: Ids,
        clock: Clock,
        settings: SendingSettings,
    ) -> Self {
        Self {
            pool,
            worker_lease,
            ids,
            clock,
            settings,
            isolated: Semaphore::new(1),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// Decides whether a chunk may be sent. A quarantined chunk waits here until no other
    /// is sent, and its start is recorded in Postgres first.
    pub(crate) async fn admit(&self, chunk: &LeasedChunk) -> Admission<'_> {
        if chunk.losses < QUARANTINE_FROM {
            return Admission::Unrestricted;
        }
        let Ok(waiting) = self.waiting.try_acquire() else {
            return Admission::Postponed;
        };
        let Ok(permit) = self.isolated.acquire().await else {
            return Admission::Postponed;
        };
        drop(waiting);
        match self.record_start(chunk).await {
            Ok(true) => Admission::Isolated { _permit: permit },
            Ok(false) => Admission::Postponed,
            Err(fault) => {
                warn_seldom!(cause = fault.chain(), "Cannot start a quarantined job");
                Admission::Postponed
            }
        }
    }

    async fn record_start(&self, chunk: &LeasedChunk) -> Result<bool, Fault> {
        const DOING: &str = "start a quarantined chunk";
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            let now = self.clock.now();
            dead_letter::store::record_start(&mut connection, chunk.worker, chunk.job, now).await
        })
        .await
    }

    /// Gives back the chunk of a handler that panicked, and retries for as long as Postgres
    /// does not answer: its open attempts become UNKNOWN, the other recipients are due
    /// again, and one loss is counted. `unused` is an attempt that was written and not
    /// called.
    pub(crate) async fn panicked(
        &self,
        worker: WorkerId,
        job: SendJob,
        unused: Option<AttemptKey>,
        panic: Box<dyn Any + Send>,
    ) -> JobEnd {
        error!(message.id = %job.message_id, chunk = job.chunk, "The handler of a job panicked");
        let reason = reason_of(panic.as_ref());
        drop(panic);
        let mut wait = GIVE_BACK_RETRY_FIRST;
        while let Err(fault) = self.give_back(worker, job, unused, &reason).await {
            if fault.kind() == FaultKind::Internal {
                let cause = fault.chain();
                error!(
                    cause,
                    "The job of a handler that panicked is left to the reaper"
                );
                self.worker_lease.invalidate(worker);
                break;
            }
            let cause = fault.chain();
            warn_seldom!(
                cause,
                "The job of a handler that panicked could not be given back yet"
            );
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(GIVE_BACK_RETRY_LONGEST);
        }
        JobEnd::Snooze(AFTER_PANIC)
    }

    async fn give_back(
        &self,
        worker: WorkerId,
        job: SendJob,
        unused: Option<AttemptKey>,
        reason: &str,
    ) -> Result<(), Fault> {
        const DOING: &str = "give back the chunk of a panic";
        db::bounded(DOING, async {
            let mut transaction = db::begin(&self.pool, DOING).await?;
            attempt::withdraw(&mut transaction, unused.as_slice()).await?;
            let (held, now) = ((worker, job), self.clock.now());
            let settings = &self.settings;
            reaper::take_back_one(&mut transaction, held, reason, settings, &self.ids, now).await?;
            transaction.commit().await.or_fault(DOING)
        })
        .await
    }
}

/// The message of a panic if it is a constant: any other may contain personal data. The
/// panic itself, with its place in the code, is on the worker's standard error.
fn reason_of(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&'static str>() {
        Some(message) => format!("its handler panicked: {message}"),
        None => "its handler panicked; its worker's log says where".to_owned(),
    }
}
