//! Foresight: an organization's next mail goes, as a rule, through the account that took
//! its last. A claim that says so begins with the attempt, which saves a statement and a
//! wait for the disk. Nothing relies on it: whoever claims is asked for the account
//! afterwards as ever, and an attempt that was foreseen wrongly is withdrawn.

use moka::future::Cache;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{LeaseRequest, PredictedAttempt};
use waypost_core::ids::{Ids, OrganizationId, ProviderAccountId};
use waypost_core::provider::outcome::SendOutcome;

use crate::send::sending_accounts::SendingAccount;

/// Organizations remembered at the most.
const REMEMBERED_MAX: u64 = 100_000;

/// What was learnt of the organizations' accounts.
pub(crate) struct AccountPrediction {
    accounts: Cache<OrganizationId, ProviderAccountId>,
    ids: Ids,
}

impl AccountPrediction {
    pub(crate) fn new(ids: Ids) -> Self {
        let accounts = Cache::builder().max_capacity(REMEMBERED_MAX).build();
        Self { accounts, ids }
    }

    /// What to claim for a job.
    pub(crate) async fn wanted(&self, job: SendJob) -> LeaseRequest {
        let account = self.accounts.get(&job.organization_id).await;
        let predicted = account.map(|provider_account_id| PredictedAttempt {
            attempt_id: self.ids.next(),
            provider_account_id,
        });
        LeaseRequest { job, predicted }
    }

    /// Learns what came of a call. An account with limits, or one that failed, may have to
    /// be waited for, and no attempt begins before its wait ends.
    pub(crate) async fn learn(
        &self,
        organization_id: OrganizationId,
        sender: &SendingAccount,
        outcome: &SendOutcome,
    ) {
        if !sender.is_free() || !matches!(outcome, SendOutcome::Accepted { .. }) {
            self.forget(organization_id).await;
        } else if self.accounts.get(&organization_id).await != Some(sender.id) {
            self.accounts.insert(organization_id, sender.id).await;
        }
    }

    /// Forgets what turned out to be wrong.
    pub(crate) async fn forget(&self, organization_id: OrganizationId) {
        self.accounts.invalidate(&organization_id).await;
    }
}
