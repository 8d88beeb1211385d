//! Folds the deltas of metrics and of the counters of messages, and indexes the
//! subjects that wait for it. Whatever is left over is read all the same: this task
//! decides only how quick reading is.

use std::time::Duration;

use tokio::time::Instant;
use waypost_core::db::{OrFault, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::message::list;
use waypost_core::metrics;

use super::Tasks;

/// Deltas folded by one statement.
const DELTAS: i64 = 10_000;
/// Subjects indexed by one statement: a few tenths of a second.
const SUBJECTS: i64 = 5_000;
/// How long each of the three goes on at the most, but for the statement that it is
/// at: the other tasks must have their turn. The next run goes on.
const TURN: Duration = Duration::from_millis(500);

/// One failing does not keep the others from their work.
pub(super) async fn fold(tasks: &Tasks) -> Result<(), Fault> {
    let metrics = turn(tasks, DELTAS, async |connection| {
        metrics::store::fold(connection, DELTAS).await
    });
    let metrics = metrics.await;
    let counts = turn(tasks, DELTAS, async |connection| {
        list::store::fold_counts(connection, DELTAS).await
    });
    let counts = counts.await;
    let subjects = turn(tasks, SUBJECTS, async |connection| {
        list::store::index_subjects(connection, SUBJECTS).await
    });
    subjects.await.and(counts).and(metrics)
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
