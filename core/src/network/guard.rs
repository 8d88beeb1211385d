//! Which addresses Waypost may connect to for a customer, without I/O. A webhook URL or a mail
//! server must not give customers access to the network that Waypost runs in.
//!
//! The special-purpose addresses are those of the IANA registries (RFC 6890 and its updates, as
//! of 2025). In IPv6 only global unicast is public, so forms that contain an IPv4 address
//! (mapped, compatible, NAT64) are not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::Networks;

/// Permits public addresses and those that the operator allows.
#[derive(Debug, Clone, Default)]
pub struct AddressGuard {
    allowed: Networks,
}

impl AddressGuard {
    /// Permits `allowed` in addition to public addresses.
    #[must_use]
    pub fn new(allowed: Networks) -> Self {
        Self { allowed }
    }

    /// Whether Waypost may connect to `address`.
    #[must_use]
    pub fn permits(&self, address: IpAddr) -> bool {
        is_public(address) || self.is_allowed(address)
    }

    /// Whether the operator allows public addresses only.
    #[must_use]
    pub fn allows_nothing(&self) -> bool {
        self.allowed.is_empty()
    }

    /// Whether the operator allows `address` explicitly, and therefore plain HTTP.
    #[must_use]
    pub fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.contain(address)
    }
}

/// The IANA IPv4 Special-Purpose Address Registry, multicast and reserved addresses, and the one
/// metadata service of a cloud at a public address.
const IPV4_NOT_PUBLIC: [Ipv4Net; 16] = [
    // "This network" (RFC 791): on Linux 0.0.0.0 is the machine itself.
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    // Carrier-grade NAT (RFC 6598), including Alibaba's metadata service.
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    // Azure's WireServer, reachable from every Azure virtual machine.
    v4(168, 63, 129, 16, 32),
    // Link-local, including the metadata services of most clouds.
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    // IETF protocol assignments, including Oracle's metadata service.
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    // 6to4 relays, deprecated (RFC 7526).
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    // Benchmarks (RFC 2544).
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    // Multicast, including its documentation range.
    v4(224, 0, 0, 0, 4),
    // Reserved, including broadcast.
    v4(240, 0, 0, 0, 4),
];

/// The IANA IPv6 Global Unicast Address Space.
const IPV6_GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0], 3);

/// The part of the IANA IPv6 Special-Purpose Address Registry within global unicast.
const IPV6_NOT_PUBLIC: [Ipv6Net; 4] = [
    // IETF protocol assignments: Teredo, benchmarks, ORCHID and others.
    v6([0x2001, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0], 32),
    // 6to4 contains any IPv4 address.
    v6([0x2002, 0, 0, 0], 16),
    // Documentation (RFC 9637).
    v6([0x3fff, 0, 0, 0], 20),
];

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6([a, b, c, d]: [u16; 4], bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0), bits)
}

/// Whether `address` is a public Internet address.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !IPV4_NOT_PUBLIC.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            IPV6_GLOBAL_UNICAST.contains(&address)
                && !IPV6_NOT_PUBLIC.iter().any(|net| net.contains(&address))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_public_addresses_are_recognized_in_every_form() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            // IPv4 in IPv6: mapped, translated, compatible; also of public addresses.
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
            "e000::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_next_to_special_networks_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700:4700::1111",
            "2a00:1450:4001:800::200e",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn allowed_addresses_are_permitted_in_addition_to_public_ones() {
        let guard = AddressGuard::new("127.0.0.0/8, ::1".parse().unwrap());
        for (address, permitted, allowed) in [
            ("127.0.0.1", true, true),
            ("::1", true, true),
            ("::ffff:127.0.0.1", true, true),
            ("1.1.1.1", true, false),
            ("10.0.0.1", false, false),
            ("::ffff:10.0.0.1", false, false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(guard.permits(address), permitted, "{address}");
            assert_eq!(guard.is_allowed(address), allowed, "{address}");
        }
    }
}
