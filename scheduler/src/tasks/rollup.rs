//! Rolls up the deltas of metrics, and the deltas of messages into their counters and the index
//! of their subjects. Queries read the remaining deltas too, so this task affects only their
//! speed. It also counts the attempts of accounts for their health, which queries do not read
//! before.
//!
//! It works in small steps with a pause after each, because sending needs the processors too:
//! rolled up at once, the deltas of 2,000 sends per second kept one of two processors busy for
//! a tenth of a second, which delayed the messages sent meanwhile. A step handles the rows of
//! a shard of the organizations, because a good part of its work is per organization. If the
//! task falls behind, it works in large steps without pauses.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use waypost_core::db::PgConnection;
use waypost_core::db::lifo_pool::LifoPool;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::fault::Fault;
use waypost_core::message::list;
use waypost_core::metrics;
use waypost_core::provider_account::health::domains;

use super::{Tasks, WorkFound};

/// Target rows of a step, about five milliseconds of work.
const STEP: i64 = 500;
/// The pause after a step as a multiple of the step's duration.
const PAUSE_FACTOR: u32 = 2;
/// Maximum number of shards. Each step scans all waiting rows.
const SHARDS_MAX: u16 = 16;
/// Rows of a step if the task is behind: a few tenths of a second of work.
const LARGE_STEP: i64 = 5_000;
/// How long one run of a roll-up may take, apart from its last step. The next run continues.
const RUN_MAX: Duration = Duration::from_secs(1);
/// Attempts are counted in one run of so many: each looks at every account of the installation.
const ATTEMPTS_EVERY: u32 = 10;
/// Expired rows of a table that such a run deletes at most, a few tens of milliseconds of work.
const DELETED_MAX: i64 = 5_000;
/// With fewer rows the next run waits longer: a run changes about a hundred rows of sums for each
/// organization that sent, however much it sent.
const FEW: i64 = 1_000;
/// The value of [`Rollup::found`] after a run that did not finish in time.
const BEHIND: i64 = i64::MAX;

/// The state of a roll-up between its runs.
#[derive(Debug, Default)]
pub(crate) struct Rollup {
    /// Rows that the last run found. The next run expects about as many.
    found: AtomicI64,
    /// Runs of the task.
    runs: AtomicU32,
}

/// Rolls up metrics, messages and attempts. A failure of one does not affect the others.
pub(super) async fn roll_up(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let (pool, rollup) = (&tasks.polls, &tasks.metrics_rollup);
    let metrics = rollup.run(pool, async |pool: &LifoPool, shard, rows| {
        let step = async |connection: &mut PgConnection| {
            metrics::store::roll_up(connection, shard, rows).await
        };
        pool.run("roll up metrics", step).await
    });
    let metrics = metrics.await;
    let rollup = &tasks.messages_rollup;
    let messages = rollup.run(pool, async |pool: &LifoPool, shard, rows| {
        let step = async |connection: &mut PgConnection| {
            list::store::roll_up(connection, shard, rows).await
        };
        pool.run("roll up messages", step).await
    });
    let messages = messages.await;
    let attempts = count_attempts(tasks).await;
    let found = metrics?.saturating_add(messages?).saturating_add(attempts?);
    Ok(if found < FEW {
        WorkFound::Nothing
    } else {
        WorkFound::Work
    })
}

async fn count_attempts(tasks: &Tasks) -> Result<i64, Fault> {
    let rollup = &tasks.attempts_rollup;
    let nth = rollup.runs.fetch_add(1, Ordering::Relaxed);
    let is_behind = rollup.found.load(Ordering::Relaxed) == BEHIND;
    if !nth.is_multiple_of(ATTEMPTS_EVERY) && !is_behind {
        return Ok(0);
    }
    domains::tidy(&tasks.pool, &tasks.clock, DELETED_MAX).await?;
    let counting = rollup.run(tasks, async |tasks: &Tasks, shard, rows| {
        domains::roll_up(&tasks.pool, &tasks.clock, shard, rows).await
    });
    counting.await
}

