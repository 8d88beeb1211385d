//! Issues: the findings of validation. A check never stops at the first one; it
//! collects all of them, each with the dotted path of the value it is about.

use serde::Serialize;

/// One validation finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// Where: dotted, with list positions from 0 (`to.3`, `credentials.apiKey`).
    /// Empty for the whole body.
    pub path: String,
    /// What is wrong, as a sentence without a full stop.
    pub message: String,
}

impl Issue {
    /// Issues of one list, or of one request, that are told at the most.
    pub const SHOWN_MAX: usize = 100;

    /// A finding about the value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }

    /// The same finding seen from one level further out: `to.3` becomes
    /// `messages.2.to.3` when put under `messages.2`.
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
