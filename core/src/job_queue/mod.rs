//! The job queue: apalis' `Backend` over Redis Streams.
//!
//! - A [`Queue`] is the producing side and the place to inspect: push, push for later,
//!   depth, the oldest waiting job.
//! - A [`StreamBackend`] is the consuming side that an apalis worker polls. Three tasks serve
//!   it, each with its own connection: the *fetcher* (reads new jobs and takes over those of
//!   dead consumers), the *acknowledger*, and *maintenance* (leases, delayed jobs, dead
//!   consumers, whether Redis takes pushes).
//! - `in_flight` holds the jobs that were fetched and are not acknowledged.
//! - The [`AckLayer`] around the handler reports how each job ended.
//!
//! In Redis (6.2 or later) a queue is a stream with one consumer group, whose pending list
//! is the lease; a sorted set of delayed jobs; and the keys of `fairness.rs`. All keys share
//! a hash tag.
//!
//! Every job has a *fairness key*, its organization. The stream contains a limited number of
//! jobs of each key, and a scheduler distributes the slots of the worker between keys
//! (`fair_scheduler.rs`). So neither a backlog of one key nor its jobs that hang delay the
//! jobs of another.
//!
//! What it guarantees: a job is acknowledged only after it ended, and a job whose consumer
//! died runs again within about a lease. A lease lasts as long as its process lives, however
//! long the job runs. No error of Redis and no job that cannot be decoded ends the worker: it
//! reconnects and continues with what Redis then contains. An idle worker starts a job as
//! soon as it is pushed.
//!
//! The relay could push what is due from the outbox; the delayed set stays because it needs no
//! leader: a retry begins within half a second of its time even while another scheduler takes
//! the lead (up to 15 s) or none runs.
//!
//! What it does not do: Redis may lose or repeat a job. Postgres is the truth, jobs carry
//! ids and are harmless to repeat, and a relay pushes lost ones again. The queue gives up no
//! job: Postgres counts the losses of each chunk and ends its jobs
//! ([`dead_letter`](crate::delivery::dead_letter)). An entry that is not a job is logged and
//! deleted. There are no results and no priorities, and the order of jobs is approximate even
//! within a key. Leases, time-outs and ticks are real time and not
//! [`Clock`](crate::clock::Clock) time, because Redis measures leases itself.

mod ack;
mod connection;
mod fair_scheduler;
mod fairness;
mod fetch;
mod in_flight;
mod maintenance;
mod producer;
mod scripts;
mod store;

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::error::BoxDynError;
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::context::WorkerContext;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tower::{Layer, Service};
use uuid::Uuid;

use crate::fault::error_chain;
use in_flight::{Consumer, EntryId, Fetched};
pub use store::{Depth, Queue, QueueWait};

/// What can travel in a queue: small, cloneable, and readable as JSON.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + Clone + Unpin + 'static {
    /// The key between whose values the queue is fair.
    fn fairness_key(&self) -> FairnessKey;
}

/// A queue serves all fairness keys equally, whatever waits for each. The key of a
/// [`SendJob`](crate::delivery::job::SendJob) is its organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FairnessKey(pub Uuid);

impl fmt::Display for FairnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many jobs a worker takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// How many jobs it runs at the same time, besides those that freed their slots: together
    /// with `finishing_max`, its concurrency in apalis.
    pub slots: usize,
    /// How many jobs it may have in flight: running, ready to start, or being acknowledged.
    /// Jobs whose key has its share of the slots do not count, nor those that freed their
    /// slots.
    pub in_flight_max: usize,
    /// How many jobs may have freed their slots and not be acknowledged. If there are as many,
    /// no further job starts.
    pub finishing_max: usize,
}

/// The slot of a running job. Its handler may free it before it ends, once little is left to
/// do: another job starts then. Cheap to clone.
#[derive(Debug)]
pub struct JobSlot<J> {
    consumer: Arc<Consumer<J>>,
    id: EntryId,
}

impl<J> Clone for JobSlot<J> {
    fn clone(&self) -> Self {
        Self {
            consumer: Arc::clone(&self.consumer),
            id: self.id,
        }
    }
}

