//! How templates, their versions and the values for them are read from requests.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use uuid::Uuid;
use waypost_core::issue::Issue;
use waypost_core::template::{SOURCE_BYTES_MAX, TAGS_MAX, VARIABLES_BYTES_MAX};
use waypost_core::text::{self, Tag};

use crate::fields::object::JsonObject;
use crate::fields::{distinct_tags, schema, string, tag_list};
use crate::validate::{Field, problem};

/// The id of a record, in a body.
#[derive(Debug)]
pub(crate) struct RecordId(pub(crate) Uuid);

impl Field for RecordId {
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

/// Up to twenty tags of a template, each once.
#[derive(Debug, Default)]
pub(crate) struct TemplateTags(pub(crate) Vec<Tag>);

impl Field for TemplateTags {
    fn schema() -> MetaSchemaRef {
        tag_list(TAGS_MAX)
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        distinct_tags(value, TAGS_MAX).map(Self)
    }
}

/// The source of a template: HTML, MJML or text. May be empty.
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
            return problem(text::TextError::Nul.to_string());
        }
        Ok(Self(text))
    }
}

/// The values for a template.
pub(crate) type Variables = JsonObject<VARIABLES_BYTES_MAX>;
