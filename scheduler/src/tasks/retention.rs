//! Lets messages go whose time is over: months whole, and what is left one by one.

use std::time::Duration;

use tracing::debug;
use waypost_core::fault::Fault;

use super::Tasks;

/// How long messages are deleted one by one in one run; the next run goes on. A third of
/// the time that is between two of them.
const TURN: Duration = Duration::from_secs(20);

pub(super) async fn drop_months(tasks: &Tasks) -> Result<(), Fault> {
    tasks.retention.drop_months().await?;
    Ok(())
}

pub(super) async fn delete_expired(tasks: &Tasks) -> Result<(), Fault> {
    let deleted = tasks.retention.delete_expired(TURN).await?;
    if deleted > 0 {
        debug!(deleted, "Deleted messages whose time was over");
    }
    Ok(())
}
