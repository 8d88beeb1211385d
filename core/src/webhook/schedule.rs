//! When a delivery is tried again: pure, from what the last try came to.

use std::time::Duration;

use crate::clock::{Timestamp, delta};

const SECOND: u64 = 1;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The waits after each failed try. The first try is made at once, and after the
/// last wait comes the last try: ten in all, over three days.
const WAITS: [Duration; 9] = [
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
/// How far a wait is moved by chance, as a part of it, so that what failed together
/// does not come back together.
const JITTER: f64 = 0.1;
/// How many times its wait a receiver may ask for by `Retry-After`.
const PATIENCE: u32 = 2;

/// The answer that says that the endpoint is gone for good.
const GONE: u16 = 410;

/// What a call came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It was answered with a 2xx.
    Taken,
    /// It was answered otherwise, or not at all.
    Refused {
        /// The status, where an answer came.
        status: Option<u16>,
        /// How long the receiver asked to be left alone.
        retry_after: Option<Duration>,
    },
}

/// What follows for the delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptDecision {
    Delivered,
    /// It is tried again at this time.
    Again(Timestamp),
    Failed,
}

impl CallOutcome {
    /// The outcome of an answer with this status.
    #[must_use]
    pub fn of(status: u16, retry_after: Option<Duration>) -> Self {
        if (200..300).contains(&status) {
            Self::Taken
        } else {
            Self::Refused {
                status: Some(status),
                retry_after,
            }
        }
    }

    /// Whether the receiver says that its endpoint is gone for good.
    #[must_use]
    pub fn is_gone(self) -> bool {
        match self {
            Self::Taken => false,
            Self::Refused { status, .. } => status == Some(GONE),
        }
    }
}

/// What follows from a call at `now`. `attempts` is how many were made before it;
/// `fraction`, evenly distributed in `0.0..1.0`, is the chance in it.
#[must_use]
pub fn decide(
    outcome: CallOutcome,
    attempts: i32,
    now: Timestamp,
    fraction: f64,
) -> AttemptDecision {
    let retry_after = match outcome {
        CallOutcome::Taken => return AttemptDecision::Delivered,
        CallOutcome::Refused { .. } if outcome.is_gone() => return AttemptDecision::Failed,
        CallOutcome::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
    };
    let step = usize::try_from(attempts)
        .ok()
        .and_then(|step| WAITS.get(step));
    match step {
        Some(step) => {
            let jittered = step.mul_f64(1.0 - JITTER + 2.0 * JITTER * fraction);
            let wait = jittered.max(retry_after.min(*step * PATIENCE));
            AttemptDecision::Again(now + delta(wait))
        }
        None => AttemptDecision::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    fn refused(retry_after: Option<u64>) -> CallOutcome {
        CallOutcome::of(503, retry_after.map(Duration::from_secs))
    }

    fn wait(outcome: CallOutcome, attempts: i32, fraction: f64) -> Option<i64> {
        let now = Clock::system().now();
        match decide(outcome, attempts, now, fraction) {
            AttemptDecision::Again(at) => Some((at - now).num_seconds()),
            AttemptDecision::Delivered | AttemptDecision::Failed => None,
        }
    }

    #[test]
    fn ten_tries_are_made_over_three_days() {
        let waits: Vec<i64> = (0..9)
            .map(|made| wait(refused(None), made, 0.5).unwrap())
            .collect();
        assert_eq!(
            waits,
            [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
        );
        assert_eq!(wait(refused(None), 9, 0.5), None);
    }

    #[test]
    fn waits_differ_by_a_tenth_at_the_most() {
        assert_eq!(wait(refused(None), 1, 0.0), Some(270));
        assert_eq!(wait(refused(None), 1, 0.999_999_9), Some(329));
    }

    #[test]
    fn a_receiver_may_ask_for_twice_the_wait_and_not_for_less() {
        assert_eq!(wait(refused(Some(400)), 1, 0.5), Some(400));
        assert_eq!(wait(refused(Some(4_000)), 1, 0.5), Some(600));
        assert_eq!(wait(refused(Some(1)), 1, 0.5), Some(300));
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
                AttemptDecision::Again(_)
            ));
        }
    }

    #[test]
    fn an_endpoint_that_is_gone_gets_no_second_try() {
        let outcome = CallOutcome::of(410, None);
        assert!(outcome.is_gone());
        assert_eq!(
            decide(outcome, 0, Clock::system().now(), 0.5),
            AttemptDecision::Failed
        );
    }
}
