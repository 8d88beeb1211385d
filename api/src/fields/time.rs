//! Times and days in requests.

use chrono::{
    DateTime, Datelike as _, Days, FixedOffset, Months, NaiveDate, NaiveDateTime, NaiveTime,
    SubsecRound as _, TimeDelta, Timelike as _,
};
use chrono_tz::Tz;
use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::acceptance::draft::SCHEDULE_MONTHS_MAX;
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;
use waypost_core::metrics::buckets;

use crate::fields::{schema, string};
use crate::validate::{Field, problem};

/// The ISO 8601 forms that RFC 3339 lacks: the basic form, and times without seconds.
const DAYS: [&str; 2] = ["%Y-%m-%d", "%Y%m%d"];
const TIMES: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y%m%dT%H%M%S%.f",
    "%Y%m%dT%H%M",
];

/// Parses a time with an offset in any of these forms.
fn read_with_offset(text: &str) -> Option<DateTime<FixedOffset>> {
    let rfc = || DateTime::parse_from_rfc3339(text).ok();
    let others = || {
        let read = |form| DateTime::parse_from_str(text, &format!("{form}%#z")).ok();
        TIMES.into_iter().find_map(read)
    };
    rfc().or_else(others)
}

/// Parses a time in any of these forms. A time without an offset is UTC.
pub(super) fn read_moment(text: &str) -> Option<Timestamp> {
    let without = || {
        let read = |form| NaiveDateTime::parse_from_str(text, form).ok();
        TIMES.into_iter().find_map(read)
    };
    let day = || Some(read_day(text)?.and_time(NaiveTime::MIN));
    let moment = read_with_offset(text).map(|moment| moment.to_utc());
    moment.or_else(|| Some(without().or_else(day)?.and_utc()))
}

fn read_day(text: &str) -> Option<NaiveDate> {
    let read = |form| NaiveDate::parse_from_str(text, form).ok();
    DAYS.into_iter().find_map(read)
}

/// The end of a period: a time, or a day, which is included whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End(pub(crate) Timestamp);

impl Field for End {
    fn schema() -> MetaSchemaRef {
        Moment::schema()
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let day = value.as_str().and_then(read_day);
        let Moment(moment) = Moment::read(value)?;
        // The last microsecond of the day, which is the precision of Postgres.
        let last = TimeDelta::days(1) - TimeDelta::microseconds(1);
        Ok(Self(day.map_or(moment, |_| moment + last)))
    }
}

/// A point in time, or a local time or day of a time zone that is named beside it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ZonedTime {
    Moment(Timestamp),
    Local(NaiveDateTime),
    Day(NaiveDate),
}

impl ZonedTime {
    /// The beginning of a period that begins with it.
    pub(crate) fn start(self, zone: Tz) -> Timestamp {
        match self {
            Self::Moment(moment) => moment,
            Self::Local(local) => buckets::moment(local, zone),
            Self::Day(day) => buckets::start_of_day(day, zone),
        }
    }

    /// The end of a period that ends with it: a day is included whole.
    pub(crate) fn end(self, zone: Tz) -> Timestamp {
        match self {
            Self::Moment(_) | Self::Local(_) => self.start(zone),
            // The last microsecond of the day, which is the precision of Postgres.
            Self::Day(day) => {
                buckets::start_of_day(day + Days::new(1), zone) - TimeDelta::microseconds(1)
            }
        }
    }
}

impl Field for ZonedTime {
    fn schema() -> MetaSchemaRef {
        Moment::schema()
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        let Moment(moment) = Moment::read(Value::from(text.as_str()))?;
        if read_with_offset(&text).is_some() {
            return Ok(Self::Moment(moment));
        }
        Ok(match read_day(&text) {
            Some(day) => Self::Day(day),
            None => Self::Local(moment.naive_utc()),
        })
    }
}

/// A time zone, by its name in the IANA database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeZoneName(pub(crate) Tz);

