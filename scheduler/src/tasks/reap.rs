//! Takes back what dead workers held, a bounded part in each transaction.

use tracing::{info, warn};
use waypost_core::db::OrFault;
use waypost_core::fault::Fault;
use waypost_core::queue::reaper;

use super::Tasks;

/// Transactions in one run of the task at the most; the next run goes on.
const STEPS_MAX: usize = 100;

pub(super) async fn take_back(tasks: &Tasks) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        let mut transaction = tasks.pool.begin().await.or_fault("take back leases")?;
        let Some(worker) = reaper::find_dead(&mut transaction).await? else {
            return Ok(());
        };
        let now = tasks.clock.now();
        let reaped =
            reaper::take_back(&mut transaction, worker, &tasks.settings, &tasks.ids, now).await?;
        transaction.commit().await.or_fault("take back leases")?;
        if reaped.chunks > 0 {
            info!(%worker, chunks = reaped.chunks, unknown = reaped.unknown, "Took back what a dead worker held");
        }
        if let Err(fault) = tasks.queue.push(&reaped.due).await {
            warn!(
                cause = fault.chain(),
                "The relay will push what was taken back"
            );
        }
    }
    Ok(())
}
