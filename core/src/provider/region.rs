//! The region of a provider account: where the provider's system is that takes its mail. The
//! credentials say it; it is not asked for.

use super::credentials::{Credentials, MailgunRegion, SendgridRegion, SesRegion};

/// A region that routing rules can demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountRegion {
    Eu,
    Us,
}

impl AccountRegion {
    /// All regions.
    pub const ALL: &[Self] = &[Self::Eu, Self::Us];

    /// The name in the database and in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Eu => "eu",
            Self::Us => "us",
        }
    }

    /// Parses the name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == word)
    }
}

impl Credentials {
    /// The region of the account; `None` if it is in neither, or nobody knows: a mail server
    /// may be anywhere. SendGrid's global system and Postmark are in the US.
    #[must_use]
    pub fn region(&self) -> Option<AccountRegion> {
        match self {
            Self::Sendgrid { region, .. } => Some(match region {
                SendgridRegion::Global => AccountRegion::Us,
                SendgridRegion::Eu => AccountRegion::Eu,
            }),
            Self::Postmark { .. } => Some(AccountRegion::Us),
            Self::Mailgun { region, .. } => Some(match region {
                MailgunRegion::Us => AccountRegion::Us,
                MailgunRegion::Eu => AccountRegion::Eu,
            }),
            Self::Ses { region, .. } => aws_region(region),
            Self::Smtp(_) => None,
        }
    }
}

/// By the prefix of the name, such as `eu-central-1`.
fn aws_region(region: &SesRegion) -> Option<AccountRegion> {
    let (prefix, _) = region.as_str().split_once('-')?;
    AccountRegion::parse(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aws_region_is_in_the_eu_or_the_us_by_its_prefix() {
        let region = |name| aws_region(&SesRegion::parse(name).unwrap());
        assert_eq!(region("eu-central-1"), Some(AccountRegion::Eu));
        assert_eq!(region("us-gov-west-1"), Some(AccountRegion::Us));
        assert_eq!(region("ap-south-1"), None);
    }
}
