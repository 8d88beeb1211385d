//! How mail servers are reached: which addresses they may have, and what is trusted.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use super::SmtpServer;
use crate::network::guard::AddressGuard;

/// How mail servers are reached.
#[derive(Debug, Clone)]
pub struct SmtpSettings {
    /// Which addresses a server that an account names may have.
    pub guard: AddressGuard,
    /// Certificates to trust beside the machine's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// The server that is dialled in place of every account's own.
    pub stand_in: Option<SmtpServer>,
    /// The name that we greet with: a domain, or an address in brackets.
    pub hello: String,
}

/// As strict as can be.
impl Default for SmtpSettings {
    fn default() -> Self {
        Self {
            guard: AddressGuard::default(),
            ca_file: None,
            stand_in: None,
            hello: address_literal(Ipv4Addr::LOCALHOST.into()),
        }
    }
}

/// An address as RFC 5321, 4.1.3 writes it.
pub(crate) fn address_literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("[{address}]"),
        IpAddr::V6(address) => format!("[IPv6:{address}]"),
    }
}