impl Field for TimeZoneName {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(64);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match string(value)?.parse() {
            Ok(zone) => Ok(Self(zone)),
            Err(_) => {
                problem("must be a name of the IANA time zone database, such as Europe/Berlin")
            }
        }
    }
}

/// A point in time: ISO 8601 with its offset from UTC (RFC 3339).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Field for Moment {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("date-time");
            schema.example = Some(Value::from("2036-11-20T12:00:00.000Z"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        match read_moment(&text) {
            // Other years cannot be written in the format of responses.
            Some(moment) if !(0..=9_999).contains(&moment.year()) => {
                problem("must be between the years 0000 and 9999 in UTC")
            }
            Some(moment) => Ok(Self(moment.trunc_subsecs(6))),
            None => {
                problem("must be a time such as 2026-11-20T12:00:00Z, or a day such as 2026-11-20")
            }
        }
    }
}

/// A time to come: ISO 8601, with an offset from UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FutureTime(pub(crate) Timestamp);

impl FutureTime {
    /// The time, if it is at most a year ahead. It may be past: acceptance decides about that
    /// ([`waypost_core::acceptance::draft::past_times`]).
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn within_a_year(self, now: Timestamp) -> Result<Timestamp, &'static str> {
        let last = now.checked_add_months(Months::new(SCHEDULE_MONTHS_MAX));
        match last {
            Some(last) if self.0 > last => Err("must not be more than a year ahead"),
            Some(_) | None => Ok(self.0),
        }
    }

    /// The time, if it is after `now` and at most a year ahead.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub(crate) fn after(self, now: Timestamp) -> Result<Timestamp, &'static str> {
        if self.0 <= now {
            return Err("must be in the future");
        }
        self.within_a_year(now)
    }
}

impl Field for FutureTime {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("date-time");
            schema.example = Some(Value::from("2036-11-20T12:00:00+01:00"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        match read_with_offset(&text) {
            // chrono counts a leap second as more than 999,999,999 ns.
            Some(time) if time.nanosecond() > 999_999_999 => {
                problem("must not be a leap second, which Waypost's clock does not have")
            }
            Some(time) => Ok(Self(time.to_utc().trunc_subsecs(6))),
            None if read_moment(&text).is_some() => {
                problem("must be a time with its offset from UTC, such as Z or +02:00")
            }
            None => problem("must be a time such as 2026-11-20T12:00:00Z"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let time = FutureTime::read(Value::from(text));
        time.map(|time| time.0.to_rfc3339())
            .map_err(|issues| issues[0].message.clone())
    }

    #[test]
    fn a_time_to_come_has_an_offset() {
        for text in [
            "2036-11-20T12:00:00Z",
            "2036-11-20T13:00:00+01:00",
            "2036-11-20t12:00:00.0000009z",
            "2036-11-20T17:45+05:45",
            "20361120T120000Z",
        ] {
            assert_eq!(
                read(text).as_deref(),
                Ok("2036-11-20T12:00:00+00:00"),
                "{text}"
            );
        }
        for text in ["2036-11-20T12:00:00", "2036-11-20", "20361120T1200"] {
            assert!(read(text).unwrap_err().contains("offset"), "{text}");
        }
        for text in ["", "now", "1795867200", "2036-02-30T12:00:00Z", "in 2 days"] {
            assert!(read(text).unwrap_err().contains("a time such as"), "{text}");
        }
        let leap = read("2036-12-31T23:59:60Z");
        assert!(leap.unwrap_err().contains("leap second"));
    }

    #[test]
    fn it_is_at_most_a_year_ahead() {
        let now = read_moment("2036-11-20T12:00:00Z").unwrap();
        let read = |text: &str| FutureTime(read_moment(text).unwrap()).within_a_year(now);
        assert!(read("2037-11-20T12:00:00Z").is_ok());
        assert!(read("2037-11-20T12:00:00.000001Z").is_err());
        assert!(read("9999-12-31T23:59:59Z").is_err());
    }
}
