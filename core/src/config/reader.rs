//! Reads settings one by one, collects their descriptions, and collects all mistakes
//! instead of stopping at the first.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::issue::Issue;
use crate::secret::Secret;

/// Prefix of all settings except `DATABASE_URL` and `REDIS_URL`.
const PREFIX: &str = "WAYPOST_";
/// Prefix of the variables of the tests.
const TEST_PREFIX: &str = "WAYPOST_TEST_";
/// Variables of `docker-compose.yml` and `.dev/env` that are not settings.
const OTHER_VARIABLES: [&str; 12] = [
    "WAYPOST_API_KEY",
    "WAYPOST_EMAIL",
    "WAYPOST_PASSWORD",
    "WAYPOST_BIND",
    "WAYPOST_IMAGE",
    "WAYPOST_PORT",
    "WAYPOST_SIMULATOR_IMAGE",
    "WAYPOST_SIMULATOR_PORT",
    "WAYPOST_SMTP_CERTIFICATES",
    "WAYPOST_SMTP_PORT",
    "WAYPOST_SMTP_URL",
    "WAYPOST_URL",
];

/// The description of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDoc {
    pub name: &'static str,
    /// Empty if the setting has no default.
    pub default: String,
    pub meaning: &'static str,
}

/// Reads settings from a map of variables.
pub(super) struct Reader<'a> {
    variables: &'a HashMap<String, String>,
    issues: Vec<Issue>,
    docs: Vec<SettingDoc>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(variables: &'a HashMap<String, String>) -> Self {
        Self {
            variables,
            issues: Vec::new(),
            docs: Vec::new(),
        }
    }

    pub(super) fn into_issues(self) -> Vec<Issue> {
        self.issues
    }

    pub(super) fn into_docs(self) -> Vec<SettingDoc> {
        self.docs
    }

    /// Variables that begin with `WAYPOST_` and were not read so far.
    pub(super) fn unknown(&self) -> Vec<String> {
        let is_unknown = |name: &&String| {
            name.starts_with(PREFIX)
                && !name.starts_with(TEST_PREFIX)
                && !OTHER_VARIABLES.contains(&name.as_str())
                && self.docs.iter().all(|doc| doc.name != name.as_str())
        };
        let mut unknown: Vec<String> = self.variables.keys().filter(is_unknown).cloned().collect();
        unknown.sort();
        unknown
    }

    /// Records a mistake.
    pub(super) fn reject(&mut self, name: &str, message: &str) {
        self.issues.push(Issue::new(name, message));
    }

    /// The trimmed value; `None` if the variable is unset or empty.
    pub(super) fn given(
        &mut self,
        name: &'static str,
        default: &str,
        meaning: &'static str,
    ) -> Option<String> {
        self.docs.push(SettingDoc {
            name,
            default: default.to_owned(),
            meaning,
        });
        let text = self.variables.get(name)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    pub(super) fn text(
        &mut self,
        name: &'static str,
        default: &str,
        meaning: &'static str,
    ) -> String {
        self.given(name, default, meaning)
            .unwrap_or_else(|| default.to_owned())
    }

    /// The URL of a server. It may contain a password, so no error repeats it. It is
    /// required if `default` is `None`.
    pub(super) fn server(
        &mut self,
        name: &'static str,
        default: Option<&str>,
        meaning: &'static str,
        form: &str,
        check: impl Fn(&str) -> Result<(), Option<String>>,
    ) -> Option<Secret> {
        let text = self.given(name, default.unwrap_or_default(), meaning);
        let text = text.or_else(|| default.map(ToOwned::to_owned));
        match text.as_deref().map(|text| (text, check(text))) {
            None => self.reject(name, "is required"),
            Some((text, Err(None))) => self.reject(name, &wrong_url(text, form)),
            Some((_, Err(Some(problem)))) => self.reject(name, &problem),
            Some((_, Ok(()))) => {}
        }
        text.map(Secret::from)
    }

    /// An optional value.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.given(name, "", meaning)?;
        let value = parse(&text);
        if value.is_none() {
            self.reject(name, "cannot be parsed");
        }
        value
    }

    /// A value with a default, parsed by `parse`.
    pub(super) fn parse_any<T>(
        &mut self,
        name: &'static str,
        default: &str,
        meaning: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(name, default, meaning);
        let value = parse(&text);
        if value.is_none() {
            self.reject(
                name,
                &format!("cannot be parsed; a valid value is {default}"),
            );
        }
        value
    }

    /// An integer within `bounds`.
    pub(super) fn parse<T>(
        &mut self,
        name: &'static str,
        default: &str,
        meaning: &'static str,
        bounds: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        let text = self.text(name, default, meaning);
        let value = text.parse().ok().filter(|value| bounds.contains(value));
        if value.is_none() {
            let message = format!(
                "must be a whole number from {} to {}",
                bounds.start(),
                bounds.end()
            );
            self.reject(name, &message);
        }
        value
    }

    /// A duration above zero, with its unit: `500ms`, `30s`, `15min`, `24h`.
    pub(super) fn duration(
        &mut self,
        name: &'static str,
        default: &str,
        meaning: &'static str,
    ) -> Option<Duration> {
        let text = self.text(name, default, meaning);
        let value = humantime::parse_duration(&text)
            .ok()
            .filter(|value| !value.is_zero());
        if value.is_none() {
            self.reject(
                name,
                "must be a duration above zero with a unit, such as 500ms, 30s, 15min or 24h",
            );
        }
        value
    }

    /// One of the given words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        default: &str,
        words: &[(&str, T)],
        meaning: &'static str,
    ) -> Option<T> {
        let text = self.text(name, default, meaning);
        let value = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, value)| *value);
        if value.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.reject(name, &format!("must be one of {}", known.join(", ")));
        }
        value
    }
}

