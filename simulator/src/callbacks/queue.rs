//! What is to be told, by the time at which it is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::call::Call;
use super::lane::{Event, Lane};

/// Something to do at a time.
pub(super) struct Due {
    pub(super) at: Instant,
    /// Decides between two of the same time; the smaller goes first.
    pub(super) tie: u64,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// An event is ripe for its lane.
    Tell(Arc<Lane>, Event),
    /// A call is to be tried again.
    Repeat(Box<Call>),
}

#[derive(Default)]
pub(super) struct Queue {
    heap: Mutex<BinaryHeap<Due>>,
    /// Told when something is due earlier than everything before.
    pub(super) sooner: Notify,
}

impl Queue {
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

    /// Takes what is due, at most `max` of it, and tells when the next is.
    pub(super) fn take_due(&self, now: Instant, max: usize) -> (Vec<Due>, Option<Instant>) {
        let mut heap = self.heap.lock();
        let mut taken = Vec::new();
        while taken.len() < max && heap.peek().is_some_and(|first| first.at <= now) {
            taken.extend(heap.pop());
        }
        (taken, heap.peek().map(|first| first.at))
    }

    /// Forgets everything and tells how many events that were.
    pub(super) fn clear(&self) -> usize {
        let all = std::mem::take(&mut *self.heap.lock());
        all.iter().map(|due| due.work.events()).sum()
    }
}

impl Work {
    fn events(&self) -> usize {
        match self {
            Self::Tell(..) => 1,
            Self::Repeat(call) => call.events(),
        }
    }
}

impl Ord for Due {
    /// The other way round, as the heap gives out the greatest first.
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
