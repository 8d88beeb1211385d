//! The arithmetic of rate limits, without I/O.
//!
//! A bucket contains as many requests as its rate allows in one period and refills at a
//! constant rate (GCRA, the generic cell rate algorithm). Its whole state is the time until
//! it is full again, so there are no counters and no resets.

use std::num::NonZeroU32;
use std::time::Duration;

/// A number of requests per period. The burst is that number too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Rate {
    requests: NonZeroU32,
    period: Duration,
}

impl Rate {
    /// Requests per second, at least one.
    #[must_use]
    pub(super) fn per_second(requests: u32) -> Self {
        Self::new(requests, Duration::from_secs(1))
    }

    /// Requests per minute, at least one.
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

    /// The time in which one request is refilled, rounded down to nanoseconds, so that a
    /// full bucket never contains one request too few.
    pub(super) fn interval(self) -> Duration {
        self.period / self.requests.get()
    }

    /// The time in which an empty bucket refills.
    fn fill_time(self) -> Duration {
        self.interval() * self.requests.get()
    }
}

/// Whether a request is allowed, and the state of its bucket for the response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitDecision {
    /// Requests per period.
    pub limit: u32,
    /// Requests that would be allowed now.
    pub remaining: u32,
    /// When `remaining` is `limit` again.
    pub full_after: Duration,
    /// If the request is rejected: when the next one would be allowed.
    pub retry_after: Option<Duration>,
}

impl LimitDecision {
    /// The decision on an allowed request, after which its bucket is full in
    /// `full_after`.
    pub(super) fn allowed(rate: Rate, full_after: Duration) -> Self {
        Self {
            retry_after: None,
            ..Self::rejected(rate, full_after)
        }
    }

    /// The decision on a request that found its bucket empty.
    pub(super) fn rejected(rate: Rate, full_after: Duration) -> Self {
        let (interval, fill_time) = (rate.interval(), rate.fill_time());
        let room = fill_time.saturating_sub(full_after);
        let remaining = room.as_nanos() / interval.as_nanos().max(1);
        Self {
            limit: rate.requests.get(),
            remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
            full_after,
            retry_after: Some((full_after + interval).saturating_sub(fill_time)),
        }
    }

    /// The decisions on `asked` simultaneous requests, of which the first `granted` are
    /// allowed. After them the bucket is full in `full_after`.
    pub(super) fn of_many(
        rate: Rate,
        asked: u32,
        granted: u32,
        full_after: Duration,
    ) -> impl Iterator<Item = Self> {
        let interval = rate.interval();
        (1..=asked).map(move |nth| {
            if nth > granted {
                return Self::rejected(rate, full_after);
            }
            Self::allowed(rate, full_after.saturating_sub(interval * (granted - nth)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_contains_exactly_its_limit() {
        for requests in [1, 2, 3, 6, 7, 20, 99, 100, 1_000, 999_983, 1_000_000] {
            for rate in [Rate::per_second(requests), Rate::per_minute(requests)] {
                let first = LimitDecision::allowed(rate, rate.interval());
                assert_eq!((first.limit, first.remaining), (requests, requests - 1));
                let last = LimitDecision::allowed(rate, rate.fill_time());
                assert_eq!(last.remaining, 0, "{requests}");
            }
        }
    }

    #[test]
    fn a_rejected_request_is_told_when_the_next_is_allowed() {
        let rate = Rate::per_minute(20);
        let decision = LimitDecision::rejected(rate, Duration::from_secs(60));
        assert_eq!(decision.remaining, 0);
        assert_eq!(decision.retry_after, Some(Duration::from_secs(3)));
        let soon = LimitDecision::rejected(rate, Duration::from_millis(57_001));
        assert_eq!(soon.retry_after, Some(Duration::from_millis(1)));
    }

    #[test]
    fn simultaneous_requests_get_different_decisions() {
        let rate = Rate::per_second(10);
        let decisions = LimitDecision::of_many(rate, 5, 3, Duration::from_secs(1));
        let results: Vec<_> = decisions
            .map(|decision| (decision.remaining, decision.retry_after.is_some()))
            .collect();
        assert_eq!(
            results,
            [(2, false), (1, false), (0, false), (0, true), (0, true)]
        );
    }

    #[test]
    fn no_rate_is_less_than_one_request() {
        assert_eq!(Rate::per_second(0), Rate::per_second(1));
    }
}
