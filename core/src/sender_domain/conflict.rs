//! What is wrong with a domain as a whole: records that exclude each other, limits that are
//! exceeded, a policy that the mail does not pass. Each message says what to do. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::AccountDomain;
use super::dmarc::DmarcStatus;
use super::look_ups::{DnsFacts, host_name, is_spf_text};
use super::record::public_key;
use super::report::{Alignment, wanted_spf};
use super::spf::{self, SPF_LOOKUPS_MAX, SPF_VOID_LOOKUPS_MAX, SpfFacts, SpfStatus};
use crate::provider::domain::{DnsPurpose, DnsRecord, DnsRecordType};

/// The kinds of conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictCode {
    SpfMultiple,
    SpfInvalid,
    SpfTooManyLookups,
    SpfTooManyVoidLookups,
    SpfMissingInclude,
    /// Accounts want different DKIM records under one name.
    DkimSelectorShared,
    /// Accounts want different targets of one alias.
    CnameShared,
    /// Accounts want different mail servers of one return path.
    ReturnPathShared,
    /// A name would have an alias and other records, which DNS does not allow.
    CnameWithOtherRecords,
    DmarcMissing,
    DmarcMultiple,
    DmarcInvalid,
    DmarcUnaligned,
}

impl ConflictCode {
    /// All codes.
    pub const ALL: [Self; 13] = [
        Self::SpfMultiple,
        Self::SpfInvalid,
        Self::SpfTooManyLookups,
        Self::SpfTooManyVoidLookups,
        Self::SpfMissingInclude,
        Self::DkimSelectorShared,
        Self::CnameShared,
        Self::ReturnPathShared,
        Self::CnameWithOtherRecords,
        Self::DmarcMissing,
        Self::DmarcMultiple,
        Self::DmarcInvalid,
        Self::DmarcUnaligned,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SpfMultiple => "SPF_MULTIPLE",
            Self::SpfInvalid => "SPF_INVALID",
            Self::SpfTooManyLookups => "SPF_TOO_MANY_LOOKUPS",
            Self::SpfTooManyVoidLookups => "SPF_TOO_MANY_VOID_LOOKUPS",
            Self::SpfMissingInclude => "SPF_MISSING_INCLUDE",
            Self::DkimSelectorShared => "DKIM_SELECTOR_SHARED",
            Self::CnameShared => "CNAME_SHARED",
            Self::ReturnPathShared => "RETURN_PATH_SHARED",
            Self::CnameWithOtherRecords => "CNAME_WITH_OTHER_RECORDS",
            Self::DmarcMissing => "DMARC_MISSING",
            Self::DmarcMultiple => "DMARC_MULTIPLE",
            Self::DmarcInvalid => "DMARC_INVALID",
            Self::DmarcUnaligned => "DMARC_UNALIGNED",
        }
    }
}

/// Something that is wrong with a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainConflict {
    pub code: ConflictCode,
    /// What is wrong and what to do.
    pub message: String,
    /// The names of the records.
    pub names: Vec<String>,
}

impl DomainConflict {
    fn new(code: ConflictCode, name: &str, message: String) -> Self {
        Self {
            code,
            message,
            names: vec![name.to_owned()],
        }
    }
}

/// All conflicts of a domain. `alignments` are those of `accounts`, in the same order.
pub(super) fn find_all(
    domain: &str,
    accounts: &[AccountDomain],
    alignments: &[Option<Alignment>],
    facts: &DnsFacts,
) -> Vec<DomainConflict> {
    let mut found = Vec::new();
    for spf in &facts.spf {
        found.extend(of_spf(spf));
        found.extend(missing_includes(spf, accounts));
    }
    found.extend(shared_names(accounts));
    // Without facts nothing was asked.
    if !facts.spf.is_empty() {
        found.extend(of_dmarc(domain, facts));
        found.extend(unaligned(domain, accounts, alignments));
    }
    found
}

