//! What each process remembers of the organizations' accounts and routing rules,
//! so that neither acceptance nor a worker reads them for every message.
//!
//! A change made by this process is seen at once. Postgres tells of every change
//! in the transaction that makes it, so one made elsewhere is seen as soon as it is
//! told. As long as nobody listens, or while a change may have passed during the
//! reading, a snapshot is used for a second only. One that is in use is read again in
//! time, one organization after the other, and nobody waits for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::Expiry;
use moka::future::Cache;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::store;
use crate::cache::{self, RefreshAhead};
use crate::db::{self, Listener, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::organization::UnverifiedDomains;
use crate::routing::RoutingSnapshot;
use crate::tracking::Tracking;

/// Where Postgres tells of changes; the triggers name it too.
const CHANNEL: &str = "waypost_routing";
/// How long a snapshot may be used while changes are told. That nobody tells any more is
/// noticed within seconds, and everything is forgotten then.
const MEMORY: Duration = Duration::from_mins(1);
/// How long where a change could pass unnoticed.
const SHORT_MEMORY: Duration = Duration::from_secs(1);
/// How long after something was forgotten it is once more: a reading that had just been
/// found current may have been put in meanwhile.
const FORGET_AGAIN: Duration = Duration::from_millis(200);
/// How long after a lost connection listening is tried again.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);
/// Organizations remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;

/// The organizations' routing snapshots. Cheap to clone; clones share what they
/// remember.
#[derive(Clone)]
pub struct SnapshotCache {
    pool: PgPool,
    remembered: Cache<OrganizationId, RefreshAhead<CachedSnapshot>>,
    news: Arc<ChangeCounter>,
    /// Held while something is read that nobody waits for.
    leisure: Arc<Semaphore>,
}

/// What is known of changes.
#[derive(Debug, Default)]
struct ChangeCounter {
    /// Whether every change is heard of.
    listening: AtomicBool,
    /// Changes heard of so far, of any organization.
    changes: AtomicU64,
}

#[derive(Clone)]
struct CachedSnapshot {
    snapshot: Arc<RoutingSnapshot>,
    memory: Duration,
}

struct SnapshotExpiry;

impl Expiry<OrganizationId, RefreshAhead<CachedSnapshot>> for SnapshotExpiry {
    fn expire_after_create(
        &self,
        _: &OrganizationId,
        renewed: &RefreshAhead<CachedSnapshot>,
        _: Instant,
    ) -> Option<Duration> {
        Some(renewed.value.memory)
    }

    fn expire_after_update(
        &self,
        _: &OrganizationId,
        renewed: &RefreshAhead<CachedSnapshot>,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(renewed.value.memory)
    }
}

impl SnapshotCache {
    /// Reads from `pool`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let remembered = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .expire_after(SnapshotExpiry)
            .build();
        Self {
            pool,
            remembered,
            news: Arc::default(),
            leisure: Arc::new(Semaphore::new(1)),
        }
    }

    /// What routing may use of an organization.
    ///
    /// # Errors
    /// A fault when Postgres is away and nothing is remembered.
    pub async fn get(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        let read = || self.read(organization_id);
        let look_again = || self.clone().read_at_leisure(organization_id);
        let remembered = &self.remembered;
        let found = cache::get_or_refresh(remembered, organization_id, read, look_again).await?;
        Ok(found.snapshot)
    }

    /// The same, read now.
    pub async fn reload(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        self.forget_now(organization_id).await;
        self.get(organization_id).await
    }

    /// Forgets an organization of which something was changed.
    pub async fn forget(&self, organization_id: OrganizationId) {
        self.forget_now(organization_id).await;
        let remembered = self.remembered.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FORGET_AGAIN).await;
            remembered.invalidate(&organization_id).await;
        });
    }

    async fn forget_now(&self, organization_id: OrganizationId) {
        self.news.changes.fetch_add(1, Ordering::SeqCst);
        self.remembered.invalidate(&organization_id).await;
    }

    /// Listens for changes made elsewhere, until `shutdown`. After a lost
    /// connection everything is forgotten: nobody knows what passed meanwhile.
    pub async fn listen(self, shutdown: CancellationToken) {
        while let Some(fault) = shutdown.run_until_cancelled(self.listen_once()).await {
            self.news.listening.store(false, Ordering::SeqCst);
            self.forget_all();
            debug!(
                cause = fault.chain(),
                "Not told of changes; will listen again"
            );
            let pause = tokio::time::sleep(LISTEN_AGAIN);
            if shutdown.run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        self.news.listening.store(false, Ordering::SeqCst);
        self.forget_all();
    }

    async fn listen_once(&self) -> Fault {
        let mut listener = match Listener::connect(&self.pool, CHANNEL).await {
            Ok(listener) => listener,
            Err(fault) => return fault,
        };
        self.forget_all();
        self.news.listening.store(true, Ordering::SeqCst);
        info!("Listening for changes of routing");
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
        self.news.changes.fetch_add(1, Ordering::SeqCst);
        self.remembered.invalidate_all();
        let remembered = self.remembered.clone();
        tokio::spawn(async move {
            tokio::time::sleep(FORGET_AGAIN).await;
            remembered.invalidate_all();
        });
    }

    async fn read_at_leisure(
        self,
        organization_id: OrganizationId,
    ) -> Result<RefreshAhead<CachedSnapshot>, Fault> {
        // Never closed.
        let _turn = self.leisure.acquire().await;
        self.read(organization_id).await
    }

    async fn read(
        &self,
        organization_id: OrganizationId,
    ) -> Result<RefreshAhead<CachedSnapshot>, Fault> {
        let told_before = self.told();
        let doing = "read an organization's accounts";
        let reading = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::routing_snapshot(&mut connection, organization_id).await
        });
        let snapshot = reading.await?;
        let snapshot = Arc::new(snapshot.unwrap_or(RoutingSnapshot {
            unverified_domains: UnverifiedDomains::Reject,
            tracking: Tracking::default(),
            accounts: Vec::new(),
            rules: Vec::new(),
        }));
        // What was told while this was read may be missing from it.
        let is_current = told_before.is_some() && told_before == self.told();
        let found = |memory| CachedSnapshot { snapshot, memory };
        Ok(if is_current {
            RefreshAhead::with_ttl(found(MEMORY), MEMORY)
        } else {
            RefreshAhead::never(found(SHORT_MEMORY))
        })
    }

    /// How many changes were told so far; nothing where some may not have been.
    fn told(&self) -> Option<u64> {
        let is_listening = self.news.listening.load(Ordering::SeqCst);
        is_listening.then(|| self.news.changes.load(Ordering::SeqCst))
    }
}
