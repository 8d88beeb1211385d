//! How the domain's types are read from requests: for each, its schema and its
//! rule. The rules themselves are the domain's.

pub(crate) mod event_secret;
pub(crate) mod object;
pub(crate) mod template;
pub(crate) mod time;
pub(crate) mod tracking;

use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::acceptance::draft::{self, RECIPIENTS_MAX, TAGS_MAX};
use waypost_core::address::{EmailAddress, Mailbox};
use waypost_core::ids::UnsubscribeGroupId;
use waypost_core::issue::Issue;
use waypost_core::message::MessageStatus;
use waypost_core::page::PageRequest;
use waypost_core::provider::kind::ProviderType;
use waypost_core::suppression::SuppressionSource;
use waypost_core::suppression::import::IMPORT_MAX;
use waypost_core::text::{self, Description, Name, Subject, Tag};

use crate::validate::{Field, problem};

/// The name of a JSON value's type, for messages.
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

pub(crate) fn schema(ty: &'static str, fill: impl FnOnce(&mut MetaSchema)) -> MetaSchemaRef {
    let mut schema = MetaSchema::new(ty);
    fill(&mut schema);
    MetaSchemaRef::Inline(Box::new(schema))
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

/// An HTML or text body.
#[derive(Debug)]
pub(crate) struct BodyText(pub(crate) String);

impl Field for BodyText {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| schema.min_length = Some(1))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        match text::body(string(value)?) {
            Ok(text) => Ok(Self(text)),
            Err(error) => problem(error.to_string()),
        }
    }
}

impl Field for Mailbox {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(3);
            schema.example = Some(Value::from("Ada Lovelace <ada@example.com>"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Mailbox::parse(&string(value)?).or_else(|error| problem(error.to_string()))
    }
}

impl Field for EmailAddress {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("email");
            schema.min_length = Some(3);
            schema.example = Some(Value::from("ada@example.com"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        EmailAddress::parse(&string(value)?).or_else(|error| problem(error.to_string()))
    }
}

/// Many addresses.
#[derive(Debug)]
pub(crate) struct Addresses(pub(crate) Vec<EmailAddress>);

impl Field for Addresses {
    fn schema() -> MetaSchemaRef {
        schema("array", |list| {
            list.items = Some(Box::new(EmailAddress::schema()));
            list.min_items = Some(1);
            list.max_items = Some(IMPORT_MAX);
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Array(items) = value else {
            let kind = kind_of(&value);
            return problem(format!("must be an array of strings, not {kind}"));
        };
        list(items, 1, IMPORT_MAX, "addresses").map(Self)
    }
}

/// One or more recipients, each address once.
#[derive(Debug)]
pub(crate) struct Recipients(pub(crate) Vec<Mailbox>);

impl Field for Recipients {
    fn schema() -> MetaSchemaRef {
        let list = schema("array", |list| {
            list.items = Some(Box::new(Mailbox::schema()));
            list.min_items = Some(1);
            list.max_items = Some(RECIPIENTS_MAX);
        });
        schema("", |schema| schema.one_of = vec![Mailbox::schema(), list])
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        if value.is_string() {
            return Ok(Self(vec![Mailbox::read(value)?]));
        }
        let Value::Array(items) = value else {
            let kind = kind_of(&value);
            return problem(format!(
                "must be a string or an array of strings, not {kind}"
            ));
        };
        let recipients = list(items, 1, RECIPIENTS_MAX, "recipients")?;
        Ok(Self(draft::distinct(recipients)))
    }
}

/// Up to ten tags, each once.
#[derive(Debug, Default)]
pub(crate) struct Tags(pub(crate) Vec<Tag>);

impl Field for Tags {
    fn schema() -> MetaSchemaRef {
        tag_list(TAGS_MAX)
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        distinct_tags(value, TAGS_MAX).map(Self)
    }
}

pub(crate) fn tag_list(max: usize) -> MetaSchemaRef {
    schema("array", |list| {
        list.items = Some(Box::new(Tag::schema()));
        list.max_items = Some(max);
    })
}

/// Up to `max` tags; one that is given twice is there once.
pub(crate) fn distinct_tags(value: Value, max: usize) -> Result<Vec<Tag>, Vec<Issue>> {
    let items = list_of_strings(value)?;
    let mut tags: Vec<Tag> = Vec::with_capacity(items.len().min(max));
    for tag in list::<Tag>(items, 0, max, "tags")? {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(tags)
}

/// The items of a list of strings, which may still turn out not to be strings.
pub(crate) fn list_of_strings(value: Value) -> Result<Vec<Value>, Vec<Issue>> {
    let Value::Array(items) = value else {
        let kind = kind_of(&value);
        return problem(format!("must be an array of strings, not {kind}"));
    };
    Ok(items)
}

/// Reads every item of a list that has at least `min` and at most `max` of them. What is
/// wrong with their number and with any of them is reported together, as far as it is
/// shown.
pub(crate) fn list<T: Field>(
    items: Vec<Value>,
    min: usize,
    max: usize,
    what: &str,
) -> Result<Vec<T>, Vec<Issue>> {
    let mut issues = Vec::new();
    let count = items.len();
    if count < min {
        issues.push(Issue::new(
            "",
            format!("must name at least {min} of {what}"),
        ));
    }
    if count > max {
        let message = format!("must not name more than {max} {what}; there are {count}");
        issues.push(Issue::new("", message));
    }
    let mut values = Vec::with_capacity(count.min(max));
    for (place, item) in items.into_iter().enumerate() {
        if issues.len() > Issue::SHOWN_MAX {
            break;
        }
        match T::read(item) {
            Ok(value) => values.push(value),
            Err(found) => {
                let found = found.into_iter();
                issues.extend(found.map(|issue| issue.under(&place.to_string())));
            }
        }
    }
    if issues.is_empty() {
        Ok(values)
    } else {
        Err(issues)
    }
}

/// A provider account's credentials as given: which fields they must have depends
/// on the provider type, so they are read in a second step.
#[derive(Debug)]
pub(crate) struct CredentialsObject(pub(crate) Value);

/// The fields that credentials can have, and what the document says of them.
const CREDENTIAL_FIELDS: [(&str, &str); 14] = [
    ("apiKey", "SENDGRID, MAILGUN: required."),
    ("serverToken", "POSTMARK: required."),
    (
        "accountToken",
        "POSTMARK: lets domains be listed and added.",
    ),
    ("messageStream", "POSTMARK: the stream to send through."),
    ("domain", "MAILGUN: required; the sending domain."),
    ("accessKeyId", "SES: required."),
    ("secretAccessKey", "SES: required."),
    ("sessionToken", "SES: for temporary credentials."),
    ("configurationSet", "SES: the set that publishes events."),
    (
        "region",
        "SES: required, such as `eu-central-1`. SENDGRID: `global` or `eu`. MAILGUN: `us` or `eu`.",
    ),
    (
        "host",
        "SMTP: required; the mail server's name or IP address.",
    ),
    (
        "username",
        "SMTP: what to log in with, together with `password`.",
    ),
    ("password", "SMTP: the password of `username`."),
    (
        "tls",
        "SMTP: `starttls` (the default), `implicit` or `none`.",
    ),
];

impl Field for CredentialsObject {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            for (name, description) in CREDENTIAL_FIELDS {
                let field = schema("string", |field| {
                    field.description = Some(description);
                    field.min_length = Some(1);
                    field.nullable = true;
                });
                object.properties.push((name, field));
            }
            let port = schema("integer", |port| {
                port.description = Some(
                    "SMTP: the mail server's port. By default 587, with `implicit` 465, with `none` 25.",
                );
                port.minimum = Some(1.0);
                port.maximum = Some(f64::from(u16::MAX));
                port.nullable = true;
            });
            object.properties.push(("port", port));
            object.example = Some(serde_json::json!({ "apiKey": "SG.example" }));
        })
    }

