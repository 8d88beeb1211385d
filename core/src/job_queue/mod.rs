//! The queue: apalis' `Backend` over Redis Streams.
//!
//! Its characters:
//! - a [`Queue`] is the producing side and the place to look in: push, push for
//!   later, depth, the oldest waiting job, the dead ones;
//! - a [`StreamBackend`] is the consuming side that an apalis worker polls. Four
//!   tasks serve it, each with a connection of its own: the *fetcher* (reads,
//!   blocking, and takes over), the *acknowledger*, the *keeper* (leases,
//!   delayed jobs, dead consumers) and the *prober* (whether Redis takes pushes);
//! - the *desk* between them holds what was fetched and is not acknowledged;
//! - the [`AckLayer`] around the handler tells the desk how each job ended.
//!
//! In Redis (6.2 or later) a queue is a stream with one consumer group, whose
//! pending list is the lease; a sorted set of delayed jobs; a list of dead ones; and
//! what keeps the lanes apart (`lanes.rs`). All keys share a hash tag.
//!
//! Every job belongs to a *lane*, its organization's. The stream takes a window of
//! each lane's jobs, and the desk shares out the worker's slots among lanes
//! (`shares.rs`): neither a lane's backlog nor its hanging jobs hold up another's.
//!
//! What it promises: a job is acknowledged only after it ended, and a job whose
//! worker died runs again within about a lease. A lease lasts as long as its
//! process lives, however long the job. No error of Redis, and no job that cannot
//! be decoded, ends the worker; it reconnects and carries on with whatever Redis
//! then holds. An idle worker starts a job as soon as it is pushed.
//!
//! What it deliberately does not do: guarantee anything. Redis may lose or repeat
//! a job; Postgres is the truth, jobs carry ids and are harmless to repeat, and a
//! relay pushes again what was lost. It keeps no results, knows no priorities, and
//! keeps order only roughly, within a lane. Leases, time-outs and ticks are real time and not
//! [`Clock`](crate::clock::Clock) time: Redis measures leases itself.

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
mod write_probe;

use std::any::Any;
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
pub use store::{DeadJob, Depth, Queue, QueueWait};

/// What can travel in a queue: small, cloneable, and readable as JSON.
pub trait Job: Serialize + DeserializeOwned + Send + Sync + Clone + Unpin + 'static {
    /// Whose it is. Lanes are served alike, whatever waits in each.
    fn lane(&self) -> FairnessKey;
}

/// Those among whom a queue is fair: for a [`SendJob`](crate::delivery::job::SendJob) the
/// organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FairnessKey(pub Uuid);

impl fmt::Display for FairnessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How much a worker takes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// How many jobs it runs at once: its concurrency in apalis.
    pub slots: usize,
    /// How many jobs it may hold at once: those that run, and some more that are ready
    /// to start or being acknowledged. Jobs of a lane that has its share do not count.
    pub room: usize,
}

/// How a job ends. A handler that returns an error, or panics, ends in
/// [`JobEnd::Retry`] after the queue's own backoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// It did what it was for, or found nothing left to do.
    Done,
    /// Not its fault and not yet its time: again after this long. Costs no attempt.
    Snooze(Duration),
    /// It failed: again after this long, unless that was its last attempt.
    Retry {
        after: Duration,
        /// What failed, for the dead list and the log.
        reason: String,
    },
    /// It failed for good: to the dead list.
    Dead { reason: String },
}

/// The measures of a queue. All workers of one queue should agree on them.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// How long a job stays with a worker that gives no sign of life.
    pub lease: Duration,
    /// The most jobs read in one call.
    pub batch_max: usize,
    /// The longest wait of one blocking read.
    pub block: Duration,
    /// How long Redis may take to connect or to answer (blocking time excluded).
    pub answer_within: Duration,
    /// How often due delayed jobs are moved to the stream.
    pub promote_every: Duration,
    /// The most delayed jobs moved by one call.
    pub promote_max: usize,
    /// How often a job may be handed out without an end before it counts as dead.
    pub deliveries_max: u32,
    /// How often a job may end in [`JobEnd::Retry`] before it counts as dead.
    pub attempts_max: u32,
    /// The wait after a handler's first error; it doubles with every further one.
    pub retry_first: Duration,
    /// The longest wait after a handler's error.
    pub retry_longest: Duration,
    /// How many dead jobs are kept; the oldest go first.
    pub dead_max: usize,
    /// The most jobs of one lane in the stream, fetched ones included. It bounds what a
    /// stranger waits behind, and how many jobs of a lane all workers together can run.
    pub window: usize,
    /// How often the counts of lanes are mended, over all consumers.
    pub mend_every: Duration,
    /// After how long without a sign of life an empty-handed consumer is removed.
    pub consumer_idle_max: Duration,
    /// How long closing may take, after the last job has ended.
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
            deliveries_max: 5,
            attempts_max: 25,
            retry_first: Duration::from_secs(1),
            retry_longest: Duration::from_secs(300),
            dead_max: 10_000,
            window: 512,
            mend_every: Duration::from_secs(10),
            consumer_idle_max: Duration::from_secs(3_600),
            close_within: Duration::from_secs(5),
        }
    }
}

