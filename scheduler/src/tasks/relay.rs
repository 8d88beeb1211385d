//! Pushes the jobs that Redis does not have: it was emptied, it was away when they
//! were accepted, or the process that was to push them died.

use tracing::info;
use waypost_core::db::OrFault;
use waypost_core::delivery::outbox;
use waypost_core::fault::Fault;

use super::Tasks;

/// Jobs pushed in one step.
const STEP: usize = 1_000;
/// Jobs of one organization in a step at the most, so that what others lost is pushed
/// along with what remains of a long backlog.
const EACH: usize = 500;
/// Steps in one run of the task at the most; the next run goes on.
const STEPS_MAX: usize = 200;

pub(super) async fn push_lost(tasks: &Tasks) -> Result<(), Fault> {
    let mut pushed = 0;
    // What is taken counts as pushed: nothing is taken for a Redis that takes nothing.
    tasks.queue.check_pushes().await?;
    for _ in 0..STEPS_MAX {
        // Asked anew in each step: what was pushed in the last one waits now.
        let waiting = tasks.queue.waiting().await?;
        let now = tasks.clock.now();
        let grace = tasks.settings.relay_grace;
        let [each, limit] = [EACH, STEP].map(|most| i64::try_from(most).unwrap_or(i64::MAX));
        let mut connection = tasks.pool.acquire().await.or_fault("relay jobs")?;
        let lost = outbox::take_lost(&mut connection, now, &waiting, grace, each, limit).await?;
        drop(connection);
        tasks.queue.push(&lost).await?;
        pushed += lost.len();
        if lost.len() < EACH {
            break;
        }
    }
    if pushed > 0 {
        info!(pushed, "Pushed jobs that Redis did not have");
    }
    Ok(())
}
