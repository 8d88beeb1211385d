//! How an endpoint fares: when it is spared for a while, and when it has failed for
//! so long that it is switched off. Pure.
//!
//! After a few failures in a row an endpoint is tried by one delivery at a time, with
//! growing pauses. So a dead endpoint costs next to nothing, however much waits for
//! it, and its deliveries do not use up their tries against a wall.

use std::time::Duration;

use crate::clock::{Timestamp, delta};

/// Failures in a row from which on an endpoint is spared.
const PATIENCE: i32 = 5;
/// The first pause; each further failure doubles it.
const PAUSE_FIRST: Duration = Duration::from_secs(2);
/// The longest pause.
const PAUSE_LONGEST: Duration = Duration::from_secs(300);
/// How long nothing but failures switches an endpoint off.
const DEAD_AFTER: Duration = Duration::from_secs(5 * 24 * 3_600);

/// How an endpoint fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// Failed calls since the last that succeeded. While it is spared only probes
    /// count.
    pub failures: i32,
    /// The first of them.
    pub failing_since: Option<Timestamp>,
    /// No call is made before.
    pub paused_until: Option<Timestamp>,
}

impl EndpointHealth {
    /// Whether it is tried by one delivery at a time.
    #[must_use]
    pub fn is_spared(&self) -> bool {
        self.failures >= PATIENCE
    }

    /// Whether a call may be made.
    #[must_use]
    pub fn may_call(&self, now: Timestamp) -> bool {
        self.paused_until.is_none_or(|until| until <= now)
    }

    /// After a call that succeeded.
    #[must_use]
    pub fn succeeded() -> Self {
        Self::default()
    }

    /// After a call that began at `began_at` and failed by `now`. `was_probe` says
    /// that it began while the endpoint was spared: calls that were under way when
    /// that began do not lengthen the pause.
    #[must_use]
    pub fn failed(self, began_at: Timestamp, now: Timestamp, was_probe: bool) -> Self {
        let since = self.failing_since.unwrap_or(began_at).min(began_at);
        if self.is_spared() && !was_probe {
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

    /// Whether it has failed for so long that it is switched off.
    #[must_use]
    pub fn is_dead(&self, now: Timestamp) -> bool {
        self.failing_since
            .is_some_and(|since| now - since >= delta(DEAD_AFTER))
    }
}

fn pause(failures: i32) -> Option<Duration> {
    let doublings = u32::try_from(failures - PATIENCE).ok()?;
    let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
    Some(PAUSE_FIRST.saturating_mul(factor).min(PAUSE_LONGEST))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::clock::Clock;

    #[test]
    fn pauses_begin_with_the_fifth_failure_and_double_up_to_five_minutes() {
        let now = Clock::system().now();
        let mut fare = EndpointHealth::default();
        let mut pauses = Vec::new();
        for _ in 0..14 {
            fare = fare.failed(now, now, true);
            pauses.push(
                fare.paused_until
                    .map_or(0, |until| (until - now).num_seconds()),
            );
        }
        assert_eq!(
            pauses,
            [0, 0, 0, 0, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        );
        assert!(!fare.may_call(now + TimeDelta::seconds(299)));
        assert!(fare.may_call(now + TimeDelta::seconds(300)));
    }

    #[test]
    fn calls_that_were_under_way_do_not_lengthen_the_pause() {
        let now = Clock::system().now();
        let mut fare = EndpointHealth::default();
        for _ in 0..8 {
            fare = fare.failed(now, now, false);
        }
        assert_eq!(fare.failures, PATIENCE);
        assert_eq!(fare.paused_until, Some(now + TimeDelta::seconds(2)));
    }

    #[test]
    fn five_days_count_from_the_first_failure_since_the_last_success() {
        let first = Clock::system().now();
        let later = first + TimeDelta::days(5);
        let fare = EndpointHealth::default().failed(first, first, false);
        assert!(!fare.is_dead(later - TimeDelta::seconds(1)));
        assert!(fare.failed(later, later, false).is_dead(later));
        assert!(
            !EndpointHealth::succeeded()
                .failed(later, later, false)
                .is_dead(later)
        );
    }
}
