//! Runs jobs through apalis. The worker of apalis ends on its own accord only by a
//! fault; it is started anew then, under another consumer name, and what it held
//! in Redis goes to the next.

use std::future::Future;
use std::time::Duration;

use apalis::prelude::*;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};
use waypost_core::config::SendingSettings;
use waypost_core::delivery::job::SendJob;
use waypost_core::job_queue::{Capacity, JobEnd, Queue};

use crate::send::job::SendMessage;
use crate::worker_lease::WorkerLease;

/// How long to wait before a worker that ended is started anew.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// Works until `shutdown`, then lets running jobs end within the configured bound.
/// What is still running after that is left to the leases.
pub(crate) async fn run(
    queue: &Queue<SendJob>,
    tenures: &WorkerLease,
    settings: &SendingSettings,
    shutdown: &CancellationToken,
    handler: SendMessage,
) {
    for life in 0_u64.. {
        let name = format!("{}-{life}", tenures.name());
        let handler = handler.clone();
        let job = move |job: SendJob| {
            let handler = handler.clone();
            async move { handler.run(job).await }
        };
        let mut worker = start(queue, &name, settings.concurrency, shutdown, job);
        let overtime = async {
            shutdown.cancelled().await;
            tokio::time::sleep(settings.shutdown).await;
        };
        tokio::select! {
            ended = &mut worker => report(&name, ended, shutdown.is_cancelled()),
            () = overtime => {
                warn!(worker = name, "Jobs were still running at the end; their leases will end by themselves");
                worker.abort();
            }
        }
        if shutdown.is_cancelled() {
            return;
        }
        tokio::time::sleep(RESTART_AFTER).await;
    }
}

fn report(name: &str, ended: Result<Result<(), WorkerError>, tokio::task::JoinError>, asked: bool) {
    match ended {
        Ok(Ok(())) if asked => info!(worker = name, "Stopped"),
        Ok(Ok(())) => error!(worker = name, "The worker ended and starts anew"),
        Ok(Err(failure)) => error!(worker = name, %failure, "The worker failed and starts anew"),
        // The hook has told of the panic; the error would repeat what it quotes.
        Err(_) => error!(worker = name, "The worker panicked and starts anew"),
    }
}

/// Not async: within an async function the compiler cannot see that the types of
/// apalis are `Send`.
fn start<F>(
    queue: &Queue<SendJob>,
    name: &str,
    concurrency: usize,
    shutdown: &CancellationToken,
    job: impl Fn(SendJob) -> F + Clone + Send + Sync + 'static,
) -> JoinHandle<Result<(), WorkerError>>
where
    F: Future<Output = Result<JobEnd, BoxDynError>> + Send + 'static,
{
    // Enough in hand to be busy during a round trip, few enough to leave the rest
    // to other workers.
    let capacity = Capacity {
        slots: concurrency,
        room: concurrency * 2,
    };
    let worker = WorkerBuilder::new(name)
        .backend(queue.backend(name.to_owned(), capacity))
        .concurrency(concurrency)
        .parallelize(tokio::spawn)
        .build(move |message: SendJob| job(message));
    let shutdown = shutdown.clone();
    tokio::spawn(worker.run_until(async move {
        shutdown.cancelled().await;
        Ok::<(), std::io::Error>(())
    }))
}
