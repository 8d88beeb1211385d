//! Shapes that responses share: the `data` envelope, pages, times, nullable values.

use std::borrow::Cow;

use chrono::SecondsFormat;
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef, Registry};
use poem_openapi::types::{ParseFromJSON, ParseResult, ToJSON, Type};
use serde_json::Value;
use waypost_core::clock::Timestamp;
use waypost_core::page::PageRequest;

/// One record, or all records of a short list.
#[derive(Debug, Object)]
pub(crate) struct Data<T: ParseFromJSON + ToJSON> {
    pub(crate) data: T,
}

/// One page of a long list.
#[derive(Debug, Object)]
pub(crate) struct Paged<T: ParseFromJSON + ToJSON> {
    pub(crate) data: Vec<T>,
    pub(crate) pagination: Pagination,
}

/// The position of a page in its list.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(crate) struct Pagination {
    /// The page number, from 1.
    pub(crate) page: u32,
    /// The number of items per page.
    pub(crate) limit: u32,
    /// The number of items in the whole list.
    pub(crate) total: u64,
    /// The number of pages.
    pub(crate) total_pages: u64,
    /// The `cursor` of the next page, for the same request; null at the end of the list.
    pub(crate) next_cursor: Nullable<String>,
}

impl Pagination {
    pub(crate) fn of(request: PageRequest, total: u64, next_cursor: Option<String>) -> Self {
        Self {
            page: request.page(),
            limit: request.limit(),
            total,
            total_pages: request.total_pages(total),
            next_cursor: Nullable(next_cursor),
        }
    }
}

/// The response to a deletion.
#[derive(Debug, Object)]
pub(crate) struct Success {
    pub(crate) success: bool,
}

/// A time in a response: ISO 8601 in UTC with milliseconds, `2026-11-20T12:00:00.000Z`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time(pub(crate) Timestamp);

macro_rules! plain_type {
    () => {
        type RawValueType = Self;
        type RawElementValueType = Self;

        fn as_raw_value(&self) -> Option<&Self> {
            Some(self)
        }

        fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
            Box::new(std::iter::empty())
        }
    };
}

impl Type for Time {
    const IS_REQUIRED: bool = true;
    plain_type!();

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("string_date-time")
    }

    fn schema_ref() -> MetaSchemaRef {
        let mut schema = MetaSchema::new_with_format("string", "date-time");
        schema.example = Some(Value::from("2026-11-20T12:00:00.000Z"));
        MetaSchemaRef::Inline(Box::new(schema))
    }
}

impl ToJSON for Time {
    fn to_json(&self) -> Option<Value> {
        Some(Value::String(
            self.0.to_rfc3339_opts(SecondsFormat::Millis, true),
        ))
    }
}

/// The `Object` derive requires it; responses are never parsed.
impl ParseFromJSON for Time {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Timestamp::parse_from_json(value)
            .map(Self)
            .map_err(poem_openapi::types::ParseError::propagate)
    }
}

/// A field that is always present and may be null. (poem-openapi documents an `Option` in
/// a response as neither required nor nullable.)
#[derive(Debug, Clone)]
pub(crate) struct Nullable<T>(pub(crate) Option<T>);

impl<T: Type> Type for Nullable<T> {
    const IS_REQUIRED: bool = true;
    plain_type!();

    fn name() -> Cow<'static, str> {
        format!("nullable_{}", T::name()).into()
    }

    fn schema_ref() -> MetaSchemaRef {
        match T::schema_ref() {
            MetaSchemaRef::Inline(mut schema) => {
                schema.nullable = true;
                MetaSchemaRef::Inline(schema)
            }
            reference @ MetaSchemaRef::Reference(_) => {
                let mut schema = MetaSchema::ANY;
                schema.nullable = true;
                schema.all_of = vec![reference];
                MetaSchemaRef::Inline(Box::new(schema))
            }
        }
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }
}

impl<T: ToJSON> ToJSON for Nullable<T> {
    fn to_json(&self) -> Option<Value> {
        match &self.0 {
            Some(value) => value.to_json(),
            None => Some(Value::Null),
        }
    }
}

/// The `Object` derive requires it; responses are never parsed.
impl<T: ParseFromJSON> ParseFromJSON for Nullable<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Option::<T>::parse_from_json(value)
            .map(Self)
            .map_err(poem_openapi::types::ParseError::propagate)
    }
}
