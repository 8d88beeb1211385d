//! Magic recipients: the local part before `+` selects the response to a send.
//!
//! Local parts that only select what is reported *after* acceptance (`hard-bounce`,
//! `open` and others) are ordinary recipients here.

use std::collections::HashSet;
use std::time::Duration;

use parking_lot::Mutex;

use crate::faults::{AccountProblem, FaultEffect};
use crate::providers::Provider;
use crate::state::State;

/// The `Retry-After` of a throttled call.
pub(crate) const THROTTLE_WAIT: Duration = Duration::from_secs(2);
/// The `Retry-After` of `throttle-once`.
const THROTTLE_ONCE_WAIT: Duration = Duration::from_secs(1);
/// At this number of addresses the set is cleared.
const SEEN_ADDRESSES_MAX: usize = 100_000;

/// The decision on a valid send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Accept(AcceptedReply),
    Throttle {
        wait: Duration,
    },
    Error,
    /// The account may not send.
    Reject(AccountProblem),
}

/// The response to an accepted send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptedReply {
    Answer,
    Silence,
    Reset,
    /// A gateway in front of the provider responds with this status and an HTML page.
    Gateway(u16),
}

/// Decides for a whole request: the decision for one recipient applies to all. A
/// rejection overrides an acceptance, and a magic recipient overrides a fault.
pub(crate) fn decide<'a>(
    state: &State,
    provider: Provider,
    recipients: impl Iterator<Item = &'a str>,
) -> Decision {
    let mut decision = Decision::Accept(AcceptedReply::Answer);
    for address in recipients {
        let decision_for_one = state.seen_once.resolve(Behaviour::of(address), address);
        if priority(decision_for_one) > priority(decision) {
            decision = decision_for_one;
        }
    }
    if decision != Decision::Accept(AcceptedReply::Answer) {
        return decision;
    }
    match state.faults.effect_on_send(provider, &state.ids) {
        None => decision,
        Some(FaultEffect::Throttle) => Decision::Throttle {
            wait: THROTTLE_WAIT,
        },
        Some(FaultEffect::Error) => Decision::Error,
        Some(FaultEffect::Timeout) => Decision::Accept(AcceptedReply::Silence),
        Some(FaultEffect::Reset) => Decision::Accept(AcceptedReply::Reset),
        Some(FaultEffect::Gateway) => {
            let status = if state.ids.chance(0.5) { 502 } else { 504 };
            Decision::Accept(AcceptedReply::Gateway(status))
        }
        Some(FaultEffect::Account(problem)) => Decision::Reject(problem),
    }
}

/// Whether the provider permanently rejects this recipient.
pub(crate) fn is_rejected(address: &str) -> bool {
    Behaviour::of(address) == Behaviour::Reject
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Deliver,
    Throttle,
    ThrottleOnce,
    Error,
    Flaky,
    Timeout,
    TimeoutOnce,
    Reset,
    Gateway,
    GatewayOnce,
    Reject,
}

impl Behaviour {
    fn of(address: &str) -> Self {
        const NAMES: [(&str, Behaviour); 10] = [
            ("throttle", Behaviour::Throttle),
            ("throttle-once", Behaviour::ThrottleOnce),
            ("error", Behaviour::Error),
            ("flaky", Behaviour::Flaky),
            ("timeout", Behaviour::Timeout),
            ("timeout-once", Behaviour::TimeoutOnce),
            ("reset", Behaviour::Reset),
            ("gateway", Behaviour::Gateway),
            ("gateway-once", Behaviour::GatewayOnce),
            ("refuse", Behaviour::Reject),
        ];
        let end = address.find(['+', '@']).unwrap_or(address.len());
        let name = &address[..end];
        NAMES
            .iter()
            .find(|(magic, _)| magic.eq_ignore_ascii_case(name))
            .map_or(Self::Deliver, |(_, behaviour)| *behaviour)
    }
}

/// The addresses that were seen once.
#[derive(Default)]
pub(crate) struct SeenOnce(Mutex<HashSet<String>>);

impl SeenOnce {
    fn resolve(&self, behaviour: Behaviour, address: &str) -> Decision {
        match behaviour {
            Behaviour::Deliver | Behaviour::Reject => Decision::Accept(AcceptedReply::Answer),
            Behaviour::Throttle => Decision::Throttle {
                wait: THROTTLE_WAIT,
            },
            Behaviour::Error => Decision::Error,
            Behaviour::Timeout => Decision::Accept(AcceptedReply::Silence),
            Behaviour::Reset => Decision::Accept(AcceptedReply::Reset),
            Behaviour::Gateway => Decision::Accept(AcceptedReply::Gateway(502)),
            Behaviour::ThrottleOnce if self.is_first(address) => Decision::Throttle {
                wait: THROTTLE_ONCE_WAIT,
            },
            Behaviour::Flaky if self.is_first(address) => Decision::Error,
            Behaviour::TimeoutOnce if self.is_first(address) => {
                Decision::Accept(AcceptedReply::Silence)
            }
            Behaviour::GatewayOnce if self.is_first(address) => {
                Decision::Accept(AcceptedReply::Gateway(502))
            }
            Behaviour::ThrottleOnce
            | Behaviour::Flaky
            | Behaviour::TimeoutOnce
            | Behaviour::GatewayOnce => Decision::Accept(AcceptedReply::Answer),
        }
    }

    pub(crate) fn is_first(&self, address: &str) -> bool {
        let mut seen = self.0.lock();
        if seen.len() >= SEEN_ADDRESSES_MAX {
            seen.clear();
        }
        seen.insert(address.to_ascii_lowercase())
    }
}

fn priority(decision: Decision) -> u8 {
    match decision {
        Decision::Accept(AcceptedReply::Answer) => 0,
        Decision::Accept(AcceptedReply::Silence) => 1,
        Decision::Accept(AcceptedReply::Reset | AcceptedReply::Gateway(_)) => 2,
        Decision::Error => 3,
        Decision::Throttle { .. } | Decision::Reject(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, Decision, SeenOnce, is_rejected};

    #[test]
    fn the_local_part_before_the_plus_counts_in_any_case() {
        assert_eq!(Behaviour::of("Throttle+7@example.com"), Behaviour::Throttle);
        assert_eq!(Behaviour::of("throttled@example.com"), Behaviour::Deliver);
        assert_eq!(Behaviour::of("hard-bounce@example.com"), Behaviour::Deliver);
        assert!(is_rejected("REFUSE@example.com"));
    }

    #[test]
    fn flaky_fails_once_for_each_address() {
        let seen = SeenOnce::default();
        let first = |address| seen.resolve(Behaviour::Flaky, address) == Decision::Error;
        assert!(first("flaky+1@example.com"));
        assert!(!first("FLAKY+1@example.com"));
        assert!(first("flaky+2@example.com"));
    }
}
