//! Metrics: the number of recipients sent to, delivered, opened and so on, per hour, by
//! provider, sender domain and template.
//!
//! Each counted event inserts a *delta* in its own transaction. A trigger on `events` does
//! so; code that records many events at once counts them itself and disables the trigger,
//! which saves a query per event. The scheduler adds deltas up into hourly *roll-ups* per
//! dimension, and into daily ones for breakdowns. A query reads the roll-ups and the
//! remaining deltas in one snapshot, so it is always exact; the interval of the roll-up
//! affects only its speed.
//!
//! All three queries count the whole hours that the period touches, so their sums agree.

pub mod store;

use chrono::{Datelike as _, NaiveDateTime, TimeDelta};

use crate::clock::Timestamp;
use crate::ids::{OrganizationId, ProviderAccountId, TemplateId};

/// The default length of a period.
pub const PERIOD_DEFAULT: TimeDelta = TimeDelta::days(30);
/// Maximum number of buckets in a series.
pub const BUCKETS_MAX: i64 = 10_000;

/// A period: `from` inclusive, `to` exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from: Timestamp,
    to: Timestamp,
}

impl Period {
    /// The period from `from` to `to`; `None` if `from` is after `to`.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from <= to).then_some(Self { from, to })
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
        start_of_hour(self.from)
    }

    /// The end of the last hour that the period touches.
    fn end_hour(self) -> Timestamp {
        let start = start_of_hour(self.to);
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
        let end = start_of_day(self.end_hour());
        let first = self.first_hour();
        let mut day = start_of_day(first);
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

/// The beginning of the hour of a time.
#[must_use]
pub fn start_of_hour(at: Timestamp) -> Timestamp {
    start_of(at, 3_600)
}

fn start_of_day(at: Timestamp) -> Timestamp {
    start_of(at, 24 * 3_600)
}

fn start_of(at: Timestamp, seconds: i64) -> Timestamp {
    let whole = at.timestamp().div_euclid(seconds);
    Timestamp::from_timestamp(whole * seconds, 0).unwrap_or(at)
}

/// The length of the buckets of a series, in UTC. A week begins on Monday.
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

    /// The name in the API and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The number of buckets of a period.
    #[must_use]
    pub fn buckets(self, period: Period) -> i64 {
        if period.is_empty() {
            return 0;
        }
        let last = period.end_hour() - TimeDelta::hours(1);
        self.number(last) - self.number(period.first_hour()) + 1
    }

    /// The number of the bucket of a time.
    fn number(self, at: Timestamp) -> i64 {
        // Day 1 of this count is 0001-01-01, a Monday.
        let days = i64::from(at.num_days_from_ce()) - 1;
        match self {
            Self::Hour => at.timestamp().div_euclid(3_600),
            Self::Day => days,
            Self::Week => days.div_euclid(7),
            Self::Month => i64::from(at.year()) * 12 + i64::from(at.month0()),
        }
    }
}

/// The dimension of a breakdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    Provider,
    /// The sender domain.
    Domain,
    Template,
}

impl GroupBy {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Provider, Self::Domain, Self::Template];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Domain => "domain",
            Self::Template => "template",
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

/// The dimensions of an event, besides its organization and its hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dimensions {
    /// The account that the message was or will be sent through.
    pub account_id: ProviderAccountId,
    /// The sender domain.
    pub domain: String,
    pub template_id: Option<TemplateId>,
}

/// A change of the counts of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    pub organization_id: OrganizationId,
    pub hour: Timestamp,
    pub dimensions: Dimensions,
    /// Added to the counts; may be negative.
    pub counts: EventCounts,
}

/// A bucket of a series.
#[derive(Debug, Clone, Copy)]
pub struct SeriesBucket {
    /// Its beginning, in UTC.
    pub start: NaiveDateTime,
    pub counts: EventCounts,
}

/// A row of a breakdown.
#[derive(Debug, Clone)]
pub struct BreakdownRow {
    pub name: String,
    pub counts: EventCounts,
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
        let period = Period::new(at("2026-03-01T10:30:00Z"), at("2026-03-01T12:00:00Z"));
        let period = period.expect("in order");
        assert_eq!(period.first_hour(), at("2026-03-01T10:00:00Z"));
        assert_eq!(period.end_hour(), at("2026-03-01T12:00:00Z"));
        assert_eq!(Granularity::Hour.buckets(period), 2);
        let a_little_longer = Period::new(period.from(), period.to() + TimeDelta::microseconds(1));
        let a_little_longer = a_little_longer.expect("in order");
        assert_eq!(Granularity::Hour.buckets(a_little_longer), 3);
        assert!(Period::new(period.to(), period.from()).is_none());
    }

    #[test]
    fn whole_days_of_a_period_are_utc_days() {
        let whole_days = |from: &str, to: &str| {
            let period = Period::new(at(from), at(to)).expect("in order");
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
    fn buckets_are_counted_across_weeks_months_and_years() {
        // A Sunday and the Monday after it.
        let period = Period::new(at("2026-11-29T23:00:00Z"), at("2026-11-30T01:00:00Z"));
        let period = period.expect("in order");
        let buckets = Granularity::ALL.map(|granularity| granularity.buckets(period));
        assert_eq!(buckets, [2, 2, 2, 1]);
        let period = Period::new(at("2025-12-31T00:00:00Z"), at("2026-01-02T00:00:00Z"));
        let period = period.expect("in order");
        let buckets = Granularity::ALL.map(|granularity| granularity.buckets(period));
        assert_eq!(buckets, [48, 2, 1, 2]);
        let nothing = Period::new(period.from(), period.from()).expect("in order");
        assert_eq!(Granularity::Day.buckets(nothing), 0);
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
