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

use tokio::time::{Instant, sleep};
use waypost_core::db::share::Share;
use waypost_core::db::{OrFault, PgConnection};
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
/// What [`Folding`] knows of a turn that did not come to an end.
const BEHIND: i64 = i64::MAX;

/// What the last turn of a folding found, in rows: the next will find about as many.
#[derive(Debug, Default)]
pub(crate) struct Folding {
    found: AtomicI64,
}

/// One failing does not keep the other from its work.
pub(super) async fn fold(tasks: &Tasks) -> Result<(), Fault> {
    let metrics = turn(
        tasks,
        &tasks.folding_of_metrics,
        async |connection, share, rows| metrics::store::fold(connection, share, rows).await,
    );
    let metrics = metrics.await;
    let messages = turn(
        tasks,
        &tasks.folding_of_messages,
        async |connection, share, rows| list::store::fold(connection, share, rows).await,
    );
    messages.await.and(metrics)
}

/// Folds what there is, or until the turn is over.
async fn turn(
    tasks: &Tasks,
    folding: &Folding,
    step: impl AsyncFn(&mut PgConnection, Share, i64) -> Result<i64, Fault>,
) -> Result<(), Fault> {
    let end = Instant::now() + TURN;
    let before = folding.found.swap(BEHIND, Ordering::Relaxed);
    let (shares, rows, rest) = if before == BEHIND {
        (1, LARGE_STEP, 0)
    } else {
        // Twice as many as are expected, so that as a rule one step finds them all.
        (shares(before), 2 * STEP, REST)
    };
    let mut found = 0;
    for share in Share::all(shares) {
        loop {
            if Instant::now() >= end {
                return Ok(());
            }
            let since = Instant::now();
            let mut connection = tasks.pool.acquire().await.or_fault("fold deltas")?;
            let taken = step(&mut connection, share, rows).await?;
            drop(connection);
            found += taken;
            if taken > 0 {
                sleep(since.elapsed() * rest).await;
            }
            if taken < rows {
                break;
            }
        }
    }
    folding.found.store(found, Ordering::Relaxed);
    Ok(())
}

/// How many shares have a step's rows each, where there are so many in all.
fn shares(rows: i64) -> u16 {
    let steps = u16::try_from(rows / STEP).unwrap_or(u16::MAX);
    steps.clamp(1, SHARES_MAX)
}
