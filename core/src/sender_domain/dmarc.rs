//! DMARC: finds the policy of a domain and reads what it asks for. The record of a
//! subdomain's organizational domain is found by the tree walk of the standard's revision
//! (draft-ietf-dmarc-dmarcbis, 4.10), which needs no list of public suffixes.

use serde::{Deserialize, Serialize};

use super::look_ups::Asks;
use crate::dns::DnsQuestion;

/// The most names that are asked (draft-ietf-dmarc-dmarcbis, 4.10).
const NAMES_MAX: usize = 8;

/// What DNS says of a domain's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DmarcFacts {
    /// The domain whose policy holds: the domain itself, or its organizational domain.
    pub policy_domain: Option<String>,
    /// The DMARC records of that domain. A receiver accepts one only.
    pub records: Vec<String>,
    /// The domain that relaxed alignment compares; `None` without a policy.
    pub organizational_domain: Option<String>,
    /// Whether a look-up failed.
    pub is_undecided: bool,
}

/// The judgement of a domain's DMARC record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DmarcStatus {
    Valid,
    Missing,
    /// There are several records.
    Multiple,
    Invalid,
    /// DNS could not be asked.
    Unknown,
}

impl DmarcStatus {
    /// The names in the API.
    pub const NAMES: [&str; 5] = ["valid", "missing", "multiple", "invalid", "unknown"];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Missing => "missing",
            Self::Multiple => "multiple",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
        }
    }
}

/// What a policy asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DmarcPolicy {
    /// `none`, `quarantine` or `reject`.
    pub policy: String,
    /// Whether the domain of a signature must be the sender's exactly.
    pub dkim_is_strict: bool,
    /// Whether the domain of the return path must be the sender's exactly.
    pub spf_is_strict: bool,
}

impl DmarcFacts {
    /// The judgement.
    #[must_use]
    pub fn status(&self, domain: &str) -> DmarcStatus {
        match &self.records[..] {
            [] if self.is_undecided => DmarcStatus::Unknown,
            [] => DmarcStatus::Missing,
            [_] if self.policy(domain).is_some() => DmarcStatus::Valid,
            [_] => DmarcStatus::Invalid,
            _ => DmarcStatus::Multiple,
        }
    }

    /// What the policy asks for mail of a domain; `None` without one valid record.
    #[must_use]
    pub fn policy(&self, domain: &str) -> Option<DmarcPolicy> {
        let [record] = &self.records[..] else {
            return None;
        };
        let tag = |name: &str| tag(record, name);
        let policy = tag("p")?;
        let of_subdomains = tag("sp").filter(|_| self.policy_domain.as_deref() != Some(domain));
        let policy = of_subdomains.unwrap_or(policy);
        let is_known = ["none", "quarantine", "reject"].contains(&policy.as_str());
        is_known.then(|| DmarcPolicy {
            policy,
            dkim_is_strict: tag("adkim").as_deref() == Some("s"),
            spf_is_strict: tag("aspf").as_deref() == Some("s"),
        })
    }

    /// Whether `other` is aligned with the domain of the sender.
    #[must_use]
    pub fn is_aligned(&self, domain: &str, other: &str, is_strict: bool) -> bool {
        if is_strict || domain == other {
            return domain == other;
        }
        let organizational = self.organizational_domain.as_deref();
        organizational.is_some_and(|organizational| is_within(other, organizational))
    }
}

