//! How moments and days are read from requests.

use chrono::{
    DateTime, Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, SubsecRound as _, TimeDelta,
};
use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;

use crate::fields::{schema, string};
use crate::validate::{Field, problem};

/// Days and times of ISO 8601 that RFC 3339 does not have: the basic form and the reduced
/// one, without seconds.
const DAYS: [&str; 2] = ["%Y-%m-%d", "%Y%m%d"];
const TIMES: [&str; 4] = [
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y%m%dT%H%M%S%.f",
    "%Y%m%dT%H%M",
];

/// A moment in any of these forms; without an offset it is UTC.
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

/// The end of a period: a moment, or a day, which is its last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End(pub(crate) Timestamp);

impl Field for End {
    fn schema() -> MetaSchemaRef {
        Moment::schema()
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let day = value.as_str().and_then(read_day);
        let Moment(moment) = Moment::read(value)?;
        // Its last microsecond: Postgres keeps no less.
        let last = TimeDelta::days(1) - TimeDelta::microseconds(1);
        Ok(Self(day.map_or(moment, |_| moment + last)))
    }
}

/// A moment: ISO 8601 with its offset from UTC (RFC 3339).
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
            // What lies beyond cannot be written in the form that answers have.
            Some(moment) if !(0..=9_999).contains(&moment.year()) => {
                problem("must lie in the years 0000 to 9999 of UTC")
            }
            Some(moment) => Ok(Self(moment.trunc_subsecs(6))),
            None => problem("must be a time such as 2026-11-20T12:00:00Z, or a day"),
        }
    }
}
