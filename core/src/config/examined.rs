//! Reads a configuration with mistakes as far as possible, for `waypost-api doctor`: a wrong
//! setting must not hide that a server is away or that a key is wrong. No other program starts
//! with such settings.

use std::collections::HashMap;

use super::{Settings, environment};
use crate::issue::Issue;

/// Values for required settings that are missing or wrong. Nothing may use them.
const PLACEHOLDERS: [(&str, &str); 3] = [
    ("DATABASE_URL", "postgres://localhost/waypost"),
    (
        "WAYPOST_ENCRYPTION_KEYS",
        "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ),
    ("WAYPOST_PUBLIC_URL", "https://placeholder.invalid"),
];

/// How often mistakes are replaced. A default may contradict another setting.
const PASSES_MAX: usize = 3;

/// A configuration that may have mistakes.
#[derive(Debug)]
pub struct ExaminedSettings {
    /// Every mistake. The path is the name of the variable.
    pub issues: Vec<Issue>,
    /// The settings. One with a mistake has its default or a placeholder: ask
    /// [`Self::is_right`]. `None` if too many settings contradict each other.
    pub settings: Option<Settings>,
}

impl ExaminedSettings {
    /// Reads the settings from the environment of the process.
    #[must_use]
    pub fn from_env() -> Self {
        Self::from_map(environment())
    }

    /// Whether the variable has no mistake.
    #[must_use]
    pub fn is_right(&self, name: &str) -> bool {
        self.issues.iter().all(|issue| issue.path != name)
    }

    fn from_map(mut variables: HashMap<String, String>) -> Self {
        let mut issues: Vec<Issue> = Vec::new();
        for _ in 0..PASSES_MAX {
            let found = match Settings::from_map(&variables) {
                Ok(settings) => {
                    let settings = Some(settings);
                    return Self { issues, settings };
                }
                Err(error) => error.issues,
            };
            for issue in found {
                variables.remove(&issue.path);
                let placeholder = PLACEHOLDERS.iter().find(|(name, _)| *name == issue.path);
                if let Some((name, value)) = placeholder {
                    variables.insert((*name).to_owned(), (*value).to_owned());
                }
                if issues.iter().all(|known| known.path != issue.path) {
                    issues.push(issue);
                }
            }
        }
        let settings = None;
        Self { issues, settings }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examine(pairs: &[(&str, &str)]) -> ExaminedSettings {
        let variables = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ExaminedSettings::from_map(variables.collect())
    }

    #[test]
    fn what_is_right_can_be_used_beside_mistakes() {
        let database = ("DATABASE_URL", "postgres://localhost/own");
        let listen = ("WAYPOST_LISTEN", "nowhere");
        let lease = ("WAYPOST_WORKER_LEASE", "1s");
        let examined = examine(&[database, listen, lease]);
        let names: Vec<&str> = examined.issues.iter().map(|issue| &*issue.path).collect();
        let missing = ["WAYPOST_ENCRYPTION_KEYS", "WAYPOST_PUBLIC_URL"];
        for name in missing.into_iter().chain([listen.0, lease.0]) {
            assert!(names.contains(&name), "{name} in {names:?}");
            assert!(!examined.is_right(name), "{name}");
        }
        assert_eq!(names.len(), 4);
        assert!(examined.is_right("DATABASE_URL"));
        assert!(examined.settings.is_some());
    }

    #[test]
    fn a_right_configuration_has_no_issues() {
        let development = ("WAYPOST_ENV", "development");
        let database = ("DATABASE_URL", "postgres://localhost/own");
        let examined = examine(&[development, database]);
        assert!(examined.issues.is_empty() && examined.settings.is_some());
    }
}
