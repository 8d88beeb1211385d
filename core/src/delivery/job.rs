//! The jobs in Redis. They carry ids only; a worker reads the truth from Postgres when it
//! runs a job, and running one twice is harmless.

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::ids::{MessageId, OrganizationId};
use crate::job_queue::{FairnessKey, Job, Queue, QueueSettings};
use crate::redis::Redis;

/// The name of the queue of [`SendJob`]s.
const SEND_QUEUE: &str = "send";

/// Sends to the due recipients of one chunk of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SendJob {
    #[serde(rename = "m")]
    pub message_id: MessageId,
    /// The index of the chunk.
    #[serde(rename = "c")]
    pub chunk: i32,
    #[serde(rename = "o")]
    pub organization_id: OrganizationId,
}

impl Job for SendJob {
    fn fairness_key(&self) -> FairnessKey {
        FairnessKey(self.organization_id.0)
    }
}

/// The queue of [`SendJob`]s in Redis. Postgres decides when recipients are retried, and which
/// jobs nobody takes any more. The queue itself repeats only jobs that fail before that.
#[must_use]
pub fn send_queue(redis: &Redis, clock: Clock) -> Queue<SendJob> {
    let settings = QueueSettings::default();
    Queue::new(redis, SEND_QUEUE, clock, settings)
}
