//! How much of what waits to be recorded may be one account's: a stranger's request
//! waits behind a window of each busy account, however much those have to tell.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::ids::ProviderAccountId;

/// Events of one account that wait or are being recorded at once, in one process:
/// enough to fill both lanes where nobody else tells anything.
const WINDOW: usize = 2_000;
/// Accounts that are remembered. Forgetting one too early only opens a second window
/// for it.
const ACCOUNTS_MAX: u64 = 10_000;
/// How long an account that tells nothing is remembered.
const IDLE: Duration = Duration::from_secs(60);

/// A place in an account's window.
pub(super) type AdmissionPermit = OwnedSemaphorePermit;

/// The windows of all accounts. Cheap to clone.
#[derive(Clone)]
pub(super) struct AdmissionQuota {
    of: Cache<ProviderAccountId, Arc<Semaphore>>,
}

impl AdmissionQuota {
    pub(super) fn new() -> Self {
        Self {
            of: Cache::builder()
                .max_capacity(ACCOUNTS_MAX)
                .time_to_idle(IDLE)
                .build(),
        }
    }

    /// Waits for room for so many events, in the order of coming.
    pub(super) async fn enter(
        &self,
        account_id: ProviderAccountId,
        events: usize,
    ) -> Option<AdmissionPermit> {
        let made = async { Arc::new(Semaphore::new(WINDOW)) };
        let window = self.of.get_with(account_id, made).await;
        let events = u32::try_from(events.min(WINDOW)).ok()?;
        // Never closed.
        window.acquire_many_owned(events).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_busy_account_waits_for_itself_and_for_nobody_else() {
        let windows = AdmissionQuota::new();
        let [busy, other] = [1, 2].map(|id| ProviderAccountId(Uuid::from_u128(id)));
        let first = windows.enter(busy, WINDOW).await;
        assert!(first.is_some());
        let mut next = Box::pin(windows.enter(busy, 1));
        assert!(next.as_mut().now_or_never().is_none(), "the window is full");
        assert!(windows.enter(other, WINDOW).await.is_some());
        drop(first);
        assert!(next.await.is_some());
    }
}
