//! Metrics: the number of recipients sent to, delivered, opened and so on, over time and by
//! provider, account, sender domain, recipient domain, template and tag.
//!
//! Each counted event inserts a *delta* in its own transaction. A trigger on `events` does
//! so; code that records many events at once counts them itself and disables the trigger,
//! which saves a query per event. The scheduler adds deltas up into *roll-ups* by quarter of
//! an hour and by day. A query reads the roll-ups and the remaining deltas in one snapshot, so
//! it is always exact; the interval of the roll-up affects only its speed.
//!
//! `selection` decides which roll-up answers a query, `buckets` divides a period in a time
//! zone. All three queries count the whole hours that the period touches, so their sums agree.

pub mod buckets;
pub mod selection;
pub mod store;

use chrono::{NaiveDateTime, TimeDelta};
use chrono_tz::Tz;

use crate::clock::Timestamp;
use crate::ids::{OrganizationId, ProviderAccountId, TemplateId};

/// The default length of a period.
pub const PERIOD_DEFAULT: TimeDelta = TimeDelta::days(30);
/// Recipient domains, and tags, of a month that are counted on their own. The others of the
/// month are counted together, which bounds what a breakdown reads: with 500 of each a day, one
/// of thirty days reads 15,000 rows in 10 ms.
pub const KEYS_PER_MONTH_MAX: i64 = 500;
/// The name of those that are counted together.
pub const OTHER: &str = "(other)";

/// A period: `from` inclusive, `to` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from: Timestamp,
    to: Timestamp,
    zone: Tz,
}

impl Period {
    /// The period from `from` to `to`, whose hours and days are those of `zone`; `None` if
    /// `from` is after `to`.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp, zone: Tz) -> Option<Self> {
        (from <= to).then_some(Self { from, to, zone })
    }

    /// Its beginning.
    #[must_use]
    pub fn from(self) -> Timestamp {
        self.from
    }

    /// Its end.
    #[must_use]
    pub fn to(self) -> Timestamp {
        self.to
    }

    /// The beginning of the first hour that the period touches.
    fn first_hour(self) -> Timestamp {
        buckets::start_of_hour(self.from, self.zone)
    }

    /// The end of the last hour that the period touches.
    fn end_hour(self) -> Timestamp {
        let start = buckets::start_of_hour(self.to, self.zone);
        if start == self.to {
            start
        } else {
            start + TimeDelta::hours(1)
        }
    }

    fn is_empty(self) -> bool {
        self.first_hour() >= self.end_hour()
    }

    /// Beginning and end of the whole UTC days in the period. If there are none, both are
    /// the end of the period.
    fn whole_days(self) -> (Timestamp, Timestamp) {
        let end = start_of(self.end_hour(), DAY_SECONDS);
        let first = self.first_hour();
        let mut day = start_of(first, DAY_SECONDS);
        if day < first {
            day += TimeDelta::days(1);
        }
        if day < end {
            (day, end)
        } else {
            (self.end_hour(), self.end_hour())
        }
    }
}

const DAY_SECONDS: i64 = 24 * 3_600;
/// The deltas and the finer roll-ups count by quarters of an hour, because the time zones of
/// the world differ by whole quarters.
const QUARTER_SECONDS: i64 = 900;

/// The beginning of the quarter of an hour of a time.
#[must_use]
pub fn start_of_quarter(at: Timestamp) -> Timestamp {
    start_of(at, QUARTER_SECONDS)
}

fn start_of(at: Timestamp, seconds: i64) -> Timestamp {
    let whole = at.timestamp().div_euclid(seconds);
    Timestamp::from_timestamp(whole * seconds, 0).unwrap_or(at)
}

/// The length of the buckets of a series. A week begins on Monday.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    Hour,
    Day,
    Week,
    Month,
}

impl Granularity {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Week, Self::Month];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

/// What a breakdown groups by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The provider type of the account.
    Provider,
    /// The sender domain.
    Domain,
    Template,
    /// The provider account.
    Account,
    /// Each tag of a message, so a message with two tags counts in two groups.
    Tag,
    RecipientDomain,
}

