//! Magic recipients: the local part before `+` says what happens to a send.
//!
//! Local parts that only decide what is reported *after* acceptance (`hard-bounce`, `open` and the
//! like) are ordinary recipients here.

use std::collections::HashSet;
use std::time::Duration;

use parking_lot::Mutex;

use crate::faults::{Disturbance, Trouble};
use crate::providers::Provider;
use crate::state::State;

/// The wait asked of a throttled client.
pub(crate) const THROTTLE_WAIT: Duration = Duration::from_secs(2);
/// The wait asked for `throttle-once`.
const THROTTLE_ONCE_WAIT: Duration = Duration::from_secs(1);
/// When this many addresses were seen, the memory of them starts afresh.
const SEEN_ADDRESSES_MAX: usize = 100_000;

/// What becomes of a send that is otherwise in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Accept(Ending),
    Throttle {
        wait: Duration,
    },
    Error,
    /// The account may not send.
    Refuse(Trouble),
}

/// How an accepted send ends for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Answer,
    Silence,
    Reset,
    /// Something before the provider answers with this status and a page.
    Gateway(u16),
}

/// Decides for a whole request: what happens to one recipient happens to all of them.
/// Not accepting wins over accepting, and a recipient's wish over a fault.
pub(crate) fn judge<'a>(
    state: &State,
    provider: Provider,
    recipients: impl Iterator<Item = &'a str>,
) -> Verdict {
    let mut verdict = Verdict::Accept(Ending::Answer);
    for address in recipients {
        let wish = state.seen_once.resolve(Behaviour::of(address), address);
        if weight(wish) > weight(verdict) {
            verdict = wish;
        }
    }
    if verdict != Verdict::Accept(Ending::Answer) {
        return verdict;
    }
    match state.faults.disturb_send(provider, &state.ids) {
        None => verdict,
        Some(Disturbance::Throttle) => Verdict::Throttle {
            wait: THROTTLE_WAIT,
        },
        Some(Disturbance::Error) => Verdict::Error,
        Some(Disturbance::Timeout) => Verdict::Accept(Ending::Silence),
        Some(Disturbance::Reset) => Verdict::Accept(Ending::Reset),
        Some(Disturbance::Gateway) => {
            let status = if state.ids.chance(0.5) { 502 } else { 504 };
            Verdict::Accept(Ending::Gateway(status))
        }
        Some(Disturbance::Account(trouble)) => Verdict::Refuse(trouble),
    }
}

/// Whether the provider refuses this recipient for good.
pub(crate) fn is_refused(address: &str) -> bool {
    Behaviour::of(address) == Behaviour::Refuse
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
    Refuse,
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
            ("refuse", Behaviour::Refuse),
        ];
        let end = address.find(['+', '@']).unwrap_or(address.len());
        let name = &address[..end];
        NAMES
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map_or(Self::Deliver, |(_, behaviour)| *behaviour)
    }
}

/// The addresses whose "first time" is over.
#[derive(Default)]
pub(crate) struct SeenOnce(Mutex<HashSet<String>>);

impl SeenOnce {
    fn resolve(&self, behaviour: Behaviour, address: &str) -> Verdict {
        match behaviour {
            Behaviour::Deliver | Behaviour::Refuse => Verdict::Accept(Ending::Answer),
            Behaviour::Throttle => Verdict::Throttle {
                wait: THROTTLE_WAIT,
            },
            Behaviour::Error => Verdict::Error,
            Behaviour::Timeout => Verdict::Accept(Ending::Silence),
            Behaviour::Reset => Verdict::Accept(Ending::Reset),
            Behaviour::Gateway => Verdict::Accept(Ending::Gateway(502)),
            Behaviour::ThrottleOnce if self.is_first(address) => Verdict::Throttle {
                wait: THROTTLE_ONCE_WAIT,
            },
            Behaviour::Flaky if self.is_first(address) => Verdict::Error,
            Behaviour::TimeoutOnce if self.is_first(address) => Verdict::Accept(Ending::Silence),
            Behaviour::GatewayOnce if self.is_first(address) => {
                Verdict::Accept(Ending::Gateway(502))
            }
            Behaviour::ThrottleOnce
            | Behaviour::Flaky
            | Behaviour::TimeoutOnce
            | Behaviour::GatewayOnce => Verdict::Accept(Ending::Answer),
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

fn weight(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Accept(Ending::Answer) => 0,
        Verdict::Accept(Ending::Silence) => 1,
        Verdict::Accept(Ending::Reset | Ending::Gateway(_)) => 2,
        Verdict::Error => 3,
        Verdict::Throttle { .. } | Verdict::Refuse(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, SeenOnce, Verdict, is_refused};

    #[test]
    fn the_local_part_before_the_plus_counts_in_any_case() {
        assert_eq!(Behaviour::of("Throttle+7@example.com"), Behaviour::Throttle);
        assert_eq!(Behaviour::of("throttled@example.com"), Behaviour::Deliver);
        assert_eq!(Behaviour::of("hard-bounce@example.com"), Behaviour::Deliver);
        assert!(is_refused("REFUSE@example.com"));
    }

    #[test]
    fn flaky_fails_once_for_each_address() {
        let seen = SeenOnce::default();
        let first = |address| seen.resolve(Behaviour::Flaky, address) == Verdict::Error;
        assert!(first("flaky+1@example.com"));
        assert!(!first("FLAKY+1@example.com"));
        assert!(first("flaky+2@example.com"));
    }
}
