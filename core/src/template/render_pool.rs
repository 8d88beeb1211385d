//! Threads for foreign code: they have a large stack of known size, since a stack
//! that overflows ends the process and cannot be caught, and they are none of
//! those that serve requests. An organization holds half of them at the most, so
//! that one with slow templates does not make the others wait.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};
use tracing::error;

use crate::fault::Fault;
use crate::ids::OrganizationId;

/// The stack of a thread. The bounds of `source`, `mjml` and `schema` keep every
/// parser well within it; only what is used becomes memory.
pub(crate) const STACK_BYTES: usize = 32 << 20;
/// Threads at the least and at the most.
const THREADS_MIN: usize = 2;
const THREADS_MAX: usize = 8;
/// Pieces of work that may wait.
const WAITING_MAX: usize = 1_024;
/// Organizations whose share is remembered, and for how long.
const SHARES_MAX: u64 = 100_000;
const SHARE_IDLE: Duration = Duration::from_secs(60);

/// Does work that is known to be little on the thread that asks for it.
///
/// # Errors
/// A fault when it panics.
pub(crate) fn at_once<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

fn panicked() -> Fault {
    Fault::internal("work on a template", "it panicked")
}

type Work = Box<dyn FnOnce() + Send>;

/// The threads. Cheap to clone; they end with the last clone.
#[derive(Clone)]
pub(crate) struct RenderPool {
    queue: SyncSender<Work>,
    share: usize,
    shares: Cache<OrganizationId, Arc<Semaphore>>,
}

impl RenderPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// A fault when the system gives no thread.
    pub(crate) fn start() -> Result<Self, Fault> {
        let threads = thread::available_parallelism().map_or(THREADS_MIN, usize::from);
        let threads = threads.clamp(THREADS_MIN, THREADS_MAX);
        let (queue, receiver) = sync_channel(WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = Arc::clone(&receiver);
            thread::Builder::new()
                .name("templates".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || work_off(&receiver))
                .map_err(|error| Fault::internal("start a thread for templates", error))?;
        }
        Ok(Self {
            queue,
            share: threads / 2,
            shares: Cache::builder()
                .max_capacity(SHARES_MAX)
                .time_to_idle(SHARE_IDLE)
                .build(),
        })
    }

    /// Does `work` on one of the threads and waits for its result until `deadline`.
    ///
    /// # Errors
    /// A fault when too much waits, when it takes too long, and when it panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        organization_id: OrganizationId,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let share = self
            .shares
            .get_with(organization_id, async {
                Arc::new(Semaphore::new(self.share))
            })
            .await;
        let busy = |why: &'static str| Fault::unavailable("work on a template", why);
        let permit = timeout_at(deadline, share.acquire_owned())
            .await
            .map_err(|_| busy("the organization's share of threads is busy"))?
            .map_err(|_| busy("the process is stopping"))?;
        let (done, result) = oneshot::channel();
        let work: Work = Box::new(move || {
            // The share is held until the work has ended, whoever still waits.
            let _permit = permit;
            let _gone = done.send(work());
        });
        self.queue
            .try_send(work)
            .map_err(|_| busy("too many templates wait"))?;
        let result = timeout_at(deadline, result)
            .await
            .map_err(|_| busy("it took too long"))?;
        result.map_err(|_| panicked())
    }
}

fn work_off(queue: &Mutex<Receiver<Work>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(work) = next else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            error!("Work on a template panicked");
        }
    }
}
