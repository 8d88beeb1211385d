//! The pace of accounts as this process alone keeps it, while Redis is away: its
//! share of what all workers may.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use moka::future::Cache;

use super::rate::AccountRate;
use crate::ids::ProviderAccountId;

/// Accounts remembered at the most. One that is forgotten begins anew.
const REMEMBERED_MAX: u64 = 10_000;
/// How long an unused account is remembered: longer than any takes to be full.
const UNUSED_MAX: Duration = Duration::from_secs(10);

/// This process's own buckets. A pace that changes begins with a full bucket.
pub(super) struct LocalRates {
    buckets: Cache<(ProviderAccountId, AccountRate), Arc<DefaultDirectRateLimiter>>,
    clock: DefaultClock,
}

impl LocalRates {
    pub(super) fn new() -> Self {
        Self {
            buckets: Cache::builder()
                .max_capacity(REMEMBERED_MAX)
                .time_to_idle(UNUSED_MAX)
                .build(),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one call; where there is none left, how long it takes until there is.
    pub(super) async fn take(
        &self,
        account: ProviderAccountId,
        pace: AccountRate,
    ) -> Result<(), Duration> {
        let new = async { Arc::new(self.bucket(pace)) };
        let bucket = self.buckets.get_with((account, pace), new).await;
        let taken = bucket.check();
        taken.map_err(|not_until| not_until.wait_time_from(self.clock.now()))
    }

    fn bucket(&self, pace: AccountRate) -> DefaultDirectRateLimiter {
        let quota = Quota::with_period(pace.interval()).expect("an interval is not zero");
        let burst = NonZeroU32::new(pace.burst()).unwrap_or(NonZeroU32::MIN);
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
        let pace = AccountRate::per_second(30);
        for _ in 0..3 {
            assert_eq!(local.take(one, pace).await, Ok(()));
        }
        let wait = local.take(one, pace).await.unwrap_err();
        assert!(wait > Duration::ZERO && wait <= pace.interval());
        assert_eq!(local.take(other, pace).await, Ok(()));
    }
}
