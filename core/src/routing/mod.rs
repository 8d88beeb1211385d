//! Routing: which provider account takes a message. Pure: it decides over a
//! snapshot of the organization's accounts.
//!
//! The rules are asked by their priority, the highest first, and by their age, the
//! oldest first, where it is the same. The first that is active, matches and has an
//! active account decides. Where none does, the first active account (the oldest)
//! is used, as the contract says.

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

/// What routing needs to know of an organization.
#[derive(Debug, Clone)]
pub struct RoutingSnapshot {
    /// What a send from an unverified domain gets.
    pub unverified_domains: UnverifiedDomains,
    /// What is tracked where a message does not say. It decides no route; it is
    /// remembered with what does, so that acceptance need not ask for it.
    pub tracking: Tracking,
    /// The active accounts, oldest first.
    pub accounts: Vec<RoutableAccount>,
    /// The rules, inactive ones too, in the order in which they are asked.
    pub rules: Vec<RoutingRule>,
}

impl RoutingSnapshot {
    /// An active account; nothing where it is switched off or gone.
    #[must_use]
    pub fn account(&self, id: ProviderAccountId) -> Option<&RoutableAccount> {
        self.accounts.iter().find(|account| account.id == id)
    }

    /// A rule, active or not; nothing where it is gone.
    #[must_use]
    pub fn rule(&self, id: RoutingRuleId) -> Option<&RoutingRule> {
        self.rules.iter().find(|rule| rule.id == id)
    }
}

/// What of a message decides its route.
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
    /// What it may be used for at the most.
    pub limits: AccountLimits,
    pub credentials: ReadCredentials,
    /// How often somebody mended it: see [`crate::account_limiter::AccountCall::revision`].
    pub revision: u32,
    /// Whether it could not send when it was last used.
    pub is_paused: bool,
    /// Whether its credentials can list its domains: where not, a domain that is
    /// not recorded is unknown rather than unverified.
    pub domains_visible: bool,
    /// The state of each recorded domain.
    pub domains: HashMap<String, DomainState>,
}

/// What becomes of an account that a rule names for when another fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    pub account_id: ProviderAccountId,
    /// Whether the sender's domain is verified on it.
    pub domain_verified: bool,
    /// Why it never takes over; nothing where it does.
    pub passed_over: Option<FallbackPassedOver>,
}

/// Why a fallback never takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackPassedOver {
    /// It is switched off or gone.
    ProviderInactive,
    /// The sender's domain is not verified on it.
    DomainNotVerified,
}

impl FallbackPassedOver {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ProviderInactive => "PROVIDER_INACTIVE",
            Self::DomainNotVerified => "DOMAIN_NOT_VERIFIED",
        }
    }
}

/// The account that takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub account_id: ProviderAccountId,
    pub provider_type: ProviderType,
    /// Whether the sender's domain is verified on it.
    pub domain_verified: bool,
    /// The rule that chose it; nothing where none matched.
    pub rule_id: Option<RoutingRuleId>,
}

/// Why no account takes a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteRefusal {
    /// There is no active account.
    NoActiveProvider,
    /// The account that would take it does not have the sender's domain verified.
    DomainNotVerified(ProviderType),
}

/// Why a rule does not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedOver {
    RuleInactive,
    /// It is for other senders.
    SenderDomain,
    /// It is for other tags.
    Tags,
    /// Its account is switched off or gone.
    ProviderInactive,
}

impl PassedOver {
    /// The word on the wire.
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
    /// What this account knows of a domain. A subdomain is covered by its own
    /// record alone.
    #[must_use]
    pub fn domain_state(&self, domain: &str) -> DomainState {
        match self.domains.get(domain) {
            Some(state) => *state,
            None if self.domains_visible => DomainState::Unverified,
            None => DomainState::Unknown,
        }
    }
}

