//! Looks up messages at the provider whose answer was lost, in the background: a provider may be
//! slow to answer, and the task does not wait for it. Each provider has permits of its own, so a
//! provider that hangs does not delay the others.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::debug;
use waypost_core::fault::Fault;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_event::reconcile::Reconciler;

use super::{Tasks, WorkFound, background};

/// Simultaneous look-ups at one provider.
const CONCURRENCY: usize = 8;

/// The reconciler, and the permits of each provider.
pub(crate) struct Lookups {
    reconciler: Reconciler,
    permits: [(ProviderType, Arc<Semaphore>); ProviderType::ALL.len()],
}

impl Lookups {
    pub(crate) fn new(reconciler: Reconciler) -> Self {
        let permits = ProviderType::ALL.map(|kind| (kind, Arc::new(Semaphore::new(CONCURRENCY))));
        Self {
            reconciler,
            permits,
        }
    }
}

/// Starts the look-ups that are due, as far as there are permits.
pub(super) async fn start_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let Lookups {
        reconciler,
        permits,
    } = &tasks.lookups;
    if !reconciler.is_any_due().await? {
        return Ok(WorkFound::Nothing);
    }
    let deleted = reconciler.delete_finished().await?;
    if deleted > 0 {
        debug!(
            deleted,
            "Deleted the look-ups of attempts whose outcome is known"
        );
    }
    for (kind, permits) in permits {
        let free = permits.available_permits();
        if free == 0 {
            continue;
        }
        let due = reconciler.lease_due(*kind, free).await?;
        let message = "Could not look up a message; it will be looked up again or sent again";
        background::start(permits, due, message, |due| {
            let reconciler = reconciler.clone();
            async move { reconciler.look_up(&due).await }
        });
    }
    Ok(WorkFound::Work)
}
