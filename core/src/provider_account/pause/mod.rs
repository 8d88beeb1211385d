//! Accounts that cannot send: why, since when, and when that is over. Workers find it out
//! with the calls that they make; whoever mends an account says so by changing it.

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

/// What keeps an account itself from sending: its mail waits meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendingPaused {
    /// What the provider says, for people.
    pub reason: String,
    pub since: Timestamp,
}

impl Accounts {
    /// Has the mail that waits for an account tried at once. Nobody waits for that: what
    /// cannot be woken comes at its own time.
    pub(super) fn wake_mail_of(&self, account: ProviderAccount) {
        let (pool, clock) = (self.pool.clone(), self.clock.clone());
        tokio::spawn(async move {
            let woken = outbox::wake_account(&pool, account.organization_id, account.id, &clock);
            if let Err(fault) = woken.await {
                warn!(provider.account = %account.id, cause = fault.chain(), "Mail that waits for a mended account could not be woken");
            }
        });
    }

    /// Records that an account cannot send, as it was when it had this revision; false
    /// where that is known, or it was mended since.
    pub async fn note_failing(
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
        self.note(transaction, organization_id, id, &change, doing)
            .await
    }

    /// Records that an account sends again; false where nothing else was known.
    pub async fn note_recovered(&self, id: ProviderAccountId) -> Result<bool, Fault> {
        let doing = "record that an account sends again";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let organization_id = store::resume_sending(&mut transaction, id).await?;
        let change = AuditChange::new("provider.recovered", id);
        self.note(transaction, organization_id, id, &change, doing)
            .await
    }

    /// Ends a transaction with the record of what Waypost itself found, where it did.
    async fn note(
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
