//! Deletes expired idempotency keys, a limited number per statement.

use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::idempotency::store;

use super::Tasks;

/// Keys per statement.
const STEP: i64 = 5_000;
/// Statements per run. The next run continues, and other tasks run in between.
const STEPS_MAX: usize = 20;

pub(super) async fn delete_expired(tasks: &Tasks) -> Result<(), Fault> {
    let mut deleted = 0;
    for _ in 0..STEPS_MAX {
        let now = tasks.clock.now();
        let mut connection = tasks.pool.acquire().await.or_fault("delete expired keys")?;
        let step = store::delete_old(&mut connection, now, STEP).await?;
        deleted += step;
        if step < STEP.unsigned_abs() {
            break;
        }
    }
    if deleted > 0 {
        debug!(deleted, "Deleted expired idempotency keys");
    }
    Ok(())
}
