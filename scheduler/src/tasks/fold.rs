//! Folds the deltas of metrics, and what became of messages into their counters and the
//! index of their subjects. Whatever is left over is read all the same: this task decides
//! only how quick reading is.

use std::time::Duration;

use tokio::time::Instant;
use waypost_core::db::{OrFault, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::message::list;
use waypost_core::metrics;

use super::Tasks;

/// Deltas of metrics folded by one statement.
const DELTAS: i64 = 10_000;
/// New messages counted and indexed by one statement, and changes of status: a few tenths
/// of a second.
const MESSAGES: i64 = 5_000;
/// How long each of the two goes on at the most, but for the statement that it is at: the
/// other tasks must have their turn. The next run goes on.
const TURN: Duration = Duration::from_millis(500);

/// One failing does not keep the other from its work.
pub(super) async fn fold(tasks: &Tasks) -> Result<(), Fault> {
    let metrics = turn(tasks, DELTAS, async |connection| {
        metrics::store::fold(connection, DELTAS).await
    });
    let metrics = metrics.await;
    let messages = turn(tasks, MESSAGES, async |connection| {
        list::store::fold(connection, MESSAGES).await
    });
    messages.await.and(metrics)
}

/// Repeats a step until it finds less than `full` to do, or its turn is over.
async fn turn(
    tasks: &Tasks,
    full: i64,
    step: impl AsyncFn(&mut PgConnection) -> Result<i64, Fault>,
) -> Result<(), Fault> {
    let end = Instant::now() + TURN;
    let mut connection = tasks.pool.acquire().await.or_fault("fold deltas")?;
    while step(&mut connection).await? >= full && Instant::now() < end {}
    Ok(())
}
