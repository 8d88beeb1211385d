//! The settings of SMTP accounts: allowed servers and trusted certificates.

use std::path::PathBuf;

use url::{Host, Url};

use super::reader::Reader;
use super::{Environment, LinkSettings};
use crate::network::Networks;
use crate::network::guard::AddressGuard;
use crate::provider::smtp::SmtpServer;
use crate::provider::smtp::settings::{SmtpSettings, address_literal};

/// Reads the settings. The host in the public URL of `links` becomes the name in EHLO.
pub(super) fn read(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
    links: Option<&LinkSettings>,
) -> SmtpSettings {
    let allow = reader.optional(
        "WAYPOST_SMTP_ALLOW",
        "Private networks in which SMTP accounts may name servers: addresses and networks (CIDR), separated by commas. Every customer can then connect to servers in these networks. Default: none; in development loopback.",
        |text| text.parse().ok(),
    );
    let of_development = || match environment {
        Some(Environment::Development) => "127.0.0.0/8, ::1"
            .parse()
            .expect("a constant list of networks"),
        Some(Environment::Production) | None => Networks::default(),
    };
    let ca_file = reader.optional(
        "WAYPOST_SMTP_CA_FILE",
        "File of PEM certificates that SMTP connections trust in addition to the system's. For relays with a certificate of a private CA.",
        |text| Some(PathBuf::from(text)),
    );
    let server_override = reader.optional(
        "WAYPOST_SMTP_SERVER",
        "Server, `host:port`, to which Waypost connects instead of the server of any SMTP account. For development with the simulator.",
        SmtpServer::parse,
    );
    SmtpSettings {
        guard: AddressGuard::new(allow.unwrap_or_else(of_development)),
        ca_file,
        server_override,
        hello: links.map_or_else(|| SmtpSettings::default().hello, hello),
    }
}

/// The host of the public URL, in the notation of RFC 5321, 4.1.3.
pub(super) fn hello(links: &LinkSettings) -> String {
    let url = Url::parse(&links.public_url).ok();
    match url.as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address_literal(address.into()),
        Some(Host::Ipv6(address)) => address_literal(address.into()),
        None => SmtpSettings::default().hello,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;

    #[test]
    fn allowed_networks_and_the_ehlo_name_depend_on_the_environment() {
        let production = [
            (
                "WAYPOST_ENCRYPTION_KEYS",
                "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ),
            ("WAYPOST_PUBLIC_URL", "https://mail.example.com/waypost"),
        ];
        let development = [
            ("WAYPOST_ENV", "development"),
            ("WAYPOST_LISTEN", "[2001:db8::1]:80"),
        ];
        for (given, own_machine, hello) in [
            (production, false, "mail.example.com"),
            (development, true, "[IPv6:2001:db8::1]"),
        ] {
            let base = [("DATABASE_URL", "postgres://localhost/waypost")];
            let variables = base.into_iter().chain(given);
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let smtp = Settings::from_map(&variables.collect()).unwrap().smtp;
            for address in ["127.0.0.1", "::1"] {
                let permitted = smtp.guard.permits(address.parse().unwrap());
                assert_eq!(permitted, own_machine, "{address}");
            }
            assert!(!smtp.guard.permits("10.0.0.1".parse().unwrap()));
            assert_eq!(smtp.hello, hello);
            assert_eq!((smtp.ca_file, smtp.server_override), (None, None));
        }
    }

    #[test]
    fn invalid_values_are_reported_by_name() {
        let variables = [
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_ENV", "development"),
            ("WAYPOST_SMTP_ALLOW", "10.0.0.0/33"),
            ("WAYPOST_SMTP_SERVER", "localhost"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let error = Settings::from_map(&variables.into()).unwrap_err();
        let names: Vec<&str> = error
            .issues
            .iter()
            .map(|issue| issue.path.as_str())
            .collect();
        assert_eq!(names, ["WAYPOST_SMTP_ALLOW", "WAYPOST_SMTP_SERVER"]);
    }
}
