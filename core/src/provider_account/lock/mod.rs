//! Locks on a resource at a provider. Checking whether something exists and creating it are
//! two calls, and no transaction is held across them; so a request holds a lock on the
//! resource while it changes it. The request releases the lock; if the process dies, the
//! lock expires: the work is bounded to be shorter.

pub(super) mod store;

use std::time::Duration;

use chrono::TimeDelta;
use tracing::warn;
use uuid::Uuid;

use super::Accounts;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;

/// The longest conversation under a lock.
pub(super) const CONVERSATION_MAX: Duration = Duration::from_secs(60);
/// How long a lock is held at most: the conversation, and storing its result.
const LOCK_MAX: TimeDelta = TimeDelta::seconds(90);
/// How often, and how far apart, a held lock is tried.
const TRIES: u32 = 50;
const TRY_INTERVAL: Duration = Duration::from_millis(100);

/// A lock on one resource of one account.
#[derive(Debug)]
pub(super) struct AccountLock {
    account_id: ProviderAccountId,
    resource: String,
    holder: Uuid,
}

impl Accounts {
    /// Waits up to five seconds for a lock; `None` if another request still holds it.
    pub(super) async fn lock(
        &self,
        account_id: ProviderAccountId,
        resource: String,
    ) -> Result<Option<AccountLock>, Fault> {
        let lock = AccountLock {
            account_id,
            resource,
            holder: self.ids.next(),
        };
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(TRY_INTERVAL).await;
            }
            let now = self.clock.now();
            let doing = "lock a resource at a provider";
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let (resource, holder) = (lock.resource.as_str(), lock.holder);
            let until = now + LOCK_MAX;
            if store::insert(&mut connection, account_id, resource, holder, now, until).await? {
                return Ok(Some(lock));
            }
        }
        Ok(None)
    }

    /// Releases a lock. If that fails, the lock expires.
    pub(super) async fn unlock(&self, lock: AccountLock) {
        let unlocking = async {
            let doing = "release a lock at a provider";
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let resource = &lock.resource;
            store::delete(&mut connection, lock.account_id, resource, lock.holder).await
        };
        if let Err(fault) = unlocking.await {
            warn!(
                cause = fault.chain(),
                "Failed to release a lock at a provider; it expires"
            );
        }
    }
}
