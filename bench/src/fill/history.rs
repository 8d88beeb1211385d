//! Generates finished messages. Pure: everything about a message is computed from its
//! number, so each table can be written separately, in any order, and all tables agree.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// Milliseconds of an hour.
const HOUR_MS: i64 = 60 * 60 * 1_000;
/// The organization of the metrics queries has a fifth of all messages …
const METRICS_PERCENT: u64 = 20;
/// … and the organization whose messages are listed has half of them.
const LISTED_PERCENT: u64 = 50;

const GREETINGS: [&str; 6] = [
    "Your order",
    "Your receipt for",
    "Welcome to",
    "Reset your password for",
    "News from",
    "Invoice from",
];
const CITIES: [&str; 10] = [
    "Berlin", "Paris", "Lima", "Oslo", "Kyoto", "Quito", "Cairo", "Porto", "Turin", "Delhi",
];

/// A text that a sixth of all subjects contain.
pub(crate) const COMMON_TEXT: &str = "order";
/// A text in hardly any subject: one in sixty thousand.
pub(crate) const RARE_TEXT: &str = "#0bcd";
/// The tag of most messages, that of one in a hundred, and that of one in fifty thousand.
pub(crate) const COMMON_TAG: &str = "receipts";
pub(crate) const HUNDREDTH_TAG: &str = "invoices";
pub(crate) const RARE_TAG: &str = "recall";
/// The recipients of all messages.
const PEOPLE: u64 = 500_000;

/// The domain of all recipients.
pub(crate) const RECIPIENT_DOMAIN: &str = "example.org";
/// The steps (waypost_metric_time) of 400 ms and 1,900 ms, which every mail takes.
pub(crate) const SENT_IN: i16 = 34;
pub(crate) const DELIVERED_IN: i16 = 43;

/// A text in no subject.
pub(crate) const NO_TEXT: &str = "zebrafinch";

/// An organization with its accounts, domains and templates.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) id: Uuid,
    /// Its provider accounts with their types.
    pub(crate) accounts: Vec<(Uuid, &'static str)>,
    pub(crate) domains: Vec<String>,
    /// The templates of two thirds of its messages.
    pub(crate) templates: Vec<Uuid>,
}

/// The parameters of a history.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// The first is queried for metrics, the second for message lists.
    pub(crate) owners: Vec<Owner>,
    pub(crate) messages: u64,
    /// One message in this many has events and attempts.
    pub(crate) events_every: u64,
    pub(crate) first_ms: i64,
    pub(crate) span_ms: i64,
}

/// The final status of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalStatus {
    Delivered,
    Sent,
    Bounced,
    Failed,
}

impl FinalStatus {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Delivered => "DELIVERED",
            Self::Sent => "SENT",
            Self::Bounced => "BOUNCED",
            Self::Failed => "FAILED",
        }
    }
}

/// A message to one recipient, with its outcome.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    pub(crate) id: Uuid,
    /// A random number that is always the same for this message.
    pub(crate) random: u64,
    pub(crate) owner: usize,
    pub(crate) account: usize,
    pub(crate) domain: usize,
    pub(crate) template: Option<usize>,
    pub(crate) status: FinalStatus,
    pub(crate) has_events: bool,
    pub(crate) accepted_ms: i64,
    /// When the provider accepted it; `None` if it failed.
    pub(crate) sent_ms: Option<i64>,
    pub(crate) delivered_ms: Option<i64>,
    pub(crate) bounced_ms: Option<i64>,
    pub(crate) opened_ms: Option<i64>,
    pub(crate) clicked_ms: Option<i64>,
}

impl History {
    /// The message with this number.
    pub(crate) fn message(&self, number: u64) -> Message {
        let random = split_mix(number);
        let second_random = split_mix(random);
        let owner = self.owner(random);
        let accepted_ms = self.accepted_ms(number);
        let has_events = number.is_multiple_of(self.events_every);
        let status = match second_random % 1_000 {
            0..900 => FinalStatus::Delivered,
            900..955 => FinalStatus::Sent,
            955..990 => FinalStatus::Bounced,
            _ => FinalStatus::Failed,
        };
        let sent_ms = (status != FinalStatus::Failed).then_some(accepted_ms + 400);
        let delivered_ms = (status == FinalStatus::Delivered).then_some(accepted_ms + 2_300);
        let bounced_ms = (status == FinalStatus::Bounced).then_some(accepted_ms + 3_100);
        let waits = i64::try_from(second_random >> 44).unwrap_or_default();
        let opens = has_events && (second_random >> 10) % 100 < 22;
        let opened_ms = delivered_ms.filter(|_| opens).map(|at| at + 5_000 + waits);
        let clicks = (second_random >> 20).is_multiple_of(5);
        let clicked_ms = opened_ms.filter(|_| clicks).map(|at| at + 4_000);
        let Owner {
            accounts,
            domains,
            templates,
            ..
        } = &self.owners[owner];
        let template = choose(second_random >> 40, templates.len() * 3 / 2);
        Message {
            id: uuid_v7(accepted_ms, random),
            random,
            owner,
            account: choose(second_random >> 30, accounts.len()),
            domain: choose(second_random >> 35, domains.len()),
            template: (template < templates.len()).then_some(template),
            status,
            has_events,
            accepted_ms,
            sent_ms,
            delivered_ms,
            bounced_ms,
            opened_ms,
            clicked_ms,
        }
    }

