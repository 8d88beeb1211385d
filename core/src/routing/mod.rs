//! Routing: chooses the provider account of a message. Pure: works on a snapshot of the
//! organization's accounts.
//!
//! Rules are evaluated by priority, highest first, then by age, oldest first. The first
//! rule that is active, matches and has an active account decides. Without such a rule,
//! the oldest active account is used.

pub mod pinned;
pub mod rule;
pub mod snapshot_cache;
pub mod store;

use std::collections::HashMap;

use crate::account_limiter::AccountLimits;
use crate::clock::Timestamp;
use crate::ids::{ProviderAccountId, RoutingRuleId};
use crate::organization::UnverifiedDomains;
use crate::provider::credentials::ReadCredentials;
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::tracking::Tracking;

use rule::{RoutingRule, RuleTerms, TagMatch};

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
}

impl RoutingSnapshot {
    /// An active account; `None` if it is inactive or gone.
    #[must_use]
    pub fn account(&self, id: ProviderAccountId) -> Option<&RoutableAccount> {
        self.accounts.iter().find(|account| account.id == id)
    }

    /// A rule, active or not; `None` if it is gone.
    #[must_use]
    pub fn rule(&self, id: RoutingRuleId) -> Option<&RoutingRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

/// The parts of a message that routing depends on.
#[derive(Debug, Clone)]
pub struct RoutingRequest<'a> {
    /// The sender's domain, in lower-case ASCII.
    pub sender_domain: &'a str,
    pub tags: Vec<&'a str>,
}

/// An active account.
#[derive(Debug, Clone)]
pub struct RoutableAccount {
    pub id: ProviderAccountId,
    pub provider_type: ProviderType,
    pub created_at: Timestamp,
    pub limits: AccountLimits,
    pub credentials: ReadCredentials,
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
}

impl FallbackPassedOver {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderInactive => "PROVIDER_INACTIVE",
            Self::DomainNotVerified => "DOMAIN_NOT_VERIFIED",
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

/// Evaluates a rule: the account, if the rule applies.
///
/// # Errors
/// Why the rule does not apply.
pub fn evaluate<'a>(
    rule: &RoutingRule,
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Result<&'a RoutableAccount, PassedOver> {
    let terms = &rule.terms;
    if !terms.is_active {
        return Err(PassedOver::RuleInactive);
    }
    let pattern = terms.sender_domain.as_ref();
    if pattern.is_some_and(|pattern| !pattern.matches(request.sender_domain)) {
        return Err(PassedOver::SenderDomain);
    }
    if !matches_tags(terms, request) {
        return Err(PassedOver::Tags);
    }
    snapshot
        .account(terms.provider_account_id)
        .ok_or(PassedOver::ProviderInactive)
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
    let (account, rule_id) = matching_rule(snapshot, request)
        .map(|(rule, account)| (account, Some(rule.id)))
        .or_else(|| Some((snapshot.accounts.first()?, None)))
        .ok_or(RouteRefusal::NoActiveProvider)?;
    route(snapshot, account, rule_id, request)
        .ok_or(RouteRefusal::DomainNotVerified(account.provider_type))
}

/// The rule that decides, and its account.
fn matching_rule<'a>(
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Option<(&'a RoutingRule, &'a RoutableAccount)> {
    let mut rules = snapshot.rules.iter();
    rules.find_map(|rule| Some((rule, evaluate(rule, snapshot, request).ok()?)))
}

/// The substitute for the account of an accepted message that is inactive or gone: the
/// first account that accepts the sender, among those of matching rules, then among all
/// active ones.
#[must_use]
pub fn find_substitute(snapshot: &RoutingSnapshot, request: &RoutingRequest<'_>) -> Option<Route> {
    let by_rules = snapshot
        .rules
        .iter()
        .filter_map(|rule| Some((evaluate(rule, snapshot, request).ok()?, Some(rule.id))));
    let others = snapshot.accounts.iter().map(|account| (account, None));
    by_rules
        .chain(others)
        .find_map(|(account, rule_id)| route(snapshot, account, rule_id, request))
}