fn of_spf(spf: &SpfFacts) -> Option<DomainConflict> {
    let name = &spf.name;
    let (code, message) = match spf.status() {
        SpfStatus::Valid | SpfStatus::Missing | SpfStatus::Unknown => return None,
        SpfStatus::Multiple => (
            ConflictCode::SpfMultiple,
            format!(
                "{name} has {} SPF records, and receivers accept none of them; replace them by one record.",
                spf.records.len()
            ),
        ),
        SpfStatus::Invalid => {
            let problem = spf.problem.clone().unwrap_or_default();
            let mut letters = problem.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            let sentence: String = first.into_iter().chain(letters).collect();
            (
                ConflictCode::SpfInvalid,
                format!("{sentence}; receivers ignore the whole record until it is corrected."),
            )
        }
        SpfStatus::TooManyLookups => (
            ConflictCode::SpfTooManyLookups,
            format!(
                "The SPF record of {name} causes {} look-ups, and receivers stop after {SPF_LOOKUPS_MAX}; remove what is not used, or replace `include` by the networks it stands for.",
                spf.lookups
            ),
        ),
        SpfStatus::TooManyVoidLookups => (
            ConflictCode::SpfTooManyVoidLookups,
            format!(
                "The SPF record of {name} names {} domains of which DNS knows nothing, and receivers stop after {SPF_VOID_LOOKUPS_MAX}; remove them.",
                spf.void_lookups
            ),
        ),
    };
    Some(DomainConflict::new(code, name, message))
}

fn missing_includes(spf: &SpfFacts, accounts: &[AccountDomain]) -> Option<DomainConflict> {
    let name = &spf.name;
    if spf.is_undecided {
        return None;
    }
    let mut missing = Vec::new();
    let mut of = BTreeSet::new();
    for account in accounts {
        for record in wanted_spf(account, name) {
            for term in spf.missing_of(&record.value) {
                of.insert(account.display_name.as_str());
                if !missing.contains(&term) {
                    missing.push(term);
                }
            }
        }
    }
    if missing.is_empty() {
        return None;
    }
    let (terms, names) = (missing.join(" "), listed(of));
    let recommended = spf::merged(&spf.records, &missing);
    let message = match spf.records.is_empty() {
        true => {
            format!("{name} has no SPF record, and {names} needs one; publish `{recommended}`.")
        }
        false => format!(
            "The SPF record of {name} lacks `{terms}`, which {names} needs; replace it by `{recommended}`."
        ),
    };
    let code = ConflictCode::SpfMissingInclude;
    Some(DomainConflict::new(code, name, message))
}

/// What accounts want under one name.
#[derive(Default)]
struct Wanted<'a> {
    records: Vec<(&'a AccountDomain, &'a DnsRecord)>,
}

impl<'a> Wanted<'a> {
    /// The sets of values that accounts want, each with one of the accounts.
    fn values(
        &self,
        of: impl Fn(&DnsRecord) -> Option<String>,
    ) -> BTreeMap<BTreeSet<String>, &'a str> {
        let mut sets: BTreeMap<_, (BTreeSet<String>, &str)> = BTreeMap::new();
        for (account, record) in &self.records {
            if let Some(value) = of(record) {
                let set = sets.entry(account.provider_account_id.0);
                let (values, _) = set.or_insert((BTreeSet::new(), &account.display_name));
                values.insert(value);
            }
        }
        sets.into_values().collect()
    }
}

fn shared_names(accounts: &[AccountDomain]) -> Vec<DomainConflict> {
    let mut names: BTreeMap<String, Wanted<'_>> = BTreeMap::new();
    for account in accounts {
        for record in &account.records {
            let wanted = names.entry(host_name(&record.name)).or_default();
            wanted.records.push((account, record));
        }
    }
    let names = names.iter();
    names
        .filter_map(|(name, wanted)| shared_name(name, wanted))
        .collect()
}

