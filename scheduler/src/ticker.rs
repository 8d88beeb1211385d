//! The rhythm of the tasks. Each runs by itself, so one that hangs or takes long
//! holds up none of the others; and only while this process leads: what is under way
//! when the lead is lost ends there, as it would with the process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use waypost_core::fault::Fault;

use crate::task_log::TaskLog;
use crate::tasks::{Task, Tasks};

/// How long one run of a task may take.
const TASK_TIMEOUT: Duration = Duration::from_secs(120);

/// A task and its rhythm, which is the process's own time, whatever the clock says.
pub(crate) struct Ticker {
    pub(crate) task: Task,
    pub(crate) every: Duration,
    /// How long after the lead began it runs first.
    pub(crate) starts_after: Duration,
    /// How soon it is tried again when it failed.
    pub(crate) again_after: Duration,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) board: TaskLog,
}

impl Ticker {
    /// Runs the task whenever `leads` says yes. Ends when nobody is left to say so.
    pub(crate) async fn keep(self, leads: watch::Receiver<bool>) {
        let this = Arc::new(self);
        while_leading(leads, || Arc::clone(&this).beat()).await;
    }

    async fn beat(self: Arc<Self>) {
        let mut failing = false;
        let first = Instant::now() + self.starts_after;
        let mut next = first;
        loop {
            sleep_until(next).await;
            next = moment_after(first, self.every, Instant::now());
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
                next = Instant::now() + self.again_after + self.starts_after;
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

/// The next moment of a rhythm. One that passes during a run is made up for at once, and
/// then it goes on with its own: tasks that a stall brought together part again.
fn moment_after(first: Instant, every: Duration, now: Instant) -> Instant {
    let passed = now.duration_since(first).as_nanos() / every.as_nanos().max(1);
    first + every * u32::try_from(passed + 1).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rhythm_keeps_its_own_moments_whenever_a_run_began() {
        let first = Instant::now();
        let every = Duration::from_millis(100);
        for (began, next) in [(0, 100), (3, 100), (99, 100), (100, 200), (250, 300)] {
            let began = first + Duration::from_millis(began);
            let next = first + Duration::from_millis(next);
            assert_eq!(moment_after(first, every, began), next);
        }
    }
}
