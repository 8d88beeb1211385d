//! The targets of a rule: accounts that share its messages by weight, each up to its caps.
//!
//! Without stickiness the targets are chosen by a low-discrepancy sequence: multiples of the
//! golden ratio fall so evenly that the shares are exact after few messages, unlike those of a
//! random draw. With it, the messages to one domain, or from one sender, have one target, by
//! rendezvous hashing: a change of weights moves as few of them as possible. Caps are kept in
//! [`super::target_usage`], where messages are sent.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::ramp::{Ramp, RampStage, RampState};
use super::rule::{RoutingRule, wire_words};
use super::target_health::{FULL_PERCENT, Prefer};
use super::{Fallback, RoutableAccount, RoutingRequest, RoutingSnapshot, fallback, route};
use crate::ids::{MessageId, ProviderAccountId, RoutingRuleId};

/// Targets of one rule, at most.
pub const TARGETS_MAX: usize = 10;
/// The highest weight of a target.
pub const WEIGHT_MAX: u32 = 1_000;
/// The highest cap of a target.
pub const CAP_MAX: u32 = 100_000_000;
/// Rules whose position is remembered, at most. Beyond it all begin anew.
const RULES_MAX: usize = 100_000;
/// 2^64 divided by the golden ratio: steps of this size around a circle of 2^64 leave no large
/// gap, however many there are (Knuth, The Art of Computer Programming, 6.4).
const GOLDEN_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// An account that gets a part of a rule's messages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    #[serde(rename = "providerAccountId")]
    pub account_id: ProviderAccountId,
    /// 1 to [`WEIGHT_MAX`].
    pub weight: u32,
    /// The most recipients of a day, in UTC.
    pub daily_cap: Option<u32>,
    /// The most recipients of an hour.
    pub hourly_cap: Option<u32>,
    /// How its daily cap grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramp: Option<Ramp>,
    /// How far that is, of a rule that was read. The rule says nothing of it.
    #[serde(skip)]
    pub ramp_stage: Option<RampStage>,
}

impl Target {
    /// The most recipients of this day: the daily cap, or what the ramp allows of it.
    #[must_use]
    pub fn daily_cap_now(&self) -> Option<u32> {
        let Some(ramp) = self.ramp else {
            return self.daily_cap;
        };
        let reached = match self.ramp_stage {
            None => ramp.start,
            Some(stage) => match stage.state {
                RampState::NotBegun => 0,
                RampState::Growing | RampState::Held => stage.cap,
                RampState::Finished => return self.daily_cap,
            },
        };
        Some(self.daily_cap.unwrap_or(CAP_MAX).min(reached))
    }

    /// Whether it takes mail at all: its ramp, if it has one, has begun.
    #[must_use]
    pub fn takes_mail(&self) -> bool {
        self.daily_cap_now() != Some(0)
    }

    /// The day from which the ramp's next step is due.
    #[must_use]
    pub fn next_step_on(&self) -> Option<NaiveDate> {
        self.ramp_stage?.next_step_on(self.ramp?)
    }

    /// Whether it has a cap now.
    #[must_use]
    pub fn is_capped(&self) -> bool {
        self.daily_cap_now().is_some() || self.hourly_cap.is_some()
    }
}

/// What the messages of one target have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sticky {
    /// Nothing: each message is for itself.
    None,
    /// The domain of the first recipient.
    RecipientDomain,
    /// The address of the sender.
    Sender,
}

/// What becomes of a message whose target has reached its cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverCap {
    /// The next target or fallback sends it.
    Next,
    /// It waits until the hour or the day is over.
    Wait,
}

wire_words!(Sticky: None = "none", RecipientDomain = "recipientDomain", Sender = "sender");
wire_words!(OverCap: Next = "next", Wait = "wait");

/// Where a message falls among the weights of a rule's targets.
#[derive(Clone, Copy)]
pub enum Draw<'a> {
    /// At the first target: it matters only whether there is one.
    First,
    /// At a place of its own, the same each time.
    At(u64),
    /// At the next place of the rule's sequence.
    Next(&'a TargetSequences),
}

impl Draw<'_> {
    /// The place of a message that is routed several times.
    #[must_use]
    pub fn of_message(id: MessageId) -> Self {
        Self::At(hash(&[id.0.as_bytes()]))
    }

    /// The place on a circle of 2^64.
    fn place(self, rule: RoutingRuleId) -> u64 {
        match self {
            Self::First => 0,
            Self::At(place) => place,
            Self::Next(sequences) => sequences.next(rule),
        }
    }
}

/// How far this process is in the sequence of each rule.
#[derive(Debug, Default)]
pub struct TargetSequences(Mutex<HashMap<RoutingRuleId, u64>>);

