//! Looks up messages at the provider whose answer was lost, in the background: a provider may be
//! slow to answer, and the task does not wait for it. Each provider has permits of its own, so a
//! provider that hangs does not delay the others.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::{debug, warn};
use waypost_core::fault::Fault;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_event::reconcile::Reconciler;

use super::Tasks;

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

/// Begins what is due, as far as there are places.
pub(super) async fn begin(tasks: &Tasks) -> Result<(), Fault> {
    let Searches { look_ups, places } = &tasks.searches;
    let forgotten = look_ups.delete_finished().await?;
    if forgotten > 0 {
        debug!(forgotten, "Nothing waits for unknown attempts any more");
    }
    for (kind, permits) in permits {
        let free = permits.available_permits();
        if free == 0 {
            continue;
        }
        for due in look_ups.lease_due(*kind, free).await? {
            // Nobody else takes places: as many are free as there are looks.
            let Ok(place) = Arc::clone(places).try_acquire_owned() else {
                break;
            };
            let reconciler = reconciler.clone();
            tokio::spawn(async move {
                if let Err(fault) = look_ups.look_up(&due).await {
                    warn!(
                        cause = fault.chain(),
                        "Could not look up a message; it will be looked up again or sent again"
                    );
                }
                drop(permit);
            });
        }
    }
    Ok(())
}
