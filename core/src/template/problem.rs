//! What is wrong with a source, and where.

use std::fmt;

use crate::issue::{Issue, SourcePlace};

/// The first mistake in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// `None` if it is not known, or not a place in what the author wrote.
    place: Option<SourcePlace>,
    text: String,
}

impl Problem {
    pub(super) fn at_line(line: usize, text: impl Into<String>) -> Self {
        Self {
            place: Some(SourcePlace { line, column: None }),
            text: text.into(),
        }
    }

    pub(super) fn at(line: usize, column: usize, text: impl Into<String>) -> Self {
        let column = Some(column);
        Self {
            place: Some(SourcePlace { line, column }),
            text: text.into(),
        }
    }

    /// The same of a source that is not the author's: its place is told in the text alone.
    pub(super) fn elsewhere(self) -> Self {
        self.to_string().into()
    }

    /// The issue of the field that holds the source. The message names the place too.
    pub(super) fn issue(self, path: impl Into<String>) -> Issue {
        Issue {
            place: self.place,
            ..Issue::new(path, self.to_string())
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(SourcePlace {
                line,
                column: Some(column),
            }) => write!(f, "line {line}, column {column}: {}", self.text),
            Some(SourcePlace { line, column: None }) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { place: None, text }
    }
}

impl From<Problem> for String {
    fn from(problem: Problem) -> Self {
        problem.to_string()
    }
}
