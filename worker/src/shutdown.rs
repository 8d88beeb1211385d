//! The end of a shutdown: gives back the chunks that jobs still hold when their time is
//! over, so that no other worker has to wait until their lease ends.

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

/// How long giving back may take. The reaper takes back what is left.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most transactions. More than one is needed only if an outcome of a chunk is being
/// recorded at the same time.
const TRANSACTIONS_MAX: usize = 50;

/// Releases the worker's lease and gives back its chunks. From here on no call begins; the
/// outcomes of calls that are still in flight are unknown, and their jobs can record
/// nothing any more.
pub(crate) async fn give_back_leases(sending: &Sending, queue: &Queue<SendJob>) {
    const LEFT: &str = "The jobs of this worker are left until its lease ends";
    let worker = sending.worker_lease.release();
    let given_back = give_back(sending, queue, worker);
    match tokio::time::timeout(TIMEOUT, given_back).await {
        Ok(Ok(())) => sending.worker_lease.unregister(worker).await,
        Ok(Err(fault)) => warn!(cause = fault.chain(), "{LEFT}"),
        Err(_) => warn!("{LEFT}"),
    }
}

async fn give_back(
    sending: &Sending,
    queue: &Queue<SendJob>,
    worker: WorkerId,
) -> Result<(), Fault> {
    for _ in 0..TRANSACTIONS_MAX {
        let given_back = give_back_some(sending, worker).await?;
        if given_back.chunks == 0 {
            break;
        }
        let (chunks, unknown) = (given_back.chunks, given_back.unknown);
        info!(chunks, unknown, "Gave back chunks whose jobs had not ended");
        if let Err(fault) = queue.push(&given_back.due).await {
            let cause = fault.chain();
            warn!(
                cause,
                "Cannot push the jobs that were given back; the relay will push them"
            );
        }
    }
    Ok(())
}

async fn give_back_some(sending: &Sending, worker: WorkerId) -> Result<Reaped, Fault> {
    const DOING: &str = "give back leases";
    let pool = &sending.accounts.pool;
    let mut transaction = db::begin(pool, DOING).await?;
    let (settings, ids, now) = (&sending.settings, &sending.ids, sending.clock.now());
    let given_back = reaper::take_back(
        &mut transaction,
        worker,
        LossCause::Shutdown,
        settings,
        ids,
        now,
    )
    .await?;
    transaction.commit().await.or_fault(DOING)?;
    Ok(given_back)
}
