//! The arithmetic of pace, pure: what a bound per second comes to, what is a
//! worker's share of it, and when those who were refused are to come back.

use std::time::Duration;

use tokio::time::Instant;

use super::AccountLimits;

/// The burst that a pace allows: what comes in a tenth of a second, one call at
/// least. A whole second's worth would let a provider that counts by the second see
/// twice what it allows.
const BURSTS_PER_SECOND: u32 = 10;
/// Nobody who was refused is asked to wait longer.
const SPREAD_MAX: Duration = Duration::from_secs(30);

/// So many calls per second, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountRate(u32);

impl AccountRate {
    pub(super) fn per_second(calls: u32) -> Self {
        Self(calls.max(1))
    }

    /// What one call costs, in time.
    pub(super) fn interval(self) -> Duration {
        Duration::from_secs(1) / self.0
    }

    /// Calls that may come at once.
    pub(super) fn burst(self) -> u32 {
        (self.0 / BURSTS_PER_SECOND).max(1)
    }
}

impl AccountLimits {
    /// What one of so many workers may do, where they cannot ask each other: an
    /// even part, and one call at the least.
    pub(super) fn share(self, workers: u32) -> Self {
        let part = |bound: u32| (bound / workers.max(1)).max(1);
        Self {
            max_rate_per_second: self.max_rate_per_second.map(part),
            max_concurrency: self.max_concurrency.map(part),
        }
    }
}

/// Those of an account who were refused and are to come back, one after the other
/// and not all at once.
#[derive(Debug, Default)]
pub(super) struct RetryQueue {
    next: Option<Instant>,
}

impl RetryQueue {
    /// How long one more is to wait: `soonest` at the least, and `apart` from the one
    /// before.
    pub(super) fn wait(&mut self, soonest: Duration, apart: Duration, now: Instant) -> Duration {
        let soonest = now + soonest.min(SPREAD_MAX);
        let turn = self.next.map_or(soonest, |next| next.max(soonest));
        let turn = turn.min(now + SPREAD_MAX);
        self.next = Some(turn + apart);
        turn - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_a_tenth_of_a_second_and_one_call_at_least() {
        for (rate, burst) in [(0, 1), (1, 1), (19, 1), (20, 2), (100_000, 10_000)] {
            assert_eq!(AccountRate::per_second(rate).burst(), burst, "{rate}");
        }
        assert_eq!(
            AccountRate::per_second(4).interval(),
            Duration::from_millis(250)
        );
    }

    #[test]
    fn a_share_is_an_even_part_and_never_nothing() {
        let limits = AccountLimits {
            max_rate_per_second: Some(10),
            max_concurrency: Some(2),
        };
        for (workers, rate, concurrency) in [(0, 10, 2), (1, 10, 2), (3, 3, 1), (50, 1, 1)] {
            let share = limits.share(workers);
            assert_eq!(share.max_rate_per_second, Some(rate));
            assert_eq!(share.max_concurrency, Some(concurrency));
        }
        assert_eq!(AccountLimits::default().share(3), AccountLimits::default());
    }

    #[test]
    fn the_refused_come_back_one_after_the_other() {
        let mut refused = RetryQueue::default();
        let (soonest, apart) = (Duration::from_millis(300), Duration::from_secs(1));
        let now = Instant::now();
        for millis in [300, 1_300, 2_300] {
            let wait = refused.wait(soonest, apart, now);
            assert_eq!(wait, Duration::from_millis(millis));
        }
        let later = now + Duration::from_mins(1);
        assert_eq!(refused.wait(soonest, apart, later), soonest);
        for _ in 0..100 {
            assert!(refused.wait(soonest, apart, now) <= SPREAD_MAX);
        }
    }
}
