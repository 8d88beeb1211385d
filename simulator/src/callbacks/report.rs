//! What became of the callbacks: exact counts, and the last calls one by one.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use serde::Serialize;

use crate::providers::Provider;

/// Calls that the log keeps.
const LOG_CALLS_MAX: usize = 1_000;

/// What became of the callbacks so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallbackCounts {
    /// Events that are still to be taken by whom they are for, those to be tried again included.
    pub waiting: usize,
    /// Events there were to tell.
    pub queued: u64,
    /// Calls made, whatever came of them, those made twice on purpose included.
    pub sent: u64,
    /// Events in calls that were taken.
    pub acknowledged: u64,
    /// Calls that were answered with another status, by status.
    pub refused: BTreeMap<u16, u64>,
    pub unanswered: u64,
    /// Calls that were made once more on purpose.
    pub duplicated: u64,
    /// Events that will not be tried again.
    pub given_up: u64,
    /// Events that were not queued, as too many waited already.
    pub overflowed: u64,
}

/// One call that was made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogEntry {
    pub(super) at: String,
    pub(super) provider: Provider,
    pub(super) url: String,
    /// 1 for the first try.
    pub(super) attempt: usize,
    /// How many events of each kind; none for a message of SNS about itself.
    pub(super) events: BTreeMap<&'static str, usize>,
    /// `null` when there was no answer.
    pub(super) status: Option<u16>,
    pub(super) is_duplicate: bool,
}

/// The book that callbacks are kept in.
#[derive(Default)]
pub(super) struct Report(Mutex<Book>);

#[derive(Default)]
struct Book {
    counts: CallbackCounts,
    log: VecDeque<LogEntry>,
}

impl Report {
    pub(super) fn count(&self, change: impl FnOnce(&mut CallbackCounts)) {
        change(&mut self.0.lock().counts);
    }

    pub(super) fn note(&self, entry: LogEntry) {
        let mut book = self.0.lock();
        if book.log.len() >= LOG_CALLS_MAX {
            book.log.pop_front();
        }
        book.log.push_back(entry);
    }

    /// `waiting` is not known here.
    pub(super) fn counts(&self) -> CallbackCounts {
        self.0.lock().counts.clone()
    }

    /// The newest calls, oldest of them first.
    pub(super) fn log(&self, limit: usize) -> Vec<LogEntry> {
        let book = self.0.lock();
        let skipped = book.log.len().saturating_sub(limit);
        book.log.iter().skip(skipped).cloned().collect()
    }

    pub(super) fn clear(&self) {
        *self.0.lock() = Book::default();
    }
}
