//! The content of messages and templates in requests: addresses, subjects, bodies, tags,
//! variables, tracking.

use std::io::{self, Write};

use poem_openapi::registry::MetaSchemaRef;
use serde_json::{Value, json};
use waypost_core::acceptance::draft::TAGS_MAX;
use waypost_core::address::{EmailAddress, Mailbox};
use waypost_core::issue::Issue;
use waypost_core::suppression::import::IMPORT_MAX;
use waypost_core::template::{self, PREHEADER_CHARS_MAX, SOURCE_BYTES_MAX, VARIABLES_BYTES_MAX};
use waypost_core::text::{self, Tag, TextError};
use waypost_core::tracking::TrackingChoice;

use crate::fields::{kind_of, list, list_of_strings, schema, string};
use crate::validate::{Field, problem};

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

/// What every mailbox matches: no control characters, and a domain whose last part has a
/// letter. The dot before it has any of the forms that IDNA takes for one (UTS 46, 2.3).
const MAILBOX_PATTERN: &str = r"^\s*[^\x00-\x1f\x7f-\x9f]*[^\s@]@[^\s@]+[.\u3002\uff0e\uff61][^\s@]*[^\x00-@\[-`{-\x9f][^\s@]*\s*$";

impl Field for Mailbox {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(3);
            schema.pattern = Some(MAILBOX_PATTERN.to_owned());
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

/// A list of addresses to suppress.
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

/// The tags of a message, without repetitions.
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

/// The tags of a template, without repetitions.
#[derive(Debug, Default)]
pub(crate) struct TemplateTags(pub(crate) Vec<Tag>);

impl Field for TemplateTags {
    fn schema() -> MetaSchemaRef {
        tag_list(template::TAGS_MAX)
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        distinct_tags(value, template::TAGS_MAX).map(Self)
    }
}

pub(crate) fn tag_list(max: usize) -> MetaSchemaRef {
    schema("array", |list| {
        list.items = Some(Box::new(Tag::schema()));
        list.max_items = Some(max);
    })
}

/// Parses up to `max` tags and drops repetitions.
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

/// The source of a template: HTML, MJML or text. It may be empty.
#[derive(Debug)]
pub(crate) struct SourceText(pub(crate) String);

impl Field for SourceText {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.example = Some(Value::from("<p>Hello {{name}}</p>"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        if text.len() > SOURCE_BYTES_MAX {
            return problem(format!("must not be larger than {SOURCE_BYTES_MAX} bytes"));
        }
        if text.contains('\0') {
            return problem(TextError::Nul.to_string());
        }
        Ok(Self(text))
    }
}

/// The source of a preheader: a template on one line.
#[derive(Debug)]
pub(crate) struct PreheaderText(pub(crate) String);

impl Field for PreheaderText {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(PREHEADER_CHARS_MAX);
            schema.example = Some(Value::from("Your order is on its way"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        if text.is_empty() {
            return problem(TextError::Empty.to_string());
        }
        if text.chars().any(char::is_control) {
            return problem(TextError::Control.to_string());
        }
        if text.chars().count() > PREHEADER_CHARS_MAX {
            return problem(TextError::TooLong(PREHEADER_CHARS_MAX).to_string());
        }
        Ok(Self(text))
    }
}

/// Any JSON object of at most `BYTES_MAX` bytes, counted without white space.
#[derive(Debug)]
pub(crate) struct JsonObject<const BYTES_MAX: usize>(pub(crate) Value);

impl<const BYTES_MAX: usize> Default for JsonObject<BYTES_MAX> {
    fn default() -> Self {
        Self(json!({}))
    }
}

impl<const BYTES_MAX: usize> Field for JsonObject<BYTES_MAX> {
    fn schema() -> MetaSchemaRef {
        schema("object", |object| {
            object.additional_properties = Some(Box::new(schema("", |_| {})));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        if !value.is_object() {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        }
        if text::json_has_nul(&value) {
            return problem("must not contain NUL characters");
        }
        if serde_json::to_writer(BytesLeft(BYTES_MAX), &value).is_err() {
            return problem(format!("must not be larger than {BYTES_MAX} bytes"));
        }
        Ok(Self(value))
    }
}

/// A writer that fails when more than its remaining bytes are written.
struct BytesLeft(usize);

impl Write for BytesLeft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.0.checked_sub(bytes.len());
        self.0 = left.ok_or_else(|| io::Error::other("too large"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
/// The variables of a template.
pub(crate) type Variables = JsonObject<VARIABLES_BYTES_MAX>;

const OPENS: &str = "opens";
const CLICKS: &str = "clicks";

impl Field for TrackingChoice {
    fn schema() -> MetaSchemaRef {
        let flag = <Option<bool> as Field>::schema;
        schema("object", |object| {
            object.title = Some("Tracking".to_owned());
            object.properties = vec![(OPENS, flag()), (CLICKS, flag())];
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let Value::Object(mut given) = value else {
            return problem(format!("must be an object, not {}", kind_of(&value)));
        };
        let mut issues = Vec::new();
        let mut read = |name| match given.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => match bool::read(value) {
                Ok(flag) => Some(flag),
                Err(found) => {
                    issues.extend(found.into_iter().map(|issue| issue.under(name)));
                    None
                }
            },
        };
        let choice = Self {
            opens: read(OPENS),
            clicks: read(CLICKS),
        };
        if issues.is_empty() {
            Ok(choice)
        } else {
            Err(issues)
        }
    }
}