/// The accounts that may send an accepted message, in the order in which they are tried:
/// the account resolved at acceptance, then the accounts that the message's rule names
/// now, without duplicates. If an account is removed, its rule's first fallback moves up,
/// so the rule's own account may be a fallback of the message. A fallback must be active,
/// and the sender's domain must not be unverified at it, unless the organization accepts
/// unverified domains. If the resolved account is inactive or gone, a substitute comes
/// last.
#[must_use]
pub fn candidates(
    snapshot: &RoutingSnapshot,
    resolved: ProviderAccountId,
    rule: Option<&RoutingRule>,
    request: &RoutingRequest<'_>,
) -> Vec<ProviderAccountId> {
    let own = snapshot.account(resolved).map(|account| account.id);
    let named = rule.into_iter().flat_map(|rule| {
        let terms = &rule.terms;
        std::iter::once(&terms.provider_account_id).chain(&terms.fallbacks)
    });
    let fallbacks = named
        .filter_map(|id| snapshot.account(*id))
        .filter(|account| route(snapshot, account, None, request).is_some())
        .map(|account| account.id);
    let substitute = match own {
        Some(_) => None,
        None => find_substitute(snapshot, request).map(|route| route.account_id),
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
        };
    } else if accepted.is_resolved_anew {
        match resolve(snapshot, request) {
            Ok(route) => (route.account_id, route.rule_id),
            Err(_) => {
                return SendingRoute {
                    accounts: Vec::new(),
                    rule: None,
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
    }
}

/// The fallbacks of a rule, in order, and whether they can take over.
#[must_use]
pub fn fallbacks(
    snapshot: &RoutingSnapshot,
    rule: &RoutingRule,
    request: &RoutingRequest<'_>,
) -> Vec<Fallback> {
    let fallback = |id: &ProviderAccountId| {
        let account = snapshot.account(*id);
        let route = account.and_then(|account| route(snapshot, account, None, request));
        Fallback {
            account_id: *id,
            domain_verified: route.is_some_and(|route| route.domain_verified),
            passed_over: match (account, route) {
                (None, _) => Some(FallbackPassedOver::ProviderInactive),
                (Some(_), None) => Some(FallbackPassedOver::DomainNotVerified),
                (Some(_), Some(_)) => None,
            },
        }
    };
    rule.terms.fallbacks.iter().map(fallback).collect()
}

/// The route through an account, unless it refuses the sender's domain.
fn route(
    snapshot: &RoutingSnapshot,
    account: &RoutableAccount,
    rule_id: Option<RoutingRuleId>,
    request: &RoutingRequest<'_>,
) -> Option<Route> {
    let state = account.domain_state(request.sender_domain);
    let refuses = snapshot.unverified_domains == UnverifiedDomains::Reject;
    (state != DomainState::Unverified || !refuses).then_some(Route {
        account_id: account.id,
        provider_type: account.provider_type,
        domain_verified: state == DomainState::Verified,
        rule_id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ids::Ids;
    use crate::text::{Name, Tag};
    use rule::{DomainPattern, OnUnknown};

    fn account(state: Option<DomainState>, domains_visible: bool) -> RoutableAccount {
        let domains = state.map(|state| ("example.com".to_owned(), state));
        RoutableAccount {
            id: Ids::new(Clock::system()).next(),
            provider_type: ProviderType::Mailgun,
            created_at: Clock::system().now(),
            limits: AccountLimits::default(),
            credentials: ReadCredentials::new(Vec::new()),
            revision: 0,
            is_paused: false,
            domains_visible,
            domains: domains.into_iter().collect(),
        }
    }

    fn routed(
        account: RoutableAccount,
        unverified_domains: UnverifiedDomains,
    ) -> Result<bool, RouteRefusal> {
        let snapshot = RoutingSnapshot {
            unverified_domains,
            tracking: Tracking::default(),
            accounts: vec![account],
            rules: vec![],
        };
        resolve(&snapshot, &request("example.com", &[])).map(|route| route.domain_verified)
    }

    #[test]
    fn the_state_of_the_senders_domain_at_the_account_decides() {
        use DomainState::{Unknown, Unverified, Verified};
        use UnverifiedDomains::{Accept, Reject};
        let refused = Err(RouteRefusal::DomainNotVerified(ProviderType::Mailgun));
        assert_eq!(routed(account(Some(Verified), true), Reject), Ok(true));
        assert_eq!(routed(account(Some(Unverified), true), Reject), refused);
        assert_eq!(routed(account(Some(Unverified), true), Accept), Ok(false));
        assert_eq!(routed(account(Some(Unknown), true), Reject), Ok(false));
        assert_eq!(routed(account(None, true), Reject), refused);
        assert_eq!(routed(account(None, false), Reject), Ok(false));
    }

    #[test]
    fn without_an_active_account_nothing_is_routed() {
        let snapshot = RoutingSnapshot {
            unverified_domains: UnverifiedDomains::Reject,
            tracking: Tracking::default(),
            accounts: vec![],
            rules: vec![],
        };
        assert_eq!(
            resolve(&snapshot, &request("example.com", &[])),
            Err(RouteRefusal::NoActiveProvider)
        );
    }

    fn request<'a>(sender_domain: &'a str, tags: &[&'a str]) -> RoutingRequest<'a> {
        RoutingRequest {
            sender_domain,
            tags: tags.to_vec(),
        }
    }

    fn rule(account: &RoutableAccount, change: impl FnOnce(&mut RuleTerms)) -> RoutingRule {
        let ids = Ids::new(Clock::system());
        let mut terms = RuleTerms {
            name: Name::parse("A rule".to_owned()).unwrap(),
            priority: 0,
            is_active: true,
            sender_domain: None,
            tags: vec![],
            tag_match: TagMatch::Any,
            provider_account_id: account.id,
            fallbacks: vec![],
            on_unknown: OnUnknown::Wait,
        };
        change(&mut terms);
        RoutingRule {
            id: ids.next(),
            organization_id: ids.next(),
            terms,
            created_at: Clock::system().now(),
            updated_at: Clock::system().now(),
        }
    }

    fn tags(words: &[&str]) -> Vec<Tag> {
        let tags = words.iter().map(|word| Tag::parse((*word).to_owned()));
        tags.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let first = account(None, false);
        let second = account(None, false);
        let rules = vec![
            rule(&second, |terms| terms.is_active = false),
            rule(&account(None, false), |_| ()),
            rule(&second, |terms| {
                terms.sender_domain = DomainPattern::parse("other.com");
            }),
            rule(&second, |terms| terms.tags = tags(&["bulk"])),
            rule(&second, |terms| {
                terms.sender_domain = DomainPattern::parse("example.com");
            }),
            rule(&first, |_| ()),
        ];
        let snapshot = RoutingSnapshot {
            unverified_domains: UnverifiedDomains::Reject,
            tracking: Tracking::default(),
            accounts: vec![first, second],
            rules,
        };
        let message = request("example.com", &["receipts"]);
        let evaluated =
            |index: usize| evaluate(&snapshot.rules[index], &snapshot, &message).map(|_| ());
        assert_eq!(evaluated(0), Err(PassedOver::RuleInactive));
        assert_eq!(evaluated(1), Err(PassedOver::ProviderInactive));
        assert_eq!(evaluated(2), Err(PassedOver::SenderDomain));
        assert_eq!(evaluated(3), Err(PassedOver::Tags));
        assert_eq!(evaluated(4), Ok(()));
        let route = resolve(&snapshot, &message).unwrap();
        assert_eq!(route.rule_id, Some(snapshot.rules[4].id));
        assert_eq!(route.account_id, snapshot.accounts[1].id);
    }

    #[test]
    fn the_candidates_are_the_resolved_account_and_the_fallbacks_that_accept_the_sender() {
        use DomainState::{Unverified, Verified};
        use UnverifiedDomains::{Accept, Reject};
        let resolved = account(Some(Unverified), true);
        let moved_up = account(Some(Verified), true);
        let unverified = account(Some(Unverified), true);
        let unknown = account(None, false);
        let last = account(Some(Verified), true);
        let gone = account(Some(Verified), true);
        let other = account(Some(Verified), true);
        let fallbacks = [&gone, &unverified, &unknown, &resolved, &last, &moved_up];
        let fallbacks = fallbacks.map(|account| account.id).to_vec();
        let rule = rule(&moved_up, |terms| terms.fallbacks = fallbacks);
        let (own, first, second) = (resolved.id, moved_up.id, last.id);
        let (third, fourth, other_id) = (unverified.id, unknown.id, other.id);
        let mut snapshot = RoutingSnapshot {
            unverified_domains: Reject,
            tracking: Tracking::default(),
            accounts: vec![other, last, unknown, unverified, moved_up, resolved],
            rules: vec![],
        };
        let message = request("example.com", &[]);
        let through = |snapshot: &RoutingSnapshot, rule: Option<&RoutingRule>| {
            candidates(snapshot, own, rule, &message)
        };
        assert_eq!(through(&snapshot, None), [own]);
        assert_eq!(
            through(&snapshot, Some(&rule)),
            [own, first, fourth, second],
            "an account whose domains are unknown can be a fallback"
        );
        let reasons = super::fallbacks(&snapshot, &rule, &message);
        let reasons: Vec<_> = reasons
            .iter()
            .map(|fallback| (fallback.domain_verified, fallback.passed_over))
            .collect();
        assert_eq!(
            reasons,
            [
                (false, Some(FallbackPassedOver::ProviderInactive)),
                (false, Some(FallbackPassedOver::DomainNotVerified)),
                (false, None),
                (false, Some(FallbackPassedOver::DomainNotVerified)),
                (true, None),
                (true, None),
            ]
        );
        snapshot.unverified_domains = Accept;
        assert_eq!(
            through(&snapshot, Some(&rule)),
            [own, first, third, fourth, second]
        );
        snapshot.unverified_domains = Reject;
        snapshot.accounts.pop();
        assert_eq!(through(&snapshot, None), [other_id]);
        assert_eq!(
            through(&snapshot, Some(&rule)),
            [first, fourth, second, other_id],
            "the substitute comes last"
        );
        snapshot.accounts.clear();
        assert!(through(&snapshot, Some(&rule)).is_empty());
    }

    #[test]
    fn tags_match_by_one_or_by_all_of_them() {
        use TagMatch::{All, Any};
        let account = account(None, false);
        let matches = |tag_match, wanted: &[&str], given: &[&str]| {
            let rule = rule(&account, |terms| {
                terms.tags = tags(wanted);
                terms.tag_match = tag_match;
            });
            matches_tags(&rule.terms, &request("example.com", given))
        };
        assert!(matches(Any, &["a", "b"], &["b", "c"]));
        assert!(!matches(Any, &["a", "b"], &["c"]));
        assert!(!matches(Any, &["a"], &["A"]));
        assert!(matches(All, &["a", "b"], &["b", "c", "a"]));
        assert!(!matches(All, &["a", "b"], &["a", "c"]));
        assert!(matches(All, &[], &[]));
        assert!(matches(Any, &[], &["c"]));
    }
}
