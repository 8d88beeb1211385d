//! Bounded texts. Each type holds a text that has passed its rule; nobody checks
//! it again. Lengths count Unicode characters, as the contract does.

pub(crate) mod css;
pub mod encoded_word;
pub mod header;

use std::fmt;

/// Why a text is refused. `Display` completes "the value …".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("must not be empty")]
    Empty,
    /// More characters than the bound.
    #[error("must not be longer than {0} characters")]
    TooLong(usize),
    /// Line breaks, NUL and their like, where a header or a list shows the text.
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
            /// The bound, in characters.
            pub const CHARS_MAX: usize = $max;

            /// Takes a text of one line that is not empty and within the bound.
            ///
            /// # Errors
            /// The first rule that it breaks.
            pub fn parse(text: String) -> Result<Self, TextError> {
                one_line(text, Self::CHARS_MAX).map(Self)
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, given away.
            #[must_use]
            pub fn into_string(self) -> String {
                self.0
            }
        }

        /// Logs must not hold what customers write.
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
    if text.chars().any(char::is_control) || encoded_word::hides_control(&text) {
        return Err(TextError::Control);
    }
    // A text of n bytes has at most n characters: most need no counting.
    if text.len() > chars_max && text.chars().count() > chars_max {
        return Err(TextError::TooLong(chars_max));
    }
    Ok(text)
}

/// What something in an organization is for, in the words of its owner. May have
/// several lines, or none.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Description(String);

impl Description {
    /// The bound, in characters.
    pub const CHARS_MAX: usize = 2_000;

    /// Takes a text within the bound that Postgres can store.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: String) -> Result<Self, TextError> {
        if text.contains('\0') {
            return Err(TextError::Nul);
        }
        if text.len() > Self::CHARS_MAX && text.chars().count() > Self::CHARS_MAX {
            return Err(TextError::TooLong(Self::CHARS_MAX));
        }
        Ok(Self(text))
    }

    /// The text, given away.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Logs must not hold what customers write.
impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Description({} characters)", self.0.chars().count())
    }
}

/// Takes a body: any text that is not empty and that Postgres can store. Its size
/// is bounded by that of the request.
///
/// # Errors
/// The first rule that it breaks.
pub fn body(text: String) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.contains('\0') {
        return Err(TextError::Nul);
    }
    Ok(text)
}

/// Whether a JSON value holds a NUL character anywhere, in a key or in a text.
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
    fn the_bound_counts_characters_and_not_bytes() {
        assert!(Tag::parse("é".repeat(100)).is_ok());
        assert_eq!(
            Tag::parse("é".repeat(101)).unwrap_err(),
            TextError::TooLong(100)
        );
        assert!(Subject::parse("x".repeat(998)).is_ok());
        assert!(Subject::parse("x".repeat(999)).is_err());
    }

    #[test]
    fn header_lines_cannot_be_smuggled_in() {
        for text in ["a\r\nBcc: x@y.com", "a\nb", "a\rb", "a\0b", "a\u{85}b"] {
            assert_eq!(
                Subject::parse(text.to_owned()).unwrap_err(),
                TextError::Control
            );
        }
    }

    #[test]
    fn nul_is_found_wherever_it_hides() {
        assert!(json_has_nul(&serde_json::json!({"a": [{"b\0": 1}]})));
        assert!(json_has_nul(&serde_json::json!(["\0"])));
        assert!(!json_has_nul(&serde_json::json!({"a": [1, null, "x"]})));
    }
}
