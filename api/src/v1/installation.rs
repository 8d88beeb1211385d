//! What belongs to the installation and to no organization: the scheduler's tasks, the workers,
//! the queue and the dead jobs. For users whom the operator made operators. The operator's
//! commands print the same.

use std::sync::Arc;
use std::time::Duration;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::dead_letter::{self, DeadLetter, DeadLetterSelection};
use waypost_core::delivery::lease::{self, ListedWorker};
use waypost_core::ids::MessageId;
use waypost_core::task_log::{self, TaskState};

use crate::context::Context;
use crate::error::Failure;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Success, Time};
use crate::v1::Section;

pub(crate) struct InstallationApi {
    pub(crate) context: Arc<Context>,
}

/// The most dead jobs that are listed.
const DEAD_JOBS_MAX: i64 = 1_000;

/// A task of the scheduler, with its last run.
#[derive(Debug, Object)]
#[oai(rename = "SchedulerTask", rename_all = "camelCase")]
struct TaskView {
    name: String,
    /// How often the task runs, in milliseconds.
    every_ms: u64,
    /// The process that ran the task last.
    leader: String,
    last_started_at: Time,
    last_finished_at: Nullable<Time>,
    last_succeeded_at: Nullable<Time>,
    /// How long the last finished run took, in milliseconds.
    took_ms: Nullable<u64>,
    /// How long ago the last successful run was, less one interval and the ten seconds within
    /// which a run is stored, in milliseconds.
    lag_ms: u64,
    /// Whether the task needs attention.
    is_late: bool,
    /// The error of the last finished run.
    last_error: Nullable<String>,
}

/// A worker that is registered.
#[derive(Debug, Object)]
#[oai(rename = "Worker", rename_all = "camelCase")]
struct WorkerView {
    name: String,
    started_at: Time,
    /// When the leases of the worker end, if it sends no heartbeat.
    leased_until: Time,
    /// Whether the leases of the worker have ended.
    is_dead: bool,
    /// The number of chunks that the worker holds.
    chunks: i64,
}

/// The jobs of a queue in Redis, by their state.
#[derive(Debug, Object)]
#[oai(rename = "JobQueue")]
struct QueueView {
    name: String,
    /// Jobs that no worker has fetched.
    waiting: u64,
    /// Jobs that a worker has fetched and not finished.
    fetched: u64,
    /// Jobs that are due later.
    delayed: u64,
}

/// A chunk of a message that no worker takes any more.
#[derive(Debug, Object)]
#[oai(rename = "DeadJob", rename_all = "camelCase")]
struct DeadJobView {
    message_id: Uuid,
    /// The number of the chunk in its message, from 0.
    chunk: i32,
    organization_id: Uuid,
    /// The number of recipients without a final status.
    recipients: i64,
    /// How many workers were lost while they held the chunk.
    losses: i16,
    dead_since: Time,
    /// Why no worker takes the chunk any more.
    reason: String,
}

/// The dead jobs that are due again.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RetriedDeadJobs {
    message_id: Uuid,
    /// The number of chunks.
    chunks: u32,
}

impl From<TaskState> for TaskView {
    fn from(task: TaskState) -> Self {
        let is_late = task.is_late();
        Self {
            name: task.name,
            every_ms: milliseconds(task.every),
            leader: task.leader,
            last_started_at: Time(task.last_started_at),
            last_finished_at: Nullable(task.last_finished_at.map(Time)),
            last_succeeded_at: Nullable(task.last_succeeded_at.map(Time)),
            took_ms: Nullable(task.took.map(milliseconds)),
            lag_ms: milliseconds(task.lag),
            is_late,
            last_error: Nullable(task.last_error),
        }
    }
}

impl From<ListedWorker> for WorkerView {
    fn from(worker: ListedWorker) -> Self {
        Self {
            name: worker.name,
            started_at: Time(worker.started_at),
            leased_until: Time(worker.leased_until),
            is_dead: worker.is_dead,
            chunks: worker.chunks,
        }
    }
}

