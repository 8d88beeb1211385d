//! The look-ups of one check: what the accounts want, the SPF records, the policy. Their
//! number and their time are bounded, whatever DNS answers; what is not asked any more
//! counts as failed.

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use super::AccountDomain;
use super::dmarc::{self, DmarcFacts};
use super::spf::{self, SpfFacts};
use crate::dns::{DnsAnswer, DnsQuestion, DnsResolver};
use crate::provider::domain::{DnsPurpose, DnsRecord, DnsRecordType};

/// The most look-ups of one check.
const LOOKUPS_MAX: usize = 200;
/// The most names whose SPF record is read.
const SPF_NAMES_MAX: usize = 10;
/// Look-ups at the same time.
const CONCURRENCY: usize = 8;
/// The longest time of a check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);

/// What DNS says of a domain and of the records that its accounts want.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsFacts {
    pub answers: Vec<RecordAnswer>,
    /// Of the domain itself, and of every other name for which an account wants a record.
    pub spf: Vec<SpfFacts>,
    pub dmarc: DmarcFacts,
}

/// The answer for a wanted record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordAnswer {
    pub record_type: DnsRecordType,
    pub name: String,
    pub answer: DnsAnswer,
}

impl DnsFacts {
    /// The answer for a type and a name, if they were asked.
    #[must_use]
    pub fn answer(&self, record_type: DnsRecordType, name: &str) -> Option<&DnsAnswer> {
        let mut answers = self.answers.iter();
        let found =
            answers.find(|one| one.record_type == record_type && one.name == host_name(name));
        found.map(|found| &found.answer)
    }

    /// What is known of the SPF record of a name.
    #[must_use]
    pub fn spf_of(&self, name: &str) -> Option<&SpfFacts> {
        let name = host_name(name);
        self.spf.iter().find(|facts| facts.name == name)
    }
}

/// A name as DNS compares it: in lower case, without the final dot.
#[must_use]
pub fn host_name(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    name.strip_suffix('.').unwrap_or(&name).to_owned()
}

/// Whoever answers questions in DNS.
pub(super) trait Asks {
    /// The answer.
    fn ask(&mut self, question: DnsQuestion, name: &str) -> impl Future<Output = DnsAnswer> + Send;
}

/// Asks each question once, within the bounds of a check.
struct CheckLookUps<'a> {
    resolver: &'a DnsResolver,
    known: HashMap<(DnsQuestion, String), DnsAnswer>,
    ends_at: Instant,
}

impl Asks for CheckLookUps<'_> {
    async fn ask(&mut self, question: DnsQuestion, name: &str) -> DnsAnswer {
        let key = (question, host_name(name));
        if let Some(answer) = self.known.get(&key) {
            return answer.clone();
        }
        if self.known.len() >= LOOKUPS_MAX {
            return DnsAnswer::Failed("the domain needs too many look-ups".to_owned());
        }
        let answer = bounded(self.resolver, question, &key.1, self.ends_at).await;
        self.known.insert(key, answer.clone());
        answer
    }
}

async fn bounded(
    resolver: &DnsResolver,
    question: DnsQuestion,
    name: &str,
    ends_at: Instant,
) -> DnsAnswer {
    let answer = timeout_at(ends_at, resolver.look_up(question, name)).await;
    answer.unwrap_or_else(|_| DnsAnswer::Failed("the look-ups took too long".to_owned()))
}

fn question(record_type: DnsRecordType) -> DnsQuestion {
    match record_type {
        DnsRecordType::Txt => DnsQuestion::Txt,
        DnsRecordType::Cname => DnsQuestion::Cname,
        DnsRecordType::Mx => DnsQuestion::Mx,
    }
}

/// Whether the record is an SPF record of a name, and not a name that leads to one.
pub(super) fn is_spf_text(record: &DnsRecord) -> bool {
    record.purpose == DnsPurpose::Spf && record.record_type == DnsRecordType::Txt
}

/// Looks up a domain, and what its accounts want.
pub(super) async fn look_up(
    resolver: &DnsResolver,
    domain: &str,
    accounts: &[AccountDomain],
) -> DnsFacts {
    let wanted = accounts.iter().flat_map(|account| &account.records);
    let names: BTreeSet<(&'static str, String)> = wanted
        .clone()
        .map(|record| (record.record_type.name(), host_name(&record.name)))
        .collect();
    let wanted_names: Vec<(DnsRecordType, String)> = names
        .into_iter()
        .filter_map(|(kind, name)| Some((DnsRecordType::from_name(kind)?, name)))
        .take(LOOKUPS_MAX / 2)
        .collect();
    let ends_at = Instant::now() + CHECK_TIMEOUT;
    let asking = wanted_names
        .into_iter()
        .map(|(record_type, name)| async move {
            let answer = bounded(resolver, question(record_type), &name, ends_at).await;
            (record_type, name, answer)
        });
    let answers: Vec<(DnsRecordType, String, DnsAnswer)> =
        stream::iter(asking).buffered(CONCURRENCY).collect().await;
    let known = answers.iter().map(|(record_type, name, answer)| {
        ((question(*record_type), name.clone()), answer.clone())
    });
    let mut asks = CheckLookUps {
        resolver,
        known: known.collect(),
        ends_at,
    };
    let mut spf_names = vec![domain.to_owned()];
    for record in wanted.filter(|record| is_spf_text(record)) {
        let name = host_name(&record.name);
        if spf_names.len() < SPF_NAMES_MAX && !spf_names.contains(&name) {
            spf_names.push(name);
        }
    }
    let mut facts = DnsFacts::default();
    for name in &spf_names {
        facts.spf.push(spf::evaluate(&mut asks, name).await);
    }
    facts.dmarc = dmarc::discover(&mut asks, domain).await;
    facts.answers = answers
        .into_iter()
        .map(|(record_type, name, answer)| RecordAnswer {
            record_type,
            name,
            answer,
        })
        .collect();
    facts
}
