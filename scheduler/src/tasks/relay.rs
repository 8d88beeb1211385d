//! Pushes the jobs that are missing from Redis: it lost its data, it was away when they were
//! accepted, or the process that should have pushed them died.

use tracing::info;
use waypost_core::db::PgConnection;
use waypost_core::delivery::outbox;
use waypost_core::fault::Fault;

use super::{Tasks, WorkFound};

/// Jobs per step.
const STEP: usize = 1_000;
/// Jobs of one organization per step, so that a long backlog of one does not delay the jobs of
/// others.
const EACH: usize = 500;
/// Steps per run; the next run continues.
const STEPS_MAX: usize = 200;

pub(super) async fn push_lost(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let mut pushed = 0;
    // Jobs count as pushed once they are taken, so take none if Redis does not accept writes.
    tasks.queue.check_pushes().await?;
    for _ in 0..STEPS_MAX {
        // Queried in each step: the jobs that the last step pushed are waiting now.
        let waiting = tasks.queue.waiting().await?;
        let now = tasks.clock.now();
        let grace = tasks.settings.relay_grace;
        let [each, limit] = [EACH, STEP].map(|jobs| i64::try_from(jobs).unwrap_or(i64::MAX));
        let take = async |connection: &mut PgConnection| {
            outbox::take_lost(connection, now, &waiting, grace, each, limit).await
        };
        let lost = tasks.polls.run("relay jobs", take).await?;
        tasks.queue.push(&lost).await?;
        pushed += lost.len();
        if lost.len() < EACH {
            break;
        }
    }
    if pushed > 0 {
        info!(pushed, "Pushed jobs that were missing from Redis");
    }
    Ok(pushed.into())
}
