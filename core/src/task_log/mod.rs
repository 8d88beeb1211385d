//! The latest run of each scheduler task, for operators. The leading scheduler writes it,
//! the command `waypost-api tasks` shows it. Nothing else reads it.

pub mod store;

use std::time::Duration;

use crate::clock::Timestamp;

/// How often the leader stores the runs. Each second, it was half of what the statements of an
/// idle installation cost.
pub const STORED_EVERY: Duration = Duration::from_secs(10);
/// A task is not late before this lag, however short its interval: another scheduler may be
/// about to take over, which takes up to 15 s.
const LATE_AFTER_MIN: Duration = Duration::from_secs(60);
/// Intervals that a task may miss before it is late.
const INTERVALS_MISSED_MAX: u32 = 10;

/// The leader's report on a task. Times are relative to now, because the clocks of the
/// machines may differ: Postgres computes the stored times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    pub name: &'static str,
    /// The interval of the task.
    pub every: Duration,
    pub started_ago: Duration,
    pub finished_ago: Option<Duration>,
    pub succeeded_ago: Option<Duration>,
    /// Duration of the latest finished run.
    pub took: Option<Duration>,
    /// Error of the latest finished run.
    pub error: Option<String>,
}

/// The stored state of a task.
#[derive(Debug, Clone)]
pub struct TaskState {
    pub name: String,
    /// The interval of the task.
    pub every: Duration,
    /// The process that ran the task last.
    pub leader: String,
    pub last_started_at: Timestamp,
    pub last_finished_at: Option<Timestamp>,
    pub last_succeeded_at: Option<Timestamp>,
    /// Duration of the latest finished run.
    pub took: Option<Duration>,
    /// Error of the latest finished run.
    pub last_error: Option<String>,
    pub started_ago: Duration,
    /// Time since the latest successful run, less one interval and [`STORED_EVERY`], within
    /// which a later run may not be stored yet.
    pub lag: Duration,
}

impl TaskState {
    /// Whether the task needs the operator's attention: by what is stored, its latest success
    /// is later than its interval by more than ten intervals and more than a minute.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let missed_max = self.every.saturating_mul(INTERVALS_MISSED_MAX);
        self.lag + STORED_EVERY > missed_max.max(LATE_AFTER_MIN)
    }
}
