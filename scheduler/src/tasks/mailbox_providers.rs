//! Looks up the mailbox providers of recipients' domains in the background: a server may be slow
//! to answer, and the task does not wait for it.

use std::sync::Arc;

use tokio::sync::Semaphore;
use waypost_core::fault::Fault;
use waypost_core::routing::mailbox_provider::resolver::MailboxProviderResolver;

use super::{Tasks, WorkFound, background};

/// Domains that are looked up at the same time.
const CONCURRENCY: usize = 16;

/// The resolver, and the permits of its look-ups.
pub(crate) struct MailboxProviderLookups {
    resolver: MailboxProviderResolver,
    permits: Arc<Semaphore>,
}

impl MailboxProviderLookups {
    pub(crate) fn new(resolver: MailboxProviderResolver) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENCY));
        Self { resolver, permits }
    }
}

/// Starts the look-ups that are due, as far as there are permits.
pub(super) async fn start_due(tasks: &Tasks) -> Result<WorkFound, Fault> {
    let MailboxProviderLookups { resolver, permits } = &tasks.mailbox_provider_lookups;
    let free = permits.available_permits();
    if free == 0 {
        return Ok(WorkFound::Work);
    }
    let due = resolver.lease_due(free).await?;
    let found = WorkFound::from(due.len());
    let message = "Could not look up the mailbox provider of a domain; it will be looked up again";
    background::start(permits, due, message, |domain| {
        let resolver = resolver.clone();
        async move { resolver.look_up(&domain).await.map(drop) }
    });
    Ok(found)
}