impl<J> JobSlot<J> {
    /// Frees the slot, if it is not free.
    pub fn free(&self) {
        self.consumer.in_flight.finish(self.id);
    }
}

/// How a job ends. An error or a panic of the handler is logged, and the job runs again after
/// [`QueueSettings::retry_failed_after`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// It is done, or there was nothing left to do.
    Done,
    /// It cannot run yet: run it again after this wait.
    Snooze(Duration),
}

/// The settings of a queue. All its workers should have the same.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// How long a consumer keeps a job without renewing its lease.
    pub lease: Duration,
    /// The most jobs in one read.
    pub batch_max: usize,
    /// The longest wait of one blocking read.
    pub block: Duration,
    /// How long Redis may take to connect or to answer, besides the time of a blocking read.
    pub answer_within: Duration,
    /// How often due delayed jobs are moved to the stream.
    pub promote_every: Duration,
    /// The most delayed jobs that one call moves.
    pub promote_max: usize,
    /// After how long a job runs again whose handler failed.
    pub retry_failed_after: Duration,
    /// The most jobs of one fairness key in the stream, fetched ones included. It limits how
    /// many jobs of another key a new job waits for, and how many jobs of a key all workers
    /// together can run.
    pub quota: usize,
    /// How often the counts of fairness keys are repaired, by one of all consumers.
    pub repair_every: Duration,
    /// The idle time after which a consumer without jobs is removed.
    pub consumer_idle_max: Duration,
    /// How long closing may take after the last job has ended.
    pub close_within: Duration,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(60),
            batch_max: 100,
            block: Duration::from_secs(2),
            answer_within: Duration::from_secs(2),
            promote_every: Duration::from_millis(500),
            promote_max: 500,
            retry_failed_after: Duration::from_secs(5),
            quota: 512,
            repair_every: Duration::from_secs(10),
            consumer_idle_max: Duration::from_secs(3_600),
            close_within: Duration::from_secs(5),
        }
    }
}

/// The consuming side of a queue, for one apalis worker; [`Queue::backend`] makes it. It
/// starts to read when it is first polled, and stops at once when it is dropped.
#[derive(Debug)]
#[must_use = "a backend does nothing unless a worker polls it"]
pub struct StreamBackend<J> {
    consumer: Arc<Consumer<J>>,
    tasks: JoinSet<()>,
    closing: Option<Closing>,
}

struct Closing(BoxFuture<'static, ()>);

impl std::fmt::Debug for Closing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Closing")
    }
}

impl<J: Job> StreamBackend<J> {
    fn new(consumer: Consumer<J>) -> Self {
        Self {
            consumer: Arc::new(consumer),
            tasks: JoinSet::new(),
            closing: None,
        }
    }

    fn start(&mut self, worker: &WorkerContext) {
        if !self.tasks.is_empty() || self.closing.is_some() {
            return;
        }
        let consumer = &self.consumer;
        let fetcher = Arc::clone(consumer);
        self.tasks.spawn(restart_on_panic("fetcher", move || {
            fetch::run(Arc::clone(&fetcher))
        }));
        let acknowledger = Arc::clone(consumer);
        self.tasks.spawn(restart_on_panic("acknowledger", move || {
            ack::run(Arc::clone(&acknowledger))
        }));
        let maintenance = Arc::clone(consumer);
        let worker = worker.clone();
        self.tasks
            .spawn(restart_on_panic("maintenance task", move || {
                let worker = worker.clone();
                // apalis waits for running jobs before it closes a backend. Maintenance checks
                // for a shutdown itself, so that jobs that were not started go back at once.
                maintenance::run(Arc::clone(&maintenance), move || worker.is_shutting_down())
            }));
    }
}

impl<J: Job> Backend for StreamBackend<J> {
    type Task = Task<J>;
    /// Every error of Redis is handled here: for apalis an error ends the worker.
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        _: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        self.start(worker);
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Task<J>, Infallible>>> {
        self.consumer.in_flight.poll_next(cx).map(|fetched| {
            let Fetched { id, job } = fetched;
            let slot = JobSlot {
                consumer: Arc::clone(&self.consumer),
                id,
            };
            let task = TaskBuilder::new(job).data(slot);
            let task = task.task_id(TaskId::from_string(id.to_string()));
            Some(Ok(task.build()))
        })
    }

