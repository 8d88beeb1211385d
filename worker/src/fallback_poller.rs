//! The puller: brings jobs while Redis is away, straight from the outbox. It runs
//! only as long as the queue has lost Redis, or Redis takes no pushes, and takes only as
//! many jobs as this worker has free places. That Redis may hand out the same jobs is harmless: the
//! lease decides who has a chunk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::outbox;
use waypost_core::fault::Fault;
use waypost_core::job_queue::Queue;
use waypost_core::warn_seldom;

use crate::send::job::{SendMessage, Sending};

/// How often it looks whether Redis is away and what is due.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How soon it looks again where something was due, since there may be more, or
/// where no place was free.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long Redis must have been away: most absences are a connection that breaks.
const AWAY_AT_LEAST: Duration = Duration::from_secs(1);
/// How long Redis must have been back before it is believed: one that is nearly full takes
/// some pushes and refuses others.
const BACK_AT_LEAST: Duration = Duration::from_secs(3);
/// Jobs of one organization in one look, so that a large send does not hold up the
/// others. It may take all places in the looks to come, if nobody else has work.
const EACH_MAX: i64 = 16;

/// Brings jobs from Postgres.
pub(crate) struct FallbackPoller {
    sending: Arc<Sending>,
    queue: Queue<SendJob>,
    handler: SendMessage,
    places: Arc<Semaphore>,
}

impl FallbackPoller {
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
        let mut absence = Absence::default();
        let mut pause = LOOK_EVERY;
        while shutdown.run_until_cancelled(sleep(pause)).await.is_some() {
            while running.try_join_next().is_some() {}
            pause = LOOK_EVERY;
            if !absence.note(self.queue.has_lost_redis(), Instant::now()) {
                continue;
            }
            match self.pull(&mut running).await {
                Ok(true) => pause = LOOK_AGAIN_AFTER,
                Ok(false) => {}
                Err(fault) => warn_seldom!(cause = fault.chain(), "Cannot pull jobs"),
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

/// Redis' absence, as seen at every look.
#[derive(Debug, Default)]
struct Absence {
    since: Option<Instant>,
    back_since: Option<Instant>,
}

impl Absence {
    /// Notes whether Redis is lost now, and says whether to do without it.
    fn note(&mut self, is_lost: bool, now: Instant) -> bool {
        if is_lost {
            self.back_since = None;
            self.since.get_or_insert(now);
        }
        let Some(since) = self.since else {
            return false;
        };
        let was_long = now.duration_since(since) >= AWAY_AT_LEAST;
        if is_lost {
            return was_long;
        }
        let back_since = *self.back_since.get_or_insert(now);
        // A short absence is over at once.
        if back_since.duration_since(since) < AWAY_AT_LEAST {
            *self = Self::default();
            return false;
        }
        if now.duration_since(back_since) >= BACK_AT_LEAST {
            info!("Redis is back: jobs come from there again");
            *self = Self::default();
            return false;
        }
        true
    }
}

/// Runs one job. How it ends is of no concern: what is left of it is due again by its
/// outbox row.
async fn run(handler: SendMessage, job: SendJob, _place: OwnedSemaphorePermit) {
    if let Err(error) = handler.run_in_place(job).await {
        warn_seldom!(cause = error.to_string(), "A pulled job failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_absence_counts_when_it_lasts_and_ends_when_redis_has_been_back_for_a_while() {
        let begin = Instant::now();
        let mut absence = Absence::default();
        // Milliseconds, whether Redis is lost, whether to do without it.
        for (at, is_lost, without) in [
            (0, false, false),
            (500, true, false),
            (1_000, false, false),
            (2_000, true, false),
            (2_900, true, false),
            (3_000, true, true),
            (3_500, false, true),
            (4_000, true, true),
            (4_500, false, true),
            (7_400, false, true),
            (7_500, false, false),
            (8_000, true, false),
        ] {
            let now = begin + Duration::from_millis(at);
            assert_eq!(absence.note(is_lost, now), without, "at {at} ms");
        }
    }
}
