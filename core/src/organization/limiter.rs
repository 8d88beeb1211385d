//! Limits on simultaneous calls: in total and per organization. A caller acquires the permit of
//! its organization first and the common one second, so a caller that waits for its
//! organization holds no common permit: slow endpoints of one organization do not block
//! others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fault::Fault;
use crate::ids::OrganizationId;

/// See [`TenantLimiter::of_calls`].
const CALLS_MAX: usize = 64;
const CALLS_EACH: usize = 8;
/// How long [`TenantLimiter::acquire_timeout`] waits.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of semaphores in memory above which unused ones are dropped.
const SEMAPHORES_MAX: usize = 1_024;

/// Limits simultaneous calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TenantLimiter {
    all: Arc<Semaphore>,
    each: usize,
    own: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
}

/// The permit for one call. Dropping it releases it.
#[derive(Debug)]
pub struct TenantPermit {
    _own: Option<OwnedSemaphorePermit>,
    _common: Option<OwnedSemaphorePermit>,
}

impl TenantLimiter {
    /// Allows `all` calls at once, `each` of them per organization.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            own: Arc::default(),
        }
    }

    /// The limit on calls to endpoints and mail servers that organizations name, while a
    /// client of the API waits: these servers, and the look-ups of their names, may be slow.
    #[must_use]
    pub fn of_calls() -> Self {
        Self::new(CALLS_MAX, CALLS_EACH)
    }

    /// Waits for a permit of the organization.
    pub async fn acquire(&self, organization_id: OrganizationId) -> TenantPermit {
        let own = self.of(organization_id);
        // The semaphores are never closed.
        TenantPermit {
            _own: own.acquire_owned().await.ok(),
            _common: Arc::clone(&self.all).acquire_owned().await.ok(),
        }
    }

    /// Waits up to five seconds for a permit of the organization.
    ///
    /// # Errors
    /// A fault if it got none in that time.
    pub async fn acquire_timeout(
        &self,
        organization_id: OrganizationId,
        doing: &'static str,
    ) -> Result<TenantPermit, Fault> {
        tokio::time::timeout(ACQUIRE_TIMEOUT, self.acquire(organization_id))
            .await
            .map_err(|_| Fault::unavailable(doing, "too many of these calls are under way"))
    }

    fn of(&self, organization_id: OrganizationId) -> Arc<Semaphore> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.len() >= SEMAPHORES_MAX {
            // Waiting callers and permits hold a clone.
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
    async fn an_organization_at_its_limit_does_not_block_others() {
        let limiter = TenantLimiter::new(3, 2);
        let (greedy, other) = (
            OrganizationId(Uuid::from_u128(1)),
            OrganizationId(Uuid::from_u128(2)),
        );
        let first = limiter.acquire(greedy).await;
        let _second = limiter.acquire(greedy).await;
        let moment = Duration::from_millis(20);
        assert!(timeout(moment, limiter.acquire(greedy)).await.is_err());
        let _others = limiter.acquire(other).await;
        assert!(
            timeout(moment, limiter.acquire(other)).await.is_err(),
            "all three are taken"
        );
        drop(first);
        timeout(Duration::from_secs(5), limiter.acquire(other))
            .await
            .expect("there is room again");
    }
}