impl GroupBy {
    /// All of them, first those of the contract.
    pub const ALL: [Self; 6] = [
        Self::Provider,
        Self::Domain,
        Self::Template,
        Self::Account,
        Self::Tag,
        Self::RecipientDomain,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Domain => "domain",
            Self::Template => "template",
            Self::Account => "account",
            Self::Tag => "tag",
            Self::RecipientDomain => "recipientDomain",
        }
    }
}

/// Numbers of events. `sent` counts recipients. `opened` and `clicked` count each recipient of
/// a message once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    pub sent: i64,
    pub delivered: i64,
    pub opened: i64,
    pub clicked: i64,
    pub bounced: i64,
    pub complained: i64,
    pub unsubscribed: i64,
}

/// The dimensions of an event, besides its organization and its time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dimensions {
    /// The account that the message was or will be sent through.
    pub account_id: ProviderAccountId,
    /// The sender domain.
    pub domain: String,
    pub template_id: Option<TemplateId>,
    /// The tags of the message.
    pub tags: Vec<String>,
    /// Empty if it is not known.
    pub recipient_domain: String,
}

/// How long something took, as the number of a step: four steps double it, and step 0 begins at
/// one millisecond. The same as `waypost_metric_time` in Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeStep(pub i16);

impl TimeStep {
    /// The step of the time between two moments.
    #[must_use]
    pub fn between(since: Timestamp, at: Timestamp) -> Self {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "microseconds of 285 years fit, and the logarithm is below 400"
        )]
        let step = {
            let took = (at - since).num_microseconds().unwrap_or(i64::MAX);
            (4.0 * (took as f64 / 1_000.0).max(1.0).ln() / 2_f64.ln()).floor() as i16
        };
        Self(step)
    }

    /// The middle of the step, in milliseconds: at most 10 % from every time in it.
    #[must_use]
    pub fn milliseconds(self) -> i64 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a step of 400 is 2^100, which saturates"
        )]
        let middle = ((f64::from(self.0) + 0.5) / 4.0).exp2().round() as i64;
        middle
    }
}

/// A change of the counts of a quarter of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    pub organization_id: OrganizationId,
    pub quarter: Timestamp,
    pub dimensions: Dimensions,
    /// From acceptance to sending, of what is counted as sent.
    pub sent_in: Option<TimeStep>,
    /// From sending to delivery, of what is counted as delivered.
    pub delivered_in: Option<TimeStep>,
    /// Added to the counts; may be negative.
    pub counts: EventCounts,
}

/// A bucket of a series.
#[derive(Debug, Clone, Copy)]
pub struct SeriesBucket {
    /// Its beginning.
    pub at: Timestamp,
    /// Its beginning in the time zone of the series.
    pub start: NaiveDateTime,
    pub counts: EventCounts,
}

/// A row of a breakdown.
#[derive(Debug, Clone)]
pub struct BreakdownRow {
    /// The value that it counts; empty for messages without one.
    pub key: String,
    pub name: String,
    pub counts: EventCounts,
}

/// How long half, 95 % and 99 % of some recipients took at most, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentiles {
    pub p50: i64,
    pub p95: i64,
    pub p99: i64,
}

impl Percentiles {
    /// The percentiles of numbers of recipients by step, in the order of the steps; `None`
    /// without recipients. A number below 0 is 0: a correction may have met another step.
    #[must_use]
    pub fn of(steps: &[(TimeStep, i64)]) -> Option<Self> {
        let all: i64 = steps.iter().map(|(_, count)| count.max(&0)).sum();
        let at = |percent: i64| {
            let wanted = (all * percent + 99) / 100;
            let mut counted = 0;
            let step = steps.iter().find(|(_, count)| {
                counted += count.max(&0);
                counted >= wanted
            });
            step.map(|(step, _)| step.milliseconds())
        };
        if all == 0 {
            return None;
        }
        Some(Self {
            p50: at(50)?,
            p95: at(95)?,
            p99: at(99)?,
        })
    }
}

/// How fast an account is.
#[derive(Debug, Clone)]
pub struct AccountTimes {
    /// The id of the account.
    pub account: String,
    pub accept_to_sent: Option<Percentiles>,
    pub sent_to_delivered: Option<Percentiles>,
}

