//! Addresses, passwords, codes and tokens of people as request fields.

use poem_openapi::registry::MetaSchemaRef;
use serde_json::Value;
use waypost_core::issue::Issue;
use waypost_core::secret::Secret;
use waypost_core::user::AccountEmail;
use waypost_core::user::password::NewPassword;

use super::{schema, string};
use crate::validate::{Field, problem};

/// The longest code of a second factor and the longest token of a link, in characters.
const CODE_CHARS_MAX: usize = 100;

impl Field for AccountEmail {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("email");
            schema.max_length = Some(254);
            schema.example = Some(Value::from("ada@example.com"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Self::parse(&string(value)?).or_else(|error| problem(error.to_string()))
    }
}

impl Field for NewPassword {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("password");
            schema.min_length = Some(Self::CHARS_MIN);
            schema.max_length = Some(Self::CHARS_MAX);
            schema.example = Some(Value::from("correct horse battery staple"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        Self::parse(string(value)?).or_else(|error| problem(error.to_string()))
    }
}

/// A password to be checked.
#[derive(Debug)]
pub(crate) struct GivenPassword(pub(crate) Secret);

impl Field for GivenPassword {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("password");
            schema.min_length = Some(1);
            schema.max_length = Some(NewPassword::CHARS_MAX);
            schema.example = Some(Value::from("correct horse battery staple"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        short(text, NewPassword::CHARS_MAX).map(|text| Self(Secret::from(text)))
    }
}

/// A code of the second factor, or a recovery code.
#[derive(Debug)]
pub(crate) struct Code(pub(crate) String);

impl Field for Code {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(CODE_CHARS_MAX);
            schema.example = Some(Value::from("123456"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        short(string(value)?, CODE_CHARS_MAX).map(Self)
    }
}

/// The token of a link.
#[derive(Debug)]
pub(crate) struct LinkToken(pub(crate) Secret);

impl Field for LinkToken {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.min_length = Some(1);
            schema.max_length = Some(CODE_CHARS_MAX);
            schema.example = Some(Value::from("Vt3gPpYq2X0sZ7mK9cRb1LwNfJdHaEuT5oQiS8xCv4k"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        short(string(value)?, CODE_CHARS_MAX).map(|text| Self(Secret::from(text)))
    }
}

fn short(text: String, chars_max: usize) -> Result<String, Vec<Issue>> {
    if text.is_empty() {
        return problem("must not be empty");
    }
    if text.chars().count() > chars_max {
        return problem(format!("must not be longer than {chars_max} characters"));
    }
    Ok(text)
}
