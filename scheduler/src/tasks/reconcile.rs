//! Looks for mails whose answer was lost, beside the other tasks: a provider may take
//! long to answer, and nothing here waits for it. Each provider has places of its own,
//! so one that is dead takes none of the others'.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::{debug, warn};
use waypost_core::fault::Fault;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_event::reconcile::Reconciler;

use super::Tasks;

/// Looks at one provider that are made together.
const PLACES: usize = 8;

/// Who looks, and the places of each provider.
pub(crate) struct Searches {
    look_ups: Reconciler,
    places: [(ProviderType, Arc<Semaphore>); ProviderType::ALL.len()],
}

impl Searches {
    pub(crate) fn new(look_ups: Reconciler) -> Self {
        let places = ProviderType::ALL.map(|kind| (kind, Arc::new(Semaphore::new(PLACES))));
        Self { look_ups, places }
    }
}

/// Begins what is due, as far as there are places.
pub(super) async fn begin(tasks: &Tasks) -> Result<(), Fault> {
    let Searches { look_ups, places } = &tasks.searches;
    let forgotten = look_ups.forget_settled().await?;
    if forgotten > 0 {
        debug!(forgotten, "Nothing waits for unknown attempts any more");
    }
    for (kind, places) in places {
        let free = places.available_permits();
        if free == 0 {
            continue;
        }
        for due in look_ups.take_due(*kind, free).await? {
            // Nobody else takes places: as many are free as there are looks.
            let Ok(place) = Arc::clone(places).try_acquire_owned() else {
                break;
            };
            let look_ups = look_ups.clone();
            tokio::spawn(async move {
                if let Err(fault) = look_ups.look(&due).await {
                    warn!(
                        cause = fault.chain(),
                        "A mail will be looked for later, or is sent again"
                    );
                }
                drop(place);
            });
        }
    }
    Ok(())
}