/// Whether a name is a domain or below it.
#[must_use]
pub fn is_within(name: &str, domain: &str) -> bool {
    let rest = name.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a TXT record is a DMARC record.
fn is_dmarc(text: &str) -> bool {
    let start = text.split(';').next().unwrap_or_default();
    let version: String = start.split_whitespace().collect();
    version == "v=DMARC1"
}

/// The value of a tag, in lower case.
fn tag(record: &str, name: &str) -> Option<String> {
    let mut tags = record.split(';').filter_map(|tag| tag.split_once('='));
    let (_, value) = tags.find(|(own, _)| own.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().to_ascii_lowercase())
}

/// Looks up the policy of a domain.
pub(super) async fn discover(asks: &mut impl Asks, domain: &str) -> DmarcFacts {
    let mut facts = DmarcFacts::default();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for name in names(domain) {
        let answer = asks.ask(DnsQuestion::Txt, &format!("_dmarc.{name}")).await;
        let Some(values) = answer.values() else {
            facts.is_undecided = true;
            continue;
        };
        let records = values.iter().filter(|text| is_dmarc(text));
        let records: Vec<String> = records.cloned().collect();
        let psd = records.first().and_then(|record| tag(record, "psd"));
        match (records.is_empty(), psd.as_deref()) {
            (true, _) => {}
            // The record of a public suffix: the name below it is the organization's.
            (false, Some("y")) if name != domain => break,
            (false, Some("n")) => {
                found.push((name, records));
                break;
            }
            (false, _) => found.push((name, records)),
        }
    }
    facts.organizational_domain = found.last().map(|(name, _)| name.clone());
    let own = found.iter().position(|(name, _)| name == domain);
    let at = own.or(found.len().checked_sub(1));
    if let Some((name, records)) = at.map(|at| found.swap_remove(at)) {
        facts.policy_domain = Some(name);
        facts.records = records;
    }
    facts
}

/// The domain and those above it, at most eight.
fn names(domain: &str) -> Vec<String> {
    let labels: Vec<&str> = domain.split('.').collect();
    let all = (0..labels.len()).map(|from| labels[from..].join("."));
    let skipped = labels.len().saturating_sub(NAMES_MAX);
    all.enumerate()
        // Of a long name, the ones below the domain itself are left out.
        .filter(|(nth, _)| *nth == 0 || *nth > skipped)
        .map(|(_, name)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::dns::DnsAnswer;

    struct PolicyAsks(BTreeMap<&'static str, &'static [&'static str]>, usize);

    impl Asks for PolicyAsks {
        async fn ask(&mut self, _: DnsQuestion, name: &str) -> DnsAnswer {
            self.1 += 1;
            match self.0.get(name) {
                None => DnsAnswer::NoDomain,
                Some([]) => DnsAnswer::Failed("SERVFAIL".to_owned()),
                Some(values) => {
                    DnsAnswer::Found(values.iter().map(|value| (*value).to_owned()).collect())
                }
            }
        }
    }

    async fn find(records: &[(&'static str, &'static [&'static str])], domain: &str) -> DmarcFacts {
        let mut asks = PolicyAsks(records.iter().copied().collect(), 0);
        let facts = discover(&mut asks, domain).await;
        assert!(asks.1 <= NAMES_MAX, "{} look-ups", asks.1);
        facts
    }

    #[tokio::test]
    async fn the_policy_is_that_of_the_domain_or_of_its_organization() {
        let org: (&str, &[&str]) = ("_dmarc.example.test", &["v=DMARC1; p=reject; sp=none"]);
        for (records, domain, policy, holder) in [
            (
                &[org][..],
                "example.test",
                Some("reject"),
                Some("example.test"),
            ),
            (
                &[org],
                "mail.example.test",
                Some("none"),
                Some("example.test"),
            ),
            (
                &[
                    org,
                    ("_dmarc.mail.example.test", &["v=DMARC1;p=quarantine"]),
                ],
                "mail.example.test",
                Some("quarantine"),
                Some("mail.example.test"),
            ),
            // A public suffix has a policy of its own.
            (
                &[org, ("_dmarc.test", &["v=DMARC1; p=none; psd=y"])],
                "a.b.c.d.e.f.g.h.example.test",
                Some("none"),
                Some("example.test"),
            ),
            (&[], "example.test", None, None),
            (
                &[("_dmarc.example.test", &["v=spf1 ~all"])],
                "example.test",
                None,
                None,
            ),
        ] {
            let facts = find(records, domain).await;
            let found = facts.policy(domain).map(|policy| policy.policy);
            assert_eq!(found.as_deref(), policy, "{facts:?}");
            assert_eq!(facts.policy_domain.as_deref(), holder, "{facts:?}");
        }
    }

    #[tokio::test]
    async fn the_judgement_tells_wrong_from_unknown() {
        for (values, status) in [
            (&["v=DMARC1; p=none"][..], DmarcStatus::Valid),
            (&["v=DMARC1; p=none", "other"], DmarcStatus::Valid),
            (
                &["v=DMARC1; p=none", "v=DMARC1; p=reject"],
                DmarcStatus::Multiple,
            ),
            (&["v=DMARC1; p=block"], DmarcStatus::Invalid),
            (&["v=DMARC1"], DmarcStatus::Invalid),
            (&[], DmarcStatus::Unknown),
        ] {
            let facts = find(&[("_dmarc.example.test", values)], "example.test").await;
            assert_eq!(facts.status("example.test"), status, "{values:?}");
        }
    }

    #[tokio::test]
    async fn alignment_is_strict_or_within_the_organization() {
        let records: [(&str, &[&str]); 1] = [("_dmarc.example.test", &["v=DMARC1; p=none"])];
        let facts = find(&records, "mail.example.test").await;
        for (other, relaxed, strict) in [
            ("mail.example.test", true, true),
            ("example.test", true, false),
            ("bounce.example.test", true, false),
            ("badexample.test", false, false),
            ("provider.test", false, false),
        ] {
            let aligned = |is_strict| facts.is_aligned("mail.example.test", other, is_strict);
            assert_eq!(
                (aligned(false), aligned(true)),
                (relaxed, strict),
                "{other}"
            );
        }
    }
}
