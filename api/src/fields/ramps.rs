//! The ramps of targets in requests, and the bounds that they mind.

use chrono::NaiveDate;
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type as _;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::routing::ramp::{EVERY_DAYS_MAX, FACTOR_MAX, FACTOR_MIN, Ramp, RampBoundsChange};
use waypost_core::routing::targets::CAP_MAX;

use crate::fields::{Whole, object, schema, string};
use crate::validate::{Field, Validated, problem};

/// How the daily cap of a target grows, so that mailbox providers get to know a new account.
#[derive(Debug, Object)]
#[oai(rename = "NewRoutingRamp", rename_all = "camelCase")]
struct RampObject {
    /// The most recipients of the first day.
    start: Validated<Whole<1, CAP_MAX>>,
    /// What each step multiplies the cap by, 1.01 to 10.
    factor: Validated<Factor>,
    /// The days from one step to the next, 1 to 30.
    every_days: Validated<Whole<1, EVERY_DAYS_MAX>>,
    /// The first day, in UTC; before it the target gets nothing. A ramp whose first day is over
    /// begins where it would be now. The default is the day that the same ramp of the account has,
    /// or today.
    from: Validated<Option<Day>>,
}

impl Field for Ramp {
    fn schema() -> MetaSchemaRef {
        RampObject::schema_ref()
    }

    fn register(registry: &mut Registry) {
        RampObject::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let object = object::<RampObject>(value)?;
        let mut issues = Vec::new();
        let start = object.start.take("start", &mut issues);
        let factor = object.factor.take("factor", &mut issues);
        let every_days = object.every_days.take("everyDays", &mut issues);
        let from = object.from.take("from", &mut issues);
        match (start, factor, every_days, from) {
            (Some(start), Some(factor), Some(every_days), Some(from)) => Ok(Self {
                start: start.0,
                factor: factor.0,
                every_days: every_days.0,
                from: from.map(|day| day.0),
            }),
            _ => Err(issues),
        }
    }
}

/// The bounds of the rates of an account, beyond which the ramps of a rule do not grow.
#[derive(Debug, Object)]
#[oai(rename = "NewRoutingRampBounds", rename_all = "camelCase")]
struct RampBoundsObject {
    /// The most bounces, as a part of the sent mails. The default is 0.05.
    bounce_rate: Validated<Option<Fraction>>,
    /// The most complaints, as a part of the delivered mails. The default is 0.001.
    complaint_rate: Validated<Option<Fraction>>,
}

impl Field for RampBoundsChange {
    fn schema() -> MetaSchemaRef {
        RampBoundsObject::schema_ref()
    }

    fn register(registry: &mut Registry) {
        RampBoundsObject::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let object = object::<RampBoundsObject>(value)?;
        let mut issues = Vec::new();
        let bounces = object.bounce_rate.take("bounceRate", &mut issues);
        let complaints = object.complaint_rate.take("complaintRate", &mut issues);
        if issues.is_empty() {
            Ok(Self {
                bounce_rate: bounces.flatten().map(|part| part.0),
                complaint_rate: complaints.flatten().map(|part| part.0),
            })
        } else {
            Err(issues)
        }
    }
}

/// What a step multiplies a cap by.
#[derive(Debug)]
struct Factor(f64);

impl Field for Factor {
    fn schema() -> MetaSchemaRef {
        schema("number", |schema| {
            schema.format = Some("double");
            schema.minimum = Some(FACTOR_MIN);
            schema.maximum = Some(FACTOR_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let factor = value.as_f64();
        match factor.filter(|factor| (FACTOR_MIN..=FACTOR_MAX).contains(factor)) {
            Some(factor) => Ok(Self(factor)),
            None => problem(format!(
                "must be a number from {FACTOR_MIN} to {FACTOR_MAX}"
            )),
        }
    }
}

/// A part of a whole, above 0 and up to 1.
#[derive(Debug)]
struct Fraction(f64);

impl Field for Fraction {
    fn schema() -> MetaSchemaRef {
        schema("number", |schema| {
            schema.format = Some("double");
            schema.minimum = Some(0.0);
            schema.exclusive_minimum = Some(true);
            schema.maximum = Some(1.0);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let part = value.as_f64();
        match part.filter(|part| *part > 0.0 && *part <= 1.0) {
            Some(part) => Ok(Self(part)),
            None => problem("must be a number above 0 and up to 1"),
        }
    }
}

/// A day of UTC.
#[derive(Debug)]
struct Day(NaiveDate);

impl Field for Day {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("date");
            schema.example = Some(Value::from("2026-11-28"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        let day = NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok();
        // Four digits of the year, two of month and day.
        match day.filter(|day| day.to_string() == text) {
            Some(day) => Ok(Self(day)),
            None => problem("must be a date such as 2026-11-28"),
        }
    }
}
