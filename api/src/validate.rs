//! Request fields that never fail to parse. poem-openapi's own validators stop at
//! the first mistake and name no path; a [`Validated`] field carries its type's
//! schema into the document and keeps what is wrong with it, so that a handler
//! reports every mistake of a request at once.

use std::borrow::Cow;

use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::{ParseFromJSON, ParseFromParameter, ParseResult, ToJSON, Type};
use serde_json::Value;
use waypost_core::issue::Issue;

/// A type that a request field may have.
pub(crate) trait Field: Sized + Send + Sync {
    /// Whether the field must be there.
    const REQUIRED: bool = true;

    /// What the document says of it.
    fn schema() -> MetaSchemaRef;

    /// Registers the schemas that [`Field::schema`] refers to.
    fn register(_registry: &mut Registry) {}

    /// Reads a value that is there and not null.
    ///
    /// # Errors
    /// Everything that is wrong with it; paths are relative to the value.
    fn read(value: Value) -> Result<Self, Vec<Issue>>;

    /// What an absent or null value means.
    ///
    /// # Errors
    /// Why it may not be absent.
    fn absent() -> Result<Self, Vec<Issue>> {
        problem("is required")
    }

    /// What a null means, where that is not what an absent value means.
    ///
    /// # Errors
    /// Why it may not be null.
    fn null() -> Result<Self, Vec<Issue>> {
        Self::absent()
    }

    /// Reads the values of a query parameter.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    fn read_parameter(text: &str) -> Result<Self, Vec<Issue>> {
        Self::read(Value::String(text.to_owned()))
    }
}

/// The same schema, for a value that may be null too.
fn nullable(schema: MetaSchemaRef) -> MetaSchemaRef {
    match schema {
        MetaSchemaRef::Inline(mut schema) => {
            schema.nullable = true;
            MetaSchemaRef::Inline(schema)
        }
        reference @ MetaSchemaRef::Reference(_) => reference,
    }
}

/// One finding about the value itself.
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

/// A field of a change, which null clears and absence leaves as it is.
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

/// A field of a change that cannot be cleared: absence leaves it as it is, and null is
/// refused.
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
        problem("must not be null; leave it out to keep it as it is")
    }
}

/// A field that was read, well or not.
#[derive(Debug)]
pub(crate) struct Validated<T>(Result<T, Vec<Issue>>);

impl<T> Validated<T> {
    /// The value; what is wrong with it goes to `issues` under `path`.
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
    /// The new value, where one was given; what is wrong with it goes to `issues` under
    /// `path`.
    pub(crate) fn change(self, path: &str, issues: &mut Vec<Issue>) -> Option<T> {
        self.take(path, issues)?.0
    }
}

impl<T> Validated<Clearable<T>> {
    /// The new value or none, where either was given; what is wrong with it goes to
    /// `issues` under `path`.
    pub(crate) fn change(self, path: &str, issues: &mut Vec<Issue>) -> Option<Option<T>> {
        self.take(path, issues)?.0
    }
}

impl<T> Validated<T> {
    /// What is wrong with it, under `path`.
    pub(crate) fn issues(&self, path: &str) -> Vec<Issue> {
        let found = self.0.as_ref().err().into_iter().flatten();
        found.map(|issue| issue.clone().under(path)).collect()
    }
}

impl<T> Validated<Option<T>> {
    /// Whether the field was there, well formed or not.
    pub(crate) fn is_given(&self) -> bool {
        !matches!(self.0, Ok(None))
    }
}

impl<T: Field> Type for Validated<T> {
    const IS_REQUIRED: bool = T::REQUIRED;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        Cow::Borrowed("checked")
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

/// Asked for by the derive of request objects, which nobody writes out.
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
