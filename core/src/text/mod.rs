//! Validated texts. A value of these types satisfies its rule and needs no second check.
//! Lengths are in Unicode characters, as in the API description.

pub(crate) mod css;
pub mod encoded_word;
pub mod header;
pub mod locale;

use std::fmt;

/// Why a text is refused. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("must not be empty")]
    Empty,
    #[error("must not be longer than {0} characters")]
    TooLong(usize),
    /// A control character in a text that headers and lists contain.
    #[error("must not contain control characters such as line breaks or NUL")]
    Control,
    /// A NUL byte, which Postgres cannot store.
    #[error("must not contain NUL characters")]
    Nul,
}

macro_rules! one_line_texts {
    ($($(#[$doc:meta])* $name:ident: $max:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// The maximum length in characters.
            pub const CHARS_MAX: usize = $max;

            /// Validates a non-empty text of one line.
            ///
            /// # Errors
            /// The first rule that the text breaks.
            pub fn parse(text: String) -> Result<Self, TextError> {
                one_line(text, Self::CHARS_MAX).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Converts into the text.
            #[must_use]
            pub fn into_string(self) -> String {
                self.0
            }
        }

        /// Omits the text, because logs must not contain customers' content.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} characters)"), self.0.chars().count())
            }
        }
    )+};
}

one_line_texts! {
    /// A message's subject.
    Subject: 998,
    /// A tag of a message.
    Tag: 100,
    /// The name of something in an organization: an account, a group, a template.
    Name: 255,
}

fn one_line(text: String, chars_max: usize) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.chars().any(char::is_control) || encoded_word::contains_control(&text) {
        return Err(TextError::Control);
    }
    // A text of n bytes has at most n characters, so most texts need no counting.
    if text.len() > chars_max && text.chars().count() > chars_max {
        return Err(TextError::TooLong(chars_max));
    }
    Ok(text)
}

/// A customer's description of a resource. It may be empty and have several lines.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Description(String);

impl Description {
    /// The maximum length in characters.
    pub const CHARS_MAX: usize = 2_000;

    /// Validates a text.
    ///
    /// # Errors
    /// The first rule that the text breaks.
    pub fn parse(text: String) -> Result<Self, TextError> {
        if text.contains('\0') {
            return Err(TextError::Nul);
        }
        if text.len() > Self::CHARS_MAX && text.chars().count() > Self::CHARS_MAX {
            return Err(TextError::TooLong(Self::CHARS_MAX));
        }
        Ok(Self(text))
    }

    /// Converts into the text.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Omits the text, because logs must not contain customers' content.
impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Description({} characters)", self.0.chars().count())
    }
}

/// Validates the body of a message: not empty and without NUL. The limit of the request
/// body bounds its size.
///
/// # Errors
/// The first rule that the text breaks.
pub fn body(text: String) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.contains('\0') {
        return Err(TextError::Nul);
    }
    Ok(text)
}

/// Whether a key or string anywhere in a JSON value contains a NUL character.
#[must_use]
pub fn json_has_nul(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(json_has_nul),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| key.contains('\0') || json_has_nul(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_length_counts_characters_and_not_bytes() {
        assert!(Tag::parse("é".repeat(100)).is_ok());
        assert_eq!(
            Tag::parse("é".repeat(101)).unwrap_err(),
            TextError::TooLong(100)
        );
        assert!(Subject::parse("x".repeat(998)).is_ok());
        assert!(Subject::parse("x".repeat(999)).is_err());
    }

    #[test]
    fn header_injection_is_refused() {
        for text in ["a\r\nBcc: x@y.com", "a\nb", "a\rb", "a\0b", "a\u{85}b"] {
            assert_eq!(
                Subject::parse(text.to_owned()).unwrap_err(),
                TextError::Control
            );
        }
    }

    #[test]
    fn nul_is_found_in_nested_keys_and_strings() {
        assert!(json_has_nul(&serde_json::json!({"a": [{"b\0": 1}]})));
        assert!(json_has_nul(&serde_json::json!(["\0"])));
        assert!(!json_has_nul(&serde_json::json!({"a": [1, null, "x"]})));
    }
}
