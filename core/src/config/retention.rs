//! The settings of retention.

use super::reader::Reader;

/// Largest retention in days: a hundred years.
pub const RETENTION_DAYS_MAX: u32 = 36_500;

/// The settings of retention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Days after which messages are deleted. An organization may set fewer for itself.
    /// `None`: never.
    pub message_days: Option<u32>,
    /// Days after which the bodies of messages are deleted. `None`: with the message.
    pub body_days: Option<u32>,
}

/// Reads the settings.
pub(super) fn read(reader: &mut Reader<'_>) -> RetentionSettings {
    RetentionSettings {
        message_days: reader.optional(
            "WAYPOST_RETENTION_DAYS",
            "Days after which messages are deleted, with their recipients, events, attempts and webhook deliveries. Waypost deletes whole calendar months (UTC): a month is deleted when its last day is this old. An organization may set a shorter `retentionDays`. Metrics and the audit log are not deleted. Unset: messages are kept forever.",
            days,
        ),
        body_days: reader.optional(
            "WAYPOST_BODY_RETENTION_DAYS",
            "Days after which the bodies of messages are deleted, also by whole months. A message without its body cannot be retried. Unset: bodies are kept as long as their messages.",
            days,
        ),
    }
}

fn days(text: &str) -> Option<u32> {
    text.parse()
        .ok()
        .filter(|days| (1..=RETENTION_DAYS_MAX).contains(days))
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, Settings};
    use super::*;

    fn read(days: &str, body_days: &str) -> Result<RetentionSettings, ConfigError> {
        let variables = [
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_RETENTION_DAYS", days),
            ("WAYPOST_BODY_RETENTION_DAYS", body_days),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Settings::from_map(&variables.into()).map(|settings| settings.retention)
    }

    #[test]
    fn by_default_everything_is_kept() {
        assert_eq!(read("", "").unwrap(), RetentionSettings::default());
        let settings = read("365", " 30 ").unwrap();
        let given = (settings.message_days, settings.body_days);
        assert_eq!(given, (Some(365), Some(30)));
    }

    #[test]
    fn values_that_are_not_a_number_of_days_are_rejected() {
        for wrong in ["0", "-1", "36501", "1.5", "30d", "for ever"] {
            let error = read(wrong, wrong).unwrap_err();
            let names: Vec<&str> = error
                .issues
                .iter()
                .map(|issue| issue.path.as_str())
                .collect();
            assert_eq!(
                names,
                ["WAYPOST_RETENTION_DAYS", "WAYPOST_BODY_RETENTION_DAYS"]
            );
        }
    }
}
