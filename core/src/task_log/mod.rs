//! What the scheduler's tasks did last, so that an operator sees whether they keep
//! their rhythm. The leader writes it (`store`), the command `waypost-api tasks`
//! shows it. Nothing goes by it.

pub mod store;

use std::time::Duration;

use crate::clock::Timestamp;

/// A task that lags less than this is not late, however short its rhythm: another
/// scheduler may be about to take over, which takes 15 s at the most.
const LATE_AFTER_MIN: Duration = Duration::from_secs(60);
/// Rhythms that a task may miss before it is late.
const RHYTHMS_MISSED_MAX: u32 = 10;

/// What the leader knows of a task. Spans reach back from now: the clocks of
/// machines may disagree, and the times that are kept are Postgres' own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    pub name: &'static str,
    pub every: Duration,
    /// How long ago the latest run began.
    pub started_ago: Duration,
    /// How long ago the latest run ended, if one did.
    pub finished_ago: Option<Duration>,
    /// How long ago the latest run ended that did what it was to do.
    pub succeeded_ago: Option<Duration>,
    /// How long the latest run that ended took.
    pub took: Option<Duration>,
    /// Why it failed, if it did.
    pub error: Option<String>,
}

/// What is known of a task.
#[derive(Debug, Clone)]
pub struct TaskState {
    pub name: String,
    pub every: Duration,
    /// The process that ran it last.
    pub leader: String,
    /// When the latest run began.
    pub last_started_at: Timestamp,
    /// When the latest run that ended did.
    pub last_finished_at: Option<Timestamp>,
    /// When the latest run ended that did what it was to do.
    pub last_succeeded_at: Option<Timestamp>,
    /// How long the latest run that ended took.
    pub took: Option<Duration>,
    /// Why that one failed, if it did.
    pub last_error: Option<String>,
    /// How long ago the latest run began.
    pub started_ago: Duration,
    /// How much later than by its rhythm it is since it did what it was to do.
    pub lag: Duration,
}

impl TaskState {
    /// Whether somebody should look: it missed ten rhythms, and a minute at least.
    #[must_use]
    pub fn is_late(&self) -> bool {
        let rhythms = self.every.saturating_mul(RHYTHMS_MISSED_MAX);
        self.lag > rhythms.max(LATE_AFTER_MIN)
    }
}
