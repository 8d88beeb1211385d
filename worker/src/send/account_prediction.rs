//! Predicts the account of an organization's next mail: as a rule, it is the one that took
//! the last.
//!
//! If an account is predicted, the attempt is written with the lease, which saves a
//! statement and a commit. Nothing relies on the prediction: the account is selected
//! afterwards as always, and an attempt for the wrong account is withdrawn.

use moka::future::Cache;
use waypost_core::delivery::job::SendJob;
use waypost_core::delivery::lease::{LeaseRequest, PredictedAttempt};
use waypost_core::ids::{Ids, OrganizationId, ProviderAccountId};
use waypost_core::provider::outcome::SendOutcome;

use crate::send::sending_accounts::SendingAccount;

/// The most organizations in the cache.
const ORGANIZATIONS_MAX: u64 = 100_000;

/// The account that took the last mail of each organization.
pub(crate) struct AccountPrediction {
    accounts: Cache<OrganizationId, ProviderAccountId>,
    ids: Ids,
}

impl AccountPrediction {
    pub(crate) fn new(ids: Ids) -> Self {
        let accounts = Cache::builder().max_capacity(ORGANIZATIONS_MAX).build();
        Self { accounts, ids }
    }

    /// The request to lease the chunk of a job.
    pub(crate) async fn request(&self, job: SendJob) -> LeaseRequest {
        let account = self.accounts.get(&job.organization_id).await;
        let predicted = account.map(|provider_account_id| PredictedAttempt {
            attempt_id: self.ids.next(),
            provider_account_id,
        });
        LeaseRequest { job, predicted }
    }

    /// Learns from the outcome of a call. An account with limits, or one that failed, is
    /// not predicted: its mail may have to wait, and an attempt is not written before the
    /// wait.
    pub(crate) async fn learn(
        &self,
        organization_id: OrganizationId,
        account: &SendingAccount,
        outcome: &SendOutcome,
    ) {
        if !account.is_unlimited() || !matches!(outcome, SendOutcome::Accepted { .. }) {
            self.forget(organization_id).await;
        } else if self.accounts.get(&organization_id).await != Some(account.id) {
            self.accounts.insert(organization_id, account.id).await;
        }
    }

    /// Removes a prediction that was wrong.
    pub(crate) async fn forget(&self, organization_id: OrganizationId) {
        self.accounts.invalidate(&organization_id).await;
    }
}
