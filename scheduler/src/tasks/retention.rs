//! Creates partitions ahead, so that rows seldom go to a default partition, and deletes expired
//! messages: whole months, and the rest row by row.

use std::time::Duration;

use tracing::{debug, info};
use waypost_core::fault::Fault;
use waypost_core::partition;

use super::Tasks;

/// Months that have partitions ready, including the current one. Each costs every statement of a
/// message a little (docs/scaling.md).
const MONTHS: u32 = 2;
/// How long one run deletes messages row by row; the next run continues. A third of the
/// interval.
const DELETE_MAX: Duration = Duration::from_secs(20);

pub(super) async fn create_partitions(tasks: &Tasks) -> Result<(), Fault> {
    let created = partition::create_ahead(&tasks.pool, tasks.clock.now(), MONTHS).await?;
    if created > 0 {
        info!(created, "Created partitions");
    }
    Ok(())
}

pub(super) async fn drop_months(tasks: &Tasks) -> Result<(), Fault> {
    tasks.retention.drop_months().await?;
    Ok(())
}

pub(super) async fn delete_expired(tasks: &Tasks) -> Result<(), Fault> {
    let deleted = tasks.retention.delete_expired(DELETE_MAX).await?;
    if deleted > 0 {
        debug!(deleted, "Deleted expired messages");
    }
    Ok(())
}
