//! Runs the tasks at their intervals. Each task has a loop of its own, so a slow task does not
//! delay the others. A loop runs only while this process is the leader; when leadership is
//! lost, the current run is cancelled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use waypost_core::fault::Fault;
use waypost_core::telemetry::instruments;
use waypost_core::ticks::last_tick;

use crate::task_log::TaskLog;
use crate::tasks::{Task, Tasks, WorkFound};

/// How long one run of a task may take.
const TASK_TIMEOUT: Duration = Duration::from_secs(120);

/// How much longer than its interval a task waits that finds nothing, or little, to do: the wait
/// doubles up to this multiple. Without it an idle installation runs 38 statements a second.
const IDLE_FACTOR_MAX: u32 = 4;
/// The loops count from the same tick, so that those of a group run at the same time.
const START_TICK: Duration = Duration::from_millis(50);

/// The loop of one task. It measures time with the monotonic clock, not with `Clock`.
pub(crate) struct Ticker {
    pub(crate) task: Task,
    /// The interval.
    pub(crate) every: Duration,
    /// The delay between the beginning of leadership and the first run.
    pub(crate) starts_after: Duration,
    /// The delay after a failed run.
    pub(crate) retry_after: Duration,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) task_log: TaskLog,
}

impl Ticker {
    /// Runs the task while `is_leader` is true. Returns when the sender is dropped.
    pub(crate) async fn run(self, is_leader: watch::Receiver<bool>) {
        let this = Arc::new(self);
        while_leader(is_leader, || Arc::clone(&this).run_forever()).await;
    }

    async fn run_forever(self: Arc<Self>) {
        let mut is_failing = false;
        let mut every = self.every;
        let first = last_tick(START_TICK) + self.starts_after;
        let mut next = first;
        loop {
            sleep_until(next).await;
            self.task_log.begin(self.task, every);
            let began = Instant::now();
            let result = self.run_once().await;
            let took = began.elapsed();
            instruments::task_run(self.task.name(), result.is_ok(), took);
            let task = self.task.name();
            every = match result {
                Ok(WorkFound::Nothing) => (every * 2).min(self.every * IDLE_FACTOR_MAX),
                Ok(WorkFound::Work) | Err(_) => self.every,
            };
            next = tick_after(first, every, began);
            self.task_log.end(self.task, every, &result);
            match (&result, is_failing) {
                (Err(fault), false) => {
                    let cause = fault.chain();
                    warn!(task, cause, "A scheduler task fails; it will be retried");
                }
                (Ok(_), true) => info!(task, "A scheduler task works again"),
                (Err(_), true) | (Ok(_), false) => {}
            }
            is_failing = result.is_err();
            if is_failing {
                next = Instant::now() + self.retry_after + self.starts_after;
            }
        }
    }

    /// One run, with a time-out. A panic fails the run and does not end the loop.
    async fn run_once(&self) -> Result<WorkFound, Fault> {
        let (tasks, task) = (Arc::clone(&self.tasks), self.task);
        let mut runs = JoinSet::new();
        runs.spawn(async move { tasks.run(task).await });
        match tokio::time::timeout(TASK_TIMEOUT, runs.join_next()).await {
            Ok(Some(Ok(result))) => result,
            Ok(Some(Err(panicked))) => Err(Fault::internal("finish a task", panicked)),
            Ok(None) => Err(Fault::internal("finish a task", "it was not started")),
            Err(elapsed) => Err(Fault::unavailable("finish a task in time", elapsed)),
        }
    }
}

/// The next tick after `now`. Ticks stay multiples of the interval from the first one, so tasks
/// that a stall delayed to the same moment separate again.
fn tick_after(first: Instant, every: Duration, now: Instant) -> Instant {
    let passed = now.duration_since(first).as_nanos() / every.as_nanos().max(1);
    first + every * u32::try_from(passed + 1).unwrap_or(u32::MAX)
}

/// Runs `work`, which never returns, while `is_leader` is true. Returns when the sender is
/// dropped.
pub(crate) async fn while_leader<F: Future<Output = ()>>(
    mut is_leader: watch::Receiver<bool>,
    work: impl Fn() -> F,
) {
    while is_leader.wait_for(|is_leader| *is_leader).await.is_ok() {
        tokio::select! {
            () = work() => {}
            _ = is_leader.wait_for(|is_leader| !*is_leader) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_tick_does_not_depend_on_when_a_run_began() {
        let first = Instant::now();
        let every = Duration::from_millis(100);
        for (began, next) in [(0, 100), (3, 100), (99, 100), (100, 200), (250, 300)] {
            let began = first + Duration::from_millis(began);
            let next = first + Duration::from_millis(next);
            assert_eq!(tick_after(first, every, began), next);
        }
    }
}
