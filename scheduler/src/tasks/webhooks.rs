//! Tells the workers at which endpoints something is due, since nobody else tells of
//! retries, and what was told of events may have been missed. And deletes what
//! deleted endpoints leave behind, a bounded part in each statement.

use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::webhook::engine::store;

use super::Tasks;

/// Deliveries deleted by one statement.
const STEP: u64 = 1_000;
/// Statements in one run of the task at the most; the next run goes on.
const STEPS_MAX: usize = 20;

pub(super) async fn notify_due(tasks: &Tasks) -> Result<(), Fault> {
    let mut connection = tasks.pool.acquire().await.or_fault("relay webhooks")?;
    let endpoints = store::notify_due(&mut connection, tasks.clock.now()).await?;
    if endpoints > 0 {
        debug!(endpoints, "Told of endpoints at which something is due");
    }
    Ok(())
}

pub(super) async fn delete_of_deleted(tasks: &Tasks) -> Result<(), Fault> {
    let mut deleted = 0;
    for _ in 0..STEPS_MAX {
        let doing = "delete what deleted webhook endpoints left";
        let mut connection = tasks.pool.acquire().await.or_fault(doing)?;
        let limit = i64::try_from(STEP).unwrap_or(i64::MAX);
        let step = store::delete_of_deleted(&mut connection, limit).await?;
        deleted += step;
        if step < STEP {
            break;
        }
    }
    if deleted > 0 {
        debug!(deleted, "Deleted what deleted webhook endpoints left");
    }
    Ok(())
}
