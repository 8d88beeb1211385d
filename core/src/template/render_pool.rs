//! Threads for parsing and rendering untrusted templates. They have a large stack, because a
//! stack overflow ends the process and cannot be caught. They do not serve requests. An
//! organization uses at most half of them, so that its slow templates do not block others.

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

/// The stack size of a thread. With the limits of `source`, `mjml` and `schema` every parser
/// needs much less. Unused stack takes no memory.
pub(crate) const STACK_BYTES: usize = 32 << 20;
const THREADS_MIN: usize = 2;
const THREADS_MAX: usize = 8;
/// Tasks that may wait for a thread.
const WAITING_MAX: usize = 1_024;
/// Organizations whose semaphore is cached, and how long it stays without use.
const SEMAPHORES_MAX: u64 = 100_000;
const SEMAPHORE_IDLE: Duration = Duration::from_secs(60);

/// Runs cheap work on the calling thread.
///
/// # Errors
/// A fault if the work panics.
pub(crate) fn run_inline<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| panicked())
}

fn panicked() -> Fault {
    Fault::internal("render a template", "it panicked")
}

type RenderTask = Box<dyn FnOnce() + Send>;

/// The pool. Cheap to clone; the threads end with the last clone.
#[derive(Clone)]
pub(crate) struct RenderPool {
    queue: SyncSender<RenderTask>,
    threads_per_organization: usize,
    semaphores: Cache<OrganizationId, Arc<Semaphore>>,
}

impl RenderPool {
    /// Starts the threads.
    ///
    /// # Errors
    /// A fault if a thread cannot be started.
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
                .spawn(move || run_worker(&receiver))
                .map_err(|error| Fault::internal("start a thread for templates", error))?;
        }
        Ok(Self {
            queue,
            threads_per_organization: threads / 2,
            semaphores: Cache::builder()
                .max_capacity(SEMAPHORES_MAX)
                .time_to_idle(SEMAPHORE_IDLE)
                .build(),
        })
    }

    /// Runs `work` on one of the threads and waits for its result until `deadline`.
    ///
    /// # Errors
    /// A fault if too many tasks wait, the deadline passes, or the work panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        organization_id: OrganizationId,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let semaphore = self
            .semaphores
            .get_with(organization_id, async {
                Arc::new(Semaphore::new(self.threads_per_organization))
            })
            .await;
        let busy = |why: &'static str| Fault::unavailable("render a template", why);
        let permit = timeout_at(deadline, semaphore.acquire_owned())
            .await
            .map_err(|_| busy("all threads that the organization may use are busy"))?
            .map_err(|_| busy("the process is shutting down"))?;
        let (done, result) = oneshot::channel();
        let task: RenderTask = Box::new(move || {
            // The task holds the permit until its end, even after the caller's deadline.
            let _permit = permit;
            let _gone = done.send(work());
        });
        self.queue
            .try_send(task)
            .map_err(|_| busy("too many templates wait"))?;
        let result = timeout_at(deadline, result)
            .await
            .map_err(|_| busy("it took too long"))?;
        result.map_err(|_| panicked())
    }
}

fn run_worker(queue: &Mutex<Receiver<RenderTask>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = next else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(task)).is_err() {
            error!("Rendering a template panicked");
        }
    }
}