impl TargetSequences {
    /// The next place of a rule. The first is random, so that processes do not begin alike.
    fn next(&self, rule: RoutingRuleId) -> u64 {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= RULES_MAX {
            places.clear();
        }
        let start = places.hasher().hash_one(rule);
        let place = places.entry(rule).or_insert(start);
        *place = place.wrapping_add(GOLDEN_STEP);
        *place
    }
}

/// The account of a rule for a message: that of one of its targets whose accounts are active
/// and accept the sender, and whose ramps have begun; if there is none, of the first that is
/// active. `None` if none is.
pub(super) fn account_of<'a>(
    rule: &RoutingRule,
    snapshot: &'a RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> Option<&'a RoutableAccount> {
    let terms = &rule.terms;
    if terms.targets.is_empty() {
        let account = snapshot.account(terms.provider_account_id);
        return account.filter(|account| terms.allows(account));
    }
    let targets = terms.targets.iter();
    let active = targets.filter_map(|target| Some((target, snapshot.account(target.account_id)?)));
    let active = active.filter(|(_, account)| terms.allows(account));
    let (mut first, mut usable) = (None, Vec::with_capacity(terms.targets.len()));
    for (target, account) in active {
        first = first.or(Some(account));
        if target.takes_mail() && route(snapshot, account, None, request).is_some() {
            let (weight, _) = weight(rule, target, snapshot, request);
            usable.push((account, target.account_id, weight));
        }
    }
    let key = match (terms.sticky, request.recipients) {
        (Sticky::None, _) | (Sticky::RecipientDomain, None) => None,
        (Sticky::RecipientDomain, Some(domains)) => domains(0).map(str::to_ascii_lowercase),
        (Sticky::Sender, _) => Some(request.sender.as_str().to_ascii_lowercase()),
    };
    let weights = usable.iter().map(|(_, id, weight)| (*id, *weight));
    let chosen = match (key, usable.as_slice()) {
        (_, [] | [_]) => 0,
        (Some(key), _) => rendezvous(&key, weights),
        (None, _) => by_place(
            request.draw.place(rule.id),
            weights.map(|(_, weight)| weight),
        ),
    };
    usable.get(chosen).map(|(account, _, _)| *account).or(first)
}

/// The weight of a target for a message, in hundredths, and the percent of it that is left.
fn weight(
    rule: &RoutingRule,
    target: &Target,
    snapshot: &RoutingSnapshot,
    request: &RoutingRequest<'_>,
) -> (u32, u8) {
    let percent = match rule.terms.prefer {
        Prefer::Weight => FULL_PERCENT,
        Prefer::Health => {
            let domain = request.recipients.and_then(|domains| domains(0));
            snapshot.health.percent(target.account_id, domain)
        }
    };
    (target.weight * u32::from(percent), percent)
}

/// A target of a rule, and whether it can take a message.
#[derive(Debug, Clone, Copy)]
pub struct ExplainedTarget {
    pub target: Target,
    /// The percent of its weight that its health leaves it.
    pub health_percent: u8,
    /// The part of the rule's messages that it gets, from 0 to 1.
    pub share: f64,
    pub state: Fallback,
}

/// The targets of a rule, in order, and what part of the messages each gets.
#[must_use]
pub fn explain(
    snapshot: &RoutingSnapshot,
    rule: &RoutingRule,
    request: &RoutingRequest<'_>,
) -> Vec<ExplainedTarget> {
    let targets = rule.terms.targets.iter();
    let weighed: Vec<(ExplainedTarget, u32)> = targets
        .map(|target| {
            let state = fallback(snapshot, rule, target.account_id, request);
            let takes_mail = state.passed_over.is_none() && target.takes_mail();
            let (weight, health_percent) = weight(rule, target, snapshot, request);
            let explained = ExplainedTarget {
                target: *target,
                health_percent,
                share: 0.0,
                state,
            };
            (explained, if takes_mail { weight } else { 0 })
        })
        .collect();
    let total: u32 = weighed.iter().map(|(_, weight)| weight).sum();
    let explained = weighed
        .into_iter()
        .map(|(explained, weight)| ExplainedTarget {
            share: f64::from(weight) / f64::from(total.max(1)),
            ..explained
        });
    explained.collect()
}

/// The index of the weight at a place on a circle of 2^64 that the weights share.
fn by_place(place: u64, weights: impl Iterator<Item = u32> + Clone) -> usize {
    let total: u64 = weights.clone().map(u64::from).sum();
    let scaled = (u128::from(place) * u128::from(total)) >> 64;
    let mut end = 0;
    let mut ends = weights.map(|weight| {
        end += u128::from(weight);
        end
    });
    ends.position(|end| scaled < end).unwrap_or_default()
}

