//! Shares of what all organizations use together: so many calls at once in all, and
//! so many of one organization. Whoever waits for a share of its own holds none of
//! the common ones meanwhile, so a customer whose endpoints hang keeps others from
//! nothing but its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::Fault;
use crate::ids::OrganizationId;

/// Calls of one process, while somebody waits for them, to where organizations say, and
/// those of one organization: see [`TenantLimiter::of_calls`].
const CALLS_MAX: usize = 64;
const CALLS_EACH: usize = 8;
/// How long [`TenantLimiter::take_soon`] waits.
const SOON: Duration = Duration::from_secs(5);
/// Organizations remembered before those that hold nothing are forgotten.
const REMEMBERED: usize = 1_024;

/// The calls that may be under way at once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TenantLimiter {
    all: Arc<Semaphore>,
    each: usize,
    own: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
}

/// Room for one call, until it is dropped.
#[derive(Debug)]
pub struct TenantPermit {
    _own: Option<OwnedSemaphorePermit>,
    _common: Option<OwnedSemaphorePermit>,
}

impl TenantLimiter {
    /// `all` calls at once, `each` of them of one organization.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            own: Arc::default(),
        }
    }

    /// For what an API asks of endpoints and mail servers that organizations name: they
    /// may take their time, and so may the look-ups of their names.
    #[must_use]
    pub fn of_calls() -> Self {
        Self::new(CALLS_MAX, CALLS_EACH)
    }

    /// Waits until there is room for a call of the organization.
    pub async fn take(&self, organization_id: OrganizationId) -> TenantPermit {
        let own = self.of(organization_id);
        // The semaphores are never closed.
        TenantPermit {
            _own: own.acquire_owned().await.ok(),
            _common: Arc::clone(&self.all).acquire_owned().await.ok(),
        }
    }

    /// The same for somebody who waits at the other end of a connection.
    ///
    /// # Errors
    /// That there was no room in five seconds.
    pub async fn take_soon(
        &self,
        organization_id: OrganizationId,
        doing: &'static str,
    ) -> Result<TenantPermit, Fault> {
        tokio::time::timeout(SOON, self.take(organization_id))
            .await
            .map_err(|_| Fault::unavailable(doing, "too many of these calls are under way"))
    }

    fn of(&self, organization_id: OrganizationId) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= REMEMBERED {
            // Whoever waits or calls holds a clone.
            own.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = own
            .entry(organization_id)
            .or_insert_with(|| Arc::new(Semaphore::new(self.each)));
        Arc::clone(semaphore)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn an_organization_waits_for_its_own_share_and_holds_up_nobody() {
        let shares = TenantLimiter::new(3, 2);
        let (greedy, other) = (
            OrganizationId(Uuid::from_u128(1)),
            OrganizationId(Uuid::from_u128(2)),
        );
        let first = shares.take(greedy).await;
        let _second = shares.take(greedy).await;
        let moment = Duration::from_millis(20);
        assert!(timeout(moment, shares.take(greedy)).await.is_err());
        let _others = shares.take(other).await;
        assert!(
            timeout(moment, shares.take(other)).await.is_err(),
            "all three are taken"
        );
        drop(first);
        timeout(Duration::from_secs(5), shares.take(other))
            .await
            .expect("there is room again");
    }
}
