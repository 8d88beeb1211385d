//! SPF (RFC 7208): reads a domain's record and those that it includes, and counts the
//! look-ups that a receiver makes. No mail is judged: the counts are those of a sender that
//! no mechanism matches, the most that a receiver needs.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::look_ups::Asks;
use crate::dns::{DnsAnswer, DnsQuestion};

/// The look-ups that a record may cause: receivers refuse one with more (RFC 7208, 4.6.4).
pub const SPF_LOOKUPS_MAX: u32 = 10;
/// The look-ups that may find nothing (RFC 7208, 4.6.4).
pub const SPF_VOID_LOOKUPS_MAX: u32 = 2;
/// Counting ends here: a record that includes itself has no end.
const COUNTED_MAX: u32 = 50;
/// The hosts that an `mx` mechanism may have (RFC 7208, 4.6.4).
const MX_HOSTS_MAX: usize = 10;

/// What DNS says of a name's SPF record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpfFacts {
    pub name: String,
    /// The SPF records of the name. A receiver accepts one only.
    pub records: Vec<String>,
    /// The look-ups that the record causes, up to 50.
    pub lookups: u32,
    /// Those that find nothing.
    pub void_lookups: u32,
    /// The domains that are included, by included records too.
    pub includes: Vec<String>,
    /// What is not valid, if something is: a sentence without its full stop.
    pub problem: Option<String>,
    /// Whether a look-up failed, so that the rest is not certain.
    pub is_undecided: bool,
}

/// The judgement of a name's SPF record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpfStatus {
    Valid,
    /// There is no record.
    Missing,
    /// There are several records.
    Multiple,
    Invalid,
    TooManyLookups,
    TooManyVoidLookups,
    /// DNS could not be asked.
    Unknown,
}

impl SpfStatus {
    /// The names in the API.
    pub const NAMES: [&str; 7] = [
        "valid",
        "missing",
        "multiple",
        "invalid",
        "tooManyLookups",
        "tooManyVoidLookups",
        "unknown",
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Missing => "missing",
            Self::Multiple => "multiple",
            Self::Invalid => "invalid",
            Self::TooManyLookups => "tooManyLookups",
            Self::TooManyVoidLookups => "tooManyVoidLookups",
            Self::Unknown => "unknown",
        }
    }
}

impl SpfFacts {
    fn of(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            records: Vec::new(),
            lookups: 0,
            void_lookups: 0,
            includes: Vec::new(),
            problem: None,
            is_undecided: false,
        }
    }

    /// The judgement. What is certainly wrong comes before what is not known.
    #[must_use]
    pub fn status(&self) -> SpfStatus {
        if self.records.len() > 1 {
            return SpfStatus::Multiple;
        }
        if self.problem.is_some() {
            return SpfStatus::Invalid;
        }
        if self.lookups > SPF_LOOKUPS_MAX {
            return SpfStatus::TooManyLookups;
        }
        if self.void_lookups > SPF_VOID_LOOKUPS_MAX {
            return SpfStatus::TooManyVoidLookups;
        }
        if self.is_undecided {
            return SpfStatus::Unknown;
        }
        match self.records.is_empty() {
            true => SpfStatus::Missing,
            false => SpfStatus::Valid,
        }
    }

    /// Which mechanisms of the wanted record the name lacks. An included domain counts also
    /// where an included record includes it.
    #[must_use]
    pub fn missing_of(&self, wanted: &str) -> Vec<String> {
        let own: Vec<String> = self
            .records
            .iter()
            .flat_map(|record| terms(record))
            .map(plain)
            .collect();
        let wanted = mechanisms(wanted).into_iter();
        wanted
            .filter(|term| match term.strip_prefix("include:") {
                Some(domain) => !self.includes.iter().any(|known| known == domain),
                None => !own.contains(term),
            })
            .collect()
    }

    fn reject(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Whether a TXT record is an SPF record (RFC 7208, 4.5).
#[must_use]
pub fn is_spf(text: &str) -> bool {
    let start = text.split(' ').next().unwrap_or_default();
    start.eq_ignore_ascii_case("v=spf1")
}

/// The mechanisms of a record, without qualifiers, `all` and modifiers.
#[must_use]
pub fn mechanisms(record: &str) -> Vec<String> {
    let terms = terms(record);
    terms
        .filter(|term| {
            !matches!(
                parse(term),
                None | Some(Term::All | Term::Redirect(_) | Term::OtherModifier)
            )
        })
        .map(plain)
        .collect()
}

/// One record with all mechanisms of `records` and of `missing`, in this order.
#[must_use]
pub fn merged(records: &[String], missing: &[String]) -> String {
    let mut parts = vec!["v=spf1".to_owned()];
    let (mut all, mut redirect) = (None, None);
    for term in records.iter().flat_map(|record| terms(record)) {
        match parse(term) {
            Some(Term::All) => all = all.or(Some(term)),
            Some(Term::Redirect(_)) => redirect = redirect.or(Some(term)),
            Some(_) if !parts.iter().any(|part| part == term) => parts.push(term.to_owned()),
            Some(_) | None => {}
        }
    }
    let missing = missing.iter().filter(|term| !parts.contains(term));
    let missing: Vec<String> = missing.cloned().collect();
    parts.extend(missing);
    parts.push(all.or(redirect).unwrap_or("~all").to_owned());
    parts.join(" ")
}

/// A term of a record, as far as look-ups depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    All,
    Include(String),
    /// `a` and `mx`, with the domain if one is named.
    Address(Option<String>),
    Mx(Option<String>),
    Ptr,
    Network,
    Exists(String),
    Redirect(String),
    OtherModifier,
}

