//! Ids in paths. A text that is not a UUID gets 404, as an id that does not exist.

use std::borrow::Cow;

use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use poem_openapi::types::{ParseFromParameter, ParseResult, Type};
use uuid::Uuid;

use crate::error::Failure;

/// An id from a path.
#[derive(Debug)]
pub(crate) struct PathId(Option<Uuid>);

impl PathId {
    /// The id, as the id type of the record named `what`.
    ///
    /// # Errors
    /// `NotFound(what)` if the text is not a UUID.
    pub(crate) fn of<T: From<Uuid>>(&self, what: &'static str) -> Result<T, Failure> {
        self.0.map(T::from).ok_or(Failure::NotFound(what))
    }
}

impl Type for PathId {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("string_uuid")
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "uuid")))
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::empty())
    }
}

impl ParseFromParameter for PathId {
    fn parse_from_parameter(text: &str) -> ParseResult<Self> {
        Ok(Self(Uuid::parse_str(text).ok()))
    }
}