    /// Which fields must be there depends on the provider type, and is checked with
    /// it; what is there must be a text, and the port a port, whichever type they belong
    /// to.
    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(fields) = &value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let issues = CREDENTIAL_FIELDS
            .iter()
            .filter_map(|(name, _)| match fields.get(*name) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) if text.is_empty() => {
                    Some(Issue::new(*name, "must not be empty"))
                }
                Some(Value::String(_)) => None,
                Some(other) => Some(Issue::new(
                    *name,
                    format!("must be a string, not {}", kind_of(other)),
                )),
            });
        let mut issues: Vec<Issue> = issues.collect();
        if let Some(port) = fields.get("port").filter(|port| !port.is_null())
            && !port
                .as_u64()
                .is_some_and(|port| (1..=65_535).contains(&port))
        {
            issues.push(Issue::new("port", "must be a whole number from 1 to 65535"));
        }
        if issues.is_empty() {
            Ok(Self(value))
        } else {
            Err(issues)
        }
    }
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

impl Field for UnsubscribeGroupId {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| schema.format = Some("uuid"))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let id = string(value)?.parse();
        id.or_else(|_| problem("must be a UUID"))
    }
}

impl Field for SuppressionSource {
    fn schema() -> MetaSchemaRef {
        words(&SuppressionSource::ALL.map(SuppressionSource::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        string(value)?.parse().or_else(problem)
    }
}

impl Field for ProviderType {
    fn schema() -> MetaSchemaRef {
        words(&ProviderType::ALL.map(ProviderType::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        string(value)?
            .parse()
            .or_else(|error| problem(format!("{error}")))
    }
}

impl Field for MessageStatus {
    fn schema() -> MetaSchemaRef {
        words(&MessageStatus::ALL.map(MessageStatus::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        string(value)?.parse().or_else(problem)
    }
}

pub(crate) fn words(words: &[&'static str]) -> MetaSchemaRef {
    schema("string", |schema| {
        schema.enum_items = words.iter().map(|word| Value::from(*word)).collect();
    })
}

/// What to search for.
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

/// How many rows a page has.
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

/// A whole number of a body, within bounds.
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