/// `part / whole`, rounded to four decimals, at most 1; 0 if `whole` is 0.
#[must_use]
pub fn rate(part: i64, whole: i64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts stay far below 2^53, and four decimals are asked for"
    )]
    let ratio = part as f64 / whole as f64;
    (ratio * 10_000.0).round().min(10_000.0) / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a constant time")
    }

    #[test]
    fn a_period_counts_the_hours_that_it_touches() {
        let period = Period::new(
            at("2026-03-01T10:30:00Z"),
            at("2026-03-01T12:00:00Z"),
            Tz::UTC,
        );
        let period = period.expect("in order");
        assert_eq!(period.first_hour(), at("2026-03-01T10:00:00Z"));
        assert_eq!(period.end_hour(), at("2026-03-01T12:00:00Z"));
        let later = period.to() + TimeDelta::microseconds(1);
        let a_little_longer = Period::new(period.from(), later, Tz::UTC).expect("in order");
        assert_eq!(a_little_longer.end_hour(), at("2026-03-01T13:00:00Z"));
        assert!(Period::new(period.to(), period.from(), Tz::UTC).is_none());
        // The hours of a time zone.
        let there = Period::new(period.from(), later, Tz::Asia__Kathmandu).expect("in order");
        assert_eq!(there.first_hour(), at("2026-03-01T10:15:00Z"));
        assert_eq!(there.end_hour(), at("2026-03-01T12:15:00Z"));
    }

    #[test]
    fn whole_days_of_a_period_are_utc_days() {
        let whole_days = |from: &str, to: &str| {
            let period = Period::new(at(from), at(to), Tz::UTC).expect("in order");
            period.whole_days()
        };
        let days = whole_days("2026-03-01T00:30:00Z", "2026-03-04T22:10:00Z");
        assert_eq!(
            days,
            (at("2026-03-01T00:00:00Z"), at("2026-03-04T00:00:00Z"))
        );
        let days = whole_days("2026-02-28T01:00:00Z", "2026-03-02T23:10:00Z");
        assert_eq!(
            days,
            (at("2026-03-01T00:00:00Z"), at("2026-03-03T00:00:00Z"))
        );
        for (from, to) in [
            ("2026-03-01T01:00:00Z", "2026-03-02T23:00:00Z"),
            ("2026-03-01T00:00:00Z", "2026-03-01T23:00:00Z"),
            ("2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z"),
        ] {
            assert_eq!(whole_days(from, to), (at(to), at(to)), "{from}");
        }
    }

    #[test]
    fn times_are_reported_to_a_tenth() {
        let since = at("2026-03-01T00:00:00Z");
        for milliseconds in [1, 2, 7, 99, 400, 1_024, 59_999, 86_400_000, 31_536_000_000] {
            let step = TimeStep::between(since, since + TimeDelta::milliseconds(milliseconds));
            let reported = step.milliseconds();
            assert!(
                (reported - milliseconds).abs() * 10 <= milliseconds + 9,
                "{milliseconds} ms: {reported}"
            );
        }
        for none in [0, -5_000] {
            let step = TimeStep::between(since, since + TimeDelta::milliseconds(none));
            assert_eq!(step, TimeStep(0));
        }
    }

    #[test]
    fn percentiles_count_recipients() {
        let step = |number, count| (TimeStep(number), count);
        assert_eq!(Percentiles::of(&[]), None);
        assert_eq!(Percentiles::of(&[step(3, 0), step(4, -2)]), None);
        let one = Percentiles::of(&[step(40, 1)]).unwrap();
        assert_eq!((one.p50, one.p95, one.p99), (1_117, 1_117, 1_117));
        let many = [step(0, 94), step(8, 3), step(20, -1), step(40, 3)];
        let many = Percentiles::of(&many).unwrap();
        assert_eq!((many.p50, many.p95, many.p99), (1, 4, 1_117));
    }

    #[test]
    fn rates_have_four_decimals_and_are_zero_without_a_whole() {
        assert_eq!(rate(1, 3).to_string(), "0.3333");
        assert_eq!(rate(2, 3).to_string(), "0.6667");
        assert_eq!(rate(7, 7).to_string(), "1");
        assert_eq!(rate(0, 0).to_string(), "0");
        assert_eq!(rate(5, 0).to_string(), "0");
        assert_eq!(
            rate(3, 2).to_string(),
            "1",
            "the messages may have been sent before the period"
        );
    }
}
