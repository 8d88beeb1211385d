//! Records when keys were last used. A request queues its use and does not wait. A task
//! writes the uses in batches, at most one per key and minute. A use can be lost, because
//! the process died, Postgres was away or another transaction held the key's row; the next
//! use of the key makes up for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::sync::mpsc;
use tracing::debug;

use super::{ApiKey, store};
use crate::clock::Timestamp;
use crate::db::{OrFault, PgPool, bounded};
use crate::fault::Fault;
use crate::ids::{ApiKeyId, OrganizationId};

/// Minimum time between two recorded uses of a key.
pub(super) const RECORD_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// How long the task collects uses before it writes them.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Uses in the queue, and uses in one statement.
const QUEUE_MAX: usize = 10_000;

/// One use of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyUse {
    pub(super) organization_id: OrganizationId,
    pub(super) key_id: ApiKeyId,
    pub(super) at: Timestamp,
}

/// Records the use of keys. Cheap to clone.
#[derive(Clone)]
pub(super) struct Usage {
    recorded: Arc<Mutex<HashMap<ApiKeyId, Timestamp>>>,
    sender: mpsc::Sender<KeyUse>,
}

impl Usage {
    /// Starts the task that writes to `pool`. It ends when the last clone is dropped.
    pub(super) fn start(pool: PgPool) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(run(pool, receiver));
        Self {
            recorded: Arc::default(),
            sender,
        }
    }

    /// Records a use of a key. Does not wait.
    pub(super) fn record(&self, key: &ApiKey, now: Timestamp) {
        if self.is_due(key.id, now) {
            // If the queue is full, the next use in a minute is recorded.
            let _full = self.sender.try_send(KeyUse {
                organization_id: key.organization_id,
                key_id: key.id,
                at: now,
            });
        }
    }

    fn is_due(&self, id: ApiKeyId, now: Timestamp) -> bool {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded
            .get(&id)
            .is_some_and(|at| now < *at + RECORD_INTERVAL)
        {
            return false;
        }
        if recorded.len() >= QUEUE_MAX {
            recorded.retain(|_, at| now < *at + RECORD_INTERVAL);
        }
        recorded.insert(id, now);
        true
    }
}

async fn run(pool: PgPool, mut receiver: mpsc::Receiver<KeyUse>) {
    let mut uses = Vec::new();
    while receiver.recv_many(&mut uses, QUEUE_MAX).await > 0 {
        tokio::time::sleep(BATCH_DELAY).await;
        while let Ok(further) = receiver.try_recv() {
            uses.push(further);
        }
        if let Err(fault) = write(&pool, &uses).await {
            debug!(
                cause = fault.chain(),
                "Could not record the use of API keys"
            );
        }
        uses.clear();
    }
}

async fn write(pool: &PgPool, uses: &[KeyUse]) -> Result<(), Fault> {
    let doing = "record the use of API keys";
    bounded(doing, async {
        let mut connection = pool.acquire().await.or_fault(doing)?;
        store::record_uses(&mut connection, uses).await
    })
    .await
}
