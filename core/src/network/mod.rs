//! Networks, and the address of the client behind proxies, without I/O.
//!
//! Any client can send `X-Forwarded-For`. Only the part that trusted proxies wrote counts: from
//! the right, up to the first address that is not a trusted proxy.

pub mod guard;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};

/// A network, or a single address as a network of its own. IPv4-mapped IPv6 addresses
/// (`::ffff:192.0.2.1`) are IPv4 addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network(IpNet);

/// Why a text is not a network. `Display` completes "the value …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    #[error("must be an IP address or a network in CIDR form, such as 203.0.113.0/24")]
    Malformed,
    /// The text names an address in the network instead of the network.
    #[error("must not have address bits beyond its prefix; its network is {0}")]
    HostBits(Network),
}

/// Length of the common prefix of IPv4-mapped IPv6 addresses.
const MAPPED_BITS: u8 = 96;

impl Network {
    /// Whether the network contains `address`.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(IpNet::from(address.to_canonical())));
        }
        let given: IpNet = text.parse().map_err(|_| NetworkError::Malformed)?;
        let network = match (given.addr().to_canonical(), given.prefix_len()) {
            (IpAddr::V4(address), bits) if given.addr().is_ipv6() && bits >= MAPPED_BITS => {
                Ipv4Net::new(address, bits - MAPPED_BITS)
                    .map_err(|_| NetworkError::Malformed)?
                    .into()
            }
            _ => given,
        };
        if network.addr() == network.network() {
            Ok(Self(network))
        } else {
            Err(NetworkError::HostBits(Self(network.trunc())))
        }
    }
}

/// The canonical form. A single address has no prefix length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            fmt::Display::fmt(&self.0.addr(), f)
        } else {
            fmt::Display::fmt(&self.0, f)
        }
    }
}

/// A list of networks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(pub Vec<Network>);

impl Networks {
    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the networks contains `address`.
    #[must_use]
    pub fn contain(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The networks in canonical form.
    #[must_use]
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
}

/// Parses networks separated by commas.
impl FromStr for Networks {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let parts = text.split(',').map(str::trim);
        let networks = parts.filter(|part| !part.is_empty()).map(str::parse);
        networks.collect::<Result<Vec<Network>, _>>().map(Self)
    }
}

/// The address of the client of a connection from `peer`. `forwarded` are the elements of
/// `X-Forwarded-For` in their order, `proxies` the trusted proxies.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded: impl DoubleEndedIterator<Item = &'a str>,
    proxies: &Networks,
) -> IpAddr {
    let mut client = peer.to_canonical();
    for hop in forwarded.rev() {
        if !proxies.contain(client) {
            break;
        }
        // A trusted proxy writes addresses only, so the rest is not trusted.
        let Some(address) = hop_address(hop.trim()) else {
            break;
        };
        client = address.to_canonical();
    }
    client
}

/// The address of a hop, with or without a port.
fn hop_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    bare.parse().ok().or_else(|| {
        let address: SocketAddr = text.parse().ok()?;
        Some(address.ip())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Result<String, NetworkError> {
        text.parse::<Network>().map(|network| network.to_string())
    }

    #[test]
    fn addresses_and_networks_have_one_form_each() {
        for (given, kept) in [
            ("203.0.113.7", "203.0.113.7"),
            ("203.0.113.7/32", "203.0.113.7"),
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("::ffff:203.0.113.0/120", "203.0.113.0/24"),
        ] {
            assert_eq!(network(given).as_deref(), Ok(kept));
        }
    }

    #[test]
    fn malformed_networks_are_rejected() {
        for text in [
            "",
            "x",
            "203.0.113",
            "203.0.113.7/33",
            "203.0.113.0/-1",
            "2001:db8::/129",
            "example.com",
            "203.0.113.7:80",
            " 203.0.113.7",
        ] {
            assert_eq!(network(text), Err(NetworkError::Malformed), "{text}");
        }
        let wide = "203.0.113.0/24".parse().unwrap();
        assert_eq!(network("203.0.113.7/24"), Err(NetworkError::HostBits(wide)));
    }

    #[test]
    fn an_ipv4_network_contains_ipv4_mapped_addresses() {
        let networks: Networks = "203.0.113.0/24, 2001:db8::/32".parse().unwrap();
        for (address, within) in [
            ("203.0.113.9", true),
            ("::ffff:203.0.113.9", true),
            ("203.0.114.1", false),
            ("2001:db8::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(networks.contain(address.parse().unwrap()), within);
        }
    }

    fn client(peer: &str, forwarded: &str) -> String {
        let proxies: Networks = "10.0.0.0/8, ::1".parse().unwrap();
        let hops = forwarded.split(',').filter(|hop| !hop.is_empty());
        client_address(peer.parse().unwrap(), hops, &proxies).to_string()
    }

    #[test]
    fn forwarded_addresses_count_only_if_a_trusted_proxy_wrote_them() {
        // The peer is not a trusted proxy.
        assert_eq!(client("198.51.100.1", "1.1.1.1"), "198.51.100.1");
        assert_eq!(client("10.0.0.1", ""), "10.0.0.1");
        assert_eq!(client("10.0.0.1", "1.1.1.1"), "1.1.1.1");
        assert_eq!(client("10.0.0.1", "1.1.1.1, 2.2.2.2"), "2.2.2.2");
        assert_eq!(client("10.0.0.1", "1.1.1.1, 10.0.0.2"), "1.1.1.1");
        assert_eq!(client("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3");
        assert_eq!(client("10.0.0.1", "1.1.1.1, nonsense"), "10.0.0.1");
        assert_eq!(client("10.0.0.1", "1.1.1.1, unknown, 10.0.0.2"), "10.0.0.2");
        assert_eq!(client("::ffff:10.0.0.1", "1.1.1.1:4711"), "1.1.1.1");
        assert_eq!(client("::1", "[2001:db8::1]:443"), "2001:db8::1");
        assert_eq!(client("::1", "[2001:db8::1]"), "2001:db8::1");
    }
}
