//! Jobs: what travels through Redis. Ids only; the truth is read from Postgres
//! when a job runs, and running it twice is harmless.

use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::ids::{MessageId, OrganizationId};
use crate::job_queue::{FairnessKey, Job, Queue, QueueSettings};
use crate::redis::Redis;

/// The name of the queue of [`SendJob`]s.
const SEND_QUEUE: &str = "send";

/// Send to the recipients of one chunk of a message that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SendJob {
    #[serde(rename = "m")]
    pub message_id: MessageId,
    /// Which chunk of its recipients, from 0.
    #[serde(rename = "c")]
    pub chunk: i32,
    #[serde(rename = "o")]
    pub organization_id: OrganizationId,
}

impl Job for SendJob {
    fn lane(&self) -> FairnessKey {
        FairnessKey(self.organization_id.0)
    }
}

/// The queue of [`SendJob`]s in Redis. How a job's recipients are retried is
/// decided in Postgres, so the queue's own bounds only serve jobs that fail
/// before anything could be decided.
#[must_use]
pub fn send_queue(redis: &Redis, clock: Clock) -> Queue<SendJob> {
    let settings = QueueSettings::default();
    Queue::new(
        redis.pool.clone(),
        redis.client.clone(),
        &redis.prefix,
        SEND_QUEUE,
        clock,
        settings,
    )
}