/// The index of the account with the highest score for a key. The score `weight / -ln(u)`,
/// with `u` evenly distributed, is the highest in proportion to the weights, and another
/// weight of one account changes no other score (Schindelhauer and Schomaker, "Weighted
/// Distributed Hash Tables", 2005).
fn rendezvous(key: &str, weights: impl Iterator<Item = (ProviderAccountId, u32)>) -> usize {
    let scores = weights.map(|(id, weight)| {
        let hash = hash(&[key.as_bytes(), id.0.as_bytes()]);
        // 53 bits are what a float holds; never 0 or 1.
        let bits = u32::try_from(hash >> 32).unwrap_or_default();
        let even = (f64::from(bits) + 0.5) / 4_294_967_296.0;
        f64::from(weight) / -even.ln()
    });
    let best = scores
        .enumerate()
        .max_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map_or(0, |(index, _)| index)
}

/// The same in every process.
fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let digest = hasher.finalize();
    let first = digest.first_chunk::<8>();
    u64::from_be_bytes(*first.expect("a SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::ids::Ids;

    fn shares(picked: impl Iterator<Item = usize>, targets: usize) -> Vec<f64> {
        let mut counts = vec![0_u32; targets];
        let mut total = 0_u32;
        for index in picked {
            counts[index] += 1;
            total += 1;
        }
        let total = f64::from(total);
        counts
            .into_iter()
            .map(|count| f64::from(count) / total)
            .collect()
    }

    const WEIGHTS: [&[u32]; 6] = [
        &[1, 1],
        &[70, 30],
        &[1, 999],
        &[5, 3, 2],
        &[1, 1, 1, 1, 1],
        &[1_000, 1, 17, 300, 8, 120, 64, 2, 2, 90],
    ];

    fn differences(weights: &[u32], shares: &[f64]) -> f64 {
        let total = f64::from(weights.iter().sum::<u32>());
        let pairs = weights.iter().zip(shares);
        let differences = pairs.map(|(weight, share)| (f64::from(*weight) / total - share).abs());
        differences.fold(0.0, f64::max)
    }

    #[test]
    fn after_a_thousand_messages_every_share_is_exact_to_one_percent() {
        let ids = Ids::new(Clock::system());
        for weights in WEIGHTS {
            for _ in 0..20 {
                let (sequences, rule) = (TargetSequences::default(), ids.next());
                let place = || Draw::Next(&sequences).place(rule);
                let picked = (0..1_000).map(|_| by_place(place(), weights.iter().copied()));
                let shares = shares(picked, weights.len());
                assert!(
                    differences(weights, &shares) < 0.01,
                    "{weights:?}: {shares:?}"
                );
            }
        }
    }

    #[test]
    fn the_messages_of_a_sequence_alternate_rather_than_come_in_runs() {
        let (sequences, rule) = (TargetSequences::default(), RoutingRuleId(uuid::Uuid::nil()));
        let place = || Draw::Next(&sequences).place(rule);
        let picked: Vec<usize> = (0..1_000)
            .map(|_| by_place(place(), [1, 1].into_iter()))
            .collect();
        let longest = picked
            .chunk_by(|one, next| one == next)
            .map(<[usize]>::len)
            .max();
        assert!(longest <= Some(2), "{longest:?}");
    }

    fn accounts(count: usize) -> Vec<ProviderAccountId> {
        let ids = Ids::new(Clock::system());
        (0..count).map(|_| ids.next()).collect()
    }

    #[test]
    fn keys_fall_on_targets_in_proportion_to_their_weights() {
        for weights in WEIGHTS {
            let ids = accounts(weights.len());
            let picked = (0..40_000).map(|key| {
                let weights = ids.iter().copied().zip(weights.iter().copied());
                rendezvous(&format!("{key}.example.com"), weights)
            });
            let shares = shares(picked, weights.len());
            assert!(
                differences(weights, &shares) < 0.015,
                "{weights:?}: {shares:?}"
            );
        }
    }

    #[test]
    fn a_higher_weight_moves_keys_to_its_target_alone() {
        let ids = accounts(3);
        let chosen = |weights: [u32; 3], key: u32| {
            rendezvous(&key.to_string(), ids.iter().copied().zip(weights))
        };
        let keys = 0..10_000;
        let moved = keys.filter_map(|key| {
            let (before, after) = (chosen([1, 1, 1], key), chosen([1, 1, 2], key));
            (before != after).then_some(after)
        });
        let moved: Vec<usize> = moved.collect();
        assert!(moved.iter().all(|after| *after == 2));
        // From a third to a half: a sixth moves.
        assert!((1_467..1_867).contains(&moved.len()), "{}", moved.len());
    }
}
