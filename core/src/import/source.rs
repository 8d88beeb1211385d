//! Where an import comes from.

use std::fmt;
use std::str::FromStr;

use crate::provider::kind::ProviderType;

/// A service that Waypost takes over from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "import_source", rename_all = "UPPERCASE")]
pub enum ImportSource {
    Sendgrid,
    Postmark,
    Mailgun,
    Ses,
    Resend,
}

impl ImportSource {
    /// All sources, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Sendgrid,
        Self::Postmark,
        Self::Mailgun,
        Self::Ses,
        Self::Resend,
    ];

    /// The name in the command.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sendgrid => "sendgrid",
            Self::Postmark => "postmark",
            Self::Mailgun => "mailgun",
            Self::Ses => "ses",
            Self::Resend => "resend",
        }
    }

    /// The name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Sendgrid => "SendGrid",
            Self::Postmark => "Postmark",
            Self::Mailgun => "Mailgun",
            Self::Ses => "Amazon SES",
            Self::Resend => "Resend",
        }
    }

    /// The type of its accounts; `None` if Waypost does not send through it.
    #[must_use]
    pub fn provider_type(self) -> Option<ProviderType> {
        match self {
            Self::Sendgrid => Some(ProviderType::Sendgrid),
            Self::Postmark => Some(ProviderType::Postmark),
            Self::Mailgun => Some(ProviderType::Mailgun),
            Self::Ses => Some(ProviderType::Ses),
            Self::Resend => None,
        }
    }
}

impl fmt::Display for ImportSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ImportSource {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| "must be sendgrid, postmark, mailgun, ses or resend".to_owned())
    }
}
