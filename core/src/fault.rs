//! Faults: our own failures (database, Redis, a bug), as opposed to the answers
//! that the domain gives (refusals, an enum per operation). A caller can only
//! report a fault; the one thing it may want to know is whether waiting helps.
//!
//! Every function that asks Postgres returns a fault when Postgres is away, so its
//! documentation does not say so.

use std::error::Error as StdError;
use std::sync::Arc;

/// A failure of ours, with what was being done and the error beneath it. Can be
/// cloned, because callers that share a transaction share its failure.
#[derive(Debug, Clone, thiserror::Error)]
#[error("could not {doing}")]
pub struct Fault {
    doing: &'static str,
    kind: FaultKind,
    source: Arc<dyn StdError + Send + Sync>,
}

/// What the receiver of a [`Fault`] may do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A server we depend on is away or overloaded: the same call may work later.
    Unavailable,
    /// Anything else: repeating the call will not help.
    Internal,
}

impl Fault {
    /// A fault that repeating will not mend. `doing` completes "could not …".
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

    /// A fault of a server that is away. `doing` completes "could not …".
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

    /// Whether waiting helps.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        self.kind
    }

    /// The error beneath it.
    pub(crate) fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.source
    }

    /// The whole chain of causes on one line, for the log.
    #[must_use]
    pub fn chain(&self) -> String {
        error_chain(self)
    }
}

/// An error and all its causes on one line, joined by ": ". A cause that its effect
/// repeats is told once: some libraries' errors quote their causes.
#[must_use]
pub fn error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !line.ends_with(&said) {
            line.push_str(": ");
            line.push_str(&said);
        }
        next = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{said}")]
    struct Told {
        said: &'static str,
        source: Option<Box<Told>>,
    }

    #[test]
    fn a_cause_that_its_effect_repeats_is_told_once() {
        for (said, line) in [
            (&["a"][..], "a"),
            (&["a", "b", "c"], "a: b: c"),
            (&["a: b: c", "b: c", "c"], "a: b: c"),
            (&["a", "b: c", "c"], "a: b: c"),
        ] {
            let error = said
                .iter()
                .rev()
                .fold(None, |source, said| Some(Box::new(Told { said, source })));
            assert_eq!(error_chain(&*error.unwrap()), line);
        }
    }
}
