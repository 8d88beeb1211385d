//! Keeps partitions ahead, so that rows seldom go to the default one.

use tracing::info;
use waypost_core::fault::Fault;
use waypost_core::partition;

use super::Tasks;

/// Months that have their partitions ready, the present one included.
const MONTHS: u32 = 3;

pub(super) async fn create_ahead(tasks: &Tasks) -> Result<(), Fault> {
    let made = partition::create_ahead(&tasks.pool, tasks.clock.now(), MONTHS).await?;
    if made > 0 {
        info!(made, "Created partitions");
    }
    Ok(())
}
