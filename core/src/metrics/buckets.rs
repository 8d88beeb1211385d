//! Hours, days, weeks and months of a time zone, and local times.

use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Offset as _,
    TimeDelta, TimeZone as _,
};
use chrono_tz::Tz;

use super::{Granularity, Period};
use crate::clock::Timestamp;

/// Maximum number of buckets in a series.
pub const BUCKETS_MAX: usize = 10_000;

/// The quarters of an hour in the longest time that a time zone has left out: a day.
const GAP_QUARTERS_MAX: i32 = 4 * 25;

/// The moment of a local time. Of two, as when clocks are put back, it is the first. A time that
/// is left out, as when they are put forward, is the end of the gap.
#[must_use]
pub fn moment(local: NaiveDateTime, zone: Tz) -> Timestamp {
    let found = (0..GAP_QUARTERS_MAX).find_map(|quarters| {
        let later = local + TimeDelta::minutes(15) * quarters;
        zone.from_local_datetime(&later).earliest()
    });
    found.map_or_else(|| local.and_utc(), |found| found.to_utc())
}

/// The first moment of a day.
#[must_use]
pub fn start_of_day(day: NaiveDate, zone: Tz) -> Timestamp {
    moment(day.and_time(NaiveTime::MIN), zone)
}

/// The beginning of the hour that contains a time.
#[must_use]
pub fn start_of_hour(at: Timestamp, zone: Tz) -> Timestamp {
    let offset = zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let local = at.timestamp() + i64::from(offset.local_minus_utc());
    let start = at.timestamp() - local.rem_euclid(3_600);
    DateTime::from_timestamp(start, 0).unwrap_or(at)
}

/// The beginnings of the buckets of a period, in order; the first may be before the period.
///
/// # Errors
/// About how many there are, if there are more than [`BUCKETS_MAX`].
pub fn starts(period: Period, granularity: Granularity) -> Result<Vec<Timestamp>, i64> {
    let mut starts = Vec::new();
    if period.is_empty() {
        return Ok(starts);
    }
    let (zone, end) = (period.zone, period.end_hour());
    let mut at = period.first_hour();
    let mut bucket = day_of_bucket(at, granularity, zone);
    let mut start = match granularity {
        Granularity::Hour => at,
        Granularity::Day | Granularity::Week | Granularity::Month => start_of_day(bucket, zone),
    };
    while start < end {
        if starts.len() == BUCKETS_MAX {
            return Err(estimate(period, granularity));
        }
        // Days that a time zone left out have no bucket.
        if starts.last().is_none_or(|last| *last < start) {
            starts.push(start);
        }
        match granularity {
            Granularity::Hour => {
                at += TimeDelta::hours(1);
                start = start_of_hour(at, zone);
            }
            Granularity::Day => bucket = bucket + Days::new(1),
            Granularity::Week => bucket = bucket + Days::new(7),
            Granularity::Month => bucket = bucket + Months::new(1),
        }
        if granularity != Granularity::Hour {
            start = start_of_day(bucket, zone);
        }
    }
    Ok(starts)
}

/// The first day of the bucket that contains a time.
fn day_of_bucket(at: Timestamp, granularity: Granularity, zone: Tz) -> NaiveDate {
    let day = at.with_timezone(&zone).date_naive();
    match granularity {
        Granularity::Hour | Granularity::Day => day,
        Granularity::Week => day - Days::new(u64::from(day.weekday().num_days_from_monday())),
        Granularity::Month => day.with_day(1).unwrap_or(day),
    }
}

