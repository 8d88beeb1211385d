//! Takes jobs from the outbox while Redis is away. It polls only while the queue has lost
//! Redis or Redis takes no pushes, and takes only as many jobs as this worker has free
//! slots. Redis may hand out the same jobs, which is harmless: one lease per chunk.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::outbox;
use waypost_core::fault::Fault;
use waypost_core::job_queue::Queue;
use waypost_core::ticks::next_tick;
use waypost_core::warn_seldom;

use crate::send::job::{SendHandler, SendSlot, Sending};

/// How often it checks whether Redis is away, and polls.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// The wait after a poll that found jobs, since there may be more, or that found no free
/// slot.
const POLL_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// How long Redis must be away: most outages are a connection that breaks.
const OUTAGE_MIN: Duration = Duration::from_secs(1);
/// How long Redis must be back before polling ends: a Redis that is nearly full takes some
/// pushes and refuses others.
const RECOVERY_MIN: Duration = Duration::from_secs(3);
/// Jobs of one organization in one poll, so that a large send does not delay the others. If
/// no other organization has jobs, it may use all slots after some polls.
const PER_ORGANIZATION_MAX: i64 = 16;

/// Runs jobs from the outbox.
pub(crate) struct FallbackPoller {
    sending: Arc<Sending>,
    queue: Queue<SendJob>,
    handler: SendHandler,
    slots: Arc<Semaphore>,
}

impl FallbackPoller {
    pub(crate) fn new(sending: &Arc<Sending>, queue: Queue<SendJob>, handler: SendHandler) -> Self {
        Self {
            sending: Arc::clone(sending),
            queue,
            slots: Arc::clone(handler.slots()),
            handler,
        }
    }

    /// Polls until `shutdown`, then waits for its running jobs for the configured time.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut running = JoinSet::new();
        let mut outage = Outage::default();
        let mut poll_at = next_tick(POLL_EVERY);
        while shutdown
            .run_until_cancelled(sleep_until(poll_at))
            .await
            .is_some()
        {
            while running.try_join_next().is_some() {}
            let mut has_more = false;
            if outage.note(self.queue.has_lost_redis(), Instant::now()) {
                match self.poll(&mut running).await {
                    Ok(found) => has_more = found,
                    Err(fault) => {
                        warn_seldom!(cause = fault.chain(), "Cannot take jobs from Postgres");
                    }
                }
            }
            poll_at = if has_more {
                Instant::now() + POLL_AGAIN_AFTER
            } else {
                next_tick(POLL_EVERY)
            };
        }
        let ended = tokio::time::timeout(self.sending.settings.shutdown, running.join_all());
        if ended.await.is_err() {
            warn!("Jobs from Postgres were still running at the end of the shutdown time");
        }
    }

    /// Starts as many due jobs as there are free slots. True if there may be more.
    async fn poll(&self, running: &mut JoinSet<()>) -> Result<bool, Fault> {
        let mut slots = Vec::new();
        while let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
            slots.push(slot);
        }
        if slots.is_empty() {
            return Ok(true);
        }
        let due = self.take_due(slots.len()).await?;
        let jobs = due.len();
        if jobs > 0 {
            debug!(jobs, "Took jobs from Postgres, since Redis is away");
        }
        for (job, slot) in due.into_iter().zip(slots) {
            running.spawn(run(self.handler.clone(), job, slot));
        }
        Ok(jobs > 0)
    }

    async fn take_due(&self, slots: usize) -> Result<Vec<SendJob>, Fault> {
        const DOING: &str = "take jobs from the outbox";
        let limit = i64::try_from(slots).unwrap_or(i64::MAX);
        let now = self.sending.clock.now();
        let grace = self.sending.settings.relay_grace;
        db::bounded(DOING, async {
            let mut connection = self.sending.accounts.pool.acquire().await.or_fault(DOING)?;
            outbox::take_due(&mut connection, now, grace, PER_ORGANIZATION_MAX, limit).await
        })
        .await
    }
}

/// An outage of Redis.
#[derive(Debug, Default)]
struct Outage {
    since: Option<Instant>,
    back_since: Option<Instant>,
}

impl Outage {
    /// Notes whether Redis is lost now. True if jobs are to be taken from Postgres.
    fn note(&mut self, is_lost: bool, now: Instant) -> bool {
        if is_lost {
            self.back_since = None;
            self.since.get_or_insert(now);
        }
        let Some(since) = self.since else {
            return false;
        };
        if is_lost {
            return now.duration_since(since) >= OUTAGE_MIN;
        }
        let back_since = *self.back_since.get_or_insert(now);
        // A short outage was never acted upon, so it ends at once.
        if back_since.duration_since(since) < OUTAGE_MIN {
            *self = Self::default();
            return false;
        }
        if now.duration_since(back_since) >= RECOVERY_MIN {
            info!("Redis is back: jobs are taken from Redis again");
            *self = Self::default();
            return false;
        }
        true
    }
}

/// Runs one job. How it ends is ignored: recipients that are left are due again by its
/// outbox row.
async fn run(handler: SendHandler, job: SendJob, permit: OwnedSemaphorePermit) {
    let slot = SendSlot::new(permit, None);
    if let Err(error) = handler.run_in_slot(job, slot).await {
        warn_seldom!(cause = error.to_string(), "A job from Postgres failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_outage_starts_polling_and_redis_must_be_back_for_a_while_to_end_it() {
        let begin = Instant::now();
        let mut outage = Outage::default();
        // Milliseconds, whether Redis is lost, whether jobs are taken from Postgres.
        for (at, is_lost, polls) in [
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
            assert_eq!(outage.note(is_lost, now), polls, "at {at} ms");
        }
    }
}
