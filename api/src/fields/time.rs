//! Times and days in requests.

use chrono::{
    DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound as _, TimeDelta,
};
use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;

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

/// Parses a time in any of these forms. A time without an offset is UTC.
fn read_moment(text: &str) -> Option<Timestamp> {
    let rfc = || DateTime::parse_from_rfc3339(text).ok();
    let with_offset = || {
        let read = |form| DateTime::parse_from_str(text, &format!("{form}%#z")).ok();
        TIMES.into_iter().find_map(read)
    };
    let without = || {
        let read = |form| NaiveDateTime::parse_from_str(text, form).ok();
        TIMES.into_iter().find_map(read)
    };
    let day = || Some(read_day(text)?.and_time(NaiveTime::MIN));
    let moment = rfc().or_else(with_offset).map(|moment| moment.to_utc());
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
