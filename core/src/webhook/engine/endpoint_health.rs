//! The circuit breaker of an endpoint: after some failures its calls are paused, and
//! after days of failures it is disabled. Pure.
//!
//! A tripped endpoint gets one delivery at a time, with growing pauses. So a dead
//! endpoint costs little, however many deliveries are pending, and these do not use up
//! their attempts.

use std::time::Duration;

use crate::clock::{Timestamp, delta};

/// Failures in a row that trip the breaker.
const TRIP_AFTER: i32 = 5;
/// The first pause; each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How long an endpoint may fail before it is disabled.
const DISABLE_AFTER: Duration = Duration::from_secs(5 * 24 * 3_600);

/// The state of an endpoint's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// Failed calls since the last success. While the breaker is tripped, only probes
    /// count.
    pub failures: i32,
    /// The time of the first of them.
    pub failing_since: Option<Timestamp>,
    /// No call is made before this time.
    pub paused_until: Option<Timestamp>,
}

impl EndpointHealth {
    /// Whether calls are made one at a time, as probes.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        self.failures >= TRIP_AFTER
    }

    /// Whether a call may be made now.
    #[must_use]
    pub fn may_call(&self, now: Timestamp) -> bool {
        self.paused_until.is_none_or(|until| until <= now)
    }

    /// The state after a successful call.
    #[must_use]
    pub fn succeeded() -> Self {
        Self::default()
    }

    /// The state after a call that started at `started_at` and failed by `now`.
    /// `was_probe` says that the breaker was tripped when the call started: calls that
    /// were already running do not lengthen the pause.
    #[must_use]
    pub fn failed(self, started_at: Timestamp, now: Timestamp, was_probe: bool) -> Self {
        let since = self.failing_since.unwrap_or(started_at).min(started_at);
        if self.is_tripped() && !was_probe {
            return Self {
                failing_since: Some(since),
                ..self
            };
        }
        let failures = self.failures.saturating_add(1);
        Self {
            failures,
            failing_since: Some(since),
            paused_until: pause(failures).map(|pause| now + delta(pause)),
        }
    }

    /// Whether the endpoint has failed for so long that it should be disabled.
    #[must_use]
    pub fn should_disable(&self, now: Timestamp) -> bool {
        self.failing_since
            .is_some_and(|since| now - since >= delta(DISABLE_AFTER))
    }
}

fn pause(failures: i32) -> Option<Duration> {
    let doublings = u32::try_from(failures - TRIP_AFTER).ok()?;
    let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
    Some(PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn pauses_begin_with_the_fifth_failure_and_double_up_to_five_minutes() {
        let now = Clock::system().now();
        let mut health = EndpointHealth::default();
        let mut pauses = Vec::new();
        for _ in 0..14 {
            health = health.failed(now, now, true);
            pauses.push(
                health
                    .paused_until
                    .map_or(0, |until| (until - now).num_seconds()),
            );
        }
        assert_eq!(
            pauses,
            [0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        );
        assert!(!health.may_call(now + TimeDelta::seconds(299)));
        assert!(health.may_call(now + TimeDelta::seconds(300)));
    }

    #[test]
    fn calls_that_were_running_do_not_lengthen_the_pause() {
        let now = Clock::system().now();
        let mut health = EndpointHealth::default();
        for _ in 0..8 {
            health = health.failed(now, now, false);
        }
        assert_eq!(health.failures, TRIP_AFTER);
        assert_eq!(health.paused_until, Some(now + TimeDelta::seconds(2)));
    }

    #[test]
    fn five_days_count_from_the_first_failure_since_the_last_success() {
        let first = Clock::system().now();
        let later = first + TimeDelta::days(5);
        let health = EndpointHealth::default().failed(first, first, false);
        assert!(!health.should_disable(later - TimeDelta::seconds(1)));
        assert!(health.failed(later, later, false).should_disable(later));
        assert!(
            !EndpointHealth::succeeded()
                .failed(later, later, false)
                .should_disable(later)
        );
    }
}
