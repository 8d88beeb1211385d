//! Suspects: chunks that may be what their workers die of, and those whose handlers
//! panicked. [`waypost_core::delivery::dead_letter`] says what is counted and why; here it is
//! seen to that one suspect is worked on at a time, and that a panic costs its own
//! chunk alone.

use std::any::Any;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::error;
use waypost_core::clock::Clock;
use waypost_core::config::SendingSettings;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::delivery::attempt::{self, AttemptKey};
use waypost_core::delivery::dead_letter::{self, SUSPECT_FROM};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::reaper;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{Ids, WorkerId};
use waypost_core::job_queue::JobEnd;
use waypost_core::warn_seldom;

use crate::store::ClaimedChunk;
use crate::worker_lease::WorkerLease;

/// Suspects that wait in this worker for their turn: few, since they keep places
/// from other jobs. The others are given back and come again.
const WAITING_MAX: usize = 4;
/// When a suspect comes again for which there was no room.
const COME_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// When a job comes again whose handler panicked.
const AFTER_PANIC: Duration = Duration::from_secs(2);
/// The waits between tries to give a chunk back while Postgres is away.
const RECORD_AGAIN_FIRST: Duration = Duration::from_millis(100);
const RECORD_AGAIN_LONGEST: Duration = Duration::from_secs(5);

/// The suspects of this worker.
pub(crate) struct Quarantine {
    pool: PgPool,
    tenures: WorkerLease,
    ids: Ids,
    clock: Clock,
    settings: SendingSettings,
    turn: Semaphore,
    waiting: Semaphore,
}

/// How a claimed chunk may be worked on.
pub(crate) enum Admission<'a> {
    /// At once, beside all others.
    Freely,
    /// At once, and no other suspect until this is dropped.
    Alone { _turn: SemaphorePermit<'a> },
    /// Not now: it is to be given back untried, and to come again after this long.
    Later(Duration),
}

impl Quarantine {
    pub(crate) fn new(
        pool: PgPool,
        tenures: WorkerLease,
        ids: Ids,
        clock: Clock,
        settings: SendingSettings,
    ) -> Self {
        Self {
            pool,
            tenures,
            ids,
            clock,
            settings,
            turn: Semaphore::new(1),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// Says how a chunk may be worked on, and waits for its turn if it must. That a
    /// suspect begins is on record before it does.
    pub(crate) async fn admit(&self, claim: &ClaimedChunk) -> Admission<'_> {
        if claim.losses < SUSPECT_FROM {
            return Admission::Freely;
        }
        let Ok(waiting) = self.waiting.try_acquire() else {
            return Admission::Later(COME_AGAIN_AFTER);
        };
        let Ok(turn) = self.turn.acquire().await else {
            return Admission::Later(COME_AGAIN_AFTER);
        };
        drop(waiting);
        match self.begin(claim).await {
            Ok(true) => Admission::Alone { _turn: turn },
            Ok(false) => Admission::Later(COME_AGAIN_AFTER),
            Err(fault) => {
                warn_seldom!(cause = fault.chain(), "A suspect is not begun with");
                Admission::Later(COME_AGAIN_AFTER)
            }
        }
    }

    async fn begin(&self, claim: &ClaimedChunk) -> Result<bool, Fault> {
        const DOING: &str = "begin with a suspect";
        db::bounded(DOING, async {
            let mut connection = self.pool.acquire().await.or_fault(DOING)?;
            let now = self.clock.now();
            dead_letter::store::begin(&mut connection, claim.worker, claim.job, now).await
        })
        .await
    }

    /// Gives back the chunk of a handler that panicked, however long Postgres is away:
    /// its open attempts are in doubt, the rest is due again, and one loss is counted.
    /// `unused` is an attempt on record whose call was not made.
    pub(crate) async fn panicked(
        &self,
        worker: WorkerId,
        job: SendJob,
        unused: Option<AttemptKey>,
        panic: Box<dyn Any + Send>,
    ) -> JobEnd {
        error!(message.id = %job.message_id, chunk = job.chunk, "The handler of a job panicked");
        let message = words_of(panic.as_ref());
        drop(panic);
        let mut wait = RECORD_AGAIN_FIRST;
        while let Err(fault) = self.take_from(worker, job, unused, &message).await {
            if fault.kind() == FaultKind::Internal {
                let cause = fault.chain();
                error!(cause, "The chunk of a panic is left to the reaper");
                self.tenures.give_up(worker);
                break;
            }
            let cause = fault.chain();
            warn_seldom!(cause, "The chunk of a panic could not be given back yet");
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RECORD_AGAIN_LONGEST);
        }
        JobEnd::Retry {
            after: AFTER_PANIC,
            reason: message,
        }
    }

    async fn take_from(
        &self,
        worker: WorkerId,
        job: SendJob,
        unused: Option<AttemptKey>,
        message: &str,
    ) -> Result<(), Fault> {
        const DOING: &str = "give back the chunk of a panic";
        db::bounded(DOING, async {
            let mut transaction = db::begin(&self.pool, DOING).await?;
            attempt::withdraw(&mut transaction, unused.as_slice()).await?;
            let (held, now) = ((worker, job), self.clock.now());
            let settings = &self.settings;
            reaper::take_from(&mut transaction, held, message, settings, &self.ids, now).await?;
            transaction.commit().await.or_fault(DOING)
        })
        .await
    }
}

/// What a panic said, where that is a constant: anything else may hold contents. The
/// panic itself is on the worker's standard error, with its place.
fn words_of(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<&'static str>() {
        Some(words) => format!("its handler panicked: {words}"),
        None => "its handler panicked; its worker's log says where".to_owned(),
    }
}