fn terms(record: &str) -> impl Iterator<Item = &str> {
    record.split(' ').filter(|term| !term.is_empty()).skip(1)
}

/// The term in lower case without its qualifier.
fn plain(term: &str) -> String {
    let term = term.strip_prefix(['+', '-', '~', '?']).unwrap_or(term);
    let term = term.to_ascii_lowercase();
    term.strip_suffix('.').unwrap_or(&term).to_owned()
}

/// Reads a term; `None` if it is not valid.
fn parse(term: &str) -> Option<Term> {
    let term = plain(term);
    let name_end = term.find([':', '/', '=']).unwrap_or(term.len());
    let (name, rest) = term.split_at(name_end);
    if let Some(value) = rest.strip_prefix('=') {
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
        return match name {
            "redirect" if value.is_empty() => None,
            "redirect" => Some(Term::Redirect(value.to_owned())),
            _ => starts_well.then_some(Term::OtherModifier),
        };
    }
    let domain = rest.strip_prefix(':').filter(|domain| !domain.is_empty());
    match name {
        "all" => rest.is_empty().then_some(Term::All),
        "include" => domain.map(|domain| Term::Include(domain.to_owned())),
        "exists" => domain.map(|domain| Term::Exists(domain.to_owned())),
        "a" => host(rest).map(Term::Address),
        "mx" => host(rest).map(Term::Mx),
        "ptr" => (rest.is_empty() || domain.is_some()).then_some(Term::Ptr),
        "ip4" | "ip6" => {
            let is_ip4 = name == "ip4";
            let net = domain.and_then(network)?;
            (net.addr().is_ipv4() == is_ip4).then_some(Term::Network)
        }
        _ => None,
    }
}

/// The domain in `:domain/24//64`, all of whose parts may be absent.
fn host(rest: &str) -> Option<Option<String>> {
    let (domain, prefix) = rest.split_once('/').unwrap_or((rest, "0"));
    let lengths = prefix.split('/').filter(|length| !length.is_empty());
    let is_valid = lengths.into_iter().all(|length| {
        let length: Result<u8, _> = length.parse();
        length.is_ok_and(|length| length <= 128)
    });
    if !is_valid {
        return None;
    }
    match domain.strip_prefix(':') {
        Some("") => None,
        Some(domain) => Some(Some(domain.to_owned())),
        None => domain.is_empty().then_some(None),
    }
}

fn network(text: &str) -> Option<IpNet> {
    text.parse()
        .ok()
        .or_else(|| Some(IpNet::from(text.parse::<std::net::IpAddr>().ok()?)))
}

/// Looks up the SPF record of a name and those that it includes.
pub(super) async fn evaluate(asks: &mut impl Asks, name: &str) -> SpfFacts {
    let mut facts = SpfFacts::of(name);
    match asks.ask(DnsQuestion::Txt, name).await {
        DnsAnswer::Found(values) => {
            facts.records = values.into_iter().filter(|text| is_spf(text)).collect();
        }
        DnsAnswer::NoRecord | DnsAnswer::NoDomain => {}
        DnsAnswer::Failed(_) => facts.is_undecided = true,
    }
    // Of several records a receiver reads none, so nothing is looked up.
    if facts.records.len() > 1 {
        let terms = facts.records.iter().flat_map(|record| terms(record));
        let included = terms.filter_map(|term| match parse(term)? {
            Term::Include(domain) | Term::Redirect(domain) => Some(domain),
            Term::All
            | Term::Address(_)
            | Term::Mx(_)
            | Term::Ptr
            | Term::Network
            | Term::Exists(_)
            | Term::OtherModifier => None,
        });
        facts.includes = included.collect();
    }
    if let [record] = &facts.records[..] {
        let mut open = vec![(name.to_owned(), record.clone())];
        while let Some((owner, record)) = open.pop() {
            count(asks, &owner, &record, (&mut facts, &mut open)).await;
        }
    }
    facts
}

