//! What each process remembers of the organizations' accounts, so that acceptance
//! does not read them for every message. A change made by this process is seen at
//! once, one made by another within [`MEMORY`].

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;

use super::store;
use crate::db::{OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::organization::UnverifiedDomains;
use crate::routing::RoutingSnapshot;

/// How long a snapshot may be used.
const MEMORY: Duration = Duration::from_secs(1);
/// Organizations remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;

/// The organizations' routing snapshots. Cheap to clone; clones share what they
/// remember.
#[derive(Clone)]
pub struct Snapshots {
    pool: PgPool,
    remembered: Cache<OrganizationId, Arc<RoutingSnapshot>>,
}

impl Snapshots {
    /// Reads from `pool`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let remembered = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(MEMORY)
            .build();
        Self { pool, remembered }
    }

    /// What routing may use of an organization.
    ///
    /// # Errors
    /// A fault when Postgres is away and nothing is remembered.
    pub async fn get(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        self.remembered
            .try_get_with(organization_id, self.read(organization_id))
            .await
            .map_err(|fault| (*fault).clone())
    }

    /// The same, read now.
    ///
    /// # Errors
    /// A fault when Postgres is away.
    pub async fn reload(
        &self,
        organization_id: OrganizationId,
    ) -> Result<Arc<RoutingSnapshot>, Fault> {
        self.forget(organization_id).await;
        self.get(organization_id).await
    }

    /// Forgets an organization whose accounts were changed.
    pub async fn forget(&self, organization_id: OrganizationId) {
        self.remembered.invalidate(&organization_id).await;
    }

    async fn read(&self, organization_id: OrganizationId) -> Result<Arc<RoutingSnapshot>, Fault> {
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("read an organization's accounts")?;
        let snapshot = store::routing_snapshot(&mut connection, organization_id).await?;
        Ok(Arc::new(snapshot.unwrap_or(RoutingSnapshot {
            unverified_domains: UnverifiedDomains::Reject,
            accounts: Vec::new(),
        })))
    }
}
