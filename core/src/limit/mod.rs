//! Rate limits of organizations and of clients without a valid key. The [`Limiter`] takes
//! each request from a token bucket and returns a [`LimitDecision`].
//!
//! The buckets are in Redis, shared by all API processes. While Redis is away or slow, each
//! process has buckets of its own, so an organization may exceed its limit by a factor of the
//! number of processes. No request is rejected because Redis is away. If Redis loses its data,
//! all buckets are full again.

mod local;
mod rate;
mod shared;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::ApiSettings;
use crate::ids::OrganizationId;
use crate::redis::Redis;
use local::LocalLimits;
use rate::Rate;
use shared::RedisLimits;

pub use rate::LimitDecision;

/// Requests per second from one address to public paths (pages of the service, signed links,
/// provider webhooks), per process. More than any of them needs, and not enough to keep a
/// process busy.
const PUBLIC_PER_SECOND: u32 = 10_000;

/// Prefix length by which IPv6 clients are counted. A client can choose the other bits
/// freely.
const IPV6_NETWORK_BITS: u32 = 64;

/// The rates that an organization set for itself. `None`: the operator's limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnRates {
    pub send_per_second: Option<u32>,
    pub other_per_second: Option<u32>,
}

/// The kind of a request. Each has a bucket of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedOperation {
    Send,
    Other,
}

/// The requests that share a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LimitBucket {
    Sends(OrganizationId),
    Others(OrganizationId),
    /// Requests without a valid key.
    Anonymous(ClientNetwork),
    Public(ClientNetwork),
}

impl LimitBucket {
    fn key(self, prefix: &str) -> String {
        match self {
            Self::Sends(id) => format!("{prefix}:limits:send:{{{id}}}"),
            Self::Others(id) => format!("{prefix}:limits:other:{{{id}}}"),
            Self::Anonymous(network) => format!("{prefix}:limits:stranger:{network}"),
            Self::Public(network) => format!("{prefix}:limits:open:{network}"),
        }
    }
}

/// The network by which a client is counted: an IPv4 address or an IPv6 network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientNetwork {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
}

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let mask = u128::MAX << (u128::BITS - IPV6_NETWORK_BITS);
                Self::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
            }
        }
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6(address) => write!(f, "{address}/{IPV6_NETWORK_BITS}"),
        }
    }
}

/// Enforces the rate limits.
pub struct Limiter {
    shared: RedisLimits,
    local: LocalLimits,
    send_max: u32,
    other_max: u32,
    anonymous: Rate,
}

impl Limiter {
    /// Starts the connection to Redis in the background.
    #[must_use]
    pub fn start(redis: Redis, settings: &ApiSettings) -> Self {
        Self {
            shared: RedisLimits::start(redis),
            local: LocalLimits::new(),
            send_max: settings.rate_limit_send_max,
            other_max: settings.rate_limit_other_max,
            anonymous: Rate::per_minute(settings.rate_limit_anonymous_per_minute),
        }
    }

    /// Counts a request of an organization. Its own rate counts up to the operator's limit,
    /// which may have been lowered since.
    pub async fn organization(
        &self,
        id: OrganizationId,
        operation: LimitedOperation,
        own: OwnRates,
    ) -> LimitDecision {
        let (bucket, wanted, max) = match operation {
            LimitedOperation::Send => (LimitBucket::Sends(id), own.send_per_second, self.send_max),
            LimitedOperation::Other => (
                LimitBucket::Others(id),
                own.other_per_second,
                self.other_max,
            ),
        };
        let requests = wanted.map_or(max, |wanted| wanted.min(max));
        self.take(bucket, Rate::per_second(requests)).await
    }

    /// Counts a request without a valid key, link or signature.
    pub async fn anonymous(&self, address: IpAddr) -> LimitDecision {
        let bucket = LimitBucket::Anonymous(address.into());
        self.take(bucket, self.anonymous).await
    }

    /// Counts a request to a public path. The bucket belongs to this process.
    pub async fn public(&self, address: IpAddr) -> LimitDecision {
        let rate = Rate::per_second(PUBLIC_PER_SECOND);
        self.local
            .take(LimitBucket::Public(address.into()), rate)
            .await
    }

    async fn take(&self, bucket: LimitBucket, rate: Rate) -> LimitDecision {
        match self.shared.take(bucket, rate).await {
            Some(decision) => decision,
            None => self.local.take(bucket, rate).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_has_one_ipv4_address_or_64_bits_of_ipv6() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(ClientNetwork::from(address).to_string(), network);
        }
    }
}
