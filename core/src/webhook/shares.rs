//! Shares of what all organizations use together: so many calls at once in all, and
//! so many of one organization. Whoever waits for a share of its own holds none of
//! the common ones meanwhile, so a customer whose endpoints hang keeps others from
//! nothing but its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::OrganizationId;

/// Organizations remembered before those that hold nothing are forgotten.
const REMEMBERED: usize = 1_024;

/// The calls that may be under way at once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shares {
    all: Arc<Semaphore>,
    each: usize,
    own: Arc<Mutex<HashMap<OrganizationId, Arc<Semaphore>>>>,
}

/// Room for one call, until it is dropped.
#[derive(Debug)]
pub struct Share {
    _own: Option<OwnedSemaphorePermit>,
    _common: Option<OwnedSemaphorePermit>,
}

impl Shares {
    /// `all` calls at once, `each` of them of one organization.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(all)),
            each,
            own: Arc::default(),
        }
    }

    /// Waits until there is room for a call of the organization.
    pub async fn take(&self, organization_id: OrganizationId) -> Share {
        let own = self.of(organization_id);
        // The semaphores are never closed.
        Share {
            _own: own.acquire_owned().await.ok(),
            _common: Arc::clone(&self.all).acquire_owned().await.ok(),
        }
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
    use std::time::Duration;

    use tokio::time::timeout;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn an_organization_waits_for_its_own_share_and_holds_up_nobody() {
        let shares = Shares::new(3, 2);
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
