//! Domain types as request fields: for each type its schema in the document and its parser.
//! The rules themselves belong to the domain types.

pub(crate) mod attachments;
pub(crate) mod content;
pub(crate) mod headers;
pub(crate) mod mailbox_providers;
pub(crate) mod message_filter;
pub(crate) mod people;
pub(crate) mod provider;
mod ramps;
pub(crate) mod recipients;
pub(crate) mod suppression_csv;
pub(crate) mod targets;
pub(crate) mod time;

use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use poem_openapi::types::ParseFromJSON;
use serde_json::Value;
use uuid::Uuid;
use waypost_core::acceptance::draft::DeliveryMode;
use waypost_core::auth::{Permission, Role};
use waypost_core::ids::UnsubscribeGroupId;
use waypost_core::issue::Issue;
use waypost_core::message::{MessageStatus, SimulatedOutcome};
use waypost_core::metrics::{Granularity, GroupBy};
use waypost_core::organization::UnverifiedDomains;
use waypost_core::page::PageRequest;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::region::AccountRegion;
use waypost_core::provider_account::health::domains::HealthWindow;
use waypost_core::routing::conditions::MessageClass;
use waypost_core::routing::mailbox_provider::MailboxProvider;
use waypost_core::routing::rule::{OnUnknown, TagMatch};
use waypost_core::routing::simulation::SimulationPeriod;
use waypost_core::routing::target_health::Prefer;
use waypost_core::routing::targets::{OverCap, Sticky};
use waypost_core::suppression::SuppressionSource;
use waypost_core::template::TemplateType;
use waypost_core::text::locale::Locale;
use waypost_core::text::{Description, Name, Subject, Tag};
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_core::webhook::status::DeliveryStatus;

use crate::public::language::Language;
use crate::validate::{Field, problem};

/// The name of a JSON value's type, for error messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(crate) fn string(value: Value) -> Result<String, Vec<Issue>> {
    let Value::String(text) = value else {
        return problem(format!("must be a string, not {}", kind_of(&value)));
    };
    Ok(text)
}

pub(crate) fn schema(ty: &'static str, configure: impl FnOnce(&mut MetaSchema)) -> MetaSchemaRef {
    let mut schema = MetaSchema::new(ty);
    configure(&mut schema);
    MetaSchemaRef::Inline(Box::new(schema))
}

/// The items of an array. The error message says "array of strings"; the items are not
/// checked yet.
pub(crate) fn list_of_strings(value: Value) -> Result<Vec<Value>, Vec<Issue>> {
    list_of(value, "strings")
}

/// The items of an array of objects, which are not checked yet.
pub(crate) fn list_of_objects(value: Value) -> Result<Vec<Value>, Vec<Issue>> {
    list_of(value, "objects")
}

fn list_of(value: Value, what: &str) -> Result<Vec<Value>, Vec<Issue>> {
    let Value::Array(items) = value else {
        let kind = kind_of(&value);
        return problem(format!("must be an array of {what}, not {kind}"));
    };
    Ok(items)
}

/// Parses an object whose fields are [`Validated`](crate::validate::Validated).
pub(crate) fn object<T: ParseFromJSON>(value: Value) -> Result<T, Vec<Issue>> {
    if !value.is_object() {
        return problem(format!("must be an object, not {}", kind_of(&value)));
    }
    T::parse_from_json(Some(value)).or_else(|error| problem(error.into_message()))
}

/// Parses every item of a list of `min` (0 or 1) to `max` items. All mistakes in the number of
/// items and in the items are reported together, up to the number that a response shows.
pub(crate) fn list<T: Field>(
    items: Vec<Value>,
    min: usize,
    max: usize,
    what: &str,
) -> Result<Vec<T>, Vec<Issue>> {
    let mut issues = Vec::new();
    let count = items.len();
    if count < min {
        issues.push(Issue::new("", "must not be empty"));
    }
    if count > max {
        let message = format!("must not have more than {max} {what}; there are {count}");
        issues.push(Issue::new("", message));
    }
    let mut values = Vec::with_capacity(count.min(max));
    for (index, item) in items.into_iter().enumerate() {
        if issues.len() > Issue::SHOWN_MAX {
            break;
        }
        match T::read(item) {
            Ok(value) => values.push(value),
            Err(found) => {
                let found = found.into_iter();
                issues.extend(found.map(|issue| issue.under(&index.to_string())));
            }
        }
    }
    if issues.is_empty() {
        Ok(values)
    } else {
        Err(issues)
    }
}

macro_rules! one_line_fields {
    ($($name:ident: $example:literal),+ $(,)?) => {$(
        impl Field for $name {
            fn schema() -> MetaSchemaRef {
                schema("string", |schema| {
                    schema.min_length = Some(1);
                    schema.max_length = Some($name::CHARS_MAX);
                    schema.example = Some(Value::from($example));
                })
            }

            fn read(value: Value) -> Result<Self, Vec<Issue>> {
                let text = string(value)?;
                $name::parse(text).or_else(|error| problem(error.to_string()))
            }
        }
    )+};
}

one_line_fields! {
    Subject: "Your receipt",
    Tag: "receipts",
    Name: "Main account",
}

