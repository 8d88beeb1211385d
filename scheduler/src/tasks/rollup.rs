//! Folds the deltas of metrics, and what became of messages into their counters and the
//! index of their subjects. Whatever is left over is read all the same: this task decides
//! only how quick reading is.
//!
//! It goes by small steps and rests after each, since whoever sends meanwhile needs the
//! processors too: folded at once, what 2,000 sends a second leave behind kept one of two
//! busy for a tenth of a second, and what was sent then arrived that much later. A step
//! takes some of the organizations rather than some of the rows, because a good part of
//! its work is done once for each organization that it finds. Only where that falls behind
//! is it done in large steps, one after the other.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use waypost_core::db::OrFault;
use waypost_core::db::organization_shard::OrganizationShard;
use waypost_core::fault::Fault;
use waypost_core::message::list;
use waypost_core::metrics;

use super::Tasks;

/// Rows of one step, roughly: some five milliseconds.
const STEP: i64 = 500;
/// How many times as long as a step the rest after it is.
const REST: u32 = 2;
/// Shares of the organizations at the most. Each costs a look at all that waits.
const SHARES_MAX: u16 = 16;
/// Rows of one step of those that are behind: a few tenths of a second.
const LARGE_STEP: i64 = 5_000;
/// How long each of the two goes on at the most, but for the step that it is at. The next
/// run goes on.
const TURN: Duration = Duration::from_secs(1);
/// What [`Folding`] knows of a turn that had not the time to come to its end.
const BEHIND: i64 = i64::MAX;

/// What the last turn of a folding found, in rows: the next will find about as many.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    found: AtomicI64,
}

/// One failing does not keep the other from its work.
pub(super) async fn fold(tasks: &Tasks) -> Result<(), Fault> {
    let (pool, folding) = (&tasks.pool, &tasks.folding_of_metrics);
    let metrics = folding.turn(pool, async |pool, share, rows| {
        let mut connection = pool.acquire().await.or_fault("fold metrics")?;
        metrics::store::fold(&mut connection, share, rows).await
    });
    let metrics = metrics.await;
    let folding = &tasks.folding_of_messages;
    let messages = folding.turn(pool, async |pool, share, rows| {
        let mut connection = pool
            .acquire()
            .await
            .or_fault("fold what became of messages")?;
        list::store::fold(&mut connection, share, rows).await
    });
    messages.await.and(metrics)
}

impl Folding {
    /// Folds what there is, or until the turn is over.
    async fn turn<P>(
        &self,
        pool: &P,
        step: impl AsyncFn(&P, OrganizationShard, i64) -> Result<i64, Fault>,
    ) -> Result<(), Fault> {
        let found = self.steps(pool, step).await;
        // After a fault it begins with little again.
        let expected = found.as_ref().map_or(0, |found| *found);
        self.found.store(expected, Ordering::Relaxed);
        found.map(drop)
    }

    /// Says how many rows it found, or [`BEHIND`].
    async fn steps<P>(
        &self,
        pool: &P,
        step: impl AsyncFn(&P, OrganizationShard, i64) -> Result<i64, Fault>,
    ) -> Result<i64, Fault> {
        let end = Instant::now() + TURN;
        let expected = self.found.load(Ordering::Relaxed);
        let (shares, rows, rest) = if expected == BEHIND {
            (1, LARGE_STEP, 0)
        } else {
            // Twice as many as are expected, so that as a rule one step finds them all.
            (shares(expected), 2 * STEP, REST)
        };
        let mut found = 0;
        let mut rests_until = Instant::now();
        for share in OrganizationShard::all(shares) {
            loop {
                sleep_until(rests_until.min(end)).await;
                let since = Instant::now();
                if since >= end {
                    return Ok(BEHIND);
                }
                let taken = step(pool, share, rows).await?;
                found += taken;
                if taken > 0 {
                    rests_until = Instant::now() + since.elapsed() * rest;
                }
                if taken < rows {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// How many shares have a step's rows each, where there are so many in all.
fn shares(rows: i64) -> u16 {
    let steps = u16::try_from(rows / STEP).unwrap_or(u16::MAX);
    steps.clamp(1, SHARES_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::sleep;

    use super::*;

    /// Runs a turn over so many rows, of which each takes ten microseconds. Answers the
    /// rows that each step asked for and found.
    async fn turn(folding: &Folding, waiting: i64) -> Vec<(i64, i64)> {
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
        folding.turn(&steps, step).await.unwrap();
        steps.into_inner().unwrap().1
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_turn_has_as_many_shares_as_the_last_one_had_rows() {
        let folding = Folding::default();
        let since = Instant::now();
        assert_eq!(
            turn(&folding, 2_100).await,
            [(1_000, 1_000), (1_000, 1_000), (1_000, 100)]
        );
        // Each step but the last is followed by a rest of twice its time.
        assert_eq!(since.elapsed().as_millis(), 21 + 2 * 20);
        let next = turn(&folding, 300).await;
        assert_eq!(next.len(), 4, "a step for each share");
        assert_eq!(turn(&folding, 0).await, [(1_000, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_falls_behind_is_folded_in_large_steps_until_it_has_caught_up() {
        let folding = Folding::default();
        let since = Instant::now();
        let first = turn(&folding, 1_000_000).await;
        assert!(first.iter().all(|step| *step == (1_000, 1_000)));
        assert_eq!(since.elapsed(), TURN);
        assert_eq!(
            turn(&folding, 7_000).await,
            [(5_000, 5_000), (5_000, 2_000)]
        );
        assert_eq!(turn(&folding, 0).await.len(), 16);
        assert_eq!(turn(&folding, 0).await, [(1_000, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_fault_it_begins_with_small_steps() {
        let folding = Folding::default();
        turn(&folding, 1_000_000).await;
        let failed = folding.turn(&(), async |&(), _, _| {
            Err(Fault::unavailable("fold", "Postgres is away"))
        });
        assert!(failed.await.is_err());
        assert_eq!(turn(&folding, 10).await, [(1_000, 10)]);
    }
}
