//! Routing: chooses the provider account of a message. Pure: works on a snapshot of the
//! organization's accounts.
//!
//! Rules are evaluated by priority, highest first, then by age, oldest first. The first
//! rule that is active, matches and has an active account decides. Without such a rule,
//! the oldest active account is used. A rule with targets shares its messages out between
//! several accounts by weight (`targets`).

pub mod conditions;
pub mod mailbox_provider;
pub mod pinned;
pub mod ramp;
mod region;
pub mod rule;
pub mod simulation;
pub mod snapshot_cache;
pub mod store;
pub mod target_health;
pub mod target_usage;
pub mod targets;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::account_limiter::AccountLimits;
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::ids::{ProviderAccountId, RoutingRuleId};
use crate::organization::UnverifiedDomains;
use crate::provider::credentials::ReadCredentials;
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::provider::region::AccountRegion;
use crate::tracking::Tracking;

use conditions::MessageClass;
use mailbox_provider::MailboxProviderOf;
use rule::{RoutingRule, RuleTerms, TagMatch};
use target_health::HealthFactors;
use targets::Draw;

/// What routing needs of an organization.
#[derive(Debug, Clone)]
pub struct RoutingSnapshot {
    /// How messages from an unverified domain are treated.
    pub unverified_domains: UnverifiedDomains,
    /// The default tracking of messages. It does not affect the route; it is cached here
    /// because acceptance needs it at the same time.
    pub tracking: Tracking,
    /// The active accounts, oldest first.
    pub accounts: Vec<RoutableAccount>,
    /// The rules, inactive ones included, in the order of evaluation.
    pub rules: Vec<RoutingRule>,
    /// The health of accounts. Known only if a rule prefers healthy targets.
    pub health: HealthFactors,
}

impl RoutingSnapshot {
    /// That of an organization that does not exist.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            unverified_domains: UnverifiedDomains::Reject,
            tracking: Tracking::default(),
            accounts: Vec::new(),
            rules: Vec::new(),
            health: HealthFactors::default(),
        }
    }

    /// An active account; `None` if it is inactive or gone.
    #[must_use]
    pub fn account(&self, id: ProviderAccountId) -> Option<&RoutableAccount> {
        self.accounts.iter().find(|account| account.id == id)
    }

    /// Whether the size of messages matters to a rule.
    #[must_use]
    pub fn looks_at_size(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.terms.conditions.looks_at_size())
    }

    /// Whether the mailbox providers of recipients matter to a rule.
    #[must_use]
    pub fn looks_at_mailbox_providers(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| !rule.terms.conditions.recipient_mailbox_providers.is_empty())
    }

    /// A rule, active or not; `None` if it is gone.
    #[must_use]
    pub fn rule(&self, id: RoutingRuleId) -> Option<&RoutingRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

/// The parts of a message that routing depends on.
#[derive(Clone)]
pub struct RoutingRequest<'a> {
    /// The sender's address.
    pub sender: &'a EmailAddress,
    pub tags: Vec<&'a str>,
    /// The domains of the recipients; `None` if they are not known.
    pub recipients: Option<RecipientDomains<'a>>,
    pub mailbox_providers: MailboxProviderOf<'a>,
    /// `None` if it is not known.
    pub class: Option<MessageClass>,
    /// The bytes of the subject, the bodies and the decoded files; `None` if not known.
    pub size_bytes: Option<u64>,
    pub is_test: bool,
    /// Which of several targets the message gets.
    pub draw: Draw<'a>,
}

/// The domain of the recipient at an index; `None` after the last.
pub type RecipientDomains<'a> = &'a (dyn Fn(usize) -> Option<&'a str> + Sync);

impl RoutingRequest<'_> {
    /// The sender's domain, in lower-case ASCII.
    fn sender_domain(&self) -> &str {
        self.sender.domain()
    }
}

/// An active account.
#[derive(Debug, Clone)]
pub struct RoutableAccount {
    pub id: ProviderAccountId,
    pub provider_type: ProviderType,
    pub created_at: Timestamp,
    pub limits: AccountLimits,
    pub credentials: ReadCredentials,
    /// Known only if a rule has a region.
    pub region: Option<AccountRegion>,
    /// The revision of the account: see
    /// [`crate::account_limiter::AccountCall::revision`].
    pub revision: u32,
    /// Whether sending is paused because the account could not send.
    pub is_paused: bool,
    /// Whether the credentials can list the account's domains. If not, a domain without a
    /// record is unknown rather than unverified.
    pub domains_visible: bool,
    /// The state of each recorded domain.
    pub domains: HashMap<String, DomainState>,
}

