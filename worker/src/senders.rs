//! Which account a copy goes through, with its credentials opened. They are
//! remembered for a moment, so that a busy account is not read and opened for
//! every call, and a change or deletion is seen soon.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use waypost_core::fault::Fault;
use waypost_core::ids::{OrganizationId, ProviderAccountId};
use waypost_core::provider::account::{AccountRefusal, Accounts, ProviderAccount};
use waypost_core::provider::credentials::Credentials;
use waypost_core::routing::{self, Enquiry};

/// How long opened credentials may be used.
const MEMORY: Duration = Duration::from_secs(2);
/// Accounts remembered at the most.
const REMEMBERED_MAX: u64 = 10_000;

/// An account to send through.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) account: ProviderAccount,
    pub(crate) credentials: Credentials,
}

/// Finds senders. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Senders {
    accounts: Accounts,
    remembered: Cache<(OrganizationId, ProviderAccountId), Option<Arc<Sender>>>,
}

impl Senders {
    pub(crate) fn new(accounts: Accounts) -> Self {
        let remembered = Cache::builder()
            .max_capacity(REMEMBERED_MAX)
            .time_to_live(MEMORY)
            .build();
        Self {
            accounts,
            remembered,
        }
    }

    /// The account resolved at acceptance, or, where it is gone or switched off,
    /// one that stands in for it. Nothing where there is none.
    pub(crate) async fn find(
        &self,
        organization_id: OrganizationId,
        preferred: ProviderAccountId,
        enquiry: &Enquiry<'_>,
    ) -> Result<Option<Arc<Sender>>, Fault> {
        if let Some(sender) = self.open(organization_id, preferred).await? {
            return Ok(Some(sender));
        }
        let snapshot = self.accounts.snapshots.get(organization_id).await?;
        match routing::stand_in(&snapshot, enquiry) {
            Some(route) => self.open(organization_id, route.account_id).await,
            None => Ok(None),
        }
    }

    async fn open(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Result<Option<Arc<Sender>>, Fault> {
        let opened = self.remembered.try_get_with((organization_id, id), async {
            match self.accounts.open(organization_id, id).await {
                Ok((account, credentials)) if account.is_active => Ok(Some(Arc::new(Sender {
                    account,
                    credentials,
                }))),
                Ok(_) | Err(AccountRefusal::NotFound) => Ok(None),
                Err(AccountRefusal::Fault(fault)) => Err(fault),
                Err(
                    AccountRefusal::InvalidCredentials { reason, .. }
                    | AccountRefusal::Undecided { reason, .. },
                ) => Err(Fault::internal("open an account", reason)),
            }
        });
        opened.await.map_err(|fault| (*fault).clone())
    }
}
