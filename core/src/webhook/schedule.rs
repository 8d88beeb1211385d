//! When a delivery is tried again. Pure.

use std::time::Duration;

use crate::clock::{Timestamp, delta};

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The delays after each failed attempt. The first attempt is made at once and the last
/// one after the last delay: ten in all, over three days.
const RETRY_DELAYS: [Duration; 9] = [
    Duration::from_secs(5 * SECOND),
    Duration::from_secs(5 * MINUTE),
    Duration::from_secs(30 * MINUTE),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(5 * HOUR),
    Duration::from_secs(10 * HOUR),
    Duration::from_secs(14 * HOUR),
    Duration::from_secs(20 * HOUR),
    Duration::from_secs(24 * HOUR),
];
/// The random part of a delay, so that deliveries that failed together are not retried
/// together.
const JITTER: f64 = 0.1;
/// How many times the delay a receiver may ask for by `Retry-After`.
const RETRY_AFTER_FACTOR_MAX: u32 = 2;

/// The status of an endpoint that is gone for good.
const GONE: u16 = 410;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The answer was a 2xx.
    Succeeded,
    /// Any other answer, or none.
    Failed {
        /// The status, if there was an answer.
        status: Option<u16>,
        /// The wait that the receiver asked for.
        retry_after: Option<Duration>,
    },
}

/// What to do with the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptDecision {
    Delivered,
    RetryAt(Timestamp),
    Failed,
}

impl CallOutcome {
    /// The outcome of an answer with this status.
    #[must_use]
    pub fn of(status: u16, retry_after: Option<Duration>) -> Self {
        if (200..300).contains(&status) {
            Self::Succeeded
        } else {
            Self::Failed {
                status: Some(status),
                retry_after,
            }
        }
    }

    /// Whether the receiver answered that the endpoint is gone for good.
    #[must_use]
    pub fn is_gone(self) -> bool {
        match self {
            Self::Succeeded => false,
            Self::Failed { status, .. } => status == Some(GONE),
        }
    }
}

/// Decides what to do with the delivery after a call at `now`. `attempts` counts the
/// attempts before it; `fraction` is a random number, evenly distributed in `0.0..1.0`.
#[must_use]
pub fn decide(
    outcome: CallOutcome,
    attempts: i32,
    now: Timestamp,
    fraction: f64,
) -> AttemptDecision {
    let retry_after = match outcome {
        CallOutcome::Succeeded => return AttemptDecision::Delivered,
        CallOutcome::Failed { .. } if outcome.is_gone() => return AttemptDecision::Failed,
        CallOutcome::Failed { retry_after, .. } => retry_after.unwrap_or_default(),
    };
    let step = usize::try_from(attempts)
        .ok()
        .and_then(|step| RETRY_DELAYS.get(step));
    match step {
        Some(step) => {
            let jittered = step.mul_f64(1.0 - JITTER + 2.0 * JITTER * fraction);
            let wait = jittered.max(retry_after.min(*step * RETRY_AFTER_FACTOR_MAX));
            AttemptDecision::RetryAt(now + delta(wait))
        }
        None => AttemptDecision::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn failed(retry_after: Option<u64>) -> CallOutcome {
        CallOutcome::of(503, retry_after.map(Duration::from_secs))
    }

    fn wait(outcome: CallOutcome, attempts: i32, fraction: f64) -> Option<i64> {
        let now = Clock::system().now();
        match decide(outcome, attempts, now, fraction) {
            AttemptDecision::RetryAt(at) => Some((at - now).num_seconds()),
            AttemptDecision::Delivered | AttemptDecision::Failed => None,
        }
    }

    #[test]
    fn ten_attempts_are_made_over_three_days() {
        let waits: Vec<i64> = (0..9)
            .map(|made| wait(failed(None), made, 0.5).unwrap())
            .collect();
        assert_eq!(
            waits,
            [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
        );
        assert_eq!(wait(failed(None), 9, 0.5), None);
    }

    #[test]
    fn delays_vary_by_a_tenth_at_most() {
        assert_eq!(wait(failed(None), 1, 0.0), Some(270));
        assert_eq!(wait(failed(None), 1, 0.999_999_9), Some(329));
    }

    #[test]
    fn a_receiver_may_ask_for_up_to_twice_the_delay() {
        assert_eq!(wait(failed(Some(400)), 1, 0.5), Some(400));
        assert_eq!(wait(failed(Some(4_000)), 1, 0.5), Some(600));
        assert_eq!(wait(failed(Some(1)), 1, 0.5), Some(300));
    }

    #[test]
    fn any_2xx_is_a_success_and_a_redirection_is_not() {
        let now = Clock::system().now();
        for status in [200, 204, 299] {
            let outcome = CallOutcome::of(status, None);
            assert_eq!(decide(outcome, 0, now, 0.5), AttemptDecision::Delivered);
        }
        for status in [199, 302, 404, 500] {
            let outcome = CallOutcome::of(status, None);
            assert!(matches!(
                decide(outcome, 0, now, 0.5),
                AttemptDecision::RetryAt(_)
            ));
        }
    }

    #[test]
    fn an_endpoint_that_is_gone_gets_no_second_attempt() {
        let outcome = CallOutcome::of(410, None);
        assert!(outcome.is_gone());
        assert_eq!(
            decide(outcome, 0, Clock::system().now(), 0.5),
            AttemptDecision::Failed
        );
    }
}
