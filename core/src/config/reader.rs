//! Reads settings one by one, notes what each is for, and collects what is wrong
//! with them instead of stopping at the first.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use crate::issue::Issue;
use crate::secret::Secret;

/// What our settings begin with, but for those of the servers.
const OURS: &str = "WAYPOST_";
/// What begins like them and is for the tests.
const TESTS: &str = "WAYPOST_TEST_";
/// What `docker-compose.yml` and `.dev/env` name beside the settings.
const ELSEWHERE: [&str; 7] = [
    "WAYPOST_API_KEY",
    "WAYPOST_BIND",
    "WAYPOST_IMAGE",
    "WAYPOST_PORT",
    "WAYPOST_SIMULATOR_IMAGE",
    "WAYPOST_SIMULATOR_PORT",
    "WAYPOST_URL",
];

/// What a setting is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDoc {
    pub name: &'static str,
    /// The value used where none is given; empty where there is none.
    pub default: String,
    pub meaning: &'static str,
}

/// One reading of a set of variables.
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

    /// Variables that are named like settings and were not asked for so far.
    pub(super) fn unknown(&self) -> Vec<String> {
        let is_unknown = |name: &&String| {
            name.starts_with(OURS)
                && !name.starts_with(TESTS)
                && !ELSEWHERE.contains(&name.as_str())
                && self.docs.iter().all(|doc| doc.name != name.as_str())
        };
        let mut unknown: Vec<String> = self.variables.keys().filter(is_unknown).cloned().collect();
        unknown.sort();
        unknown
    }

    /// Notes a mistake.
    pub(super) fn fault(&mut self, name: &str, message: &str) {
        self.issues.push(Issue::new(name, message));
    }

    /// The text as given, or nothing where the variable is unset or empty.
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

    /// The URL of a server, which may hold a password and must not be shown. Without a
    /// default it is required.
    pub(super) fn server(
        &mut self,
        name: &'static str,
        default: Option<&str>,
        meaning: &'static str,
        form: &str,
        has_form: impl Fn(&str) -> bool,
    ) -> Option<Secret> {
        let text = self.given(name, default.unwrap_or_default(), meaning);
        let text = text.or_else(|| default.map(ToOwned::to_owned));
        match &text {
            None => self.fault(name, "is required"),
            Some(text) if !has_form(text) => self.fault(name, &misread(text, form)),
            Some(_) => {}
        }
        text.map(Secret::from)
    }

    /// A value that may be absent.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        meaning: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.given(name, "", meaning)?;
        let value = parse(&text);
        if value.is_none() {
            self.fault(name, "has a form that cannot be read");
        }
        value
    }

    /// A value with a default, by a function of its own.
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
            self.fault(
                name,
                &format!("has a form that cannot be read; an example is {default}"),
            );
        }
        value
    }

    /// A number within bounds.
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
            self.fault(name, &message);
        }
        value
    }

    /// A span of time with its unit: `500ms`, `30s`, `15min`, `24h`.
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
            self.fault(
                name,
                "must be a span of time with its unit, such as 500ms, 30s, 15min or 24h",
            );
        }
        value
    }

    /// One of a few words.
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
            self.fault(name, &format!("must be one of {}", known.join(", ")));
        }
        value
    }
}

/// What to say of a URL that is none of the wanted form. Of the text only what comes before
/// and after the user and the password is repeated.
fn misread(text: &str, form: &str) -> String {
    let named = url::Url::parse(text).ok().and_then(|url| {
        // A password that is not written as it must be ends the user's part too early.
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
    fn a_server_of_another_kind_is_named_without_its_password() {
        for (name, text, message) in [
            (
                "DATABASE_URL",
                "mysql://ann:canary@db.internal:3306/x",
                "names mysql://db.internal:3306 and must have the form postgres://",
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
