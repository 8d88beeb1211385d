//! Judges a domain across its accounts: what DNS has of the records that they want, and what
//! stands in the way of another. Pure: facts in, report out.

use super::AccountDomain;
use super::conflict::{self, DomainConflict};
use super::dmarc::{DmarcPolicy, DmarcStatus};
use super::look_ups::{DnsFacts, host_name, is_spf_text};
use super::record::{FoundRecord, FoundStatus, compare};
use super::spf::{self, SpfStatus};
use crate::ids::ProviderAccountId;
use crate::provider::domain::{DnsPurpose, DnsRecord, DnsRecordType};

/// What stands before the domain of a DKIM record's name.
const DKIM_LABEL: &str = "._domainkey.";

/// The judgement of a domain.
#[derive(Debug, Clone)]
pub struct DomainReport {
    pub domain: String,
    pub accounts: Vec<AccountReport>,
    pub spf: SpfReport,
    pub dkim: Vec<DkimReport>,
    pub dmarc: DmarcReport,
    pub conflicts: Vec<DomainConflict>,
}

/// What DNS has of an account's records.
#[derive(Debug, Clone)]
pub struct AccountReport {
    pub account: AccountDomain,
    /// In the order of the account's records.
    pub found: Vec<FoundRecord>,
}

/// The one SPF record of a domain.
#[derive(Debug, Clone)]
pub struct SpfReport {
    pub records: Vec<String>,
    pub status: SpfStatus,
    pub lookups: u32,
    pub void_lookups: u32,
    /// The mechanisms that accounts want and the record lacks.
    pub missing: Vec<String>,
    /// A record with all that accounts want; `None` if nothing is to be changed.
    pub recommended: Option<String>,
}

/// A DKIM record of an account.
#[derive(Debug, Clone)]
pub struct DkimReport {
    pub provider_account_id: ProviderAccountId,
    pub selector: String,
    pub name: String,
    pub status: FoundStatus,
}

/// The policy of a domain.
#[derive(Debug, Clone)]
pub struct DmarcReport {
    pub record: Option<String>,
    /// The domain that has the record.
    pub policy_domain: Option<String>,
    pub policy: Option<DmarcPolicy>,
    pub status: DmarcStatus,
    /// Whether the return paths of all accounts are aligned; `None` if that is not known.
    pub aligned_spf: Option<bool>,
    /// The same of signatures.
    pub aligned_dkim: Option<bool>,
}

/// Whether the mail of an account passes the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Alignment {
    pub(super) spf: bool,
    pub(super) dkim: bool,
}

/// How far a domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderDomainStatus {
    /// DNS has all records.
    Complete,
    /// Records are missing that were not there before.
    Incomplete,
    /// Records are gone, or differ, that were there.
    Broken,
    /// DNS was not asked yet, or could not be asked; or no account says what it wants.
    Unknown,
}

impl SenderDomainStatus {
    /// The names in the API and in the database.
    pub const NAMES: [&str; 4] = ["complete", "incomplete", "broken", "unknown"];

    /// The name in the API and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
        }
    }
}

impl DomainReport {
    /// Judges the domain.
    #[must_use]
    pub fn of(domain: &str, accounts: Vec<AccountDomain>, facts: &DnsFacts) -> Self {
        let alignments: Vec<Option<Alignment>> = accounts
            .iter()
            .map(|account| alignment(domain, account, facts))
            .collect();
        let conflicts = conflict::find_all(domain, &accounts, &alignments, facts);
        let dmarc = dmarc_report(domain, &alignments, facts);
        let spf = spf_report(domain, &accounts, facts);
        let accounts = accounts.into_iter().map(|account| {
            let found = account.records.iter();
            let found = found.map(|record| compare(record, facts)).collect();
            AccountReport { account, found }
        });
        let accounts: Vec<AccountReport> = accounts.collect();
        Self {
            domain: domain.to_owned(),
            dkim: accounts.iter().flat_map(dkim_reports).collect(),
            accounts,
            spf,
            dmarc,
            conflicts,
        }
    }

    /// How far the domain is.
    #[must_use]
    pub fn status(&self, is_broken: bool) -> SenderDomainStatus {
        let required = self.accounts.iter().flat_map(AccountReport::required);
        let statuses: Vec<FoundStatus> = required.map(|(_, found)| found.status).collect();
        let any = |wanted| statuses.contains(&wanted);
        if is_broken {
            SenderDomainStatus::Broken
        } else if any(FoundStatus::Missing) || any(FoundStatus::Mismatch) {
            SenderDomainStatus::Incomplete
        } else if any(FoundStatus::Unknown) || statuses.is_empty() {
            SenderDomainStatus::Unknown
        } else {
            SenderDomainStatus::Complete
        }
    }
}

