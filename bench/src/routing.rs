//! Row 26: the time that routing takes of one message, under a rule of five targets beside a
//! rule of one account. No process is started.

use std::hint::black_box;
use std::time::Instant;

use waypost_core::account_limiter::AccountLimits;
use waypost_core::address::EmailAddress;
use waypost_core::clock::Clock;
use waypost_core::ids::Ids;
use waypost_core::provider::credentials::ReadCredentials;
use waypost_core::provider::kind::ProviderType;
use waypost_core::routing::rule::{RoutingRule, RuleTerms};
use waypost_core::routing::targets::{Draw, Sticky, Target, TargetSequences};
use waypost_core::routing::{self, RoutableAccount, RoutingRequest, RoutingSnapshot};
use waypost_core::text::Name;

use crate::Failure;
use crate::report::{Bound, Figure, Report};

/// Accounts of the organization, all of which share the messages.
const ACCOUNTS: usize = 5;
/// Messages of one measurement.
const MESSAGES: u32 = 200_000;
/// Measurements of each rule, in turns.
const TURNS: usize = 5;
/// How much longer a message may take under five targets, in microseconds.
const LONGER_MAX_US: f64 = 10.0;

pub(crate) fn run(report: &mut Report) -> Result<(), Failure> {
    let sender = EmailAddress::parse("news@example.com").map_err(|_| "an invalid address")?;
    let forms = [
        ("targets chosen by weight", Sticky::None),
        (
            "targets chosen by recipient domain",
            Sticky::RecipientDomain,
        ),
    ];
    let one = snapshot(&[], Sticky::None)?;
    for (what, sticky) in forms {
        let five = snapshot(&[1, 2, 3, 4, 5], sticky)?;
        let (mut of_one, mut of_five) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..TURNS {
            of_one = of_one.min(microseconds(&one, &sender));
            of_five = of_five.min(microseconds(&five, &sender));
        }
        report.add(Figure {
            row: "26",
            what: &format!("routing a message, five {what}"),
            figure: format!("{of_five:.2} µs"),
            baseline: format!("{of_one:.2} µs by a rule of one account"),
            ratio: Some(of_five - of_one),
            bound: Bound::AtMost(LONGER_MAX_US),
        });
    }
    Ok(())
}

/// The time of one message.
fn microseconds(snapshot: &RoutingSnapshot, sender: &EmailAddress) -> f64 {
    let sequences = TargetSequences::default();
    let domain = |index: usize| (index == 0).then_some("example.org");
    let began = Instant::now();
    for _ in 0..MESSAGES {
        let request = RoutingRequest {
            sender,
            tags: vec!["receipts"],
            recipients: Some(&domain),
            mailbox_providers: &|_| None,
            class: None,
            size_bytes: None,
            is_test: false,
            draw: Draw::Next(&sequences),
        };
        let _ = black_box(routing::resolve(black_box(snapshot), &request));
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(MESSAGES)
}

/// An organization with one rule: of targets with these weights, or of one account.
fn snapshot(weights: &[u32], sticky: Sticky) -> Result<RoutingSnapshot, Failure> {
    let clock = Clock::system();
    let ids = Ids::new(clock.clone());
    let accounts: Vec<RoutableAccount> = (0..ACCOUNTS)
        .map(|_| RoutableAccount {
            id: ids.next(),
            provider_type: ProviderType::Sendgrid,
            created_at: clock.now(),
            limits: AccountLimits::default(),
            credentials: ReadCredentials::new(Vec::new()),
            revision: 0,
            is_paused: false,
            domains_visible: false,
            domains: [].into(),
            region: None,
        })
        .collect();
    let name = Name::parse("A rule".to_owned()).map_err(|_| "an invalid name")?;
    let targets = accounts
        .iter()
        .zip(weights)
        .map(|(account, weight)| Target {
            account_id: account.id,
            weight: *weight,
            daily_cap: None,
            hourly_cap: None,
            ramp: None,
            ramp_stage: None,
        });
    let rule = RoutingRule {
        id: ids.next(),
        organization_id: ids.next(),
        terms: RuleTerms {
            targets: targets.collect(),
            sticky,
            ..RuleTerms::of_account(name, accounts[0].id)
        },
        created_at: clock.now(),
        updated_at: clock.now(),
    };
    Ok(RoutingSnapshot {
        accounts,
        rules: vec![rule],
        ..RoutingSnapshot::empty()
    })
}
