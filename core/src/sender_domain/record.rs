//! Compares a record that a provider wants with what DNS has. Pure.

use super::look_ups::{DnsFacts, host_name, is_spf_text};
use super::spf::{SpfFacts, SpfStatus};
use crate::dns::DnsAnswer;
use crate::provider::domain::{DnsPurpose, DnsRecord, DnsRecordType};

/// Whether DNS has a wanted record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundStatus {
    Match,
    /// DNS has another record there.
    Mismatch,
    Missing,
    /// DNS was not asked yet, or could not be asked.
    Unknown,
}

impl FoundStatus {
    /// The names in the API.
    pub const NAMES: [&str; 4] = ["match", "mismatch", "missing", "unknown"];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Mismatch => "mismatch",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// What DNS has where a record is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRecord {
    pub status: FoundStatus,
    /// The values of this type, or those of its kind (SPF, DMARC) for a TXT record.
    pub found: Vec<String>,
}

impl FoundRecord {
    const UNKNOWN: Self = Self {
        status: FoundStatus::Unknown,
        found: Vec::new(),
    };

    fn of(found: Vec<String>, status: FoundStatus) -> Self {
        Self { status, found }
    }
}

/// Compares one record with the facts.
#[must_use]
pub fn compare(record: &DnsRecord, facts: &DnsFacts) -> FoundRecord {
    if is_spf_text(record) {
        let spf = facts.spf_of(&record.name);
        return spf.map_or(FoundRecord::UNKNOWN, |spf| compare_spf(record, spf));
    }
    let answer = facts.answer(record.record_type, &record.name);
    let Some(values) = answer.and_then(DnsAnswer::values) else {
        return FoundRecord::UNKNOWN;
    };
    let found = values.to_vec();
    if found.is_empty() {
        return FoundRecord::of(found, FoundStatus::Missing);
    }
    let has = |is_wanted: &dyn Fn(&str) -> bool| found.iter().any(|value| is_wanted(value));
    let is_match = match (record.record_type, record.purpose) {
        (DnsRecordType::Cname, _) => has(&|value| value == host_name(&record.value)),
        (DnsRecordType::Mx, _) => has(&|value| is_mx(record, value)),
        (DnsRecordType::Txt, DnsPurpose::Dkim) => {
            let wanted = public_key(&record.value);
            has(&|value| public_key(value) == wanted)
        }
        (DnsRecordType::Txt, DnsPurpose::Dmarc) => has(&|value| value.starts_with("v=DMARC1")),
        (
            DnsRecordType::Txt,
            DnsPurpose::Spf | DnsPurpose::ReturnPath | DnsPurpose::Tracking | DnsPurpose::Ownership,
        ) => has(&|value| value.trim() == record.value.trim()),
    };
    if is_match {
        return FoundRecord::of(found, FoundStatus::Match);
    }
    // A name may have any number of other TXT records.
    let is_other_text =
        record.record_type == DnsRecordType::Txt && record.purpose != DnsPurpose::Dkim;
    match is_other_text {
        true => FoundRecord::of(Vec::new(), FoundStatus::Missing),
        false => FoundRecord::of(found, FoundStatus::Mismatch),
    }
}

fn compare_spf(record: &DnsRecord, spf: &SpfFacts) -> FoundRecord {
    let has_all = spf.missing_of(&record.value).is_empty();
    let status = match spf.status() {
        SpfStatus::Missing => FoundStatus::Missing,
        SpfStatus::Valid if has_all => FoundStatus::Match,
        SpfStatus::Unknown if has_all && !spf.records.is_empty() => FoundStatus::Match,
        SpfStatus::Unknown => FoundStatus::Unknown,
        SpfStatus::Valid
        | SpfStatus::Multiple
        | SpfStatus::Invalid
        | SpfStatus::TooManyLookups
        | SpfStatus::TooManyVoidLookups => FoundStatus::Mismatch,
    };
    FoundRecord::of(spf.records.clone(), status)
}

