//! The results of callbacks: exact counts, and a log of the last calls.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use serde::Serialize;

use crate::providers::Provider;

/// Calls in the log.
const LOG_CALLS_MAX: usize = 1_000;

/// Counts of the callbacks so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallbackCounts {
    /// Events that no receiver has accepted yet, including those that wait for a retry.
    pub waiting: usize,
    /// Events that were to be reported.
    pub queued: u64,
    /// Calls made, whatever the response, including deliberate duplicates.
    pub sent: u64,
    /// Events in accepted calls.
    pub acknowledged: u64,
    /// Calls with another response, by status.
    pub refused: BTreeMap<u16, u64>,
    pub unanswered: u64,
    /// Calls that were deliberately made twice.
    pub duplicated: u64,
    /// Events that will not be retried.
    pub given_up: u64,
    /// Events that were not queued, because too many were waiting.
    pub overflowed: u64,
}

/// A call that was made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogEntry {
    pub(super) at: String,
    pub(super) provider: Provider,
    pub(super) url: String,
    /// 1 for the first try.
    pub(super) attempt: usize,
    /// The number of events by kind; none for a message of SNS about itself.
    pub(super) events: BTreeMap<&'static str, usize>,
    /// `null` if there was no response.
    pub(super) status: Option<u16>,
    pub(super) is_duplicate: bool,
}

/// The counts and the log.
#[derive(Default)]
pub(super) struct Report(Mutex<Log>);

#[derive(Default)]
struct Log {
    counts: CallbackCounts,
    log: VecDeque<LogEntry>,
}

impl Report {
    pub(super) fn count(&self, change: impl FnOnce(&mut CallbackCounts)) {
        change(&mut self.0.lock().counts);
    }

    pub(super) fn add(&self, entry: LogEntry) {
        let mut book = self.0.lock();
        if book.log.len() >= LOG_CALLS_MAX {
            book.log.pop_front();
        }
        book.log.push_back(entry);
    }

    /// The caller sets `waiting`, which is not known here.
    pub(super) fn counts(&self) -> CallbackCounts {
        self.0.lock().counts.clone()
    }

    /// The newest calls, in ascending order.
    pub(super) fn log(&self, limit: usize) -> Vec<LogEntry> {
        let book = self.0.lock();
        let skipped = book.log.len().saturating_sub(limit);
        book.log.iter().skip(skipped).cloned().collect()
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = Log::default();
    }
}
