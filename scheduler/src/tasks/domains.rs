//! Looks at domains again, beside the other tasks: a provider may take long to
//! answer, and nothing here waits for it. Each provider has places of its own, so
//! one that is dead takes none of the others'.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::warn;
use waypost_core::fault::Fault;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::Accounts;

use super::Tasks;

/// Domains at one provider that are looked at together.
const PLACES: usize = 4;

/// Who looks, and the places of each provider.
pub(crate) struct Rechecks {
    accounts: Accounts,
    places: [(ProviderType, Arc<Semaphore>); ProviderType::ALL.len()],
}

impl Rechecks {
    pub(crate) fn new(accounts: Accounts) -> Self {
        let places = ProviderType::ALL.map(|kind| (kind, Arc::new(Semaphore::new(PLACES))));
        Self { accounts, places }
    }
}

/// Begins what is due, as far as there are places.
pub(super) async fn begin(tasks: &Tasks) -> Result<(), Fault> {
    let Rechecks { accounts, places } = &tasks.rechecks;
    for (kind, places) in places {
        let free = places.available_permits();
        if free == 0 {
            continue;
        }
        for domain in accounts.lease_due_domains(*kind, free).await? {
            // Nobody else takes places: as many are free as there are domains.
            let Ok(place) = Arc::clone(places).try_acquire_owned() else {
                break;
            };
            let accounts = accounts.clone();
            tokio::spawn(async move {
                if let Err(fault) = accounts.recheck_domain(&domain).await {
                    warn!(cause = fault.chain(), "A domain will be looked at later");
                }
                drop(place);
            });
        }
    }
    Ok(())
}