    fn poll_close(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        let consumer = &self.consumer;
        let idle = self.tasks.is_empty();
        let closing = self.closing.get_or_insert_with(|| {
            let consumer = Arc::clone(consumer);
            Closing(Box::pin(async move {
                if !idle {
                    consumer.close().await;
                }
            }))
        });
        closing.0.poll_unpin(cx).map(|()| {
            self.tasks.abort_all();
            Ok(())
        })
    }
}

impl<J: Job> BackendConfig for StreamBackend<J> {
    type Args = J;
    type Id = String;
    type Kind = Ephemeral;
    type Config = QueueSettings;
    type Layer = AckLayer<J>;

    fn config(&self) -> &QueueSettings {
        self.consumer.queue.settings()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> AckLayer<J> {
        AckLayer {
            consumer: Arc::clone(&self.consumer),
        }
    }
}

/// Reports to the queue how each job ended. apalis puts it around the worker's own layers.
#[derive(Debug)]
pub struct AckLayer<J> {
    consumer: Arc<Consumer<J>>,
}

impl<J> Clone for AckLayer<J> {
    fn clone(&self) -> Self {
        Self {
            consumer: Arc::clone(&self.consumer),
        }
    }
}

impl<S, J> Layer<S> for AckLayer<J> {
    type Service = AckService<S, J>;

    fn layer(&self, inner: S) -> AckService<S, J> {
        AckService {
            inner,
            consumer: Arc::clone(&self.consumer),
        }
    }
}

/// The handler with its acknowledgement, made by [`AckLayer`]. It never fails: the queue
/// handles and logs the end of the job.
#[derive(Debug)]
pub struct AckService<S, J> {
    inner: S,
    consumer: Arc<Consumer<J>>,
}

impl<S, J> Service<Task<J>> for AckService<S, J>
where
    J: Job,
    S: Service<Task<J>, Response = JobEnd>,
    S::Error: Into<BoxDynError>,
    S::Future: Send + 'static,
{
    type Response = ();
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<(), BoxDynError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, task: Task<J>) -> Self::Future {
        let id = task
            .ctx()
            .task_id()
            .and_then(TaskId::as_string)
            .and_then(EntryId::parse);
        let running = id.map(|id| RunningJob {
            consumer: Arc::clone(&self.consumer),
            id,
            has_ended: false,
        });
        // A handler may panic before it returns its future, or in it. A panic in the worker
        // would end it together with all running jobs.
        let run = catch_unwind(AssertUnwindSafe(|| self.inner.call(task)));
        Box::pin(async move {
            let result = match run {
                Ok(run) => AssertUnwindSafe(run).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            if let Some(running) = running {
                running.end(match result {
                    Ok(Ok(end)) => Ok(end),
                    Ok(Err(error)) => Err(error_chain(error.into().as_ref())),
                    Err(panic) => Err(panic_message(panic.as_ref())),
                });
            }
            Ok(())
        })
    }
}

/// A started job. If it is dropped without an end, because its worker was aborted, its lease
/// is not renewed any more, and another consumer takes the job over.
struct RunningJob<J> {
    consumer: Arc<Consumer<J>>,
    id: EntryId,
    has_ended: bool,
}

impl<J> RunningJob<J> {
    fn end(mut self, result: Result<JobEnd, String>) {
        self.has_ended = true;
        self.consumer.end(self.id, result);
    }
}

impl<J> Drop for RunningJob<J> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.consumer.in_flight.release(&[self.id]);
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = message.map(crate::telemetry::unquoted);
    format!("panicked: {}", message.unwrap_or("without a message"))
}

/// Runs a task of a backend, and again after a panic: a bug in one task must not leave a
/// worker that looks healthy and gets no jobs.
async fn restart_on_panic<F: Future<Output = ()>>(name: &'static str, run: impl Fn() -> F) {
    const PAUSE: Duration = Duration::from_secs(1);
    while AssertUnwindSafe(run()).catch_unwind().await.is_err() {
        tracing::error!("The queue's {name} panicked and is started again");
        tokio::time::sleep(PAUSE).await;
    }
}