/// Whether `priority host` is the wanted MX record.
fn is_mx(record: &DnsRecord, value: &str) -> bool {
    let Some((priority, host)) = value.split_once(' ') else {
        return false;
    };
    // Some providers give the priority in the value.
    let wanted = record.value.trim();
    let (wanted_priority, wanted_host) = match wanted.split_once(' ') {
        Some((priority, host)) => (priority.parse().ok(), host),
        None => (record.priority, wanted),
    };
    let same_priority = wanted_priority.is_none_or(|wanted| priority == wanted.to_string());
    same_priority && host == host_name(wanted_host)
}

/// The public key in a DKIM record (`p=`), without white space.
#[must_use]
pub fn public_key(record: &str) -> Option<String> {
    let mut tags = record.split(';').filter_map(|tag| tag.split_once('='));
    let (_, key) = tags.find(|(name, _)| name.trim() == "p")?;
    Some(key.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::super::look_ups::RecordAnswer;
    use super::*;
    use crate::provider::domain::DnsStatus;

    fn wanted(record_type: DnsRecordType, purpose: DnsPurpose, value: &str) -> DnsRecord {
        DnsRecord {
            record_type,
            name: "Name.example.com".to_owned(),
            value: value.to_owned(),
            priority: (record_type == DnsRecordType::Mx).then_some(10),
            purpose,
            status: DnsStatus::Pending,
        }
    }

    fn status(record: &DnsRecord, answer: DnsAnswer) -> FoundStatus {
        let answer = RecordAnswer {
            record_type: record.record_type,
            name: "name.example.com".to_owned(),
            answer,
        };
        let facts = DnsFacts {
            answers: vec![answer],
            ..DnsFacts::default()
        };
        compare(record, &facts).status
    }

    #[test]
    fn each_type_and_purpose_is_compared_in_its_own_way() {
        use DnsPurpose::{Dkim, Dmarc, Ownership, ReturnPath, Tracking};
        use DnsRecordType::{Cname, Mx, Txt};
        use FoundStatus::{Match, Mismatch, Missing};
        for (record_type, purpose, value, found, expected) in [
            (
                Txt,
                Dkim,
                "k=rsa; p=MIGf",
                &["v=DKIM1; k=rsa; p=MI Gf"][..],
                Match,
            ),
            (Txt, Dkim, "k=rsa; p=MIGf", &["k=rsa; p=Other"], Mismatch),
            (Txt, Dkim, "p=MIGf", &["p=Other", "p=MIGf"], Match),
            (Txt, Ownership, "token", &["other", " token"], Match),
            (Txt, Ownership, "token", &["other"], Missing),
            (
                Txt,
                Dmarc,
                "v=DMARC1; p=none",
                &["v=DMARC1; p=reject"],
                Match,
            ),
            (
                Cname,
                Tracking,
                "U1.Provider.example.",
                &["u1.provider.example"],
                Match,
            ),
            (
                Cname,
                Tracking,
                "u1.provider.example",
                &["u2.provider.example"],
                Mismatch,
            ),
            (
                Mx,
                ReturnPath,
                "MX.provider.example",
                &["10 mx.provider.example"],
                Match,
            ),
            (
                Mx,
                ReturnPath,
                "mx.provider.example",
                &["20 mx.provider.example"],
                Mismatch,
            ),
            (
                Mx,
                ReturnPath,
                "10 mx.provider.example",
                &["10 mx.provider.example"],
                Match,
            ),
        ] {
            let record = wanted(record_type, purpose, value);
            let values: Vec<String> = found.iter().map(|value| (*value).to_owned()).collect();
            let answer = DnsAnswer::Found(values);
            assert_eq!(status(&record, answer), expected, "{value} {found:?}");
        }
    }

    #[test]
    fn a_failed_look_up_is_not_a_missing_record() {
        let record = wanted(DnsRecordType::Cname, DnsPurpose::Dkim, "a.example");
        for (answer, expected) in [
            (DnsAnswer::NoRecord, FoundStatus::Missing),
            (DnsAnswer::NoDomain, FoundStatus::Missing),
            (
                DnsAnswer::Failed("SERVFAIL".to_owned()),
                FoundStatus::Unknown,
            ),
        ] {
            assert_eq!(status(&record, answer), expected);
        }
        let nothing = DnsFacts::default();
        assert_eq!(compare(&record, &nothing).status, FoundStatus::Unknown);
    }
}
