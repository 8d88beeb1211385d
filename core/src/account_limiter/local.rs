//! The rate limit of accounts while Redis is unreachable: this process alone enforces its
//! share of each limit.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moka::future::Cache;

use super::rate::AccountRate;
use crate::ids::ProviderAccountId;

/// The most buckets in memory. A bucket that was evicted starts full again.
const BUCKETS_MAX: u64 = 10_000;
/// How long an unused bucket is kept: longer than any takes to refill.
const UNUSED_MAX: Duration = Duration::from_secs(10);

/// The token buckets of this process. A changed rate starts with a full bucket.
pub(super) struct LocalRates {
    buckets: Cache<(ProviderAccountId, AccountRate), Arc<DefaultDirectRateLimiter>>,
    clock: DefaultClock,
}

impl LocalRates {
    pub(super) fn new() -> Self {
        Self {
            buckets: Cache::builder()
                .max_capacity(BUCKETS_MAX)
                .time_to_idle(UNUSED_MAX)
                .build(),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one call from the account's bucket, or returns how long to wait for the next.
    pub(super) async fn take(
        &self,
        account: ProviderAccountId,
        rate: AccountRate,
    ) -> Result<(), Duration> {
        let new = async { Arc::new(self.bucket(rate)) };
        let bucket = self.buckets.get_with((account, rate), new).await;
        let taken = bucket.check();
        taken.map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }

    fn bucket(&self, rate: AccountRate) -> DefaultDirectRateLimiter {
        let quota = Quota::with_period(rate.interval()).expect("an interval is not zero");
        let burst = NonZeroU32::new(rate.burst()).unwrap_or(NonZeroU32::MIN);
        RateLimiter::direct_with_clock(quota.allow_burst(burst), self.clock.clone())
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_bucket_holds_its_burst_and_no_more() {
        let local = LocalRates::new();
        let (one, other) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let rate = AccountRate::per_second(30);
        for _ in 0..3 {
            assert_eq!(local.take(one, rate).await, Ok(()));
        }
        let wait = local.take(one, rate).await.unwrap_err();
        assert!(wait > Duration::ZERO && wait <= rate.interval());
        assert_eq!(local.take(other, rate).await, Ok(()));
    }
}