/// Counts the look-ups of one record, and adds the records that it includes to `open`.
async fn count(
    asks: &mut impl Asks,
    owner: &str,
    record: &str,
    (facts, open): (&mut SpfFacts, &mut Vec<(String, String)>),
) {
    let read: Vec<(&str, Option<Term>)> = terms(record).map(|term| (term, parse(term))).collect();
    let has_all = read.iter().any(|(_, term)| *term == Some(Term::All));
    let owned = |domain: Option<String>| domain.unwrap_or_else(|| owner.to_owned());
    for (text, term) in read {
        let Some(term) = term else {
            facts.reject(format!(
                "the SPF record of {owner} has the term `{text}`, which is not valid"
            ));
            continue;
        };
        if facts.lookups >= COUNTED_MAX {
            return;
        }
        match term {
            Term::All | Term::Network | Term::OtherModifier => {}
            // Ignored beside `all` (RFC 7208, 6.1).
            Term::Redirect(_) if has_all => {}
            Term::Include(domain) | Term::Redirect(domain) => {
                facts.lookups += 1;
                if let Some(record) = included(asks, &domain, facts).await {
                    open.push((domain, record));
                }
            }
            Term::Ptr => facts.lookups += 1,
            Term::Address(domain) => {
                let domain = owned(domain);
                find(asks, DnsQuestion::Address, &domain, facts).await;
            }
            Term::Exists(domain) => {
                find(asks, DnsQuestion::Address, &domain, facts).await;
            }
            Term::Mx(domain) => {
                let domain = owned(domain);
                let hosts = find(asks, DnsQuestion::Mx, &domain, facts).await;
                if hosts > MX_HOSTS_MAX {
                    facts.reject(format!("{domain} has more than 10 MX hosts, and the SPF record of {owner} has `{text}`"));
                }
            }
        }
    }
}

/// Counts one look-up; the number of values that it finds.
async fn find(
    asks: &mut impl Asks,
    question: DnsQuestion,
    domain: &str,
    facts: &mut SpfFacts,
) -> usize {
    facts.lookups += 1;
    if has_macro(domain) {
        return 0;
    }
    let answer = asks.ask(question, domain).await;
    if answer.is_void() {
        facts.void_lookups += 1;
    }
    match answer.values() {
        Some(values) => values.len(),
        None => {
            facts.is_undecided = true;
            0
        }
    }
}

/// The one SPF record of an included domain.
async fn included(asks: &mut impl Asks, domain: &str, facts: &mut SpfFacts) -> Option<String> {
    if !facts.includes.iter().any(|known| known == domain) {
        facts.includes.push(domain.to_owned());
    }
    if has_macro(domain) {
        return None;
    }
    let answer = asks.ask(DnsQuestion::Txt, domain).await;
    if answer.is_void() {
        facts.void_lookups += 1;
    }
    let Some(values) = answer.values() else {
        facts.is_undecided = true;
        return None;
    };
    let records: Vec<&String> = values.iter().filter(|text| is_spf(text)).collect();
    if let [record] = records[..] {
        return Some(record.clone());
    }
    let number = if records.is_empty() {
        "no"
    } else {
        "more than one"
    };
    facts.reject(format!(
        "`{domain}`, which the SPF record of {} includes, has {number} SPF record",
        facts.name
    ));
    None
}

