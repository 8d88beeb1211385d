//! Leaving: what a worker does last. What its jobs still hold when their time is
//! over is given back at once, so that nobody waits for its leases to end.

use std::time::Duration;

use tracing::{info, warn};
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::dead_letter::LossCause;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::reaper::{self, Reaped};
use waypost_core::fault::Fault;
use waypost_core::ids::WorkerId;
use waypost_core::job_queue::Queue;

use crate::send::job::Sending;

/// How long giving back may take. What is left then ends with the leases.
const WITHIN: Duration = Duration::from_secs(5);
/// Transactions at the most: more than one only where a chunk is being settled.
const STEPS_MAX: usize = 50;

/// Ends the last tenure. From here on no call begins; those that are still under
/// way are in doubt, and their jobs can settle nothing any more.
pub(crate) async fn leave(sending: &Sending, queue: &Queue<SendJob>) {
    let worker = sending.tenures.resign();
    let given_back = give_back(sending, queue, worker);
    match tokio::time::timeout(WITHIN, given_back).await {
        Ok(Ok(())) => sending.tenures.end(worker).await,
        Ok(Err(fault)) => warn!(
            cause = fault.chain(),
            "What this worker holds is left until its leases end"
        ),
        Err(_) => warn!("What this worker holds is left until its leases end"),
    }
}

async fn give_back(
    sending: &Sending,
    queue: &Queue<SendJob>,
    worker: WorkerId,
) -> Result<(), Fault> {
    for _ in 0..STEPS_MAX {
        let given = step(sending, worker).await?;
        if given.chunks == 0 {
            break;
        }
        let (chunks, unknown) = (given.chunks, given.unknown);
        info!(chunks, unknown, "Gave back what jobs had not ended");
        if let Err(fault) = queue.push(&given.due).await {
            let cause = fault.chain();
            warn!(cause, "The relay will push what was given back");
        }
    }
    Ok(())
}

async fn step(sending: &Sending, worker: WorkerId) -> Result<Reaped, Fault> {
    const DOING: &str = "give back leases";
    let pool = &sending.accounts.pool;
    let mut transaction = db::begin(pool, DOING).await?;
    let (settings, ids, now) = (&sending.settings, &sending.ids, sending.clock.now());
    let given = reaper::take_back(
        &mut transaction,
        worker,
        LossCause::Nobody,
        settings,
        ids,
        now,
    )
    .await?;
    transaction.commit().await.or_fault(DOING)?;
    Ok(given)
}
