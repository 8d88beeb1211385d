//! Limits how much of the recording queue one account may hold. A request of another
//! account waits behind at most one quota of each busy account.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::ProviderAccountId;

/// Events of one account that may be queued or being recorded at once, in one process:
/// enough to keep all transactions busy when only one account reports events.
const ACCOUNT_EVENTS_MAX: usize = 2_000;
/// Accounts cached at most. If an account is evicted too early, it only gets a second
/// quota.
const ACCOUNTS_MAX: u64 = 10_000;
/// How long an account without events stays cached.
const IDLE_TTL: Duration = Duration::from_secs(60);

/// A share of an account's quota, released on drop.
pub(super) type AdmissionPermit = OwnedSemaphorePermit;

/// The quotas of all accounts. Cheap to clone.
#[derive(Clone)]
pub(super) struct AdmissionQuota {
    accounts: Cache<ProviderAccountId, Arc<Semaphore>>,
}

impl AdmissionQuota {
    pub(super) fn new() -> Self {
        Self {
            accounts: Cache::builder()
                .max_capacity(ACCOUNTS_MAX)
                .time_to_idle(IDLE_TTL)
                .build(),
        }
    }

    /// Waits, first come first served, until the account may queue so many events.
    pub(super) async fn acquire(
        &self,
        account_id: ProviderAccountId,
        events: usize,
    ) -> Option<AdmissionPermit> {
        let new = async { Arc::new(Semaphore::new(ACCOUNT_EVENTS_MAX)) };
        let quota = self.accounts.get_with(account_id, new).await;
        let events = u32::try_from(events.min(ACCOUNT_EVENTS_MAX)).ok()?;
        // Never closed.
        quota.acquire_many_owned(events).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_busy_account_waits_only_for_its_own_events() {
        let quota = AdmissionQuota::new();
        let [busy, other] = [1, 2].map(|id| ProviderAccountId(Uuid::from_u128(id)));
        let first = quota.acquire(busy, ACCOUNT_EVENTS_MAX).await;
        assert!(first.is_some());
        let mut next = Box::pin(quota.acquire(busy, 1));
        assert!(
            next.as_mut().now_or_never().is_none(),
            "the quota is used up"
        );
        assert!(quota.acquire(other, ACCOUNT_EVENTS_MAX).await.is_some());
        drop(first);
        assert!(next.await.is_some());
    }
}
