//! Faults: failures of Waypost itself (database, Redis, a bug), in contrast to refusals, which
//! are answers of the domain (an enum per operation). A caller reports a fault and, if
//! [`FaultKind::Unavailable`], may retry.
//!
//! Every function that queries Postgres returns a fault if Postgres is away. Its
//! documentation does not repeat that.

use std::error::Error as StdError;
use std::sync::Arc;

/// A failure of Waypost, with the failed action and the underlying error. It can be cloned,
/// because callers that share a transaction share its failure.
#[derive(Debug, Clone, thiserror::Error)]
#[error("could not {doing}")]
pub struct Fault {
    doing: &'static str,
    kind: FaultKind,
    source: Arc<dyn StdError + Send + Sync>,
}

/// Whether a retry may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A server that Waypost depends on is away or overloaded. A retry may help.
    Unavailable,
    /// Anything else. A retry does not help.
    Internal,
}

impl Fault {
    /// A fault of kind [`FaultKind::Internal`]. `doing` completes "could not …".
    pub fn internal(
        doing: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            doing,
            kind: FaultKind::Internal,
            source: Arc::from(source.into()),
        }
    }

    /// A fault of kind [`FaultKind::Unavailable`]. `doing` completes "could not …".
    pub fn unavailable(
        doing: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            doing,
            kind: FaultKind::Unavailable,
            source: Arc::from(source.into()),
        }
    }

    /// Whether a retry may help.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// The underlying error.
    pub(crate) fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// The fault and all its causes on one line, for the log.
    #[must_use]
    pub fn chain(&self) -> String {
        error_chain(self)
    }
}

/// An error and all its causes on one line, joined by ": ". A cause that the error above
/// already quotes, as errors of some libraries do, is not repeated.
#[must_use]
pub fn error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !line.ends_with(&message) {
            line.push_str(": ");
            line.push_str(&message);
        }
        next = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{message}")]
    struct TestError {
        message: &'static str,
        source: Option<Box<TestError>>,
    }

    #[test]
    fn a_cause_that_the_error_above_quotes_is_not_repeated() {
        for (messages, line) in [
            (&["a"][..], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["a", "b: c", "c"], "a: b: c"),
        ] {
            let error = messages.iter().rev().fold(None, |source, message| {
                Some(Box::new(TestError { message, source }))
            });
            assert_eq!(error_chain(&*error.unwrap()), line);
        }
    }
}
