//! The settings of webhooks: where they may go, and how long a call may take.

use std::time::Duration;

use super::Environment;
use super::reader::Reader;
use crate::network::Networks;

/// What development allows when nothing is said.
const LOOPBACK: &str = "127.0.0.0/8, ::1";

/// Calls to customers' endpoints.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Networks that may be called although they are not public, and with plain
    /// HTTP.
    pub allowed: Networks,
    /// The longest an endpoint may take to answer.
    pub call_timeout: Duration,
}

/// Reads them.
pub(super) fn read(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
) -> Option<WebhookSettings> {
    let given = reader.optional(
        "WAYPOST_WEBHOOK_ALLOW",
        "Networks that webhooks may be posted to although they are not public, and over plain HTTP: addresses and networks (CIDR) separated by commas, or `none`. In development loopback where nothing is said.",
        parse,
    );
    let is_development = environment == Some(Environment::Development);
    let allowed = match given {
        Some(networks) => networks,
        None if is_development => LOOPBACK.parse().unwrap_or_default(),
        None => Networks::default(),
    };
    let call_timeout = reader.duration(
        "WAYPOST_WEBHOOK_TIMEOUT",
        "15s",
        "The longest an endpoint of a webhook may take to answer.",
    );
    Some(WebhookSettings {
        allowed,
        call_timeout: call_timeout?,
    })
}

fn parse(text: &str) -> Option<Networks> {
    if text == "none" {
        return Some(Networks::default());
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let common = [
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_PUBLIC_URL", "https://mail.example.com"),
            (
                "WAYPOST_ENCRYPTION_KEYS",
                "1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            ),
        ];
        let variables = common.iter().chain(pairs);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect())
    }

    #[test]
    fn only_development_allows_loopback_by_itself() {
        let development = ("WAYPOST_ENV", "development");
        let allow = |text| ("WAYPOST_WEBHOOK_ALLOW", text);
        for (pairs, expected) in [
            (vec![], vec![]),
            (vec![development], vec!["127.0.0.0/8", "::1"]),
            (vec![development, allow("none")], vec![]),
            (vec![development, allow("10.0.0.0/8")], vec!["10.0.0.0/8"]),
            (
                vec![allow("10.1.2.3, fd00::/8")],
                vec!["10.1.2.3", "fd00::/8"],
            ),
        ] {
            let settings = read(&pairs).unwrap();
            assert_eq!(settings.webhooks.allowed.texts(), expected);
        }
        let error = read(&[allow("10.0.0.1/8")]).unwrap_err();
        assert_eq!(error.issues[0].path, "WAYPOST_WEBHOOK_ALLOW");
    }
}