/// The number of buckets, counted without their beginnings.
fn estimate(period: Period, granularity: Granularity) -> i64 {
    let hours = (period.end_hour() - period.first_hour()).num_hours();
    let day = |at: Timestamp| at.with_timezone(&period.zone).date_naive();
    let last = day(period.end_hour() - TimeDelta::hours(1));
    let first = day(period.first_hour());
    // Day 1 of this count is 0001-01-01, a Monday.
    let days = |day: NaiveDate| i64::from(day.num_days_from_ce()) - 1;
    let months = |day: NaiveDate| i64::from(day.year()) * 12 + i64::from(day.month0());
    match granularity {
        Granularity::Hour => hours,
        Granularity::Day => days(last) - days(first) + 1,
        Granularity::Week => days(last).div_euclid(7) - days(first).div_euclid(7) + 1,
        Granularity::Month => months(last) - months(first) + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a constant time")
    }

    fn period(from: &str, to: &str, zone: Tz) -> Period {
        Period::new(at(from), at(to), zone).expect("in order")
    }

    /// The local beginnings of the buckets.
    fn local(period: Period, granularity: Granularity) -> Vec<String> {
        let starts = starts(period, granularity).expect("few");
        let local = starts.iter().map(|start| {
            let start = start.with_timezone(&period.zone);
            start.format("%Y-%m-%d %H:%M").to_string()
        });
        local.collect()
    }

    #[test]
    fn buckets_of_utc_cross_weeks_months_and_years() {
        let count = |from, to| {
            let period = period(from, to, Tz::UTC);
            Granularity::ALL.map(|granularity| starts(period, granularity).expect("few").len())
        };
        // A Sunday and the Monday after it.
        let monday = count("2026-11-29T23:00:00Z", "2026-11-30T01:00:00Z");
        assert_eq!(monday, [2, 2, 2, 1]);
        let year = count("2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(year, [48, 2, 1, 2]);
        let nothing = count("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(nothing, [0, 0, 0, 0]);
    }

    #[test]
    fn a_series_has_a_bounded_number_of_buckets() {
        let year = |to| period("2026-01-01T00:00:00Z", to, Tz::UTC);
        let few = starts(year("2027-02-21T16:00:00Z"), Granularity::Hour);
        assert_eq!(few.expect("few").len(), BUCKETS_MAX);
        let many = starts(year("2027-02-21T17:00:00Z"), Granularity::Hour);
        assert_eq!(many, Err(10_001));
        let ages = period("0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", Tz::UTC);
        assert_eq!(starts(ages, Granularity::Month), Err(120_000));
        assert_eq!(starts(ages, Granularity::Week), Err(521_776));
        assert_eq!(starts(ages, Granularity::Day), Err(3_652_425));
        assert_eq!(starts(ages, Granularity::Hour), Err(87_658_200));
    }

    #[test]
    fn days_begin_when_they_begin_there() {
        let days = |from, to, zone| local(period(from, to, zone), Granularity::Day);
        // Summer time begins on the second day and ends on the 25th of October.
        let berlin = days(
            "2026-03-27T23:00:00Z",
            "2026-03-29T22:00:00Z",
            Tz::Europe__Berlin,
        );
        assert_eq!(berlin, ["2026-03-28 00:00", "2026-03-29 00:00"]);
        let kolkata = days(
            "2026-03-01T18:30:00Z",
            "2026-03-02T18:31:00Z",
            Tz::Asia__Kolkata,
        );
        assert_eq!(kolkata, ["2026-03-02 00:00", "2026-03-03 00:00"]);
        // Clocks go forward at midnight.
        let cairo = days(
            "2026-04-22T22:00:00Z",
            "2026-04-24T00:00:00Z",
            Tz::Africa__Cairo,
        );
        assert_eq!(cairo, ["2026-04-23 00:00", "2026-04-24 01:00"]);
        // The 30th of December 2011 was left out.
        let apia = days(
            "2011-12-29T12:00:00Z",
            "2011-12-31T12:00:00Z",
            Tz::Pacific__Apia,
        );
        assert_eq!(
            apia,
            ["2011-12-29 00:00", "2011-12-31 00:00", "2012-01-01 00:00"]
        );
    }

    #[test]
    fn hours_of_a_change_of_clocks_are_all_there_once() {
        let hours = |from, to, zone| local(period(from, to, zone), Granularity::Hour);
        let forward = hours(
            "2026-03-29T00:00:00Z",
            "2026-03-29T02:00:00Z",
            Tz::Europe__Berlin,
        );
        assert_eq!(forward, ["2026-03-29 01:00", "2026-03-29 03:00"]);
        let back = hours(
            "2026-10-25T00:00:00Z",
            "2026-10-25T02:00:00Z",
            Tz::Europe__Berlin,
        );
        assert_eq!(back, ["2026-10-25 02:00", "2026-10-25 02:00"]);
        let nepal = hours(
            "2026-03-01T00:20:00Z",
            "2026-03-01T01:15:00Z",
            Tz::Asia__Kathmandu,
        );
        assert_eq!(nepal, ["2026-03-01 06:00"]);
        // By half an hour.
        for day in ["2026-04-04", "2026-10-03"] {
            let (from, to) = (format!("{day}T12:00:00Z"), format!("{day}T18:00:00Z"));
            let period = period(&from, &to, Tz::Australia__Lord_Howe);
            let starts = starts(period, Granularity::Hour).expect("few");
            assert!(
                starts.is_sorted_by(|before, after| before < after),
                "{starts:?}"
            );
            assert!((6..=7).contains(&starts.len()), "{starts:?}");
        }
    }

    #[test]
    fn a_local_time_is_one_moment() {
        let moment = |text: &str, zone| moment(text.parse().expect("a local time"), zone);
        let berlin = |text| moment(text, Tz::Europe__Berlin);
        assert_eq!(berlin("2026-07-01T12:00:00"), at("2026-07-01T10:00:00Z"));
        assert_eq!(berlin("2026-10-25T02:30:00"), at("2026-10-25T00:30:00Z"));
        assert_eq!(berlin("2026-03-29T02:30:00"), at("2026-03-29T01:00:00Z"));
        let apia = moment("2011-12-30T09:00:00", Tz::Pacific__Apia);
        assert_eq!(apia, at("2011-12-30T10:00:00Z"));
    }
}
