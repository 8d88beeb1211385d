//! Which account a snapshot gives a message.

use super::*;
use crate::clock::Clock;
use crate::ids::Ids;
use crate::text::{Name, Tag};
use rule::DomainPattern;

fn account(state: Option<DomainState>, domains_visible: bool) -> RoutableAccount {
    let domains = state.map(|state| ("example.com".to_owned(), state));
    RoutableAccount {
        id: Ids::new(Clock::system()).next(),
        provider_type: ProviderType::Mailgun,
        created_at: Clock::system().now(),
        limits: AccountLimits::default(),
        credentials: ReadCredentials::new(Vec::new()),
        region: None,
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
        health: HealthFactors::default(),
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
        health: HealthFactors::default(),
    };
    assert_eq!(
        resolve(&snapshot, &request("example.com", &[])),
        Err(RouteRefusal::NoActiveProvider)
    );
}

fn request<'a>(sender_domain: &'a str, tags: &[&'a str]) -> RoutingRequest<'a> {
    RoutingRequest {
        sender: sender(sender_domain),
        tags: tags.to_vec(),
        recipients: None,
        mailbox_providers: &|_| None,
        class: None,
        size_bytes: None,
        is_test: false,
        draw: Draw::First,
    }
}

/// An address of a domain. It lives as long as the tests.
fn sender(domain: &str) -> &'static EmailAddress {
    let address = EmailAddress::parse(&format!("a@{domain}")).unwrap();
    Box::leak(Box::new(address))
}

fn rule(account: &RoutableAccount, change: impl FnOnce(&mut RuleTerms)) -> RoutingRule {
    let ids = Ids::new(Clock::system());
    let name = Name::parse("A rule".to_owned()).unwrap();
    let mut terms = RuleTerms::of_account(name, account.id);
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
        health: HealthFactors::default(),
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
        health: HealthFactors::default(),
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
