//! Stores the latest run of each task for operators.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::debug;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::fault::Fault;
use waypost_core::task_log::{STORED_EVERY, TaskReport, store};

use crate::tasks::{Task, WorkFound};
use crate::ticker::while_leader;

/// How soon they are stored when a task ran first, began to fail or works again.
const WRITE_CHANGE_AFTER: Duration = Duration::from_secs(1);
/// Length limit of a stored error, in characters.
const ERROR_CHARS_MAX: usize = 300;

/// The latest runs of the tasks in this process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TaskLog {
    leader: Arc<str>,
    runs: Arc<Mutex<Vec<TaskRun>>>,
    /// Notified when a task ran first, began to fail or works again.
    changed: Arc<Notify>,
}

struct TaskRun {
    task: Task,
    every: Duration,
    started_at: Instant,
    finished_at: Option<Instant>,
    succeeded_at: Option<Instant>,
    took: Option<Duration>,
    error: Option<String>,
    is_written: bool,
}

impl TaskLog {
    pub(crate) fn new(leader: String) -> Self {
        Self {
            leader: leader.into(),
            runs: Arc::default(),
            changed: Arc::default(),
        }
    }

    /// Records the beginning of a run.
    pub(crate) fn begin(&self, task: Task, every: Duration) {
        let now = Instant::now();
        let mut runs = self.lock();
        if let Some(run) = runs.iter_mut().find(|run| run.task == task) {
            run.started_at = now;
            run.is_written = false;
            return;
        }
        runs.push(TaskRun {
            task,
            every,
            started_at: now,
            finished_at: None,
            succeeded_at: None,
            took: None,
            error: None,
            is_written: false,
        });
    }

    /// Records the end of a run, and how long after its beginning the next one is due.
    pub(crate) fn end(&self, task: Task, every: Duration, result: &Result<WorkFound, Fault>) {
        let now = Instant::now();
        let mut runs = self.lock();
        let Some(run) = runs.iter_mut().find(|run| run.task == task) else {
            return;
        };
        let has_changed = run.finished_at.is_none() || run.error.is_some() != result.is_err();
        run.every = every;
        run.finished_at = Some(now);
        run.took = Some(now - run.started_at);
        if result.is_ok() {
            run.succeeded_at = Some(now);
        }
        let error = result.as_ref().err();
        run.error = error.map(|fault| fault.chain().chars().take(ERROR_CHARS_MAX).collect());
        run.is_written = false;
        if has_changed {
            self.changed.notify_one();
        }
    }

    /// Stores the runs while `is_leader` is true, and deletes the tasks that this version does
    /// not have. A failure affects nothing else.
    pub(crate) async fn run<const N: usize>(
        self,
        pool: PgPool,
        tasks: [Task; N],
        is_leader: watch::Receiver<bool>,
    ) {
        while_leader(is_leader, || {
            let (log, pool) = (self.clone(), pool.clone());
            async move {
                let mut is_cleaned = false;
                loop {
                    if timeout(STORED_EVERY, log.changed.notified()).await.is_ok() {
                        sleep(WRITE_CHANGE_AFTER).await;
                    }
                    is_cleaned = is_cleaned || delete_others(&pool, &tasks).await.is_ok();
                    if let Err(fault) = log.write(&pool).await {
                        debug!(cause = fault.chain(), "Could not store the runs of tasks");
                    }
                }
            }
        })
        .await;
    }

    /// Stores the runs that changed, with one statement.
    async fn write(&self, pool: &PgPool) -> Result<(), Fault> {
        let reports = self.take_unwritten();
        let writing = async {
            let mut connection = pool.acquire().await.or_fault("store the runs of tasks")?;
            store::record(&mut connection, &self.leader, &reports).await
        };
        let written = db::bounded("store the runs of tasks", writing).await;
        if written.is_err() {
            // The next call stores all runs again.
            self.lock()
                .iter_mut()
                .for_each(|run| run.is_written = false);
        }
        written
    }

    fn take_unwritten(&self) -> Vec<TaskReport> {
        let mut runs = self.lock();
        let unwritten = runs.iter_mut().filter(|run| !run.is_written);
        unwritten
            .map(|run| {
                run.is_written = true;
                TaskReport {
                    name: run.task.name(),
                    every: run.every,
                    started_ago: run.started_at.elapsed(),
                    finished_ago: run.finished_at.map(|at| at.elapsed()),
                    succeeded_ago: run.succeeded_at.map(|at| at.elapsed()),
                    took: run.took,
                    error: run.error.clone(),
                }
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TaskRun>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn delete_others(pool: &PgPool, tasks: &[Task]) -> Result<(), Fault> {
    let names: Vec<&str> = tasks.iter().map(|task| task.name()).collect();
    let mut connection = pool.acquire().await.or_fault("delete obsolete tasks")?;
    store::delete_others(&mut connection, &names).await
}
