//! Buckets of this process: for all limits while Redis is away, and for public paths.

use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use moka::future::Cache;

use super::LimitBucket;
use super::rate::{LimitDecision, Rate};

/// Buckets in memory. An evicted bucket is full again.
const BUCKETS_MAX: u64 = 100_000;
/// How long an unused bucket is in memory. Every bucket is full again before that.
const UNUSED_MAX: Duration = Duration::from_secs(120);

type Counter = RateLimiter<NotKeyed, InMemoryState, DefaultClock, StateInformationMiddleware>;

/// The buckets of a process. After a change of its rate a bucket begins full.
pub(super) struct LocalLimits {
    buckets: Cache<(LimitBucket, Rate), Arc<Counter>>,
    clock: DefaultClock,
}

impl LocalLimits {
    pub(super) fn new() -> Self {
        Self {
            buckets: Cache::builder()
                .max_capacity(BUCKETS_MAX)
                .time_to_idle(UNUSED_MAX)
                .build(),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one request from a bucket.
    pub(super) async fn take(&self, bucket: LimitBucket, rate: Rate) -> LimitDecision {
        let new = async { Arc::new(self.counter(rate)) };
        let counter = self.buckets.get_with((bucket, rate), new).await;
        let interval = rate.interval();
        let limit = rate.requests().get();
        match counter.check() {
            Ok(state) => {
                let taken = limit.saturating_sub(state.remaining_burst_capacity());
                LimitDecision::allowed(rate, interval * taken)
            }
            Err(not_until) => {
                let wait = not_until.wait_time_from(self.clock.now());
                LimitDecision::rejected(rate, interval * (limit - 1) + wait)
            }
        }
    }

    fn counter(&self, rate: Rate) -> Counter {
        let quota = Quota::with_period(rate.interval()).expect("an interval is not zero");
        RateLimiter::direct_with_clock(quota.allow_burst(rate.requests()), self.clock.clone())
            .with_middleware()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::limit::ClientNetwork;

    #[tokio::test]
    async fn a_bucket_allows_its_limit_and_no_more() {
        let local = LocalLimits::new();
        let bucket = LimitBucket::Anonymous(ClientNetwork::V4(Ipv4Addr::LOCALHOST));
        let rate = Rate::per_minute(3);
        for remaining in [2, 1, 0] {
            let decision = local.take(bucket, rate).await;
            assert_eq!((decision.limit, decision.remaining), (3, remaining));
            assert_eq!(decision.retry_after, None);
        }
        let decision = local.take(bucket, rate).await;
        assert_eq!(decision.remaining, 0);
        let wait = decision.retry_after.unwrap();
        assert!(wait > Duration::ZERO && wait <= Duration::from_secs(20));
        let other = LimitBucket::Public(ClientNetwork::V4(Ipv4Addr::LOCALHOST));
        assert_eq!(local.take(other, rate).await.remaining, 2);
    }
}
