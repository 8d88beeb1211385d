//! The settings of look-ups in DNS, and how often sender domains are checked by them.

use std::time::Duration;

use super::reader::Reader;
use crate::dns::DnsServers;

/// The most servers.
const SERVERS_MAX: usize = 8;

/// The settings of look-ups in DNS.
#[derive(Debug, Clone)]
pub struct DnsSettings {
    pub servers: DnsServers,
    /// How long after a check a sender domain is checked again.
    pub check_interval: Duration,
}

/// Reads the settings.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<DnsSettings> {
    let servers = reader.optional(
        "WAYPOST_DNS_SERVERS",
        "DNS servers that sender domains are looked up with: up to 8 addresses with ports, such as `10.0.0.2:53`, separated by commas; or `none`, and no domain is looked up. They must resolve names of the internet. Unset: those of `/etc/resolv.conf`.",
        parse,
    );
    let check_interval = reader.duration(
        "WAYPOST_DNS_CHECK_INTERVAL",
        "6h",
        "How often the DNS records of a sender domain are looked up. A domain with missing records is looked up at least every hour.",
    );
    Some(DnsSettings {
        servers: servers.unwrap_or(DnsServers::System),
        check_interval: check_interval?,
    })
}

fn parse(text: &str) -> Option<DnsServers> {
    if text == "none" {
        return Some(DnsServers::Disabled);
    }
    let addresses = text.split(',').map(|address| address.trim().parse());
    let addresses: Vec<_> = addresses.collect::<Result<_, _>>().ok()?;
    (addresses.len() <= SERVERS_MAX).then_some(DnsServers::Listed(addresses))
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};
    use super::*;

    fn read(servers: &str, interval: &str) -> Result<DnsSettings, ConfigError> {
        let variables = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_DNS_SERVERS", servers),
            ("WAYPOST_DNS_CHECK_INTERVAL", interval),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Settings::from_map(&variables.into()).map(|settings| settings.dns)
    }

    #[test]
    fn the_servers_are_those_of_the_system_or_listed_or_none() {
        let default = read("", "").unwrap();
        assert_eq!(default.servers, DnsServers::System);
        assert_eq!(default.check_interval, Duration::from_hours(6));
        assert_eq!(read("none", "").unwrap().servers, DnsServers::Disabled);
        let listed = read("10.0.0.2:53, [2001:db8::1]:5353", "1h").unwrap();
        let expected = ["10.0.0.2:53", "[2001:db8::1]:5353"].map(|text| text.parse().unwrap());
        assert_eq!(listed.servers, DnsServers::Listed(expected.to_vec()));
    }

    #[test]
    fn wrong_values_are_named() {
        let nine = ["10.0.0.2:53"; 9].join(",");
        for servers in ["10.0.0.2", "dns.example.com:53", "system", ",", &nine] {
            let error = read(servers, "soon").unwrap_err();
            let names: Vec<&str> = error
                .issues
                .iter()
                .map(|issue| issue.path.as_str())
                .collect();
            assert_eq!(
                names,
                ["WAYPOST_DNS_SERVERS", "WAYPOST_DNS_CHECK_INTERVAL"],
                "{servers}"
            );
        }
    }
}
