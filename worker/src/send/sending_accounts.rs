//! The accounts that may take a message, with their credentials decrypted. Both come from
//! the routing snapshot of the organization, so a call reads nothing from Postgres, and a
//! change takes effect as soon as its notification arrives.

use std::sync::Arc;

use tracing::error;
use waypost_core::account_limiter::{AccountCall, AccountLimiter, AccountLimits, Acquired};
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::lease::LeasedMessage;
use waypost_core::fault::Fault;
use waypost_core::ids::ProviderAccountId;
use waypost_core::message::compose;
use waypost_core::provider::adapter;
use waypost_core::provider::credentials::Credentials;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider_account::Accounts;
use waypost_core::routing::mailbox_provider::MailboxProvider;
use waypost_core::routing::rule::OnUnknown;
use waypost_core::routing::store::{self, MessageTraits};
use waypost_core::routing::targets::Draw;
use waypost_core::routing::{self, RoutingRequest, RoutingSnapshot};

use crate::send::target_caps::CappedTarget;

/// An account to send through.
#[derive(Debug, Clone)]
pub(crate) struct SendingAccount {
    pub(crate) id: ProviderAccountId,
    pub(crate) provider_type: ProviderType,
    pub(crate) limits: AccountLimits,
    /// How often its settings were corrected.
    pub(crate) revision: u32,
    /// Whether Postgres says that it cannot send.
    pub(crate) is_paused: bool,
    pub(crate) credentials: Arc<Credentials>,
    /// The caps of the message's rule for it.
    pub(crate) target: Option<CappedTarget>,
}

impl SendingAccount {
    /// Asks whether the account may be called now; with the recipient's domain if the
    /// provider throttles by domain.
    pub(crate) async fn acquire(
        &self,
        account_limiter: &AccountLimiter,
        domain: Option<&str>,
    ) -> Acquired {
        let call = AccountCall {
            account: self.id,
            revision: self.revision,
            limits: self.limits,
            process_calls_max: self.provider_type.calls_max(),
            domain,
        };
        account_limiter.acquire(call).await
    }

    /// Whether it has no limits, so that mail never waits for them.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.limits == AccountLimits::default() && self.provider_type.calls_max().is_none()
    }
}

/// The candidates for a message, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) accounts: Vec<SendingAccount>,
    pub(crate) on_unknown: OnUnknown,
    /// Why accounts were passed over that cannot carry the message.
    passed_over: Vec<String>,
}

impl Candidates {
    /// The reason if no candidate takes the message.
    pub(crate) fn no_account(&self) -> String {
        match self.passed_over.first() {
            Some(reason) if self.accounts.is_empty() => reason.clone(),
            _ => "no active provider account takes a message from this sender".to_owned(),
        }
    }
}

/// The accounts that may take a message, and its rule's `on_unknown`, both as the rule
/// says now.
pub(crate) async fn candidates(
    accounts: &Accounts,
    message: &LeasedMessage,
) -> Result<Candidates, Fault> {
    let content = &message.content;
    let organization_id = content.organization_id;
    let snapshot = accounts.snapshots.get(organization_id).await?;
    let from = compose::stored_mailbox(&content.from_mailbox)?;
    let accepted = message.accepted_route();
    let traits = message_traits(accounts, &snapshot, message).await?;
    let traits = traits.as_ref();
    let domains = traits.and_then(|traits| traits.recipient_domains.as_ref());
    let mailbox_provider = |domain: &str| {
        let own = MailboxProvider::of_own_domain(domain);
        own.or_else(|| traits?.mailbox_providers.get(domain).copied())
    };
    let domain = |index: usize| domains?.get(index).map(String::as_str);
    let request = RoutingRequest {
        sender: from.address(),
        tags: content.tags.iter().map(String::as_str).collect(),
        recipients: domains.is_some().then_some(&domain),
        mailbox_providers: &mailbox_provider,
        class: traits.map(|traits| traits.class),
        size_bytes: traits.map(|traits| traits.size_bytes),
        is_test: message.test_outcome.is_some(),
        draw: Draw::of_message(content.id),
    };
    let routed = routing::candidates_of(&snapshot, &accepted, &request);
    let rule = routed.rule;
    let mut usable = Vec::new();
    let mut failure = None;
    let recipients = usize::try_from(message.recipient_count).unwrap_or_default();
    let shape = compose::shape(content, recipients);
    let mut passed_over = Vec::new();
    let candidates = routed.accounts.into_iter();
    for account in candidates.filter_map(|id| snapshot.account(id)) {
        let (id, provider_type) = (account.id, account.provider_type);
        if let Some(reason) = adapter(provider_type).refuse(&shape) {
            passed_over.push(format!(
                "{provider_type} cannot carry the message: {reason}"
            ));
            continue;
        }
        let sealed = &account.credentials;
        match sealed.open(&accounts.sealer, organization_id, id, provider_type) {
            Ok(credentials) => usable.push(SendingAccount {
                id,
                provider_type,
                limits: account.limits,
                revision: account.revision,
                is_paused: account.is_paused,
                credentials,
                target: routed.named_by.and_then(|rule| CappedTarget::of(rule, id)),
            }),
            // The other candidates can still take the mail.
            Err(fault) => {
                error!(provider_account.id = %id, cause = fault.chain(), "The credentials of an account could not be decrypted");
                failure = Some(fault);
            }
        }
    }
    match failure {
        Some(fault) if usable.is_empty() => Err(fault),
        _ => Ok(Candidates {
            accounts: usable,
            passed_over,
            on_unknown: rule.map_or(OnUnknown::Wait, |rule| rule.terms.on_unknown),
        }),
    }
}

/// What rules look at of the message, if its route may depend on it.
async fn message_traits(
    accounts: &Accounts,
    snapshot: &RoutingSnapshot,
    message: &LeasedMessage,
) -> Result<Option<MessageTraits>, Fault> {
    if !routing::needs_traits(snapshot, &message.accepted_route()) {
        return Ok(None);
    }
    let content = &message.content;
    let doing = "read the traits of a message";
    db::bounded(doing, async {
        let mut connection = accounts.pool.acquire().await.or_fault(doing)?;
        let (organization_id, id) = (content.organization_id, content.id);
        store::message_traits(&mut connection, organization_id, id).await
    })
    .await
}