fn shared_name(name: &str, wanted: &Wanted<'_>) -> Option<DomainConflict> {
    let of_type = |record_type| {
        let mut records = wanted.records.iter();
        records.any(|(_, record)| record.record_type == record_type)
    };
    let conflict = |code, message| Some(DomainConflict::new(code, name, message));
    let keys = wanted.values(dkim_value);
    if keys.len() > 1 {
        let accounts = listed(keys.into_values().collect());
        return conflict(
            ConflictCode::DkimSelectorShared,
            format!(
                "{accounts} want different DKIM records under {name}; give one of them another selector at its provider."
            ),
        );
    }
    let has_others = of_type(DnsRecordType::Txt) || of_type(DnsRecordType::Mx);
    if of_type(DnsRecordType::Cname) && has_others {
        let accounts = wanted.records.iter();
        let accounts = listed(accounts.map(|(one, _)| one.display_name.as_str()).collect());
        return conflict(
            ConflictCode::CnameWithOtherRecords,
            format!(
                "{accounts} want a CNAME record and other records under {name}, which DNS does not allow; give one of them another subdomain at its provider."
            ),
        );
    }
    let of_value = |record: &DnsRecord, record_type| {
        (record.record_type == record_type).then(|| host_name(&record.value))
    };
    let targets = wanted.values(|record| of_value(record, DnsRecordType::Cname));
    if targets.len() > 1 {
        let accounts = listed(targets.into_values().collect());
        return conflict(
            ConflictCode::CnameShared,
            format!(
                "{accounts} want different targets of {name}; give one of them another subdomain at its provider."
            ),
        );
    }
    let hosts = wanted.values(|record| of_value(record, DnsRecordType::Mx));
    if hosts.len() > 1 {
        let accounts = listed(hosts.into_values().collect());
        return conflict(
            ConflictCode::ReturnPathShared,
            format!(
                "{accounts} want different MX records of {name}; give one of them another return path at its provider."
            ),
        );
    }
    None
}

/// What tells one DKIM record from another.
fn dkim_value(record: &DnsRecord) -> Option<String> {
    if record.purpose != DnsPurpose::Dkim || is_spf_text(record) {
        return None;
    }
    let of_text = (record.record_type == DnsRecordType::Txt).then(|| public_key(&record.value));
    Some(
        of_text
            .flatten()
            .unwrap_or_else(|| host_name(&record.value)),
    )
}

fn of_dmarc(domain: &str, facts: &DnsFacts) -> Option<DomainConflict> {
    let dmarc = &facts.dmarc;
    let holder = dmarc.policy_domain.as_deref().unwrap_or(domain);
    let name = format!("_dmarc.{holder}");
    let (code, message) = match dmarc.status(domain) {
        DmarcStatus::Valid | DmarcStatus::Unknown => return None,
        DmarcStatus::Missing => (
            ConflictCode::DmarcMissing,
            format!(
                "{domain} has no DMARC record, which large mailbox providers ask for; publish `v=DMARC1; p=none` as a TXT record of {name}."
            ),
        ),
        DmarcStatus::Multiple => (
            ConflictCode::DmarcMultiple,
            format!(
                "{name} has {} DMARC records, and receivers accept none of them; leave one.",
                dmarc.records.len()
            ),
        ),
        DmarcStatus::Invalid => (
            ConflictCode::DmarcInvalid,
            format!(
                "The DMARC record of {name} has no valid policy; set `p=none`, `p=quarantine` or `p=reject`."
            ),
        ),
    };
    Some(DomainConflict::new(code, &name, message))
}

fn unaligned(
    domain: &str,
    accounts: &[AccountDomain],
    alignments: &[Option<Alignment>],
) -> Option<DomainConflict> {
    let with_alignment = accounts.iter().zip(alignments);
    let unaligned = with_alignment.filter(|(_, alignment)| {
        alignment.is_some_and(|alignment| !alignment.spf && !alignment.dkim)
    });
    let names: BTreeSet<&str> = unaligned
        .map(|(account, _)| account.display_name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let names = listed(names);
    let message = format!(
        "Mail from {domain} through {names} does not pass DMARC, because neither its signature nor its return path is of that domain; set up DKIM or a return path for {domain} at the provider."
    );
    let code = ConflictCode::DmarcUnaligned;
    Some(DomainConflict::new(code, domain, message))
}

/// Names of accounts in a sentence.
fn listed(names: BTreeSet<&str>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    names.join(" and ")
}
