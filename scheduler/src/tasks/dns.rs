//! Looks up sender domains in DNS in the background: a server may be slow to answer, and the
//! task does not wait for it.

use std::sync::Arc;

use tokio::sync::Semaphore;
use waypost_core::fault::Fault;
use waypost_core::sender_domain::SenderDomains;

use super::{Tasks, WorkFound, background};

/// Domains that are checked at the same time. A check asks eight questions at a time.
const CONCURRENCY: usize = 4;

/// The sender domains, and the permits of their checks.
pub(crate) struct DnsChecks {
    domains: SenderDomains,
    permits: Arc<Semaphore>,
}

impl DnsChecks {
    pub(crate) fn new(domains: SenderDomains) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENCY));
        Self { domains, permits }
    }
}

/// Starts the checks that are due, as far as there are permits.
pub(super) async fn start_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let DnsChecks { domains, permits } = &tasks.dns_checks;
    let free = permits.available_permits();
    if free == 0 {
        return Ok(WorkFound::Work);
    }
    let due = domains.lease_due(free).await?;
    let found = WorkFound::from(due.len());
    let message = "Could not check the DNS records of a domain; they will be checked again";
    background::start(permits, due, message, |due| {
        let domains = domains.clone();
        async move { domains.check_due(&due).await }
    });
    Ok(found)
}