impl Rollup {
    /// Rolls up all waiting rows, or as many as it can in [`RUN_MAX`]. Returns how many it found,
    /// or [`BEHIND`].
    async fn run<P>(
        &self,
        pool: &P,
        step: impl AsyncFn(&P, OrganizationShard, i64) -> Result<i64, Fault>,
    ) -> Result<i64, Fault> {
        let found = self.steps(pool, step).await;
        // After a fault the next run begins with small steps.
        let expected = found.as_ref().map_or(0, |found| *found);
        self.found.store(expected, Ordering::Relaxed);
        found
    }

    /// Returns the number of rows it found, or [`BEHIND`].
    async fn steps<P>(
        &self,
        pool: &P,
        step: impl AsyncFn(&P, OrganizationShard, i64) -> Result<i64, Fault>,
    ) -> Result<i64, Fault> {
        let end = Instant::now() + RUN_MAX;
        let expected = self.found.load(Ordering::Relaxed);
        let (shards, rows, pause_factor) = if expected == BEHIND {
            (1, LARGE_STEP, 0)
        } else {
            // Twice the expected rows, so that one step per shard usually suffices.
            (shard_count(expected), 2 * STEP, PAUSE_FACTOR)
        };
        let mut found = 0;
        let mut paused_until = Instant::now();
        for shard in OrganizationShard::all(shards) {
            loop {
                sleep_until(paused_until.min(end)).await;
                let since = Instant::now();
                if since >= end {
                    return Ok(BEHIND);
                }
                let taken = step(pool, shard, rows).await?;
                found += taken;
                if taken > 0 {
                    paused_until = Instant::now() + since.elapsed() * pause_factor;
                }
                if taken < rows {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// The number of shards with [`STEP`] of `rows` rows each.
fn shard_count(rows: i64) -> u16 {
    let steps = u16::try_from(rows / STEP).unwrap_or(u16::MAX);
    steps.clamp(1, SHARDS_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::sleep;

    use super::*;

    /// Runs a roll-up over `waiting` rows that take ten microseconds each. Returns how many
    /// rows each step requested and found.
    async fn run(rollup: &Rollup, waiting: i64) -> Vec<(i64, i64)> {
        let steps = Mutex::new((waiting, Vec::new()));
        let step =
            async |steps: &Mutex<(i64, Vec<(i64, i64)>)>, _: OrganizationShard, rows: i64| {
                let taken = rows.min(steps.lock().unwrap().0);
                sleep(Duration::from_micros(10) * u32::try_from(taken).unwrap()).await;
                let mut steps = steps.lock().unwrap();
                steps.0 -= taken;
                steps.1.push((rows, taken));
                Ok(taken)
            };
        rollup.run(&steps, step).await.unwrap();
        steps.into_inner().unwrap().1
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_shards_follows_the_rows_of_the_last_run() {
        let rollup = Rollup::default();
        let since = Instant::now();
        assert_eq!(
            run(&rollup, 2_100).await,
            [(1_000, 1_000), (1_000, 1_000), (1_000, 100)]
        );
        // Each step except the last is followed by a pause of twice its duration.
        assert_eq!(since.elapsed().as_millis(), 21 + 2 * 20);
        let next = run(&rollup, 300).await;
        assert_eq!(next.len(), 4, "one step per shard");
        assert_eq!(run(&rollup, 0).await, [(1_000, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rollup_that_is_behind_works_in_large_steps_until_it_has_caught_up() {
        let rollup = Rollup::default();
        let since = Instant::now();
        let first = run(&rollup, 1_000_000).await;
        assert!(first.iter().all(|step| *step == (1_000, 1_000)));
        assert_eq!(since.elapsed(), RUN_MAX);
        assert_eq!(run(&rollup, 7_000).await, [(5_000, 5_000), (5_000, 2_000)]);
        assert_eq!(run(&rollup, 0).await.len(), 16);
        assert_eq!(run(&rollup, 0).await, [(1_000, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_fault_a_rollup_begins_with_small_steps() {
        let rollup = Rollup::default();
        run(&rollup, 1_000_000).await;
        let failed = rollup.run(&(), async |&(), _, _| {
            Err(Fault::unavailable("roll up", "Postgres is away"))
        });
        assert!(failed.await.is_err());
        assert_eq!(run(&rollup, 10).await, [(1_000, 10)]);
    }
}
