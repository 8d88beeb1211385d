//! A cache of existing groups for acceptance, which checks the group of every send. Only
//! positive answers are cached: a group that is not in the cache is looked up in Postgres.

use std::collections::HashSet;
use std::time::Duration;

use moka::future::Cache;

use super::store;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// How long a process accepts messages in a group that another process has removed. Such
/// a message is sent, as one that was accepted just before the removal is.
const TTL: Duration = Duration::from_secs(1);
const GROUPS_MAX: u64 = 100_000;

/// The cache. Cheap to clone; clones share their entries.
#[derive(Clone)]
pub struct GroupCache {
    pool: PgPool,
    groups: Cache<(OrganizationId, UnsubscribeGroupId), ()>,
}

impl GroupCache {
    /// An empty cache that reads groups through `pool`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let groups = Cache::builder()
            .max_capacity(GROUPS_MAX)
            .time_to_live(TTL)
            .build();
        Self { pool, groups }
    }

    /// The groups among `ids` that do not exist in the organization. Runs at most one
    /// statement.
    ///
    /// # Errors
    /// A fault if Postgres is needed and unavailable.
    pub async fn missing(
        &self,
        organization_id: OrganizationId,
        mut ids: HashSet<UnsubscribeGroupId>,
    ) -> Result<HashSet<UnsubscribeGroupId>, Fault> {
        ids.retain(|id| !self.groups.contains_key(&(organization_id, *id)));
        if ids.is_empty() {
            return Ok(ids);
        }
        let doing = "find unsubscribe groups";
        let uncached: Vec<UnsubscribeGroupId> = ids.iter().copied().collect();
        let existing = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::list_existing(&mut connection, organization_id, &uncached).await
        });
        for id in existing.await? {
            self.groups.insert((organization_id, id), ()).await;
            ids.remove(&id);
        }
        Ok(ids)
    }

    /// Drops a removed group from this process's cache.
    pub async fn forget(&self, organization_id: OrganizationId, id: UnsubscribeGroupId) {
        self.groups.invalidate(&(organization_id, id)).await;
    }
}
