//! Which accounts a copy may go through, with their credentials opened. They are
//! remembered for a moment, so that a busy account is not read and opened for
//! every call, and a change or deletion is seen soon.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use tracing::error;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::ids::{OrganizationId, ProviderAccountId};
use waypost_core::message::compose;
use waypost_core::provider::account::{AccountRefusal, Accounts, ProviderAccount};
use waypost_core::provider::credentials::Credentials;
use waypost_core::queue::lease::LeasedMessage;
use waypost_core::remembered;
use waypost_core::routing::rule::OnUnknown;
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

/// The accounts that may take a message, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) senders: Vec<Arc<Sender>>,
    pub(crate) on_unknown: OnUnknown,
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

    /// The accounts that may take a message, and what its rule says of lost answers:
    /// both as the rule is now.
    pub(crate) async fn candidates(&self, message: &LeasedMessage) -> Result<Candidates, Fault> {
        let content = &message.content;
        let snapshots = &self.accounts.snapshots;
        let snapshot = snapshots.get(content.organization_id).await?;
        let from = compose::stored_mailbox(&content.from_mailbox)?;
        let enquiry = Enquiry {
            sender_domain: from.address().domain(),
            tags: content.tags.iter().map(String::as_str).collect(),
        };
        let rule = message.routing_rule_id.and_then(|id| snapshot.rule(id));
        let resolved = message.provider_account_id;
        let mut senders = Vec::new();
        let mut failure = None;
        for id in routing::candidates(&snapshot, resolved, rule, &enquiry) {
            match self.open(content.organization_id, id).await {
                Ok(sender) => senders.extend(sender),
                Err(fault) if fault.kind() == FaultKind::Unavailable => return Err(fault),
                // One account that cannot be opened does not keep mail from the others.
                Err(fault) => {
                    error!(provider_account.id = %id, cause = fault.chain(), "An account could not be opened");
                    failure = Some(fault);
                }
            }
        }
        match failure {
            Some(fault) if senders.is_empty() => Err(fault),
            _ => Ok(Candidates {
                senders,
                on_unknown: rule.map_or(OnUnknown::Wait, |rule| rule.terms.on_unknown),
            }),
        }
    }

    /// An active account; nothing where it is gone or switched off.
    async fn open(
        &self,
        organization_id: OrganizationId,
        id: ProviderAccountId,
    ) -> Result<Option<Arc<Sender>>, Fault> {
        remembered::get_or_find(
            &self.remembered,
            &(organization_id, id),
            async || match self.accounts.open(organization_id, id).await {
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
            },
        )
        .await
    }
}
