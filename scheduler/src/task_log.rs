//! What each task did last, for the table that operators look at.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;
use waypost_core::db::{self, OrFault, PgPool};
use waypost_core::fault::Fault;
use waypost_core::task_log::{TaskReport, store};

use crate::tasks::Task;
use crate::ticker::while_leading;

/// How often it is written down what tasks did.
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Characters of an error that are kept.
const ERROR_CHARS_MAX: usize = 300;

/// The notes of one process. Cheap to clone.
#[derive(Clone)]
pub(crate) struct TaskLog {
    leader: Arc<str>,
    notes: Arc<Mutex<Vec<TaskRun>>>,
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
            notes: Arc::default(),
        }
    }

    /// A run begins.
    pub(crate) fn begin(&self, task: Task, every: Duration) {
        let now = Instant::now();
        let mut notes = self.lock();
        if let Some(note) = notes.iter_mut().find(|note| note.task == task) {
            note.started_at = now;
            note.is_written = false;
            return;
        }
        notes.push(TaskRun {
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

    /// It ended.
    pub(crate) fn end(&self, task: Task, result: &Result<(), Fault>) {
        let now = Instant::now();
        let mut notes = self.lock();
        let Some(note) = notes.iter_mut().find(|note| note.task == task) else {
            return;
        };
        note.finished_at = Some(now);
        note.took = Some(now - note.started_at);
        if result.is_ok() {
            note.succeeded_at = Some(now);
        }
        let error = result.as_ref().err();
        note.error = error.map(|fault| fault.chain().chars().take(ERROR_CHARS_MAX).collect());
        note.is_written = false;
    }

    /// Writes down what the tasks did whenever `leads` says yes, and forgets those
    /// that this version does not have. Where that fails nothing else does.
    pub(crate) async fn keep<const N: usize>(
        self,
        pool: PgPool,
        tasks: [Task; N],
        leads: watch::Receiver<bool>,
    ) {
        while_leading(leads, || {
            let (board, pool) = (self.clone(), pool.clone());
            async move {
                let mut is_tidy = false;
                let mut ticks = interval(WRITE_EVERY);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
                loop {
                    ticks.tick().await;
                    is_tidy = is_tidy || tidy(&pool, &tasks).await.is_ok();
                    if let Err(fault) = board.write(&pool).await {
                        debug!(cause = fault.chain(), "What tasks did is written later");
                    }
                }
            }
        })
        .await;
    }

    /// Writes what happened since the last time, with one statement.
    async fn write(&self, pool: &PgPool) -> Result<(), Fault> {
        let reports = self.take_news();
        let writing = async {
            let mut connection = pool.acquire().await.or_fault("record what tasks did")?;
            store::record(&mut connection, &self.leader, &reports).await
        };
        let written = db::bounded("record what tasks did", writing).await;
        if written.is_err() {
            // Said again the next time, as it is then.
            self.lock()
                .iter_mut()
                .for_each(|note| note.is_written = false);
        }
        written
    }

    fn take_news(&self) -> Vec<TaskReport> {
        let mut notes = self.lock();
        let news = notes.iter_mut().filter(|note| !note.is_written);
        news.map(|note| {
            note.is_written = true;
            TaskReport {
                name: note.task.name(),
                every: note.every,
                started_ago: note.started_at.elapsed(),
                finished_ago: note.finished_at.map(|at| at.elapsed()),
                succeeded_ago: note.succeeded_at.map(|at| at.elapsed()),
                took: note.took,
                error: note.error.clone(),
            }
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<TaskRun>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn tidy(pool: &PgPool, tasks: &[Task]) -> Result<(), Fault> {
    let names: Vec<&str> = tasks.iter().map(|task| task.name()).collect();
    let mut connection = pool.acquire().await.or_fault("forget tasks")?;
    store::delete_others(&mut connection, &names).await
}
