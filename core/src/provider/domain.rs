//! Sender domains as a provider account knows them: their state and the DNS
//! records that the provider asks for, in our own words.

use serde::{Deserialize, Serialize};

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::outcome::reason;
use crate::address::ascii_domain;

/// The most domains that are read from one account.
pub const DOMAINS_MAX: usize = 1_000;
/// The most domains of one account whose DNS records are asked for one by one,
/// where the provider's list does not carry them.
pub const DOMAIN_DETAILS_MAX: usize = 50;

/// Whether a domain may be sent from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "domain_state", rename_all = "lowercase")]
pub enum DomainState {
    Verified,
    /// The provider says no, or not yet.
    Unverified,
    /// The credentials cannot see it, or the provider cannot tell.
    Unknown,
}

impl DomainState {
    /// The word in the database and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Unknown => "unknown",
        }
    }
}

/// A DNS record that the provider asks the domain's owner to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsRecord {
    #[serde(rename = "type")]
    pub record_type: DnsRecordType,
    pub name: String,
    pub value: String,
    pub priority: Option<u16>,
    pub purpose: DnsPurpose,
    /// What the provider found when it last looked.
    pub status: DnsStatus,
}

/// The types of record that providers ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum DnsRecordType {
    Txt,
    Cname,
    Mx,
}

impl DnsRecordType {
    /// The type by its name in any case; nothing for one that we do not show.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "TXT" => Some(Self::Txt),
            "CNAME" => Some(Self::Cname),
            "MX" => Some(Self::Mx),
            _ => None,
        }
    }
}

/// What a record is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DnsPurpose {
    /// The key that signatures are checked with.
    Dkim,
    Spf,
    /// The domain that bounces return to.
    ReturnPath,
    /// The host in tracked links.
    Tracking,
    /// What receivers do with mail that fails the other checks.
    Dmarc,
    /// Proof that the domain is the customer's.
    Ownership,
}

/// What the provider found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DnsStatus {
    /// Not there yet, or not looked for.
    Pending,
    Verified,
    Failed,
}

impl DnsStatus {
    /// For providers that only say whether a record is right.
    #[must_use]
    pub fn from_valid(valid: bool) -> Self {
        if valid { Self::Verified } else { Self::Pending }
    }
}

/// A domain that an account has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDomain {
    /// Its name, in lower-case ASCII.
    pub domain: String,
    /// Whether it may be sent from.
    pub state: DomainState,
    /// The records to publish. Empty where the provider's list does not carry
    /// them and they were not asked for (more than [`DOMAIN_DETAILS_MAX`]
    /// domains, or the provider throttled us).
    pub dns_records: Vec<DnsRecord>,
}

/// What came of asking an account for its domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainList {
    /// These are all of them, up to [`DOMAINS_MAX`].
    Visible(Vec<FoundDomain>),
    /// The credentials may not see them. The same call would fare alike.
    NotVisible { reason: String },
    /// No answer: a limit, a failure, a network layer.
    Undecided { reason: String },
}

impl DomainList {
    pub(super) fn not_visible(reply: &ProviderReply, text: &str) -> Self {
        Self::NotVisible {
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }
}

impl From<UnusableCredentials> for DomainList {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}

/// Adds a domain under its normal name. What is no domain name is left out; of
/// two entries for one name (SendGrid allows several) a verified one wins.
pub(super) fn add_domain(found: &mut Vec<FoundDomain>, mut domain: FoundDomain) {
    let name = domain.domain.trim_end_matches('.').to_lowercase();
    let Some(name) = ascii_domain(&name) else {
        return;
    };
    domain.domain = name;
    match found.iter_mut().find(|known| known.domain == domain.domain) {
        Some(known) if known.state == DomainState::Verified => {}
        Some(known) => *known = domain,
        None => found.push(domain),
    }
}
