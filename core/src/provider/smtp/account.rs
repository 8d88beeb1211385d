//! The mail server of an account, and the login for it.

use std::fmt;
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::address::ascii_domain;
use crate::secret::{ExposeSecret, Secret};

/// A mail server and its login.
#[derive(Debug, Clone)]
pub struct SmtpAccount {
    pub server: SmtpServer,
    /// `None` for a relay that authorizes us by our address.
    pub login: Option<SmtpLogin>,
    /// How the connection is encrypted.
    pub tls: SmtpTls,
}

/// A user name and its password.
#[derive(Debug, Clone)]
pub struct SmtpLogin {
    /// The user name; some services expect a token here.
    pub username: Secret,
    pub password: Secret,
}

/// The name or the address of a server, safe in a command and as a TLS server name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpHost(String);

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpServer {
    pub host: SmtpHost,
    pub port: u16,
}

impl SmtpServer {
    /// Parses `host:port`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        Some(Self {
            host: SmtpHost::parse(host)?,
            port: port.parse().ok().filter(|port| *port > 0)?,
        })
    }
}

/// How a connection is encrypted. There is no fallback to a weaker mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpTls {
    /// `starttls`, the default: starts unencrypted, and ends if the server does not offer
    /// encryption (RFC 3207).
    StartTls,
    /// `implicit`: encrypted from the first byte (RFC 8314).
    Implicit,
    /// `none`: unencrypted, for relays in the operator's own network.
    None,
}

impl SmtpHost {
    /// Parses a DNS name of one or more labels, or an IP address.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bare = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self(address.to_canonical().to_string()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_lowercase();
        if name.contains('.') {
            return ascii_domain(&name).map(Self);
        }
        // Relays in containers and local networks have names of one label.
        let is_letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let fits = (1..=63).contains(&name.len())
            && name
                .bytes()
                .all(|byte| is_letter_or_digit(byte) || byte == b'-')
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-');
        fits.then_some(Self(name))
    }

    /// The name, or the address without brackets.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SmtpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SmtpTls {
    /// All modes, the default first.
    pub const ALL: [Self; 3] = [Self::StartTls, Self::Implicit, Self::None];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartTls => "starttls",
            Self::Implicit => "implicit",
            Self::None => "none",
        }
    }

    /// Parses a name of the API.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }

    /// The default port of the mode (RFC 6409, RFC 8314).
    #[must_use]
    pub fn usual_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Implicit => 465,
            Self::None => 25,
        }
    }
}

impl SmtpAccount {
    /// Identifies the connections of this account with these credentials.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let port = self.server.port.to_string();
        let (username, password) = match &self.login {
            Some(login) => (
                login.username.expose_secret(),
                login.password.expose_secret(),
            ),
            None => ("", ""),
        };
        let mut digest = Sha256::new();
        for part in [
            self.server.host.as_str(),
            &port,
            self.tls.as_str(),
            username,
            password,
        ] {
            digest.update(part.len().to_be_bytes());
            digest.update(part);
        }
        digest.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_else() {
        for (given, kept) in [
            ("smtp.example.com", Some("smtp.example.com")),
            ("SMTP.Example.com.", Some("smtp.example.com")),
            ("smtp.bücher.example", Some("smtp.xn--bcher-kva.example")),
            ("mailhog", Some("mailhog")),
            ("192.0.2.1", Some("192.0.2.1")),
            ("2001:DB8::1", Some("2001:db8::1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("", None),
            (".", None),
            ("2130706433", None),
            ("127.1", None),
            ("smtp.example.com:25", None),
            ("smtp example.com", None),
            ("a\r\nb", None),
            ("-relay", None),
            ("user@example.com", None),
            ("smtp://example.com", None),
        ] {
            let host = SmtpHost::parse(given);
            assert_eq!(host.as_ref().map(SmtpHost::as_str), kept, "{given:?}");
        }
    }

    #[test]
    fn other_credentials_use_other_connections() {
        let account = |password: &str, tls| SmtpAccount {
            server: SmtpServer::parse("smtp.example.com:587").unwrap(),
            login: Some(SmtpLogin {
                username: "u".into(),
                password: password.into(),
            }),
            tls,
        };
        let first = account("p", SmtpTls::StartTls).fingerprint();
        assert_eq!(first, account("p", SmtpTls::StartTls).fingerprint());
        assert_ne!(first, account("q", SmtpTls::StartTls).fingerprint());
        assert_ne!(first, account("p", SmtpTls::None).fingerprint());
    }
}