/// A fallback account of a rule, and whether it can take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    pub account_id: ProviderAccountId,
    /// Whether the sender's domain is verified at the account.
    pub domain_verified: bool,
    /// Why it never takes over; `None` if it does.
    pub passed_over: Option<FallbackPassedOver>,
}

/// Why a fallback never takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackPassedOver {
    /// The account is inactive or gone.
    ProviderInactive,
    /// The sender's domain is not verified at the account.
    DomainNotVerified,
    /// The account is not in the rule's region.
    Region,
}

impl FallbackPassedOver {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderInactive => "PROVIDER_INACTIVE",
            Self::DomainNotVerified => "DOMAIN_NOT_VERIFIED",
            Self::Region => "REGION",
        }
    }
}

/// The account chosen for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub account_id: ProviderAccountId,
    pub provider_type: ProviderType,
    /// Whether the sender's domain is verified at the account.
    pub domain_verified: bool,
    /// The rule that chose it; `None` if no rule matched.
    pub rule_id: Option<RoutingRuleId>,
}

/// Why no account can take a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteRefusal {
    NoActiveProvider,
    /// The rule that matches has a region, and no account in it is active.
    NoneInRegion(AccountRegion),
    /// The sender's domain is not verified at the chosen account.
    DomainNotVerified(ProviderType),
}

/// Why a rule does not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedOver {
    RuleInactive,
    /// The sender's domain does not match.
    SenderDomain,
    /// The tags do not match.
    Tags,
    /// A recipient's domain does not match.
    RecipientDomain,
    /// The mailbox provider of a recipient is another one, or not known.
    RecipientMailboxProvider,
    MessageClass,
    /// The message is too small or too large.
    Size,
    /// The rule is for tests and the message is none, or the reverse.
    Test,
    /// The rule's account is inactive or gone.
    ProviderInactive,
}

impl PassedOver {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RuleInactive => "RULE_INACTIVE",
            Self::SenderDomain => "SENDER_DOMAIN",
            Self::Tags => "TAGS",
            Self::RecipientDomain => "RECIPIENT_DOMAIN",
            Self::RecipientMailboxProvider => "RECIPIENT_MAILBOX_PROVIDER",
            Self::MessageClass => "MESSAGE_CLASS",
            Self::Size => "SIZE",
            Self::Test => "TEST",
            Self::ProviderInactive => "PROVIDER_INACTIVE",
        }
    }
}

impl RoutableAccount {
    /// The state of a domain at this account. A subdomain needs its own record.
    #[must_use]
    pub fn domain_state(&self, domain: &str) -> DomainState {
        match self.domains.get(domain) {
            Some(state) => *state,
            None if self.domains_visible => DomainState::Unverified,
            None => DomainState::Unknown,
        }
    }
}

/// Evaluates a rule: the account, if the rule applies. Only a rule with a region can apply
/// without having any.
///
/// # Errors
/// Why the rule does not apply.
pub fn evaluate<'a>(
    rule: &RoutingRule,
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Result<Option<&'a RoutableAccount>, PassedOver> {
    let terms = &rule.terms;
    if !terms.is_active {
        return Err(PassedOver::RuleInactive);
    }
    let pattern = terms.sender_domain.as_ref();
    if pattern.is_some_and(|pattern| !pattern.matches(request.sender_domain())) {
        return Err(PassedOver::SenderDomain);
    }
    if !matches_tags(terms, request) {
        return Err(PassedOver::Tags);
    }
    terms.conditions.check(request)?;
    let account = targets::account_of(rule, snapshot, request);
    let account = account.or_else(|| region::substitute(rule, snapshot, request));
    match account {
        None if terms.region.is_none() => Err(PassedOver::ProviderInactive),
        Some(_) | None => Ok(account),
    }
}

fn matches_tags(terms: &RuleTerms, request: &RoutingRequest<'_>) -> bool {
    let mut wanted = terms.tags.iter().map(|tag| tag.as_str());
    match terms.tag_match {
        _ if terms.tags.is_empty() => true,
        TagMatch::Any => wanted.any(|tag| request.tags.contains(&tag)),
        TagMatch::All => wanted.all(|tag| request.tags.contains(&tag)),
    }
}

