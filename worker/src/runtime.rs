//! Runs jobs through apalis. An apalis worker ends by itself only if it fails. It is then
//! started again under another consumer name, and its unacknowledged jobs are taken over.

use std::future::Future;
use std::time::Duration;

use apalis::prelude::*;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use waypost_core::config::SendingSettings;
use waypost_core::delivery::job::SendJob;
use waypost_core::job_queue::{Capacity, JobEnd, JobSlot, Queue};

use crate::send::job::SendHandler;
use crate::store::OUTCOMES_MIN;
use crate::worker_lease::WorkerLease;

/// The wait before a worker that ended is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Jobs whose calls are answered and whose outcomes are being recorded, for each slot. Recording
/// takes up to 150 ms in a flood, in which a provider that answers at once takes hundreds.
const FINISHING_PER_SLOT: usize = 4;
/// How many such jobs there may be, however few slots: they fill two transactions, so that a
/// worker with few slots does not wait for the pause between transactions.
const FINISHING_MIN: usize = 2 * OUTCOMES_MIN;

/// Runs jobs until `shutdown`, then waits for running jobs for the configured time. Jobs
/// that run longer are aborted.
pub(crate) async fn run(
    queue: &Queue<SendJob>,
    worker_lease: &WorkerLease,
    settings: &SendingSettings,
    shutdown: &CancellationToken,
    handler: SendHandler,
) {
    for start_count in 0_u64.. {
        let name = format!("{}-{start_count}", worker_lease.name());
        let handler = handler.clone();
        let job = move |job: SendJob, slot: JobSlot<SendJob>| {
            let handler = handler.clone();
            async move { handler.run(job, slot).await }
        };
        let mut worker = start(queue, &name, settings.concurrency, shutdown, job);
        let shutdown_timeout = async {
            shutdown.cancelled().await;
            tokio::time::sleep(settings.shutdown).await;
        };
        tokio::select! {
            ended = &mut worker => log_end(&name, ended, shutdown.is_cancelled()),
            () = shutdown_timeout => {
                warn!(worker = name, "Aborted jobs that were still running at the end of the shutdown time");
                worker.abort();
            }
        }
        if shutdown.is_cancelled() {
            return;
        }
        tokio::time::sleep(RESTART_AFTER).await;
    }
}

fn log_end(name: &str, ended: Result<Result<(), WorkerError>, JoinError>, is_shutting_down: bool) {
    match ended {
        Ok(Ok(())) if is_shutting_down => info!(worker = name, "Worker stopped"),
        Ok(Ok(())) => error!(worker = name, "The worker ended and is started again"),
        Ok(Err(failure)) => {
            error!(worker = name, %failure, "The worker failed and is started again");
        }
        // The panic hook has logged the panic. The error may quote personal data.
        Err(_) => error!(worker = name, "The worker panicked and is started again"),
    }
}

/// Starts an apalis worker. Not async: in an async function the compiler cannot see that
/// the types of apalis are `Send`.
fn start<F>(
    queue: &Queue<SendJob>,
    name: &str,
    concurrency: usize,
    shutdown: &CancellationToken,
    job: impl Fn(SendJob, JobSlot<SendJob>) -> F + Clone + Send + Sync + 'static,
) -> JoinHandle<Result<(), WorkerError>>
where
    F: Future<Output = Result<JobEnd, BoxDynError>> + Send + 'static,
{
    // Enough fetched jobs to be busy during a round trip, few enough to leave the rest to
    // other workers.
    let capacity = Capacity {
        slots: concurrency,
        in_flight_max: concurrency * 2,
        finishing_max: (concurrency * FINISHING_PER_SLOT).max(FINISHING_MIN),
    };
    let worker = WorkerBuilder::new(name)
        .backend(queue.backend(name.to_owned(), capacity))
        .concurrency(capacity.slots + capacity.finishing_max)
        .parallelize(tokio::spawn)
        .build(move |message: SendJob, slot: Data<JobSlot<SendJob>>| job(message, slot.0));
    let shutdown = shutdown.clone();
    tokio::spawn(worker.run_until(async move {
        shutdown.cancelled().await;
        Ok::<(), std::io::Error>(())
    }))
}
