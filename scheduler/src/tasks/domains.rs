//! Rechecks domains in the background: a provider may be slow to answer, and the task does not
//! wait for it. Each provider has permits of its own, so a provider that hangs does not delay the
//! others.

use std::sync::Arc;

use tokio::sync::Semaphore;
use waypost_core::fault::Fault;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::Accounts;

use super::{Tasks, WorkFound, background};

/// Simultaneous checks at one provider.
const CONCURRENCY: usize = 4;

/// The accounts, and the permits of each provider.
pub(crate) struct DomainChecks {
    accounts: Accounts,
    permits: [(ProviderType, Arc<Semaphore>); ProviderType::ALL.len()],
}

impl DomainChecks {
    pub(crate) fn new(accounts: Accounts) -> Self {
        let permits = ProviderType::ALL.map(|kind| (kind, Arc::new(Semaphore::new(CONCURRENCY))));
        Self { accounts, permits }
    }
}

/// Starts the checks that are due, as far as there are permits.
pub(super) async fn start_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let DomainChecks { accounts, permits } = &tasks.domain_checks;
    if !accounts.is_any_domain_due().await? {
        return Ok(WorkFound::Nothing);
    }
    for (kind, permits) in permits {
        let free = permits.available_permits();
        if free == 0 {
            continue;
        }
        let due = accounts.lease_due_domains(*kind, free).await?;
        let message = "Could not check a domain; it will be checked again";
        background::start(permits, due, message, |domain| {
            let accounts = accounts.clone();
            async move { accounts.recheck_domain(&domain).await }
        });
    }
    Ok(WorkFound::Work)
}
