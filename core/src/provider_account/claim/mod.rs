//! Turns at a provider. Looking whether something is there and creating it are two
//! calls, and no transaction is held across them; so whoever changes something at a
//! provider holds a claim on it meanwhile. It ends with its holder's work, or by
//! itself where the holder died: the work is bounded to be shorter.

pub(super) mod store;

use std::time::Duration;

use chrono::TimeDelta;
use tracing::warn;
use uuid::Uuid;

use super::Accounts;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;

/// How long a conversation under a claim may take.
pub(super) const WORK_MAX: Duration = Duration::from_secs(60);
/// How long a claim is held at the most: the work, and what is stored of it.
const HELD_MAX: TimeDelta = TimeDelta::seconds(90);
/// How often, and how far apart, a claim that somebody else holds is tried.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// A turn at one thing of one account.
#[derive(Debug)]
pub(super) struct AccountClaim {
    account_id: ProviderAccountId,
    subject: String,
    holder: Uuid,
}

impl Accounts {
    /// Waits for a turn, five seconds at the most; nothing where somebody else is
    /// still at it then.
    pub(super) async fn claim(
        &self,
        account_id: ProviderAccountId,
        subject: String,
    ) -> Result<Option<AccountClaim>, Fault> {
        let claim = AccountClaim {
            account_id,
            subject,
            holder: self.ids.next(),
        };
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            let now = self.clock.now();
            let doing = "claim a turn at a provider";
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let (subject, holder) = (claim.subject.as_str(), claim.holder);
            let until = now + HELD_MAX;
            if store::insert(&mut connection, account_id, subject, holder, now, until).await? {
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// Gives a turn up. Where that fails it ends by itself.
    pub(super) async fn give_up(&self, claim: AccountClaim) {
        let giving_up = async {
            let doing = "give up a turn at a provider";
            let mut connection = self.pool.acquire().await.or_fault(doing)?;
            let subject = &claim.subject;
            store::delete(&mut connection, claim.account_id, subject, claim.holder).await
        };
        if let Err(fault) = giving_up.await {
            warn!(cause = fault.chain(), "A turn at a provider ends by itself");
        }
    }
}
