//! Which groups there are, for those who ask at every send. That there is one is
//! remembered for a moment; that there is none is said only after a look.

use std::collections::HashSet;
use std::time::Duration;

use moka::future::Cache;

use super::store;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// How long a process may go by a group that another one has removed. A message
/// that is accepted in such a group meets what one meets whose group is removed
/// right after its acceptance: it is sent.
const MEMORY: Duration = Duration::from_secs(1);
/// Groups remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;

/// Remembers groups. Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct GroupCache {
    pool: PgPool,
    known: Cache<(OrganizationId, UnsubscribeGroupId), ()>,
}

impl GroupCache {
    /// Looks into `pool`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let known = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(MEMORY)
            .build();
        Self { pool, known }
    }

    /// Those of the given groups that an organization does not have. One question at
    /// the most, however many they are.
    ///
    /// # Errors
    /// A fault when Postgres is needed and away.
    pub async fn missing(
        &self,
        organization_id: OrganizationId,
        mut ids: HashSet<UnsubscribeGroupId>,
    ) -> Result<HashSet<UnsubscribeGroupId>, Fault> {
        ids.retain(|id| !self.known.contains_key(&(organization_id, *id)));
        if ids.is_empty() {
            return Ok(ids);
        }
        let doing = "find unsubscribe groups";
        let asked: Vec<UnsubscribeGroupId> = ids.iter().copied().collect();
        let looking = db::bounded(doing, async {
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            store::list_existing(&mut connection, organization_id, &asked).await
        });
        for found in looking.await? {
            self.known.insert((organization_id, found), ()).await;
            ids.remove(&found);
        }
        Ok(ids)
    }

    /// Forgets a group that was removed.
    pub async fn forget(&self, organization_id: OrganizationId, id: UnsubscribeGroupId) {
        self.known.invalidate(&(organization_id, id)).await;
    }
}