/// Chooses the account of a message.
///
/// # Errors
/// Why no account can take it.
pub fn resolve(
    snapshot: &RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Result<Route, RouteRefusal> {
    route_by(snapshot, matching_rule(snapshot, request), request).1
}

/// The account that a rule decided for, or the oldest, and the route through it.
fn route_by<'a>(
    snapshot: &'a RoutingSnapshot,
    decided: Option<(&RoutingRule, Option<&'a RoutableAccount>)>,
    request: &RoutingRequest<'_>,
) -> (Option<&'a RoutableAccount>, Result<Route, RouteRefusal>) {
    let rule_id = decided.map(|(rule, _)| rule.id);
    let account = match decided {
        Some((_, account)) => account,
        None => snapshot.accounts.first(),
    };
    let Some(account) = account else {
        let region = decided.and_then(|(rule, _)| rule.terms.region);
        let refusal = region.map_or(RouteRefusal::NoActiveProvider, RouteRefusal::NoneInRegion);
        return (None, Err(refusal));
    };
    let refusal = RouteRefusal::DomainNotVerified(account.provider_type);
    let routed = route(snapshot, account, rule_id, request);
    (Some(account), routed.ok_or(refusal))
}

/// The route of a message, and why it is that.
#[derive(Debug)]
pub struct Explanation<'a> {
    /// The rules before the one that decided, in order.
    pub passed_over: Vec<(&'a RoutingRule, PassedOver)>,
    /// The rule that decided, if one did.
    pub rule: Option<&'a RoutingRule>,
    /// The account that it decided for, or the oldest; `None` if none is active.
    pub account: Option<&'a RoutableAccount>,
    pub route: Result<Route, RouteRefusal>,
}

/// Chooses the account of a message as [`resolve`] does, and says why.
#[must_use]
pub fn explain<'a>(snapshot: &'a RoutingSnapshot, request: &RoutingRequest<'_>) -> Explanation<'a> {
    let mut passed_over = Vec::new();
    let mut rules = snapshot.rules.iter();
    let decided = rules.find_map(|rule| match evaluate(rule, snapshot, request) {
        Ok(account) => Some((rule, account)),
        Err(reason) => {
            passed_over.push((rule, reason));
            None
        }
    });
    let (account, route) = route_by(snapshot, decided, request);
    Explanation {
        passed_over,
        rule: decided.map(|(rule, _)| rule),
        account,
        route,
    }
}

/// The rule that decides, and its account, if it has any.
fn matching_rule<'a>(
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Option<(&'a RoutingRule, Option<&'a RoutableAccount>)> {
    let mut rules = snapshot.rules.iter();
    rules.find_map(|rule| Some((rule, evaluate(rule, snapshot, request).ok()?)))
}

/// The substitute for the account of an accepted message that is inactive or gone: the
/// first account that accepts the sender, among those of matching rules, then among all
/// active ones. It is in the region of the message's rule, if that has one.
fn find_substitute(
    snapshot: &RoutingSnapshot,
    rule: Option<&RoutingRule>,
    request: &RoutingRequest<'_>,
) -> Option<Route> {
    let by_rules = snapshot
        .rules
        .iter()
        .filter_map(|rule| Some((evaluate(rule, snapshot, request).ok()??, Some(rule.id))));
    let others = snapshot.accounts.iter().map(|account| (account, None));
    by_rules
        .chain(others)
        .filter(|(account, _)| rule.is_none_or(|rule| rule.terms.allows(account)))
        .find_map(|(account, rule_id)| route(snapshot, account, rule_id, request))
}

/// The accounts that may send an accepted message, in the order in which they are tried:
/// the account resolved at acceptance, then the accounts that the message's rule names
/// now, its targets before its fallbacks, without duplicates. If an account is removed, its
/// rule's first fallback moves up, so the rule's own account may be a fallback of the message. A
/// fallback must be active, and the sender's domain must not be unverified at it, unless the
/// organization accepts unverified domains. If the resolved account is inactive or gone, a substitute comes
/// last. Of all of them, only those in the region of the rule.
#[must_use]
pub fn candidates(
    snapshot: &RoutingSnapshot,
    resolved: ProviderAccountId,
    rule: Option<&RoutingRule>,
    request: &RoutingRequest<'_>,
) -> Vec<ProviderAccountId> {
    let allows = |account: &&RoutableAccount| rule.is_none_or(|rule| rule.terms.allows(account));
    let own = snapshot.account(resolved).filter(allows);
    let own = own.map(|account| account.id);
    let named = rule.into_iter().flat_map(|rule| rule.terms.accounts());
    let fallbacks = named
        .filter_map(|id| snapshot.account(id))
        .filter(allows)
        .filter(|account| route(snapshot, account, None, request).is_some())
        .map(|account| account.id);
    let substitute = match own {
        Some(_) => None,
        None => find_substitute(snapshot, rule, request).map(|route| route.account_id),
    };
    let mut candidates: Vec<ProviderAccountId> = Vec::new();
    for id in own.into_iter().chain(fallbacks).chain(substitute) {
        if !candidates.contains(&id) {
            candidates.push(id);
        }
    }
    candidates
}

/// What acceptance decided about the route of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcceptedRoute {
    pub account_id: ProviderAccountId,
    pub rule_id: Option<RoutingRuleId>,
    /// Whether no other account may send the message.
    pub is_pinned: bool,
    /// Whether the rules are applied again when the message goes, as they are then: it was
    /// scheduled.
    pub is_resolved_anew: bool,
}

