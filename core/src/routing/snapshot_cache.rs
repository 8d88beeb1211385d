//! The cache of accounts and routing rules in each process, so that neither acceptance
//! nor a worker reads them for every message.
//!
//! A change made by this process is visible at once. Triggers notify of every change in
//! its transaction, so a change made elsewhere is visible as soon as the notification
//! arrives. While no connection listens, or if a change may have committed during a read,
//! a snapshot is used for one second only. Snapshots in use are refreshed in the
//! background before they expire, one organization at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::mailbox_provider::cache::MailboxProviders;
use super::store;
use crate::cache::{self, RefreshAhead};
use crate::clock::Clock;
use crate::crypto::seal::Sealer;
use crate::db::{self, Listener, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::routing::RoutingSnapshot;
use crate::routing::targets::{Draw, TargetSequences};

/// The channel of change notifications. The triggers use the same name.
const CHANNEL: &str = "waypost_routing";
/// How long a snapshot is used while notifications arrive. A lost connection is noticed
/// within seconds and clears the cache.
const TTL: Duration = Duration::from_mins(1);
/// How long a snapshot is used if a change may have been missed.
const UNCONFIRMED_TTL: Duration = Duration::from_secs(1);
/// When an invalidation is repeated: a concurrent read that was still current may have
/// been cached just after the first one.
const FORGET_AGAIN: Duration = Duration::from_millis(200);
/// How long after a lost connection the listener reconnects.
const RECONNECT_AFTER: Duration = Duration::from_millis(500);
/// Organizations cached at most.
const ORGANIZATIONS_MAX: u64 = 100_000;

/// The routing snapshots of organizations. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct SnapshotCache {
    pool: PgPool,
    sealer: Sealer,
    cache: Cache<OrganizationId, RefreshAhead<CachedSnapshot>>,
    changes: Arc<ChangeCounter>,
    /// Held during a refresh in the background.
    refresh_permit: Arc<Semaphore>,
    sequences: Arc<TargetSequences>,
    mailbox_providers: MailboxProviders,
}

/// Counts the notifications of changes.
#[derive(Debug, Default)]
struct ChangeCounter {
    /// Whether a connection listens for notifications.
    listening: AtomicBool,
    /// Changes so far, of all organizations.
    changes: AtomicU64,
}

#[derive(Clone)]
struct CachedSnapshot {
    snapshot: Arc<RoutingSnapshot>,
    ttl: Duration,
}

struct SnapshotExpiry;

impl Expiry<OrganizationId, RefreshAhead<CachedSnapshot>> for SnapshotExpiry {
    fn expire_after_create(
        &self,
        _: &OrganizationId,
        entry: &RefreshAhead<CachedSnapshot>,
        _: Instant,
    ) -> Option<Duration> {
        Some(entry.value.ttl)
    }

    fn expire_after_update(
        &self,
        _: &OrganizationId,
        entry: &RefreshAhead<CachedSnapshot>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(entry.value.ttl)
    }
}

impl SnapshotCache {
    /// Builds an empty cache that reads from `pool`. The sealer opens the credentials of
    /// accounts, if a rule has a region.
    #[must_use]
    pub fn new(pool: PgPool, sealer: Sealer, clock: Clock) -> Self {
        let cache = Cache::builder()
            .max_capacity(ORGANIZATIONS_MAX)
            .expire_after(SnapshotExpiry)
            .build();
        Self {
            mailbox_providers: MailboxProviders::new(pool.clone(), clock),
            pool,
            sealer,
            cache,
            changes: Arc::default(),
            refresh_permit: Arc::new(Semaphore::new(1)),
            sequences: Arc::default(),
        }
    }

