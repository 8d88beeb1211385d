//! Folds the deltas of metrics and of the counters of messages, and indexes the
//! subjects that wait for it. Whatever is left over is read all the same: this task
//! decides only how quick reading is.

use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::message::list;
use waypost_core::metrics;

use super::Tasks;

/// Deltas folded by one statement.
const DELTAS: i64 = 10_000;
/// Subjects indexed by one statement: a few tenths of a second.
const SUBJECTS: i64 = 5_000;
/// Statements of one kind in one run of the task at the most; the next run goes on,
/// so that the other tasks have their turn.
const STEPS_MAX: usize = 5;

pub(super) async fn fold(tasks: &Tasks) -> Result<(), Fault> {
    let mut connection = tasks.pool.acquire().await.or_fault("fold deltas")?;
    for _ in 0..STEPS_MAX {
        if metrics::store::fold(&mut connection, DELTAS).await? < DELTAS {
            break;
        }
    }
    for _ in 0..STEPS_MAX {
        if list::store::fold_counts(&mut connection, DELTAS).await? < DELTAS {
            break;
        }
    }
    for _ in 0..STEPS_MAX {
        if list::store::index_subjects(&mut connection, SUBJECTS).await? < SUBJECTS {
            break;
        }
    }
    Ok(())
}
