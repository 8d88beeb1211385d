//! The settings of webhooks: allowed networks and the time-out of a call.

use std::time::Duration;

use super::Environment;
use super::reader::Reader;
use crate::network::Networks;

/// The networks that development allows by default.
const LOOPBACK: &str = "127.0.0.0/8, ::1";

/// The settings of calls to customers' endpoints.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// Networks in which endpoints are allowed although they are not public. Plain HTTP
    /// is allowed there too.
    pub allowed: Networks,
    pub call_timeout: Duration,
}

/// Reads the settings.
pub(super) fn read(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
) -> Option<WebhookSettings> {
    let given = reader.optional(
        "WAYPOST_WEBHOOK_ALLOW",
        "Private networks in which webhook endpoints may be, with https or plain http: addresses and networks (CIDR), separated by commas, or `none`. Default: `none`; in development loopback.",
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
        "How long a webhook endpoint may take to answer.",
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
    fn only_development_allows_loopback_by_default() {
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
