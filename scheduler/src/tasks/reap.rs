//! Takes back what dead workers held, a bounded part in each transaction.

use tracing::{info, warn};
use waypost_core::db::{self, OrFault, PgTransaction};
use waypost_core::delivery::dead_letter::LossCause;
use waypost_core::delivery::reaper;
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;

use super::Tasks;

/// Transactions in one run of the task at the most; the next run goes on.
const STEPS_MAX: usize = 100;

/// Takes back what workers held whose leases have ended. One that cannot be dealt
/// with does not keep the others waiting.
pub(super) async fn take_back(tasks: &Tasks) -> Result<(), Fault> {
    let mut passed_over = Vec::new();
    let mut failure = Ok(());
    for _ in 0..STEPS_MAX {
        let mut transaction = db::begin(&tasks.pool, "take back leases").await?;
        let Some(worker) = reaper::find_dead(&mut transaction, &passed_over).await? else {
            break;
        };
        match step(tasks, transaction, worker).await {
            Ok(chunks) if chunks > 0 => {}
            // Nothing is left of it, or others hold what is.
            Ok(_) => passed_over.push(worker),
            Err(fault) => {
                passed_over.push(worker);
                failure = Err(fault);
            }
        }
    }
    failure
}

/// Takes back what workers hold that are not on the list at all.
pub(super) async fn take_back_forgotten(tasks: &Tasks) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        let mut transaction = db::begin(&tasks.pool, "take back leases").await?;
        let Some(worker) = reaper::find_forgotten(&mut transaction).await? else {
            break;
        };
        step(tasks, transaction, worker).await?;
    }
    Ok(())
}

/// How many chunks were taken back.
async fn step(
    tasks: &Tasks,
    mut transaction: PgTransaction<'_>,
    worker: WorkerId,
) -> Result<usize, Fault> {
    let now = tasks.clock.now();
    let blame = LossCause::Suspicion;
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
        info!(%worker, chunks = reaped.chunks, unknown = reaped.unknown, "Took back what a dead worker held");
    }
    if let Err(fault) = tasks.queue.push(&reaped.due).await {
        warn!(
            cause = fault.chain(),
            "The relay will push what was taken back"
        );
    }
    Ok(reaped.chunks)
}
