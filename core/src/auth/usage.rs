//! When keys were last used. Requests leave a note and go on; the notes are
//! written a little later, many at once, and one a minute for each key at the
//! most. A note that is lost, because the process died, Postgres was away or somebody
//! held the key's row, is made up for by the next use of the key.

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

/// A use sooner than this after the noted one is not noted.
pub(super) const NOTE_EVERY: TimeDelta = TimeDelta::minutes(1);
/// How long notes are gathered before they are written.
const GATHER: Duration = Duration::from_secs(1);
/// Notes that may wait, and notes written at once.
const WAITING_MAX: usize = 10_000;

/// One use of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) organization_id: OrganizationId,
    pub(super) key_id: ApiKeyId,
    pub(super) at: Timestamp,
}

/// Takes notes of the use of keys. Cheap to clone.
#[derive(Clone)]
pub(super) struct Usage {
    noted: Arc<Mutex<HashMap<ApiKeyId, Timestamp>>>,
    sender: mpsc::Sender<Use>,
}

impl Usage {
    /// Starts writing to `pool`. Ends when the last clone is gone.
    pub(super) fn start(pool: PgPool) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        tokio::spawn(run(pool, receiver));
        Self {
            noted: Arc::default(),
            sender,
        }
    }

    /// Notes that a key is used. Never waits.
    pub(super) fn note(&self, key: &ApiKey, now: Timestamp) {
        if self.is_due(key.id, now) {
            // Where too many wait, this one's time comes again in a minute.
            let _full = self.sender.try_send(Use {
                organization_id: key.organization_id,
                key_id: key.id,
                at: now,
            });
        }
    }

    fn is_due(&self, id: ApiKeyId, now: Timestamp) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.get(&id).is_some_and(|at| now < *at + NOTE_EVERY) {
            return false;
        }
        if noted.len() >= WAITING_MAX {
            noted.retain(|_, at| now < *at + NOTE_EVERY);
        }
        noted.insert(id, now);
        true
    }
}

async fn run(pool: PgPool, mut receiver: mpsc::Receiver<Use>) {
    let mut uses = Vec::new();
    while receiver.recv_many(&mut uses, WAITING_MAX).await > 0 {
        tokio::time::sleep(GATHER).await;
        while let Ok(further) = receiver.try_recv() {
            uses.push(further);
        }
        if let Err(fault) = write(&pool, &uses).await {
            debug!(
                cause = fault.chain(),
                "The use of API keys was not recorded"
            );
        }
        uses.clear();
    }
}

async fn write(pool: &PgPool, uses: &[Use]) -> Result<(), Fault> {
    let doing = "record the use of API keys";
    bounded(doing, async {
        let mut connection = pool.acquire().await.or_fault(doing)?;
        store::record_uses(&mut connection, uses).await
    })
    .await
}