/// Whether the domain depends on the mail (RFC 7208, 7).
fn has_macro(domain: &str) -> bool {
    domain.contains('%')
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::Value;

    use super::*;

    /// Answers from a zone: values by type, by name.
    struct ZoneAsks {
        zone: Value,
        asked: HashMap<String, u32>,
    }

    impl Asks for ZoneAsks {
        async fn ask(&mut self, question: DnsQuestion, name: &str) -> DnsAnswer {
            *self.asked.entry(name.to_owned()).or_default() += 1;
            let kind = match question {
                DnsQuestion::Txt => "TXT",
                DnsQuestion::Cname => "CNAME",
                DnsQuestion::Mx => "MX",
                DnsQuestion::Address => "A",
            };
            if name.starts_with("failing") {
                return DnsAnswer::Failed("SERVFAIL".to_owned());
            }
            let Some(records) = self.zone.get(name) else {
                return DnsAnswer::NoDomain;
            };
            let values = records[kind].as_array().into_iter().flatten();
            let values: Vec<String> = values
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            match values.is_empty() {
                true => DnsAnswer::NoRecord,
                false => DnsAnswer::Found(values),
            }
        }
    }

    async fn read(zone: &Value, name: &str) -> SpfFacts {
        let zone = zone.clone();
        let mut asks = ZoneAsks {
            zone,
            asked: HashMap::new(),
        };
        evaluate(&mut asks, name).await
    }

    /// The numbers are those of pyspf 2.0.14, for a sender that nothing matches. It differs in
    /// two: it counts a `redirect` beside `all`, and looks up the sender's own name for `ptr`.
    #[tokio::test]
    async fn look_ups_are_counted_as_others_count_them() {
        let cases: Value = serde_json::from_str(include_str!("spf_cases.json")).unwrap();
        for case in cases["cases"].as_array().unwrap() {
            let name = case["domain"].as_str().unwrap();
            let facts = read(&cases["zone"], name).await;
            let status = facts.status().as_str();
            assert_eq!(case["status"], status, "{facts:?}");
            // Nobody counts on in a record that is not valid.
            if facts.status() != SpfStatus::Invalid {
                let counts = (&case["lookups"], &case["voidLookups"]);
                assert_eq!(counts.0, facts.lookups, "{facts:?}");
                assert_eq!(counts.1, facts.void_lookups, "{facts:?}");
            }
        }
    }

    #[tokio::test]
    async fn records_without_an_end_are_not_followed_for_ever() {
        let zone = serde_json::json!({
            "self.test": { "TXT": ["v=spf1 include:self.test ~all"] },
            "a.test": { "TXT": ["v=spf1 include:b.test ~all"] },
            "b.test": { "TXT": ["v=spf1 redirect=a.test"] },
            "fan.test": { "TXT": ["v=spf1 include:fan.test include:fan.test include:fan.test ~all"] },
        });
        for name in ["self.test", "a.test", "fan.test"] {
            let facts = read(&zone, name).await;
            assert_eq!(facts.status(), SpfStatus::TooManyLookups, "{facts:?}");
            assert!(facts.lookups <= COUNTED_MAX, "{facts:?}");
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_an_error_of_the_record() {
        let zone = serde_json::json!({
            "x.test": { "TXT": ["v=spf1 include:failing.test ~all"] },
            "macro.test": { "TXT": ["v=spf1 exists:%{i}.x.test include:%{d}.test ~all"] },
        });
        let failed = read(&zone, "failing.test").await;
        assert_eq!(failed.status(), SpfStatus::Unknown);
        let included = read(&zone, "x.test").await;
        assert_eq!(included.status(), SpfStatus::Unknown);
        assert_eq!(
            included.missing_of("v=spf1 include:failing.test -all"),
            [""; 0]
        );
        // What depends on the mail is counted and not asked.
        let by_macro = read(&zone, "macro.test").await;
        assert_eq!((by_macro.status(), by_macro.lookups), (SpfStatus::Valid, 2));
    }

    #[test]
    fn records_are_merged_into_one() {
        let owned = |texts: &[&str]| -> Vec<String> {
            texts.iter().map(|text| (*text).to_owned()).collect()
        };
        for (records, missing, expected) in [
            (
                &[][..],
                &["include:a.test"][..],
                "v=spf1 include:a.test ~all",
            ),
            (
                &["v=spf1 ip4:192.0.2.1 -all"],
                &["include:a.test", "mx"],
                "v=spf1 ip4:192.0.2.1 include:a.test mx -all",
            ),
            (
                &[
                    "v=spf1 include:a.test ~all",
                    "v=spf1 include:b.test include:a.test -all",
                ],
                &["include:b.test"],
                "v=spf1 include:a.test include:b.test ~all",
            ),
            (
                &["v=spf1 redirect=a.test"],
                &["include:b.test"],
                "v=spf1 include:b.test redirect=a.test",
            ),
            (&["v=spf1 nonsense: a ~all"], &[], "v=spf1 a ~all"),
        ] {
            assert_eq!(merged(&owned(records), &owned(missing)), expected);
        }
    }

    #[test]
    fn missing_mechanisms_are_found_in_included_records_too() {
        let facts = SpfFacts {
            records: vec!["v=spf1 +A include:ours.test ip4:192.0.2.0/24 -all".to_owned()],
            includes: vec!["ours.test".to_owned(), "amazonses.com".to_owned()],
            ..SpfFacts::of("x.test")
        };
        let wanted = "v=spf1 a mx include:amazonses.com include:mailgun.org ~all";
        assert_eq!(facts.missing_of(wanted), ["mx", "include:mailgun.org"]);
    }
}
