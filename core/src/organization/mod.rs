//! Organizations: the tenants. Everything else belongs to one of them.

pub mod limiter;
pub mod settings;
pub mod store;

use crate::clock::Timestamp;
use crate::ids::OrganizationId;

/// A tenant and its switches.
#[derive(Debug, Clone)]
pub struct Organization {
    pub id: OrganizationId,
    pub name: String,
    /// What a send from an unverified domain gets.
    pub unverified_domains: UnverifiedDomains,
    pub created_at: Timestamp,
}

/// What a send from a domain gets that is not verified on the resolved account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnverifiedDomains {
    /// 422, and nothing is sent.
    Reject,
    /// Accepted, with `domainVerified: false`.
    Accept,
}

impl UnverifiedDomains {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Reject, Self::Accept];

    /// The word in the database and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Accept => "accept",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "reject" => Some(Self::Reject),
            "accept" => Some(Self::Accept),
            _ => None,
        }
    }
}
