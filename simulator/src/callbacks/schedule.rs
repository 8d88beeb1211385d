//! The scheduled events and retries, by the time at which they are due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::Call;
use super::endpoint::{Endpoint, Event};

/// Work that is due at a time.
pub(super) struct Due {
    pub(super) at: Instant,
    /// Orders entries of the same time; the smaller one goes first.
    pub(super) tie: u64,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// An event that goes to its endpoint.
    Report(Arc<Endpoint>, Event),
    /// A call to retry.
    Retry(Box<Call>),
}

#[derive(Default)]
pub(super) struct Schedule {
    heap: Mutex<BinaryHeap<Due>>,
    /// Notified when an entry is due earlier than all others.
    pub(super) sooner: Notify,
}

impl Schedule {
    pub(super) fn push(&self, all: Vec<Due>) {
        let Some(earliest) = all.iter().map(|due| due.at).min() else {
            return;
        };
        let mut heap = self.heap.lock();
        let is_sooner = heap.peek().is_none_or(|first| earliest < first.at);
        heap.extend(all);
        drop(heap);
        if is_sooner {
            self.sooner.notify_one();
        }
    }

    /// Removes the due entries, at most `max`, and returns the time of the next one.
    pub(super) fn take_due(&self, now: Instant, max: usize) -> (Vec<Due>, Option<Instant>) {
        let mut heap = self.heap.lock();
        let mut taken = Vec::new();
        while taken.len() < max && heap.peek().is_some_and(|first| first.at <= now) {
            taken.extend(heap.pop());
        }
        (taken, heap.peek().map(|first| first.at))
    }

    /// Removes all entries and returns the number of their events.
    pub(super) fn clear(&self) -> usize {
        let all = std::mem::take(&mut *self.heap.lock());
        all.iter().map(|due| due.work.events()).sum()
    }
}

impl Work {
    fn events(&self) -> usize {
        match self {
            Self::Report(..) => 1,
            Self::Retry(call) => call.events(),
        }
    }
}

impl Ord for Due {
    /// Reversed, as the heap pops the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.tie).cmp(&(self.at, self.tie))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}