impl AccountReport {
    /// The records without which mail is not authenticated, or the provider refuses it.
    pub fn required(&self) -> impl Iterator<Item = (&DnsRecord, &FoundRecord)> {
        let records = self.account.records.iter().zip(&self.found);
        let own = &self.account.domain;
        records.filter(move |(record, _)| match record.purpose {
            // MX records of the domain itself are for mail that it receives; a return path
            // that needs some is a subdomain.
            DnsPurpose::ReturnPath if record.record_type == DnsRecordType::Mx => {
                host_name(&record.name) != *own
            }
            DnsPurpose::Dkim | DnsPurpose::Spf | DnsPurpose::ReturnPath | DnsPurpose::Ownership => {
                true
            }
            DnsPurpose::Tracking | DnsPurpose::Dmarc => false,
        })
    }
}

fn dkim_reports(report: &AccountReport) -> impl Iterator<Item = DkimReport> {
    let records = report.account.records.iter().zip(&report.found);
    records.filter_map(|(record, found)| {
        let (selector, _) = dkim_name(record)?;
        Some(DkimReport {
            provider_account_id: report.account.provider_account_id,
            selector,
            name: record.name.clone(),
            status: found.status,
        })
    })
}

/// The selector and the domain of a DKIM record.
fn dkim_name(record: &DnsRecord) -> Option<(String, String)> {
    let name = host_name(&record.name);
    let (selector, domain) = name.split_once(DKIM_LABEL)?;
    Some((selector.to_owned(), domain.to_owned()))
}

/// The SPF mechanisms that an account wants a name to have, with the wanted records.
pub(super) fn wanted_spf<'a>(
    account: &'a AccountDomain,
    name: &'a str,
) -> impl Iterator<Item = &'a DnsRecord> {
    let records = account.records.iter();
    records.filter(move |record| is_spf_text(record) && host_name(&record.name) == name)
}

fn spf_report(domain: &str, accounts: &[AccountDomain], facts: &DnsFacts) -> SpfReport {
    let Some(known) = facts.spf_of(domain) else {
        return SpfReport {
            records: Vec::new(),
            status: SpfStatus::Unknown,
            lookups: 0,
            void_lookups: 0,
            missing: Vec::new(),
            recommended: None,
        };
    };
    let wanted = accounts.iter().flat_map(|one| wanted_spf(one, domain));
    let mut missing: Vec<String> = Vec::new();
    for term in wanted.flat_map(|record| known.missing_of(&record.value)) {
        if !missing.contains(&term) {
            missing.push(term);
        }
    }
    let is_readable = !(known.is_undecided && known.records.is_empty());
    if !is_readable {
        missing.clear();
    }
    let needs_change = known.records.len() > 1 || !missing.is_empty();
    SpfReport {
        records: known.records.clone(),
        status: known.status(),
        lookups: known.lookups,
        void_lookups: known.void_lookups,
        recommended: needs_change.then(|| spf::merged(&known.records, &missing)),
        missing,
    }
}

fn dmarc_report(domain: &str, alignments: &[Option<Alignment>], facts: &DnsFacts) -> DmarcReport {
    let dmarc = &facts.dmarc;
    let known: Vec<Alignment> = alignments.iter().copied().flatten().collect();
    let all = |is_aligned: fn(&Alignment) -> bool| {
        let is_known = !known.is_empty() && known.len() == alignments.len();
        is_known.then(|| known.iter().all(is_aligned))
    };
    // Without facts nothing was asked.
    let is_asked = !facts.spf.is_empty();
    DmarcReport {
        record: dmarc.records.first().cloned(),
        policy_domain: dmarc.policy_domain.clone(),
        policy: dmarc.policy(domain),
        status: match is_asked {
            true => dmarc.status(domain),
            false => DmarcStatus::Unknown,
        },
        aligned_spf: all(|one| one.spf),
        aligned_dkim: all(|one| one.dkim),
    }
}

/// Whether the mail of an account is aligned; `None` if there is no policy, or the account
/// does not say which records it wants.
fn alignment(domain: &str, account: &AccountDomain, facts: &DnsFacts) -> Option<Alignment> {
    let policy = facts.dmarc.policy(domain)?;
    if account.records.is_empty() {
        return None;
    }
    let is_aligned = |other: &str, is_strict| facts.dmarc.is_aligned(domain, other, is_strict);
    let mut signing = account.records.iter().filter_map(dkim_name);
    let dkim = signing.any(|(_, signer)| is_aligned(&signer, policy.dkim_is_strict));
    let mut returning = account
        .records
        .iter()
        .filter(|record| match record.purpose {
            DnsPurpose::ReturnPath | DnsPurpose::Spf => true,
            DnsPurpose::Dkim | DnsPurpose::Tracking | DnsPurpose::Dmarc | DnsPurpose::Ownership => {
                false
            }
        });
    let spf = returning.any(|record| {
        let name = host_name(&record.name);
        is_aligned(&name, policy.spf_is_strict)
    });
    Some(Alignment { spf, dkim })
}
