//! The sender domains of a provider account: their state, and the DNS records that the
//! provider asks for, normalised.

use serde::{Deserialize, Serialize};

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::outcome::reason;
use crate::address::ascii_domain;

/// The most domains read from one account.
pub const DOMAINS_MAX: usize = 1_000;
/// The most domains of one account whose DNS records are read one by one, if the
/// provider's list lacks them.
pub const DOMAIN_DETAILS_MAX: usize = 50;

/// Whether a domain may be used to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, sqlx::Type)]
#[serde(rename_all = "lowercase")]
#[sqlx(type_name = "domain_state", rename_all = "lowercase")]
pub enum DomainState {
    Verified,
    /// The provider has not verified it.
    Unverified,
    /// The credentials cannot read it, or the provider does not say.
    Unknown,
}

impl DomainState {
    /// The name in the database and in the API.
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
    /// The result of the provider's last check.
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
    /// The name in DNS and in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Txt => "TXT",
            Self::Cname => "CNAME",
            Self::Mx => "MX",
        }
    }

    /// The type by its name in any case; `None` for a type that the API does not show.
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
    /// The public key for signatures.
    Dkim,
    Spf,
    /// The domain that bounces return to.
    ReturnPath,
    /// The host in tracked links.
    Tracking,
    /// The policy for mail that fails the other checks.
    Dmarc,
    /// Proof that the domain belongs to the customer.
    Ownership,
}

impl DnsPurpose {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dkim => "DKIM",
            Self::Spf => "SPF",
            Self::ReturnPath => "RETURN_PATH",
            Self::Tracking => "TRACKING",
            Self::Dmarc => "DMARC",
            Self::Ownership => "OWNERSHIP",
        }
    }
}

/// The result of the provider's check of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DnsStatus {
    /// Not published yet, or not checked.
    Pending,
    Verified,
    Failed,
}

impl DnsStatus {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Failed => "failed",
        }
    }

    /// For providers that only report whether a record is valid.
    #[must_use]
    pub fn from_valid(valid: bool) -> Self {
        if valid { Self::Verified } else { Self::Pending }
    }
}

/// A domain of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDomain {
    /// Its name, in lower-case ASCII.
    pub domain: String,
    /// Whether it may be used to send.
    pub state: DomainState,
    /// The records to publish. Empty if the provider's list lacks them and they were not
    /// read one by one (more than [`DOMAIN_DETAILS_MAX`] domains, or the provider throttled
    /// the calls).
    pub dns_records: Vec<DnsRecord>,
}

/// The result of reading an account's domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainList {
    /// All domains, up to [`DOMAINS_MAX`].
    Visible(Vec<FoundDomain>),
    /// The credentials may not list them; the same call would fail again.
    NotVisible { reason: String },
    /// No usable reply: a rate limit, a failure, a network device.
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

/// Adds a domain under its normalised name. Invalid names are left out; if a name occurs
/// twice (SendGrid allows it), a verified entry wins.
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