macro_rules! enum_fields {
    ($($name:ty),+ $(,)?) => {$(
        impl Field for $name {
            fn schema() -> MetaSchemaRef {
                schema("string", |schema| {
                    let values = Self::ALL.iter().map(|value| Value::from(value.as_str()));
                    schema.enum_items = values.collect();
                })
            }

            fn read(value: Value) -> Result<Self, Vec<Issue>> {
                let text = string(value)?;
                let mut values = Self::ALL.iter().copied();
                match values.find(|value| value.as_str() == text) {
                    Some(value) => Ok(value),
                    None => {
                        let values: Vec<&str> = Self::ALL.iter().map(|value| value.as_str()).collect();
                        problem(format!("must be one of {}", values.join(", ")))
                    }
                }
            }
        }
    )+};
}

enum_fields! {
    AccountRegion,
    DeliveryMode,
    DeliveryStatus,
    Granularity,
    GroupBy,
    HealthWindow,
    Language,
    MailboxProvider,
    MessageClass,
    MessageStatus,
    OnUnknown,
    OverCap,
    Permission,
    Prefer,
    ProviderType,
    Role,
    SimulatedOutcome,
    SimulationPeriod,
    Sticky,
    SuppressionSource,
    TagMatch,
    TemplateType,
    UnverifiedDomains,
    WebhookEventType,
}

impl Field for bool {
    fn schema() -> MetaSchemaRef {
        schema("boolean", |_| {})
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Bool(flag) = value else {
            return problem(format!("must be true or false, not {}", kind_of(&value)));
        };
        Ok(flag)
    }

    fn read_parameter(text: &str) -> Result<Self, Vec<Issue>> {
        text.parse().or_else(|_| problem("must be true or false"))
    }
}

impl Field for Description {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.max_length = Some(Self::CHARS_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Self::parse(string(value)?).or_else(|error| problem(error.to_string()))
    }
}

impl Field for Locale {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(2);
            schema.max_length = Some(Self::CHARS_MAX);
            schema.example = Some(Value::from("de-AT"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Self::parse(&string(value)?).or_else(|error| problem(error.to_string()))
    }
}

impl Field for UnsubscribeGroupId {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| schema.format = Some("uuid"))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let id = string(value)?.parse();
        id.or_else(|_| problem("must be a UUID"))
    }
}

/// A search text.
#[derive(Debug)]
pub(crate) struct SearchText(pub(crate) String);

impl Field for SearchText {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.max_length = Some(Subject::CHARS_MAX)
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        if text.contains('\0') {
            return problem("must not contain NUL characters");
        }
        if text.chars().count() > Subject::CHARS_MAX {
            return problem("must not be longer than 998 characters");
        }
        Ok(Self(text))
    }
}

/// A page number, from 1.
#[derive(Debug)]
pub(crate) struct PageNumber(pub(crate) u32);

impl Field for PageNumber {
    fn schema() -> MetaSchemaRef {
        integer(1, PageRequest::PAGE_MAX, 1)
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        whole_number(&value, PageRequest::PAGE_MAX).map(Self)
    }
}

/// The number of items per page.
#[derive(Debug)]
pub(crate) struct PageLimit(pub(crate) u32);

impl Field for PageLimit {
    fn schema() -> MetaSchemaRef {
        integer(1, PageRequest::LIMIT_MAX, PageRequest::LIMIT_DEFAULT)
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        whole_number(&value, PageRequest::LIMIT_MAX).map(Self)
    }
}

fn integer(minimum: u32, maximum: u32, default: u32) -> MetaSchemaRef {
    schema("integer", |schema| {
        schema.format = Some("int32");
        schema.minimum = Some(f64::from(minimum));
        schema.maximum = Some(f64::from(maximum));
        schema.default = Some(Value::from(default));
    })
}

/// A whole number from `MIN` to `MAX` in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<const MIN: u32, const MAX: u32>(pub(crate) u32);

impl<const MIN: u32, const MAX: u32> Field for Whole<MIN, MAX> {
    fn schema() -> MetaSchemaRef {
        schema("integer", |schema| {
            schema.format = Some("int32");
            schema.minimum = Some(f64::from(MIN));
            schema.maximum = Some(f64::from(MAX));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| (MIN..=MAX).contains(number)) {
            Some(number) => Ok(Self(number)),
            None => problem(format!("must be a whole number from {MIN} to {MAX}")),
        }
    }
}

/// The position of a recipient in a message, from 0.
#[derive(Debug)]
pub(crate) struct Position(pub(crate) i32);

impl Field for Position {
    fn schema() -> MetaSchemaRef {
        schema("integer", |schema| {
            schema.format = Some("int32");
            schema.minimum = Some(0.0);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let digits = |text: &str| -> Option<i32> {
            let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| text.parse().ok()).flatten()
        };
        match value.as_str().and_then(digits) {
            Some(position) => Ok(Self(position)),
            None => problem("must be a whole number from 0"),
        }
    }
}

/// An id in a body or a query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) Uuid);

impl Field for Id {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| schema.format = Some("uuid"))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match Uuid::parse_str(&string(value)?) {
            Ok(id) => Ok(Self(id)),
            Err(_) => problem("must be a UUID"),
        }
    }
}

fn whole_number(value: &Value, max: u32) -> Result<u32, Vec<Issue>> {
    let digits = |text: &str| -> Option<u32> {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().ok()).flatten()
    };
    let number = value.as_str().and_then(digits);
    match number.filter(|number| (1..=max).contains(number)) {
        Some(number) => Ok(number),
        None => problem(format!("must be a whole number from 1 to {max}")),
    }
}
