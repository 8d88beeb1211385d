//! Metrics: how many copies were sent, delivered, opened … in which hour, by
//! provider, sender domain and template.
//!
//! Every event that counts leaves a *delta* in its own transaction: a trigger on
//! `events` writes it, so nothing that records events can forget to, unless who records
//! it has counted it and says so, which spares Postgres a look for each. The scheduler
//! folds deltas into hourly *roll-ups*, one per dimension, and but for the totals into
//! daily ones too, which breakdowns read where they can. A query reads the
//! roll-ups and the deltas that are left in one snapshot, so it is exact at any
//! moment, and how often the folding runs changes only how long it takes.
//!
//! All three questions count whole hours: those that the period touches. That is
//! why their sums agree.

pub mod store;

use chrono::{Datelike as _, NaiveDateTime, TimeDelta};

use crate::clock::Timestamp;
use crate::ids::{OrganizationId, ProviderAccountId, TemplateId};

/// How far back a question reaches that does not say.
pub const PERIOD_DEFAULT: TimeDelta = TimeDelta::days(30);
/// The most buckets of one series.
pub const BUCKETS_MAX: i64 = 10_000;

/// From when until when; not the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from: Timestamp,
    to: Timestamp,
}

impl Period {
    /// The time from `from` until just before `to`; nothing where `from` is after
    /// `to`.
    #[must_use]
    pub fn new(from: Timestamp, to: Timestamp) -> Option<Self> {
        (from <= to).then_some(Self { from, to })
    }

    /// When it begins.
    #[must_use]
    pub fn from(self) -> Timestamp {
        self.from
    }

    /// When it ends.
    #[must_use]
    pub fn to(self) -> Timestamp {
        self.to
    }

    /// The first hour that it touches.
    fn first_hour(self) -> Timestamp {
        start_of_hour(self.from)
    }

    /// The end of the last hour that it touches.
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

    /// When the days begin and end, in UTC, that lie whole in its hours; both are its end
    /// where there are none.
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

/// When the hour of a moment begins.
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

/// How long a bucket of a series is. Buckets are those of UTC; a week begins on
/// Monday.
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

    /// The wire name; also what Postgres calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// How many buckets a period has.
    #[must_use]
    pub fn buckets(self, period: Period) -> i64 {
        if period.is_empty() {
            return 0;
        }
        let last = period.end_hour() - TimeDelta::hours(1);
        self.number(last) - self.number(period.first_hour()) + 1
    }

    /// Numbers the buckets of all time.
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

/// What a breakdown is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The provider that the copy went through.
    Provider,
    Domain,
    /// The template that the message was rendered from.
    Template,
}

impl GroupBy {
    /// All of them, in the order of the contract.
    pub const ALL: [Self; 3] = [Self::Provider, Self::Domain, Self::Template];

    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Domain => "domain",
            Self::Template => "template",
        }
    }
}

/// How much happened. `sent` counts copies, one per recipient; opens and clicks
/// count each recipient once per message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    pub sent: i64,
    pub delivered: i64,
    /// Opened for the first time.
    pub opened: i64,
    /// A link was followed for the first time.
    pub clicked: i64,
    pub bounced: i64,
    pub complained: i64,
    pub unsubscribed: i64,
}

/// What a copy counts under, besides its organization and the hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dimensions {
    /// The account that it went through, or is to.
    pub account_id: ProviderAccountId,
    /// The domain that it was sent from.
    pub domain: String,
    /// What it was made from.
    pub template_id: Option<TemplateId>,
}

/// What events add to what happened in an hour, where who records them counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Whose mail it was about.
    pub organization_id: OrganizationId,
    pub hour: Timestamp,
    pub dimensions: Dimensions,
    /// What is added, or taken away.
    pub counts: EventCounts,
}

/// A bucket of a series.
#[derive(Debug, Clone, Copy)]
pub struct SeriesBucket {
    /// When it begins, in UTC.
    pub start: NaiveDateTime,
    pub counts: EventCounts,
}

/// A line of a breakdown.
#[derive(Debug, Clone)]
pub struct BreakdownRow {
    pub name: String,
    pub counts: EventCounts,
}

/// `part` of `whole`, to four decimals; 0 where there is no whole.
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
    fn the_days_that_a_period_holds_whole_are_those_of_utc() {
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
    fn buckets_are_counted_over_the_ends_of_weeks_months_and_years() {
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
    fn rates_have_four_decimals_and_need_no_whole() {
        assert_eq!(rate(1, 3).to_string(), "0.3333");
        assert_eq!(rate(2, 3).to_string(), "0.6667");
        assert_eq!(rate(7, 7).to_string(), "1");
        assert_eq!(rate(0, 0).to_string(), "0");
        assert_eq!(rate(5, 0).to_string(), "0");
        assert_eq!(
            rate(3, 2).to_string(),
            "1",
            "what was sent before the period"
        );
    }
}
