//! The provider types: the closed set of services that Waypost sends through. Every
//! difference between them is an exhaustive `match` on this enum, so a new type fails to
//! compile wherever it matters.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::smtp;

/// A service that sends mail.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, sqlx::Type,
)]
#[serde(rename_all = "UPPERCASE")]
#[sqlx(type_name = "provider_type", rename_all = "UPPERCASE")]
pub enum ProviderType {
    /// Twilio SendGrid, v3 API.
    Sendgrid,
    Postmark,
    Mailgun,
    /// Amazon SES, API v2.
    Ses,
    /// Any mail server, over SMTP.
    Smtp,
}

impl ProviderType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Sendgrid,
        Self::Postmark,
        Self::Mailgun,
        Self::Ses,
        Self::Smtp,
    ];

    /// The name in the API and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sendgrid => "SENDGRID",
            Self::Postmark => "POSTMARK",
            Self::Mailgun => "MAILGUN",
            Self::Ses => "SES",
            Self::Smtp => "SMTP",
        }
    }

    /// The most calls of one process in flight per account; `None` is unlimited. Over SMTP
    /// each call needs a connection of its own.
    #[must_use]
    pub const fn calls_max(self) -> Option<u32> {
        match self {
            Self::Smtp => Some(smtp::CONNECTIONS_MAX),
            Self::Sendgrid | Self::Postmark | Self::Mailgun | Self::Ses => None,
        }
    }

    /// Whether one recipient domain alone may be throttled: a mail server passes on the
    /// replies of the domain's own servers.
    #[must_use]
    pub const fn throttles_by_domain(self) -> bool {
        match self {
            Self::Smtp => true,
            Self::Sendgrid | Self::Postmark | Self::Mailgun | Self::Ses => false,
        }
    }
}

impl fmt::Display for ProviderType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a provider type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be one of SENDGRID, POSTMARK, MAILGUN, SES, SMTP")]
pub struct UnknownProviderType;

impl FromStr for ProviderType {
    type Err = UnknownProviderType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownProviderType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile if a type is missing; the test fails if its index is wrong.
    const fn position(kind: ProviderType) -> usize {
        match kind {
            ProviderType::Sendgrid => 0,
            ProviderType::Postmark => 1,
            ProviderType::Mailgun => 2,
            ProviderType::Ses => 3,
            ProviderType::Smtp => 4,
        }
    }

    #[test]
    fn every_type_is_listed_and_its_name_is_parsed_back() {
        for (index, kind) in ProviderType::ALL.into_iter().enumerate() {
            assert_eq!(position(kind), index);
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!(UnknownProviderType.to_string().contains(kind.as_str()));
        }
        assert_eq!("sendgrid".parse::<ProviderType>(), Err(UnknownProviderType));
    }
}
