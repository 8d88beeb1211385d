//! The leases of this process of which something is left to record.
//!
//! A worker must not lease a chunk again while it is in this list. An outcome record is
//! retried until it is written, even if only the reply to its commit was lost. If the same
//! worker leased the chunk again meanwhile, the retry would end the new lease.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::LeaseRequest;
use waypost_core::ids::{MessageId, WorkerId};

use super::LeasedChunk;

type LeaseKey = (WorkerId, SendJob);

/// The held leases. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct HeldLeases(Arc<Held>);

#[derive(Default)]
struct Held {
    leases: Mutex<HashMap<LeaseKey, HeldLease>>,
    /// Notified when a lease is added.
    added: Notify,
}

struct HeldLease {
    since: Instant,
    /// Whether the message has one recipient.
    is_single: bool,
    /// Whether the status of the message is SENDING.
    is_sending: bool,
}

impl HeldLeases {
    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseKey, HeldLease>> {
        self.0.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves out the requests for chunks that are held. The leases of earlier epochs are
    /// forgotten: the reaper takes them back.
    pub(super) fn exclude(&self, worker: WorkerId, requests: &mut Vec<LeaseRequest>) {
        let mut held = self.lock();
        held.retain(|(holder, _), _| *holder == worker);
        requests.retain(|request| !held.contains_key(&(worker, request.job)));
    }

    /// Adds a lease. False if it is held already.
    pub(super) fn insert(&self, chunk: &LeasedChunk) -> bool {
        let lease = HeldLease {
            since: Instant::now(),
            is_single: chunk.message.recipient_count == 1,
            is_sending: false,
        };
        let before = self.lock().insert((chunk.worker, chunk.job), lease);
        self.0.added.notify_one();
        before.is_none()
    }

    /// Waits until a lease is held. One task waits.
    pub(super) async fn wait_for_any(&self) {
        while self.lock().is_empty() {
            self.0.added.notified().await;
        }
    }

    pub(super) fn release(&self, lease: LeaseKey) {
        self.lock().remove(&lease);
    }

    /// Up to `limit` messages whose chunks are held for at least `age` and which are not
    /// SENDING yet; with each, whether it has one recipient.
    pub(super) fn not_sending(&self, age: Duration, limit: usize) -> Vec<(MessageId, bool)> {
        let held = self.lock();
        let slow = held
            .iter()
            .filter(|(_, lease)| !lease.is_sending && lease.since.elapsed() >= age);
        slow.take(limit)
            .map(|((_, job), lease)| (job.message_id, lease.is_single))
            .collect()
    }

    /// Notes that messages are SENDING.
    pub(super) fn mark_sending(&self, messages: &HashSet<MessageId>) {
        for ((_, job), lease) in self.lock().iter_mut() {
            lease.is_sending |= messages.contains(&job.message_id);
        }
    }
}
