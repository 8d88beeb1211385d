//! The puller: brings jobs while Redis is away, straight from the outbox. It runs
//! only as long as the queue has lost Redis, and takes only as many jobs as this
//! worker has free places. That Redis may hand out the same jobs is harmless: the
//! lease decides who has a chunk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use waypost_core::db::{self, OrFault};
use waypost_core::fault::Fault;
use waypost_core::queue::backend::Queue;
use waypost_core::queue::jobs::SendJob;
use waypost_core::queue::outbox;

use crate::jobs::send_message::{SendMessage, Sending};

/// How often it looks whether Redis is away and what is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How soon it looks again where something was due, since there may be more, or
/// where no place was free.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long Redis must have been away: most absences are a connection that breaks.
const AWAY_AT_LEAST: Duration = Duration::from_secs(1);
/// Jobs of one organization in one look, so that a large send does not hold up the
/// others. It may take all places in the looks to come, if nobody else has work.
const EACH_MAX: i64 = 16;

/// Brings jobs from Postgres.
pub(crate) struct Puller {
    sending: Arc<Sending>,
    queue: Queue<SendJob>,
    handler: SendMessage,
    places: Arc<Semaphore>,
}

impl Puller {
    pub(crate) fn new(sending: &Arc<Sending>, queue: Queue<SendJob>, handler: SendMessage) -> Self {
        Self {
            sending: Arc::clone(sending),
            queue,
            places: Arc::clone(handler.places()),
            handler,
        }
    }

    /// Pulls until `shutdown`, then waits for the jobs that it brought, as long as
    /// calls in flight may take.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut running = JoinSet::new();
        let mut lost_at = None;
        let mut pause = LOOK_EVERY;
        while shutdown.run_until_cancelled(sleep(pause)).await.is_some() {
            while running.try_join_next().is_some() {}
            pause = LOOK_EVERY;
            if !self.queue.has_lost_redis() {
                if lost_at.take().is_some_and(is_long_ago) {
                    info!("Redis is back: jobs come from there again");
                }
                continue;
            }
            let since = *lost_at.get_or_insert_with(Instant::now);
            if !is_long_ago(since) {
                continue;
            }
            match self.pull(&mut running).await {
                Ok(true) => pause = LOOK_AGAIN_AFTER,
                Ok(false) => {}
                Err(fault) => warn!(cause = fault.chain(), "Cannot pull jobs"),
            }
        }
        let ended = tokio::time::timeout(self.sending.settings.shutdown, running.join_all());
        if ended.await.is_err() {
            warn!("Pulled jobs were still running at the end");
        }
    }

    /// Starts as many due jobs as there are free places, and says whether there may be
    /// more.
    async fn pull(&self, running: &mut JoinSet<()>) -> Result<bool, Fault> {
        let mut places = Vec::new();
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            places.push(place);
        }
        if places.is_empty() {
            return Ok(true);
        }
        let due = self.take_due(places.len()).await?;
        let pulled = due.len();
        if pulled > 0 {
            debug!(pulled, "Pulled jobs, since Redis is away");
        }
        for (job, place) in due.into_iter().zip(places) {
            running.spawn(run(self.handler.clone(), job, place));
        }
        Ok(pulled > 0)
    }

    async fn take_due(&self, places: usize) -> Result<Vec<SendJob>, Fault> {
        const DOING: &str = "pull jobs";
        let limit = i64::try_from(places).unwrap_or(i64::MAX);
        let now = self.sending.clock.now();
        let grace = self.sending.settings.relay_grace;
        db::bounded(DOING, async {
            let mut connection = self.sending.accounts.pool.acquire().await.or_fault(DOING)?;
            outbox::take_due(&mut connection, now, grace, EACH_MAX, limit).await
        })
        .await
    }
}

fn is_long_ago(since: Instant) -> bool {
    since.elapsed() >= AWAY_AT_LEAST
}

/// Runs one job. How it ends is of no concern: what is left of it is due again by its
/// outbox row.
async fn run(handler: SendMessage, job: SendJob, _place: OwnedSemaphorePermit) {
    if let Err(error) = handler.run_in_place(job).await {
        warn!(cause = error.to_string(), "A pulled job failed");
    }
}
