//! Takes back the leases of dead workers, a limited number per transaction.

use tracing::{info, warn};
use waypost_core::db::{self, OrFault, PgTransaction};
use waypost_core::delivery::dead_letter::LossCause;
use waypost_core::delivery::reaper;
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;

use super::{Tasks, WorkFound};

/// Transactions per run; the next run continues.
const STEPS_MAX: usize = 100;

/// Takes back the leases of workers whose own lease has expired. A worker whose leases cannot
/// be taken back does not block the others.
pub(super) async fn take_back(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let mut skipped = Vec::new();
    let mut found = WorkFound::Nothing;
    let mut failure = Ok(());
    for _ in 0..STEPS_MAX {
        let mut transaction = db::begin(&tasks.pool, "take back leases").await?;
        let Some(worker) = reaper::find_dead(&mut transaction, &skipped).await? else {
            break;
        };
        found = WorkFound::Work;
        match step(tasks, transaction, worker).await {
            Ok(chunks) if chunks > 0 => {}
            // No chunks are left, or other transactions hold them.
            Ok(_) => skipped.push(worker),
            Err(fault) => {
                skipped.push(worker);
                failure = Err(fault);
            }
        }
    }
    failure.map(|()| found)
}

/// Takes back the leases of workers that are not registered.
pub(super) async fn take_back_unregistered(tasks: &Tasks) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        let mut transaction = db::begin(&tasks.pool, "take back leases").await?;
        let Some(worker) = reaper::find_unregistered(&mut transaction).await? else {
            break;
        };
        step(tasks, transaction, worker).await?;
    }
    Ok(())
}

/// Takes back leases of one worker. Returns the number of chunks.
async fn step(
    tasks: &Tasks,
    mut transaction: PgTransaction<'_>,
    worker: WorkerId,
) -> Result<usize, Fault> {
    let now = tasks.clock.now();
    let blame = LossCause::WorkerLost;
    let reaped = reaper::take_back(
        &mut transaction,
        worker,
        blame,
        &tasks.settings,
        &tasks.ids,
        now,
    )
    .await?;
    transaction.commit().await.or_fault("take back leases")?;
    if reaped.chunks > 0 {
        info!(%worker, chunks = reaped.chunks, unknown = reaped.unknown, "Took back the leases of a dead worker");
    }
    if let Err(fault) = tasks.queue.push(&reaped.due).await {
        warn!(
            cause = fault.chain(),
            "Could not push the jobs of a dead worker; the relay will push them"
        );
    }
    Ok(reaped.chunks)
}
