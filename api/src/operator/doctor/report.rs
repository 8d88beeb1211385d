//! The findings of `waypost-api doctor`, and how they are printed.

use serde_json::{Value, json};
use waypost_core::fault::Fault;

use crate::operator::CommandError;
use crate::operator::output::OutputFormat;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Something that may be meant, or that its owner has to repair.
    Warning,
    /// Waypost does not work, or loses mail when a machine fails.
    Error,
}

/// What a check found.
#[derive(Debug)]
struct Check {
    /// What was checked, such as `redis-memory`.
    name: &'static str,
    severity: Option<Severity>,
    message: String,
    /// What the operator does.
    fix: Option<String>,
}

/// What all checks found, in their order.
#[derive(Debug, Default)]
pub(super) struct Report {
    checks: Vec<Check>,
}

impl Report {
    /// A check that found nothing.
    pub(super) fn ok(&mut self, name: &'static str, message: impl Into<String>) {
        self.checks.push(Check {
            name,
            severity: None,
            message: message.into(),
            fix: None,
        });
    }

    /// A finding: what is wrong, and what to do.
    pub(super) fn found(
        &mut self,
        severity: Severity,
        name: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.checks.push(Check {
            name,
            severity: Some(severity),
            message: message.into(),
            fix: Some(fix.into()),
        });
    }

    /// A finding in one sentence, with what to do after its last colon.
    pub(super) fn found_sentence(&mut self, severity: Severity, name: &'static str, text: &str) {
        let (message, fix) = text.rsplit_once(": ").unwrap_or((text, "see its log"));
        self.found(severity, name, message, fix);
    }

    /// A check that could not be made.
    pub(super) fn failed(&mut self, name: &'static str, fault: &Fault) {
        let fix = "see the log of Postgres";
        self.found(Severity::Error, name, fault.chain(), fix);
    }

    /// Prints the findings: to standard error for people, to standard output as JSON.
    pub(super) fn print(&self, format: OutputFormat) {
        match format {
            OutputFormat::Text => self.checks.iter().for_each(|check| eprintln!("{check}")),
            OutputFormat::Json => {
                format.print(String::new, || {
                    json!({ "checks": self.checks.iter().map(Check::to_json).collect::<Value>() })
                });
            }
        }
    }

    /// Fails if there is an error.
    pub(super) fn result(&self) -> Result<(), CommandError> {
        let errors = self.checks.iter().filter(|check| check.is_error()).count();
        match errors {
            0 => Ok(()),
            1 => Err("doctor found 1 error".into()),
            _ => Err(format!("doctor found {errors} errors").into()),
        }
    }
}

impl Check {
    fn is_error(&self) -> bool {
        self.severity == Some(Severity::Error)
    }

    fn to_json(&self) -> Value {
        let status = match self.severity {
            None => "ok",
            Some(Severity::Warning) => "warning",
            Some(Severity::Error) => "error",
        };
        json!({ "name": self.name, "status": status, "message": self.message, "fix": self.fix })
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.severity {
            None => "ok",
            Some(Severity::Warning) => "WARNING",
            Some(Severity::Error) => "ERROR",
        };
        write!(f, "{}: {word}: {}", self.name, self.message)?;
        match &self.fix {
            Some(fix) => write!(f, ": {fix}"),
            None => Ok(()),
        }
    }
}
