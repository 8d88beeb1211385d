//! Validated request fields. poem-openapi's own validators stop at the first mistake and
//! give no path. A [`Validated`] field puts its type's schema into the document and never
//! fails to parse: it keeps its mistakes, so a handler reports all mistakes of a request
//! at once.

use std::borrow::Cow;

use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::{ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type};
use serde_json::Value;
use waypost_core::issue::Issue;

/// A type of request fields.
pub(crate) trait Field: Sized + Send + Sync {
    /// Whether the field is required.
    const REQUIRED: bool = true;

    /// The schema in the document.
    fn schema() -> MetaSchemaRef;

    /// Registers the schemas that [`Field::schema`] references.
    fn register(_registry: &mut Registry) {}

    /// Parses a value that is present and not null.
    ///
    /// # Errors
    /// All mistakes; their paths are relative to the value.
    fn read(value: Value) -> Result<Self, Vec<Issue>>;

    /// The value of an absent or null field.
    ///
    /// # Errors
    /// That the field is required.
    fn absent() -> Result<Self, Vec<Issue>> {
        problem("is required")
    }

    /// The value of a null field, if it differs from that of an absent one.
    ///
    /// # Errors
    /// That the field must not be null.
    fn null() -> Result<Self, Vec<Issue>> {
        Self::absent()
    }

    /// Parses a query parameter.
    ///
    /// # Errors
    /// All mistakes.
    fn read_parameter(text: &str) -> Result<Self, Vec<Issue>> {
        Self::read(Value::String(text.to_owned()))
    }
}

/// The same schema, made nullable.
fn nullable(schema: MetaSchemaRef) -> MetaSchemaRef {
    match schema {
        MetaSchemaRef::Inline(mut schema) => {
            schema.nullable = true;
            MetaSchemaRef::Inline(schema)
        }
        reference @ MetaSchemaRef::Reference(_) => reference,
    }
}

/// One issue about the value itself.
pub(crate) fn problem<T>(message: impl Into<String>) -> Result<T, Vec<Issue>> {
    Err(vec![Issue::new("", message)])
}

impl<T: Field> Field for Option<T> {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchemaRef {
        nullable(T::schema())
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        T::read(value).map(Some)
    }

    fn absent() -> Result<Self, Vec<Issue>> {
        Ok(None)
    }

    fn read_parameter(text: &str) -> Result<Self, Vec<Issue>> {
        T::read_parameter(text).map(Some)
    }
}

/// A field of an update: null clears it, and absence keeps the current value.
#[derive(Debug)]
pub(crate) struct Clearable<T>(pub(crate) Option<Option<T>>);

impl<T> Default for Clearable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Field> Field for Clearable<T> {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchemaRef {
        nullable(T::schema())
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        T::read(value).map(|value| Self(Some(Some(value))))
    }

    fn absent() -> Result<Self, Vec<Issue>> {
        Ok(Self(None))
    }

    fn null() -> Result<Self, Vec<Issue>> {
        Ok(Self(Some(None)))
    }
}

/// A field of an update that cannot be cleared: absence keeps the current value, and null
/// is rejected.
#[derive(Debug)]
pub(crate) struct Settable<T>(Option<T>);

impl<T: Field> Field for Settable<T> {
    const REQUIRED: bool = false;

    fn schema() -> MetaSchemaRef {
        T::schema()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        T::read(value).map(|value| Self(Some(value)))
    }

    fn absent() -> Result<Self, Vec<Issue>> {
        Ok(Self(None))
    }

    fn null() -> Result<Self, Vec<Issue>> {
        problem("must not be null; omit it to keep the current value")
    }
}

/// A parsed field, or its mistakes.
#[derive(Debug)]
pub(crate) struct Validated<T>(Result<T, Vec<Issue>>);

impl<T> Validated<T> {
    /// The value; `None` if it is wrong, with the mistakes in `issues` under `path`.
    pub(crate) fn take(self, path: &str, issues: &mut Vec<Issue>) -> Option<T> {
        match self.0 {
            Ok(value) => Some(value),
            Err(found) => {
                issues.extend(found.into_iter().map(|issue| issue.under(path)));
                None
            }
        }
    }
}

impl<T> Validated<Settable<T>> {
    /// The new value, if one was given. Mistakes go to `issues` under `path`.
    pub(crate) fn change(self, path: &str, issues: &mut Vec<Issue>) -> Option<T> {
        self.take(path, issues)?.0
    }
}

impl<T> Validated<Clearable<T>> {
    /// `Some(None)` if the field was null, `Some(value)` if it was given. Mistakes go to
    /// `issues` under `path`.
    pub(crate) fn change(self, path: &str, issues: &mut Vec<Issue>) -> Option<Option<T>> {
        self.take(path, issues)?.0
    }
}

impl<T> Validated<T> {
    /// The mistakes, under `path`.
    pub(crate) fn issues(&self, path: &str) -> Vec<Issue> {
        let found = self.0.as_ref().err().into_iter().flatten();
        found.map(|issue| issue.clone().under(path)).collect()
    }
}

impl<T> Validated<Option<T>> {
    /// Whether the field was given, valid or not.
    pub(crate) fn is_given(&self) -> bool {
        !matches!(self.0, Ok(None))
    }
}

impl<T: Field> Type for Validated<T> {
    const IS_REQUIRED: bool = T::REQUIRED;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("validated")
    }

    fn schema_ref() -> MetaSchemaRef {
        T::schema()
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::empty())
    }
}

impl<T: Field> ParseFromJSON for Validated<T> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        Ok(Self(match value {
            None => T::absent(),
            Some(Value::Null) => T::null(),
            Some(value) => T::read(value),
        }))
    }
}

/// The `Object` derive requires it; requests are never serialized.
impl<T: Field> ToJSON for Validated<T> {
    fn to_json(&self) -> Option<Value> {
        None
    }
}

impl<T: Field> ParseFromParameter for Validated<T> {
    fn parse_from_parameter(value: &str) -> ParseResult<Self> {
        Ok(Self(T::read_parameter(value)))
    }

    fn parse_from_parameters<I: IntoIterator<Item = A>, A: AsRef<str>>(
        values: I,
    ) -> ParseResult<Self> {
        Ok(Self(match values.into_iter().next() {
            None => T::absent(),
            Some(value) => T::read_parameter(value.as_ref()),
        }))
    }
}
