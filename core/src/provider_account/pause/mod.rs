//! Accounts that cannot send: why, and since when. Workers find out with their calls; a
//! change of the account by the customer ends the pause.

pub mod store;

use serde_json::json;
use tracing::warn;

use super::{Accounts, ProviderAccount};
use crate::audit::{AuditChange, Origin};
use crate::clock::Timestamp;
use crate::db::{self, OrFault, PgTransaction};
use crate::delivery::outbox;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};

/// Why an account cannot send. Its mail waits meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingPaused {
    /// The provider's reason, for display.
    pub reason: String,
    pub since: Timestamp,
}

impl Accounts {
    /// Makes the waiting mail of an account due now, in a task of its own. If that fails,
    /// the mail stays due at its own time.
    pub(super) fn wake_mail(&self, account: ProviderAccount) {
        let (pool, clock) = (self.pool.clone(), self.clock.clone());
        tokio::spawn(async move {
            let woken = outbox::wake_account(&pool, account.organization_id, account.id, &clock);
            if let Err(fault) = woken.await {
                warn!(provider.account = %account.id, cause = fault.chain(), "Failed to wake the waiting mail of provider account {}", account.id);
            }
        });
    }

    /// Records that an account with this revision cannot send; false if that is already
    /// recorded or the account was changed since.
    pub async fn record_failing(
        &self,
        id: ProviderAccountId,
        revision: u32,
        reason: &str,
    ) -> Result<bool, Fault> {
        let doing = "record that an account cannot send";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let now = self.clock.now();
        let organization_id =
            store::pause_sending(&mut transaction, id, revision, reason, now).await?;
        let change = AuditChange::new("provider.failing", id).with(json!({ "reason": reason }));
        self.commit_with_audit(transaction, organization_id, id, &change, doing)
            .await
    }

    /// Records that an account can send again; false if it was not paused.
    pub async fn record_recovered(&self, id: ProviderAccountId) -> Result<bool, Fault> {
        let doing = "record that an account sends again";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let organization_id = store::resume_sending(&mut transaction, id).await?;
        let change = AuditChange::new("provider.recovered", id);
        self.commit_with_audit(transaction, organization_id, id, &change, doing)
            .await
    }

    /// Commits a transaction with an audit entry of the system, if it changed an account.
    async fn commit_with_audit(
        &self,
        mut transaction: PgTransaction<'_>,
        organization_id: Option<OrganizationId>,
        id: ProviderAccountId,
        change: &AuditChange,
        doing: &'static str,
    ) -> Result<bool, Fault> {
        let Some(organization_id) = organization_id else {
            return Ok(false);
        };
        let origin = Origin::system(id);
        self.record(&mut transaction, organization_id, &origin, change)
            .await?;
        transaction.commit().await.or_fault(doing)?;
        self.snapshots.forget(organization_id).await;
        Ok(true)
    }
}
