//! The arithmetic of limits. Pure.
//!
//! A bucket holds as many requests as its rate allows in one period and fills up
//! evenly (GCRA, the generic cell rate algorithm). All that is kept of it is a
//! time: how long it takes until it is full again. So nothing has to be counted
//! and nothing has to be reset.

use std::num::NonZeroU32;
use std::time::Duration;

/// So many requests in a period. They may come all at once: the burst is what one
/// period allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rate {
    requests: NonZeroU32,
    period: Duration,
}

impl Rate {
    /// So many requests in a second, at least one.
    #[must_use]
    pub(super) fn per_second(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(1))
    }

    /// So many requests in a minute, at least one.
    #[must_use]
    pub(super) fn per_minute(requests: u32) -> Self {
        Self::new(requests, Duration::from_mins(1))
    }

    fn new(requests: u32, period: Duration) -> Self {
        let requests = NonZeroU32::new(requests).unwrap_or(NonZeroU32::MIN);
        Self { requests, period }
    }

    pub(super) fn requests(self) -> NonZeroU32 {
        self.requests
    }

    /// What one request costs, in time: whole nanoseconds, rounded down, so that a
    /// full bucket holds no request less than it should.
    pub(super) fn interval(self) -> Duration {
        self.period / self.requests.get()
    }

    /// What an empty bucket takes to be full again.
    fn whole(self) -> Duration {
        self.interval() * self.requests.get()
    }
}

/// What became of one request, and what is left of its bucket. Answers tell it in
/// their headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitDecision {
    /// Requests that the bucket's rate allows in a period.
    pub limit: u32,
    /// Requests that could follow at once.
    pub remaining: u32,
    /// How long it takes until `remaining` is `limit` again.
    pub full_after: Duration,
    /// Where the request is one too many: how long it takes until one would pass.
    pub refused_for: Option<Duration>,
}

impl LimitDecision {
    /// The verdict on a request that passed and left its bucket full after
    /// `full_after`.
    pub(super) fn passed(rate: Rate, full_after: Duration) -> Self {
        Self {
            refused_for: None,
            ..Self::refused(rate, full_after)
        }
    }

    /// The verdict on a request that found a bucket without room.
    pub(super) fn refused(rate: Rate, full_after: Duration) -> Self {
        let (interval, whole) = (rate.interval(), rate.whole());
        let room = whole.saturating_sub(full_after);
        let remaining = room.as_nanos() / interval.as_nanos().max(1);
        Self {
            limit: rate.requests.get(),
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            full_after,
            refused_for: Some((full_after + interval).saturating_sub(whole)),
        }
    }

    /// The verdicts on `asked` requests that came together, of which the first
    /// `granted` passed and left their bucket full after `full_after`.
    pub(super) fn of_many(
        rate: Rate,
        asked: u32,
        granted: u32,
        full_after: Duration,
    ) -> impl Iterator<Item = Self> {
        let interval = rate.interval();
        (1..=asked).map(move |nth| {
            if nth > granted {
                return Self::refused(rate, full_after);
            }
            Self::passed(rate, full_after.saturating_sub(interval * (granted - nth)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_holds_exactly_its_limit_whatever_that_is() {
        for requests in [1, 2, 3, 6, 7, 20, 99, 100, 1_000, 999_983, 1_000_000] {
            for rate in [Rate::per_second(requests), Rate::per_minute(requests)] {
                let first = LimitDecision::passed(rate, rate.interval());
                assert_eq!((first.limit, first.remaining), (requests, requests - 1));
                let last = LimitDecision::passed(rate, rate.whole());
                assert_eq!(last.remaining, 0, "{requests}");
            }
        }
    }

    #[test]
    fn a_refused_request_learns_when_one_would_pass() {
        let rate = Rate::per_minute(20);
        let verdict = LimitDecision::refused(rate, Duration::from_secs(60));
        assert_eq!(verdict.remaining, 0);
        assert_eq!(verdict.refused_for, Some(Duration::from_secs(3)));
        let soon = LimitDecision::refused(rate, Duration::from_millis(57_001));
        assert_eq!(soon.refused_for, Some(Duration::from_millis(1)));
    }

    #[test]
    fn requests_that_came_together_are_told_apart() {
        let rate = Rate::per_second(10);
        let verdicts = LimitDecision::of_many(rate, 5, 3, Duration::from_secs(1));
        let told: Vec<_> = verdicts
            .map(|verdict| (verdict.remaining, verdict.refused_for.is_some()))
            .collect();
        assert_eq!(
            told,
            [(2, false), (1, false), (0, false), (0, true), (0, true)]
        );
    }

    #[test]
    fn no_rate_is_less_than_one_request() {
        assert_eq!(Rate::per_second(0), Rate::per_second(1));
    }
}