/// The accounts that may send an accepted message now, and the rule whose terms apply.
#[derive(Debug)]
pub struct SendingRoute<'a> {
    pub accounts: Vec<ProviderAccountId>,
    pub rule: Option<&'a RoutingRule>,
    /// The rule that names the accounts: `rule`, or the one that matches now. Its caps hold.
    pub named_by: Option<&'a RoutingRule>,
}

/// Whether the route of an accepted message may depend on its traits: the rules are applied
/// again, and one of them looks at traits.
#[must_use]
pub fn needs_traits(snapshot: &RoutingSnapshot, accepted: &AcceptedRoute) -> bool {
    let has_rule = accepted
        .rule_id
        .is_some_and(|id| snapshot.rule(id).is_some());
    let has_account = snapshot.account(accepted.account_id).is_some();
    let is_as_accepted = has_rule && has_account && !accepted.is_resolved_anew;
    let mut rules = snapshot.rules.iter();
    !accepted.is_pinned && !is_as_accepted && rules.any(|rule| rule.terms.looks_at_traits())
}

/// The accounts that may send an accepted message now: of a pinned one its account alone, of a
/// scheduled one those of the rules as they are now, of all others [`candidates`]. A message
/// that no rule chose an account for, or whose rule was deleted, has the accounts of the rule
/// that matches now: a rule that is made for a failing account helps the mail that waits.
/// Without any account, nobody takes the message.
#[must_use]
pub fn candidates_of<'a>(
    snapshot: &'a RoutingSnapshot,
    accepted: &AcceptedRoute,
    request: &RoutingRequest<'_>,
) -> SendingRoute<'a> {
    let (account_id, rule_id) = if accepted.is_pinned {
        let account = snapshot.account(accepted.account_id);
        return SendingRoute {
            accounts: account.map(|account| account.id).into_iter().collect(),
            rule: accepted.rule_id.and_then(|id| snapshot.rule(id)),
            named_by: None,
        };
    } else if accepted.is_resolved_anew {
        match resolve(snapshot, request) {
            Ok(route) => (route.account_id, route.rule_id),
            Err(_) => {
                return SendingRoute {
                    accounts: Vec::new(),
                    rule: None,
                    named_by: None,
                };
            }
        }
    } else {
        (accepted.account_id, accepted.rule_id)
    };
    let rule = rule_id.and_then(|id| snapshot.rule(id));
    let naming = rule.or_else(|| Some(matching_rule(snapshot, request)?.0));
    SendingRoute {
        accounts: candidates(snapshot, account_id, naming, request),
        rule,
        named_by: naming,
    }
}

/// The fallbacks of a rule, in order, and whether they can take over.
#[must_use]
pub fn fallbacks(
    snapshot: &RoutingSnapshot,
    rule: &RoutingRule,
    request: &RoutingRequest<'_>,
) -> Vec<Fallback> {
    let fallbacks = rule.terms.fallbacks.iter();
    fallbacks
        .map(|id| fallback(snapshot, rule, *id, request))
        .collect()
}

/// Whether an account that a rule names can take a message.
fn fallback(
    snapshot: &RoutingSnapshot,
    rule: &RoutingRule,
    id: ProviderAccountId,
    request: &RoutingRequest<'_>,
) -> Fallback {
    let account = snapshot.account(id);
    let route = account.and_then(|account| route(snapshot, account, None, request));
    Fallback {
        account_id: id,
        domain_verified: route.is_some_and(|route| route.domain_verified),
        passed_over: match (account, route) {
            (None, _) => Some(FallbackPassedOver::ProviderInactive),
            (Some(account), _) if !rule.terms.allows(account) => Some(FallbackPassedOver::Region),
            (Some(_), None) => Some(FallbackPassedOver::DomainNotVerified),
            (Some(_), Some(_)) => None,
        },
    }
}

/// The route through an account, unless it refuses the sender's domain.
fn route(
    snapshot: &RoutingSnapshot,
    account: &RoutableAccount,
    rule_id: Option<RoutingRuleId>,
    request: &RoutingRequest<'_>,
) -> Option<Route> {
    let state = account.domain_state(request.sender_domain());
    let refuses = snapshot.unverified_domains == UnverifiedDomains::Reject;
    (state != DomainState::Unverified || !refuses).then_some(Route {
        account_id: account.id,
        provider_type: account.provider_type,
        domain_verified: state == DomainState::Verified,
        rule_id,
    })
}