impl From<DeadLetter> for DeadJobView {
    fn from(dead: DeadLetter) -> Self {
        Self {
            message_id: dead.job.message_id.0,
            chunk: dead.job.chunk,
            organization_id: dead.job.organization_id.0,
            recipients: dead.recipients,
            losses: dead.losses,
            dead_since: Time(dead.dead_since),
            reason: dead.reason,
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[OpenApi(tag = "Section::Operator")]
impl InstallationApi {
    /// List the scheduler's tasks
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Each task is
    /// listed with its last run.
    #[oai(
        path = "/v1/operator/tasks",
        method = "get",
        operation_id = "list_tasks"
    )]
    async fn list_tasks(
        &self,
        caller: Requires<permission::Operator>,
    ) -> Result<Json<Data<Vec<TaskView>>>, Failure> {
        caller.authorize()?;
        let mut connection = self.context.pool.acquire().await.or_fault("list tasks")?;
        let tasks = task_log::store::list(&mut connection).await?;
        let data = tasks.into_iter().map(TaskView::from).collect();
        Ok(Json(Data { data }))
    }

    /// List the workers
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Each worker is
    /// listed with its lease and the number of its chunks.
    #[oai(
        path = "/v1/operator/workers",
        method = "get",
        operation_id = "list_workers"
    )]
    async fn list_workers(
        &self,
        caller: Requires<permission::Operator>,
    ) -> Result<Json<Data<Vec<WorkerView>>>, Failure> {
        caller.authorize()?;
        let mut connection = self.context.pool.acquire().await.or_fault("list workers")?;
        let workers = lease::list_workers(&mut connection).await?;
        let data = workers.into_iter().map(WorkerView::from).collect();
        Ok(Json(Data { data }))
    }

    /// List the queues
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Returns 503 if
    /// Redis is away.
    #[oai(
        path = "/v1/operator/queues",
        method = "get",
        operation_id = "list_queues"
    )]
    async fn list_queues(
        &self,
        caller: Requires<permission::Operator>,
    ) -> Result<Json<Data<Vec<QueueView>>>, Failure> {
        caller.authorize()?;
        let depth = self.context.queue.depth().await?;
        let queue = QueueView {
            name: "send".to_owned(),
            waiting: depth.waiting,
            fetched: depth.fetched,
            delayed: depth.delayed,
        };
        Ok(Json(Data { data: vec![queue] }))
    }

    /// List the dead jobs
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Lists up to
    /// 1,000 chunks of messages that no worker takes any more.
    #[oai(
        path = "/v1/operator/dead-jobs",
        method = "get",
        operation_id = "list_dead_jobs"
    )]
    async fn list_dead_jobs(
        &self,
        caller: Requires<permission::Operator>,
    ) -> Result<Json<Data<Vec<DeadJobView>>>, Failure> {
        caller.authorize()?;
        let doing = "list dead jobs";
        let mut connection = self.context.pool.acquire().await.or_fault(doing)?;
        let dead = dead_letter::store::list(&mut connection, DEAD_JOBS_MAX).await?;
        let data = dead.into_iter().map(DeadJobView::from).collect();
        Ok(Json(Data { data }))
    }

    /// Retry the dead jobs of a message
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. The jobs are
    /// due again, and lost workers are counted from 0.
    #[oai(
        path = "/v1/operator/dead-jobs/:id/retry",
        method = "post",
        operation_id = "retry_dead_jobs"
    )]
    async fn retry_dead_jobs(
        &self,
        caller: Requires<permission::Operator>,
        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Data<RetriedDeadJobs>>, Failure> {
        caller.authorize()?;
        let message_id: MessageId = id.0.of(DEAD_JOB)?;
        let Context {
            pool,
            sending,
            ids,
            clock,
            ..
        } = &*self.context;
        let doing = "retry dead jobs";
        let mut transaction = db::begin(pool, doing).await?;
        let jobs =
            dead_letter::retry(&mut transaction, of(message_id), sending, ids, clock.now()).await?;
        if jobs.is_empty() {
            return Err(Failure::NotFound(DEAD_JOB));
        }
        transaction.commit().await.or_fault(doing)?;
        let chunks = u32::try_from(jobs.len()).unwrap_or(u32::MAX);
        self.context.dispatcher.push(jobs);
        Ok(Json(Data {
            data: RetriedDeadJobs {
                message_id: message_id.0,
                chunks,
            },
        }))
    }

    /// Drop the dead jobs of a message
    ///
    /// Requires the permission `OPERATOR`, which only sessions of operators have. Recipients that
    /// the message was not sent to become FAILED.
    #[oai(
        path = "/v1/operator/dead-jobs/:id",
        method = "delete",
        operation_id = "delete_dead_jobs"
    )]
    async fn delete_dead_jobs(
        &self,
        caller: Requires<permission::Operator>,
        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        caller.authorize()?;
        let message_id: MessageId = id.0.of(DEAD_JOB)?;
        let Context {
            pool, ids, clock, ..
        } = &*self.context;
        let doing = "drop dead jobs";
        let mut transaction = db::begin(pool, doing).await?;
        let dropped =
            dead_letter::discard(&mut transaction, of(message_id), ids, clock.now()).await?;
        if dropped.is_empty() {
            return Err(Failure::NotFound(DEAD_JOB));
        }
        transaction.commit().await.or_fault(doing)?;
        Ok(Json(Success { success: true }))
    }
}

/// All dead jobs of a message.
fn of(message_id: MessageId) -> DeadLetterSelection {
    DeadLetterSelection::Of {
        message_id,
        chunk: None,
    }
}

const DEAD_JOB: &str = "dead job";