/// Whether a rule decides over a message, and with which account.
///
/// # Errors
/// Why it does not.
pub fn ask<'a>(
    rule: &RoutingRule,
    snapshot: &'a RoutingSnapshot,
    enquiry: &RoutingRequest<'_>,
) -> Result<&'a RoutableAccount, PassedOver> {
    let terms = &rule.terms;
    if !terms.is_active {
        return Err(PassedOver::RuleInactive);
    }
    let pattern = terms.sender_domain.as_ref();
    if pattern.is_some_and(|pattern| !pattern.matches(enquiry.sender_domain)) {
        return Err(PassedOver::SenderDomain);
    }
    if !matches_tags(terms, enquiry) {
        return Err(PassedOver::Tags);
    }
    snapshot
        .account(terms.provider_account_id)
        .ok_or(PassedOver::ProviderInactive)
}

fn matches_tags(terms: &RuleTerms, enquiry: &RoutingRequest<'_>) -> bool {
    let mut wanted = terms.tags.iter().map(|tag| tag.as_str());
    match terms.tag_match {
        _ if terms.tags.is_empty() => true,
        TagMatch::Any => wanted.any(|tag| enquiry.tags.contains(&tag)),
        TagMatch::All => wanted.all(|tag| enquiry.tags.contains(&tag)),
    }
}

/// The account for a message.
///
/// # Errors
/// Why none takes it.
pub fn resolve(
    snapshot: &RoutingSnapshot,
    enquiry: &RoutingRequest<'_>,
) -> Result<Route, RouteRefusal> {
    let mut rules = snapshot.rules.iter();
    let by_rule = rules.find_map(|rule| Some((ask(rule, snapshot, enquiry).ok()?, Some(rule.id))));
    let (account, rule_id) = by_rule
        .or_else(|| Some((snapshot.accounts.first()?, None)))
        .ok_or(RouteRefusal::NoActiveProvider)?;
    route(snapshot, account, rule_id, enquiry)
        .ok_or(RouteRefusal::DomainNotVerified(account.provider_type))
}

/// The account that a message which was accepted goes through when its own is gone
/// or switched off: the first that takes its sender, of those that rules name, then
/// of all active ones.
#[must_use]
pub fn stand_in(snapshot: &RoutingSnapshot, enquiry: &RoutingRequest<'_>) -> Option<Route> {
    let by_rules = snapshot
        .rules
        .iter()
        .filter_map(|rule| Some((ask(rule, snapshot, enquiry).ok()?, Some(rule.id))));
    let others = snapshot.accounts.iter().map(|account| (account, None));
    by_rules
        .chain(others)
        .find_map(|(account, rule_id)| route(snapshot, account, rule_id, enquiry))
}

/// The accounts that may take a message which was accepted, in the order in which they
/// are tried: the one resolved at acceptance, then those that the rule which it was
/// accepted by names now, each only once. A removed account's fallback moves up in the
/// rule, so the rule's own account may be a fallback of the message. Fallbacks count as
/// the resolved account did: where they are active and do not show the sender's domain as
/// unverified, or in whatever state where the organization accepts that. Where the resolved account is gone or switched
/// off, the one that stands in for it comes last.
#[must_use]
pub fn candidates(
    snapshot: &RoutingSnapshot,
    resolved: ProviderAccountId,
    rule: Option<&RoutingRule>,
    enquiry: &RoutingRequest<'_>,
) -> Vec<ProviderAccountId> {
    let own = snapshot.account(resolved).map(|account| account.id);
    let named = rule.into_iter().flat_map(|rule| {
        let terms = &rule.terms;
        std::iter::once(&terms.provider_account_id).chain(&terms.fallbacks)
    });
    let fallbacks = named
        .filter_map(|id| snapshot.account(*id))
        .filter(|account| route(snapshot, account, None, enquiry).is_some())
        .map(|account| account.id);
    let instead = match own {
        Some(_) => None,
        None => stand_in(snapshot, enquiry).map(|route| route.account_id),
    };
    let mut candidates: Vec<ProviderAccountId> = Vec::new();
    for id in own.into_iter().chain(fallbacks).chain(instead) {
        if !candidates.contains(&id) {
            candidates.push(id);
        }
    }
    candidates
}

