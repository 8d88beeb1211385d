//! Organizations: the tenants. All other data belongs to one of them.

pub mod brand_color;
pub mod limiter;
pub mod settings;
pub mod store;

use crate::clock::Timestamp;
use crate::ids::OrganizationId;

/// A tenant.
#[derive(Debug, Clone)]
pub struct Organization {
    pub id: OrganizationId,
    pub name: String,
    pub unverified_domains: UnverifiedDomains,
    pub created_at: Timestamp,
}

/// How a send is treated whose sender domain is not verified at the selected account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnverifiedDomains {
    /// The send is rejected with 422.
    Reject,
    /// The send is accepted, with `domainVerified: false`.
    Accept,
}

impl UnverifiedDomains {
    /// All values.
    pub const ALL: [Self; 2] = [Self::Reject, Self::Accept];

    /// The name in the API and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Accept => "accept",
        }
    }

    /// Parses the name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "reject" => Some(Self::Reject),
            "accept" => Some(Self::Accept),
            _ => None,
        }
    }
}
