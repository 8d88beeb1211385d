//! Rate limits: how many requests an organization, or someone without a valid key,
//! may make. The [`Limiter`] takes each request from the *bucket* of those that count
//! together, and says with a [`LimitDecision`] whether it was there.
//!
//! Redis holds the buckets, so that all API processes share them. While it is away
//! or slow each process holds its own, which means that an organization may make
//! as many times its limit as there are processes. A request is never refused
//! because Redis is away.
//!
//! What is not promised: that a bucket remembers anything once Redis was emptied.

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

/// Requests per second of one address that no stricter limit holds back, in each
/// process: pages of the service itself, signed links, providers that report
/// events. More than either needs, and less than would keep a process busy.
const OPEN_PER_SECOND: u32 = 10_000;

/// Bits of an IPv6 address that name a network; the others are its holder's to
/// choose.
const IPV6_NETWORK_BITS: u32 = 64;

/// An organization's own rates; the operator's where it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnRates {
    /// Sends per second.
    pub send_per_second: Option<u32>,
    /// Other requests per second.
    pub other_per_second: Option<u32>,
}

/// What an organization's request asks for, as far as limits go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedOperation {
    /// A message to be sent.
    Send,
    Other,
}

/// Whose requests are taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum LimitBucket {
    Sends(OrganizationId),
    Others(OrganizationId),
    /// Requests without a valid key.
    Stranger(ClientNetwork),
    Open(ClientNetwork),
}

impl LimitBucket {
    fn key(self, prefix: &str) -> String {
        match self {
            Self::Sends(id) => format!("{prefix}:limits:send:{{{id}}}"),
            Self::Others(id) => format!("{prefix}:limits:other:{{{id}}}"),
            Self::Stranger(network) => format!("{prefix}:limits:stranger:{network}"),
            Self::Open(network) => format!("{prefix}:limits:open:{network}"),
        }
    }
}

/// What one client has to itself: an IPv4 address, or a network of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ClientNetwork {
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

/// Holds requests to their limits.
pub struct Limiter {
    shared: RedisLimits,
    local: LocalLimits,
    send_max: u32,
    other_max: u32,
    anonymous: Rate,
}

impl Limiter {
    /// Starts to connect to Redis.
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

    /// Takes a request of an organization. Its own rates count up to the
    /// operator's, which may be lower by now than when they were set.
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

    /// Takes a request without a valid key, or with a link or a signature that is
    /// not valid.
    pub async fn stranger(&self, address: IpAddr) -> LimitDecision {
        let bucket = LimitBucket::Stranger(address.into());
        self.take(bucket, self.anonymous).await
    }

    /// Takes a request that needs no key. Only this process knows of it.
    pub async fn open(&self, address: IpAddr) -> LimitDecision {
        let rate = Rate::per_second(OPEN_PER_SECOND);
        self.local
            .take(LimitBucket::Open(address.into()), rate)
            .await
    }

    async fn take(&self, bucket: LimitBucket, rate: Rate) -> LimitDecision {
        match self.shared.take(bucket, rate).await {
            Some(verdict) => verdict,
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
