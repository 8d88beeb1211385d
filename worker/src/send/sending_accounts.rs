//! Which accounts a copy may go through, with their credentials opened. Both are part of
//! what is remembered of an organization's routing, so a busy account is not read for
//! every call, and a change is seen as soon as it is told.

use std::sync::Arc;

use tracing::error;
use waypost_core::account_limiter::{AccountCall, AccountLimiter, AccountLimits, Acquired};
use waypost_core::delivery::lease::LeasedMessage;
use waypost_core::fault::Fault;
use waypost_core::ids::ProviderAccountId;
use waypost_core::message::compose;
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::Accounts;
use waypost_core::routing::rule::OnUnknown;
use waypost_core::routing::{self, RoutingRequest};

/// An account to send through.
#[derive(Debug, Clone)]
pub(crate) struct SendingAccount {
    pub(crate) id: ProviderAccountId,
    pub(crate) provider_type: ProviderType,
    pub(crate) limits: AccountLimits,
    /// How often somebody mended it.
    pub(crate) revision: u32,
    /// Whether it is on record that it cannot send.
    pub(crate) is_paused: bool,
    pub(crate) credentials: Arc<Credentials>,
}

impl SendingAccount {
    /// Asks leave to call it, with mail for a domain where that matters.
    pub(crate) async fn enter(&self, gates: &AccountLimiter, domain: Option<&str>) -> Acquired {
        let call = AccountCall {
            account: self.id,
            revision: self.revision,
            limits: self.limits,
            process_calls_max: self.provider_type.calls_max(),
            domain,
        };
        gates.acquire(call).await
    }

    /// Whether its mail never waits for its own pace.
    pub(crate) fn is_free(&self) -> bool {
        self.limits == AccountLimits::default() && self.provider_type.calls_max().is_none()
    }
}

/// The accounts that may take a message, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) senders: Vec<SendingAccount>,
    pub(crate) on_unknown: OnUnknown,
}

/// The accounts that may take a message, and what its rule says of lost answers:
/// both as the rule is now.
pub(crate) async fn candidates(
    accounts: &Accounts,
    message: &LeasedMessage,
) -> Result<Candidates, Fault> {
    let content = &message.content;
    let organization_id = content.organization_id;
    let snapshot = accounts.snapshots.get(organization_id).await?;
    let from = compose::stored_mailbox(&content.from_mailbox)?;
    let enquiry = RoutingRequest {
        sender_domain: from.address().domain(),
        tags: content.tags.iter().map(String::as_str).collect(),
    };
    let rule = message.routing_rule_id.and_then(|id| snapshot.rule(id));
    let resolved = message.provider_account_id;
    let mut senders = Vec::new();
    let mut failure = None;
    let candidates = routing::candidates(&snapshot, resolved, rule, &enquiry);
    for account in candidates.into_iter().filter_map(|id| snapshot.account(id)) {
        let (id, kind) = (account.id, account.provider_type);
        match account
            .credentials
            .open(&accounts.sealer, organization_id, id, kind)
        {
            Ok(credentials) => senders.push(SendingAccount {
                id,
                provider_type: kind,
                limits: account.limits,
                revision: account.revision,
                is_paused: account.is_paused,
                credentials,
            }),
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
