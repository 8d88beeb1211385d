//! Issues: the findings of validation. A validation does not stop at the first issue; it
//! collects all of them, each with the path of the value.

use serde::Serialize;

/// One finding of a validation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// The dotted path of the value, with list indexes from 0: `to.3`,
    /// `credentials.apiKey`. Empty for the whole body.
    pub path: String,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Where in the value, if it is a text of several lines and the place is known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<SourcePlace>,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// From 1.
    pub line: usize,
    /// In characters, from 1; `None` if only the line is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Issue {
    /// Maximum number of issues that are reported of one list or one request.
    pub const SHOWN_MAX: usize = 100;

    /// An issue with the value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
            place: None,
        }
    }

    /// The same issue with its path below `parent`: `to.3` under `messages.2` becomes
    /// `messages.2.to.3`.
    #[must_use]
    pub fn under(mut self, parent: &str) -> Self {
        if self.path.is_empty() {
            self.path = parent.to_owned();
        } else if !parent.is_empty() {
            self.path = format!("{parent}.{}", self.path);
        }
        self
    }
}
