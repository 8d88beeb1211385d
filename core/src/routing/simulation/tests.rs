//! How the caps of a simulation are kept.

use super::*;
use crate::text::Name;

fn target(daily_cap: Option<u32>, hourly_cap: Option<u32>) -> Target {
    Target {
        account_id: Ids::new(Clock::system()).next(),
        weight: 1,
        daily_cap,
        hourly_cap,
        ramp: None,
        ramp_stage: None,
    }
}

/// A simulation of one rule, in which sending is tried for a day.
fn simulation(targets: &[Target], over_cap: OverCap) -> Simulation {
    let ids = Ids::new(Clock::system());
    let now = Clock::system().now();
    let name = Name::parse("A rule".to_owned()).unwrap();
    let rule = RoutingRule {
        id: ids.next(),
        organization_id: ids.next(),
        terms: RuleTerms {
            targets: targets.to_vec(),
            over_cap,
            ..RuleTerms::of_account(name, targets[0].account_id)
        },
        created_at: now,
        updated_at: now,
    };
    let snapshot = RoutingSnapshot {
        rules: vec![rule],
        ..RoutingSnapshot::empty()
    };
    Simulation::new(snapshot, (now, now), 24)
}

fn counts(simulation: &Simulation) -> Vec<[u64; 4]> {
    let targets = simulation.result.rules[0].targets.iter();
    let counts = targets.map(|target| {
        [
            target.recipients,
            target.over_hourly_cap,
            target.over_daily_cap,
            target.waited,
        ]
    });
    counts.collect()
}

#[test]
fn what_is_over_a_cap_goes_to_the_next_target() {
    let targets = [target(Some(100), Some(30)), target(None, None)];
    let ids = targets.map(|target| target.account_id);
    let mut simulation = simulation(&targets, OverCap::Next);
    for hour in 0..24 {
        for _ in 0..5 {
            simulation.place(0, &ids, hour, 10);
        }
    }
    // 30, 30, 30 and 10; then the day is full: 20 × 3 and 40 over, then 50 each hour.
    assert_eq!(
        counts(&simulation),
        [[100, 60, 40 + 20 * 50, 0], [1_100, 0, 0, 0]]
    );
    simulation.place(0, &ids, 24, 10);
    assert_eq!(counts(&simulation)[0][0], 110, "another day");
}

#[test]
fn what_is_over_all_caps_waits_for_the_first_that_has_room_again() {
    let targets = [target(Some(10), None), target(None, Some(1))];
    let ids = targets.map(|target| target.account_id);
    let mut simulation = simulation(&targets, OverCap::Next);
    simulation.place(0, &ids, 20, 14);
    // One in each of the hours 20 to 23.
    assert_eq!(counts(&simulation), [[10, 0, 4, 0], [4, 3, 0, 3]]);
    assert_eq!(simulation.result.unsent, 0);
}

#[test]
fn a_rule_that_lets_mail_wait_sends_all_of_it_through_its_target() {
    let targets = [target(None, Some(10)), target(None, None)];
    let ids = targets.map(|target| target.account_id);
    let mut simulation = simulation(&targets, OverCap::Wait);
    simulation.place(0, &ids, 5, 25);
    assert_eq!(counts(&simulation), [[25, 15, 0, 15], [0, 0, 0, 0]]);
    // What waits counts in its hour.
    simulation.place(0, &ids, 7, 10);
    assert_eq!(counts(&simulation)[0], [35, 15 + 5, 0, 15 + 5]);
    // 24 hours of 10 are tried after the first.
    simulation.place(0, &ids, 30, 1_000);
    assert_eq!(simulation.result.unsent, 1_000 - 25 * 10);
}
