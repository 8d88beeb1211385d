//! Rate arithmetic, pure: the interval and the burst of a rate, a worker's share of the
//! limits, and when rejected calls come back.

use std::time::Duration;

use tokio::time::Instant;

use super::AccountLimits;

/// The burst of a rate is the calls of a tenth of a second, at least one. With the calls
/// of a whole second, a provider that counts by the second could see twice its limit.
const BURSTS_PER_SECOND: u32 = 10;
/// The longest wait of a rejected call.
const SPREAD_MAX: Duration = Duration::from_secs(30);

/// Calls per second, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AccountRate(u32);

impl AccountRate {
    pub(super) fn per_second(calls: u32) -> Self {
        Self(calls.max(1))
    }

    /// The time between two calls.
    pub(super) fn interval(self) -> Duration {
        Duration::from_secs(1) / self.0
    }

    /// The calls that may start at once.
    pub(super) fn burst(self) -> u32 {
        (self.0 / BURSTS_PER_SECOND).max(1)
    }
}

impl AccountLimits {
    /// The share of one of `workers` workers that cannot coordinate: an even part, at
    /// least one call.
    pub(super) fn share(self, workers: u32) -> Self {
        let part = |bound: u32| (bound / workers.max(1)).max(1);
        Self {
            max_rate_per_second: self.max_rate_per_second.map(part),
            max_concurrency: self.max_concurrency.map(part),
        }
    }
}

/// Spreads the rejected calls of an account, so that they come back one after the other.
#[derive(Debug, Default)]
pub(super) struct RetryQueue {
    next: Option<Instant>,
}

impl RetryQueue {
    /// The wait of one more rejected call: at least `soonest`, and `apart` after the call
    /// before.
    pub(super) fn wait(&mut self, soonest: Duration, apart: Duration, now: Instant) -> Duration {
        let soonest = now + soonest.min(SPREAD_MAX);
        let at = self.next.map_or(soonest, |next| next.max(soonest));
        let at = at.min(now + SPREAD_MAX);
        self.next = Some(at + apart);
        at - now
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
    fn a_share_is_an_even_part_and_at_least_one_call() {
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
    fn rejected_calls_come_back_one_after_the_other() {
        let mut retries = RetryQueue::default();
        let (soonest, apart) = (Duration::from_millis(300), Duration::from_secs(1));
        let now = Instant::now();
        for millis in [300, 1_300, 2_300] {
            let wait = retries.wait(soonest, apart, now);
            assert_eq!(wait, Duration::from_millis(millis));
        }
        let later = now + Duration::from_mins(1);
        assert_eq!(retries.wait(soonest, apart, later), soonest);
        for _ in 0..100 {
            assert!(retries.wait(soonest, apart, now) <= SPREAD_MAX);
        }
    }
}
