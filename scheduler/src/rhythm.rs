//! The rhythm of the tasks. Each runs by itself, so one that hangs or takes long
//! holds up none of the others; and only while this process leads: what is under way
//! when the lead is lost ends there, as it would with the process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::{info, warn};
use waypost_core::fault::Fault;

use crate::board::Board;
use crate::tasks::{Task, Tasks};

/// How long one run of a task may take.
const TASK_TIMEOUT: Duration = Duration::from_secs(120);

/// A task and its rhythm, which is the process's own time, whatever the clock says.
pub(crate) struct Rhythm {
    pub(crate) task: Task,
    pub(crate) every: Duration,
    /// How long after the lead began it runs first.
    pub(crate) starts_after: Duration,
    /// How soon it is tried again when it failed.
    pub(crate) again_after: Duration,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) board: Board,
}

impl Rhythm {
    /// Runs the task whenever `leads` says yes. Ends when nobody is left to say so.
    pub(crate) async fn keep(self, leads: watch::Receiver<bool>) {
        let this = Arc::new(self);
        while_leading(leads, || Arc::clone(&this).beat()).await;
    }

    async fn beat(self: Arc<Self>) {
        let mut failing = false;
        let mut ticks = interval_at(Instant::now() + self.starts_after, self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.board.begin(self.task, self.every);
            let result = self.run().await;
            self.board.end(self.task, &result);
            let task = self.task.name();
            match (&result, failing) {
                (Err(fault), false) => {
                    let cause = fault.chain();
                    warn!(task, cause, "A task fails and will be tried again");
                }
                (Ok(()), true) => info!(task, "A task works again"),
                (Err(_), true) | (Ok(()), false) => {}
            }
            failing = result.is_err();
            if failing {
                ticks.reset_after(self.again_after);
            }
        }
    }

    /// One run, bounded. A panic costs the run, not the task.
    async fn run(&self) -> Result<(), Fault> {
        let (tasks, task) = (Arc::clone(&self.tasks), self.task);
        let mut runs = JoinSet::new();
        runs.spawn(async move { tasks.run(task).await });
        match tokio::time::timeout(TASK_TIMEOUT, runs.join_next()).await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(panicked))) => Err(Fault::internal("end a task", panicked)),
            Ok(None) => Err(Fault::internal("end a task", "it was not begun")),
            Err(elapsed) => Err(Fault::unavailable("end a task in time", elapsed)),
        }
    }
}

/// Does `work`, which never ends, whenever `leads` says yes. Ends when nobody is left
/// to say so.
pub(crate) async fn while_leading<F: Future<Output = ()>>(
    mut leads: watch::Receiver<bool>,
    work: impl Fn() -> F,
) {
    while leads.wait_for(|leads| *leads).await.is_ok() {
        tokio::select! {
            () = work() => {}
            _ = leads.wait_for(|leads| !*leads) => {}
        }
    }
}