    /// The number of the first message that was accepted at this time or later.
    pub(crate) fn first_from(&self, at_ms: i64) -> u64 {
        let passed = (at_ms - self.first_ms).clamp(0, self.span_ms);
        let messages = i128::from(self.messages);
        let number = (i128::from(passed) * messages + i128::from(self.span_ms) - 1)
            / i128::from(self.span_ms);
        u64::try_from(number).unwrap_or_default()
    }

    fn accepted_ms(&self, number: u64) -> i64 {
        let passed = i128::from(self.span_ms) * i128::from(number) / i128::from(self.messages);
        self.first_ms + i64::try_from(passed).unwrap_or_default()
    }

    fn owner(&self, random: u64) -> usize {
        match random % 100 {
            percent if percent < METRICS_PERCENT => 0,
            percent if percent < METRICS_PERCENT + LISTED_PERCENT => 1,
            _ => 2 + choose(random >> 20, self.owners.len() - 2),
        }
    }
}

impl Message {
    /// The only tag.
    pub(crate) fn tag(&self) -> &'static str {
        match (self.random >> 12) % 50_000 {
            0 => RARE_TAG,
            nth if nth.is_multiple_of(100) => HUNDREDTH_TAG,
            _ => COMMON_TAG,
        }
    }

    /// The hash of the recipient's address.
    pub(crate) fn address_hash(&self) -> [u8; 32] {
        Sha256::digest(person((self.random >> 8) % PEOPLE)).into()
    }

    /// The subject.
    pub(crate) fn subject(&self) -> String {
        let greeting = GREETINGS[choose(self.random >> 24, GREETINGS.len())];
        let city = CITIES[choose(self.random >> 32, CITIES.len())];
        format!("{greeting} {city} #{:04x}", (self.random >> 40) & 0xffff)
    }

    /// Its events, in order: type and time.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let accepted = self.has_events.then_some(self.accepted_ms);
        let dropped = (self.status == FinalStatus::Failed).then_some(self.accepted_ms + 100);
        let all = [
            ("QUEUED", accepted),
            ("DROPPED", dropped),
            ("SENT", self.sent_ms),
            ("DELIVERED", self.delivered_ms),
            ("BOUNCED", self.bounced_ms),
            ("OPENED", self.opened_ms),
            ("CLICKED", self.clicked_ms),
        ];
        let has_events = self.has_events;
        let happened = all.into_iter().filter_map(|(name, at)| Some((name, at?)));
        happened.filter(move |_| has_events)
    }
}

/// Start of the hour that contains this time, in milliseconds.
pub(crate) fn hour(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(HOUR_MS)
}

/// Start of the quarter of an hour that contains this time, in milliseconds.
pub(crate) fn quarter(at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(HOUR_MS / 4)
}

/// A UUIDv7 of this time.
pub(crate) fn uuid_v7(at_ms: i64, random: u64) -> Uuid {
    let time = u128::try_from(at_ms).unwrap_or_default() << 80;
    let low = split_mix(random ^ 0x5157);
    let first = u128::from(random >> 52) << 64;
    let rest = u128::from(low >> 2);
    Uuid::from_u128(time | (7 << 76) | first | (2 << 62) | rest)
}

/// SplitMix64.
pub(crate) fn split_mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 32 random bytes in place of a SHA-256.
pub(crate) fn hash(random: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut part = random;
    for eight in bytes.chunks_exact_mut(8) {
        part = split_mix(part);
        eight.copy_from_slice(&part.to_be_bytes());
    }
    bytes
}

/// The address of a recipient.
pub(crate) fn person(nth: u64) -> String {
    format!("person-{nth}@{RECIPIENT_DOMAIN}")
}

fn choose(random: u64, among: usize) -> usize {
    usize::try_from(random % among.max(1) as u64).unwrap_or_default()
}
