//! The settings of SMTP connections.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use super::SmtpServer;
use crate::network::guard::AddressGuard;

/// The settings of SMTP connections.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// The addresses that an account's server may have.
    pub guard: AddressGuard,
    /// Certificates to trust besides those of the operating system, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The server to connect to instead of every account's own.
    pub server_override: Option<SmtpServer>,
    /// Our name in EHLO: a domain, or an address in brackets.
    pub hello: String,
}

/// The strictest settings.
impl Default for SmtpSettings {
    fn default() -> Self {
        Self {
            guard: AddressGuard::default(),
            ca_file: None,
            server_override: None,
            hello: address_literal(Ipv4Addr::LOCALHOST.into()),
        }
    }
}

/// An address literal (RFC 5321, 4.1.3).
pub(crate) fn address_literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("[{address}]"),
        IpAddr::V6(address) => format!("[IPv6:{address}]"),
    }
}