/// What becomes of a rule's fallbacks, in their order.
#[must_use]
pub fn fallbacks(
    snapshot: &RoutingSnapshot,
    rule: &RoutingRule,
    enquiry: &RoutingRequest<'_>,
) -> Vec<Fallback> {
    let fallback = |id: &ProviderAccountId| {
        let account = snapshot.account(*id);
        let route = account.and_then(|account| route(snapshot, account, None, enquiry));
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

/// The route through one account, unless it refuses the sender's domain.
fn route(
    snapshot: &RoutingSnapshot,
    account: &RoutableAccount,
    rule_id: Option<RoutingRuleId>,
    enquiry: &RoutingRequest<'_>,
) -> Option<Route> {
    let state = account.domain_state(enquiry.sender_domain);
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
        resolve(&snapshot, &enquiry("example.com", &[])).map(|route| route.domain_verified)
    }

    #[test]
    fn the_senders_domain_decides_by_what_the_account_knows_of_it() {
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
            resolve(&snapshot, &enquiry("example.com", &[])),
            Err(RouteRefusal::NoActiveProvider)
        );
    }

    fn enquiry<'a>(sender_domain: &'a str, tags: &[&'a str]) -> RoutingRequest<'a> {
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
        let message = enquiry("example.com", &["receipts"]);
        let asked = |place: usize| ask(&snapshot.rules[place], &snapshot, &message).map(|_| ());
        assert_eq!(asked(0), Err(PassedOver::RuleInactive));
        assert_eq!(asked(1), Err(PassedOver::ProviderInactive));
        assert_eq!(asked(2), Err(PassedOver::SenderDomain));
        assert_eq!(asked(3), Err(PassedOver::Tags));
        assert_eq!(asked(4), Ok(()));
        let route = resolve(&snapshot, &message).unwrap();
        assert_eq!(route.rule_id, Some(snapshot.rules[4].id));
        assert_eq!(route.account_id, snapshot.accounts[1].id);
    }

    #[test]
    fn the_candidates_are_the_resolved_account_and_the_fallbacks_that_may_know_the_sender() {
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
        let (third, fourth, stranger) = (unverified.id, unknown.id, other.id);
        let mut snapshot = RoutingSnapshot {
            unverified_domains: Reject,
            tracking: Tracking::default(),
            accounts: vec![other, last, unknown, unverified, moved_up, resolved],
            rules: vec![],
        };
        let message = enquiry("example.com", &[]);
        let through = |snapshot: &RoutingSnapshot, rule: Option<&RoutingRule>| {
            candidates(snapshot, own, rule, &message)
        };
        assert_eq!(through(&snapshot, None), [own]);
        assert_eq!(
            through(&snapshot, Some(&rule)),
            [own, first, fourth, second],
            "one whose domains cannot be seen takes over as it would take the first"
        );
        let told = super::fallbacks(&snapshot, &rule, &message);
        let told: Vec<_> = told
            .iter()
            .map(|fallback| (fallback.domain_verified, fallback.passed_over))
            .collect();
        assert_eq!(
            told,
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
        assert_eq!(through(&snapshot, None), [stranger]);
        assert_eq!(
            through(&snapshot, Some(&rule)),
            [first, fourth, second, stranger],
            "the one that stands in comes last"
        );
        snapshot.accounts.clear();
        assert!(through(&snapshot, Some(&rule)).is_empty());
    }

    #[test]
    fn tags_match_by_one_or_by_all_of_them() {
        use TagMatch::{All, Any};
        let account = account(None, false);
        let asked = |tag_match, wanted: &[&str], given: &[&str]| {
            let rule = rule(&account, |terms| {
                terms.tags = tags(wanted);
                terms.tag_match = tag_match;
            });
            matches_tags(&rule.terms, &enquiry("example.com", given))
        };
        assert!(asked(Any, &["a", "b"], &["b", "c"]));
        assert!(!asked(Any, &["a", "b"], &["c"]));
        assert!(!asked(Any, &["a"], &["A"]));
        assert!(asked(All, &["a", "b"], &["b", "c", "a"]));
        assert!(!asked(All, &["a", "b"], &["a", "c"]));
        assert!(asked(All, &[], &[]));
        assert!(asked(Any, &[], &["c"]));
    }
}