/// The error message for a URL of the wrong form. It repeats scheme, host and port of the
/// URL, never the user or the password.
fn wrong_url(text: &str, form: &str) -> String {
    let named = url::Url::parse(text).ok().and_then(|url| {
        // An unescaped character in the password ends the authority too early: then the
        // parser takes the user for the host and the password for port or path.
        let is_cut = url.username().is_empty() && url.password().is_none() && text.contains('@');
        let host = url.host_str().filter(|_| !is_cut)?;
        let port = url.port().map(|port| format!(":{port}"));
        let (scheme, port) = (url.scheme(), port.unwrap_or_default());
        Some(format!("names {scheme}://{host}{port} and "))
    });
    format!(
        "{}must have the form {form}, where @ : / ? # % in a password are written as %40 %3A %2F %3F %23 %25",
        named.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn an_error_about_a_url_does_not_repeat_the_password() {
        for (name, text, message) in [
            (
                "DATABASE_URL",
                "mysql://ann:canary@db.internal:3306/x",
                "names mysql://db.internal:3306 and must have the form postgres://",
            ),
            (
                "DATABASE_URL",
                "postgres://ann:canary@one:5432,two:5432/x",
                "must name one host",
            ),
            (
                "REDIS_URL",
                "redis://ann:canary@h/0?sslrootcert=/ca",
                "must begin with rediss://",
            ),
            ("DATABASE_URL", "postgres://ann:ca#nary@h/x", "must have"),
            ("DATABASE_URL", "postgres://ann:12/nary@h/x", "must have"),
            ("DATABASE_URL", "mysql://ann:12/nary@h/x", "must have"),
            ("DATABASE_URL", "db.internal/canary", "must have"),
            (
                "REDIS_URL",
                "postgres://ann:canary@h/x",
                "names postgres://h",
            ),
            ("REDIS_URL", "localhost:6379", "must have the form redis://"),
        ] {
            let variables = HashMap::from([(name.to_owned(), text.to_owned())]);
            let error = Settings::from_map(&variables).unwrap_err();
            let mut issues = error.issues.iter();
            let issue = issues.find(|issue| issue.path == name).unwrap();
            assert!(issue.message.starts_with(message), "{issue:?}");
            assert!(!issue.message.contains("nary"), "{issue:?}");
        }
    }
}