/// The consuming side of a queue, for one apalis worker. Made by
/// [`Queue::backend`]; begins to read when it is first polled, and stops dead
/// when it is dropped.
#[derive(Debug)]
#[must_use = "a backend does nothing unless a worker polls it"]
pub struct StreamBackend<J> {
    consumer: Arc<Consumer<J>>,
    tasks: JoinSet<()>,
    closing: Option<Closing>,
}

/// Never made: [`StreamBackend`] survives every error of Redis by itself, so
/// apalis, which would end the worker, is never told of one.
#[derive(Debug, thiserror::Error)]
pub enum Never {}

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
        self.tasks
            .spawn(upheld("fetcher", move || fetch::run(Arc::clone(&fetcher))));
        let acknowledger = Arc::clone(consumer);
        self.tasks.spawn(upheld("acknowledger", move || {
            ack::run(Arc::clone(&acknowledger))
        }));
        let prober = Arc::clone(consumer);
        self.tasks.spawn(upheld("prober", move || {
            write_probe::run(Arc::clone(&prober))
        }));
        let keeper = Arc::clone(consumer);
        let worker = worker.clone();
        self.tasks.spawn(upheld("keeper", move || {
            let worker = worker.clone();
            // apalis waits for running jobs before it closes a backend. The keeper
            // asks instead, so that unstarted jobs go back at once.
            maintenance::run(Arc::clone(&keeper), move || worker.is_shutting_down())
        }));
    }
}

impl<J: Job> Backend for StreamBackend<J> {
    type Task = Task<J>;
    type Error = Never;

    fn poll_ready(
        &mut self,
        _: &mut Context<'_>,
        worker: &WorkerContext,
    ) -> Poll<Result<(), Never>> {
        self.start(worker);
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Task<J>, Never>>> {
        self.consumer.desk.poll_take(cx).map(|fetched| {
            let Fetched { id, job, attempts } = fetched;
            let task = TaskBuilder::new(job)
                .task_id(TaskId::from_string(id.to_string()))
                .attempt(usize::try_from(attempts).unwrap_or(usize::MAX));
            Some(Ok(task.build()))
        })
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Never>> {
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

/// Tells the queue how each job ended. apalis puts it around the worker's own
/// layers; nobody needs to add it.
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

/// The handler with its acknowledgement, made by [`AckLayer`]. It never fails:
/// what became of the job is the queue's business, and logged there.
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
        let ticket = id.map(|id| Ticket {
            consumer: Arc::clone(&self.consumer),
            id,
            ended: false,
        });
        // A handler may panic before it is a future, or as one. Neither may reach
        // the worker, which would end and take all other running jobs with it.
        let run = catch_unwind(AssertUnwindSafe(|| self.inner.call(task)));
        Box::pin(async move {
            let result = match run {
                Ok(run) => AssertUnwindSafe(run).catch_unwind().await,
                Err(panic) => Err(panic),
            };
            if let Some(ticket) = ticket {
                ticket.end(match result {
                    Ok(Ok(end)) => Ok(end),
                    Ok(Err(error)) => Err(error_chain(error.into().as_ref())),
                    Err(panic) => Err(panic_message(panic.as_ref())),
                });
            }
            Ok(())
        })
    }
}

/// A started job. Dropped without an end (its worker was torn down), the job is
/// let go: nobody renews its lease, so another worker takes it over.
struct Ticket<J> {
    consumer: Arc<Consumer<J>>,
    id: EntryId,
    ended: bool,
}

impl<J> Ticket<J> {
    fn end(mut self, result: Result<JobEnd, String>) {
        self.ended = true;
        self.consumer.end(self.id, result);
    }
}

impl<J> Drop for Ticket<J> {
    fn drop(&mut self) {
        if !self.ended {
            self.consumer.desk.let_go(&[self.id]);
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let said = said.map(crate::telemetry::unquoted);
    format!("panicked: {}", said.unwrap_or("without a word"))
}

/// Runs a task of a backend to its end, again if it panics: a bug in one of them
/// must not leave a worker that looks alive and gets no jobs.
async fn upheld<F: Future<Output = ()>>(name: &'static str, run: impl Fn() -> F) {
    const PAUSE: Duration = Duration::from_secs(1);
    while AssertUnwindSafe(run()).catch_unwind().await.is_err() {
        tracing::error!("The queue's {name} panicked and starts again");
        tokio::time::sleep(PAUSE).await;
    }
}
