//! Forgets idempotency keys whose time is over, a bounded part in each statement.

use tracing::debug;
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::idempotency::store;

use super::Tasks;

/// Keys forgotten by one statement.
const STEP: i64 = 5_000;
/// Statements in one run of the task at the most; the next run goes on, and the
/// other tasks come in between.
const STEPS_MAX: usize = 20;

pub(super) async fn forget(tasks: &Tasks) -> Result<(), Fault> {
    let mut forgotten = 0;
    for _ in 0..STEPS_MAX {
        let now = tasks.clock.now();
        let mut connection = tasks.pool.acquire().await.or_fault("forget keys")?;
        let step = store::delete_old(&mut connection, now, STEP).await?;
        forgotten += step;
        if step < STEP.unsigned_abs() {
            break;
        }
    }
    if forgotten > 0 {
        debug!(forgotten, "Forgot idempotency keys");
    }
    Ok(())
}