    /// What is known of the mailbox providers of domains.
    #[must_use]
    pub fn mailbox_providers(&self) -> &MailboxProviders {
        &self.mailbox_providers
    }

    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// The next place in the sequence of each rule with targets. A new snapshot does not
    /// begin it anew.
    #[must_use]
    pub fn next_draw(&self) -> Draw<'_> {
        Draw::Next(&self.sequences)
    }

    /// The snapshot of an organization.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable and nothing is cached.
    pub async fn get(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        let read = || self.read(organization_id);
        let refresh = || self.clone().refresh(organization_id);
        let cache = &self.cache;
        let found = cache::get_or_refresh(cache, organization_id, read, refresh).await?;
        Ok(found.snapshot)
    }

    /// The snapshot of an organization, read anew.
    pub async fn reload(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        self.forget_now(organization_id).await;
        self.get(organization_id).await
    }

    /// Removes the snapshot of an organization that was changed.
    pub async fn forget(&self, organization_id: OrganizationId) {
        self.forget_now(organization_id).await;
        let cache = self.cache.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FORGET_AGAIN).await;
            cache.invalidate(&organization_id).await;
        });
    }

    async fn forget_now(&self, organization_id: OrganizationId) {
        self.changes.changes.fetch_add(1, Ordering::SeqCst);
        self.cache.invalidate(&organization_id).await;
    }

    /// Listens for changes made elsewhere, until `shutdown`. Clears the cache after a
    /// lost connection, since notifications may have been lost.
    pub async fn listen(self, shutdown: CancellationToken) {
        while let Some(fault) = shutdown.run_until_cancelled(self.listen_once()).await {
            self.changes.listening.store(false, Ordering::SeqCst);
            self.forget_all();
            debug!(
                cause = fault.chain(),
                "Lost the connection that listens for routing changes, will reconnect"
            );
            let pause = tokio::time::sleep(RECONNECT_AFTER);
            if shutdown.run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        self.changes.listening.store(false, Ordering::SeqCst);
        self.forget_all();
    }

    async fn listen_once(&self) -> Fault {
        let mut listener = match Listener::connect(&self.pool, CHANNEL).await {
            Ok(listener) => listener,
            Err(fault) => return fault,
        };
        self.forget_all();
        self.changes.listening.store(true, Ordering::SeqCst);
        info!("Listening for routing changes");
        loop {
            match listener.recv().await {
                Ok(Some(text)) => match text.parse() {
                    Ok(organization_id) => self.forget(organization_id).await,
                    Err(_) => self.forget_all(),
                },
                Ok(None) => {}
                Err(fault) => return fault,
            }
        }
    }

    fn forget_all(&self) {
        self.changes.changes.fetch_add(1, Ordering::SeqCst);
        self.cache.invalidate_all();
        let cache = self.cache.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FORGET_AGAIN).await;
            cache.invalidate_all();
        });
    }

    async fn refresh(
        self,
        organization_id: OrganizationId,
    ) -> Result<RefreshAhead<CachedSnapshot>, Fault> {
        // Never closed.
        let _permit = self.refresh_permit.acquire().await;
        self.read(organization_id).await
    }

    async fn read(
        &self,
        organization_id: OrganizationId,
    ) -> Result<RefreshAhead<CachedSnapshot>, Fault> {
        let count_before = self.change_count();
        let doing = "read an organization's accounts";
        let reading = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::routing_snapshot(&mut connection, organization_id).await
        });
        let mut snapshot = reading.await?;
        if let Some(snapshot) = &mut snapshot {
            snapshot.read_regions(organization_id, &self.sealer);
        }
        let snapshot = Arc::new(snapshot.unwrap_or_else(RoutingSnapshot::empty));
        // A change that was notified during the read may be missing from the snapshot.
        let is_current = count_before.is_some() && count_before == self.change_count();
        let found = |ttl| CachedSnapshot { snapshot, ttl };
        Ok(if is_current {
            RefreshAhead::with_ttl(found(TTL), TTL)
        } else {
            RefreshAhead::never(found(UNCONFIRMED_TTL))
        })
    }

    /// The number of changes so far; `None` if notifications may have been missed.
    fn change_count(&self) -> Option<u64> {
        let is_listening = self.changes.listening.load(Ordering::SeqCst);
        is_listening.then(|| self.changes.changes.load(Ordering::SeqCst))
    }
}
