//! The settings of retention: how long anything is kept of messages.

use super::reader::Reader;

/// The longest time that messages are kept, in days: a hundred years.
pub const RETENTION_DAYS_MAX: u32 = 36_500;

/// How long messages are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Days for which messages are kept, whatever an organization says; for ever where
    /// nothing is said.
    pub message_days: Option<u32>,
    /// Days for which the bodies of messages are kept, as long as the messages where
    /// nothing is said.
    pub body_days: Option<u32>,
}

/// Reads them.
pub(super) fn read(reader: &mut Reader<'_>) -> RetentionSettings {
    RetentionSettings {
        message_days: reader.optional(
            "WAYPOST_RETENTION_DAYS",
            "How many days messages are kept at the most, with all that is theirs; for ever where nothing is said. They go by whole months: a month's when its last day is that old. An organization's `retentionDays` may be shorter. Metrics and the audit log stay.",
            days,
        ),
        body_days: reader.optional(
            "WAYPOST_BODY_RETENTION_DAYS",
            "How many days the bodies of messages are kept, by whole months too; as long as their messages where nothing is said. A message without its bodies cannot be tried again.",
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
    fn everything_is_kept_unless_something_is_said() {
        assert_eq!(read("", "").unwrap(), RetentionSettings::default());
        let settings = read("365", " 30 ").unwrap();
        let given = (settings.message_days, settings.body_days);
        assert_eq!(given, (Some(365), Some(30)));
    }

    #[test]
    fn what_is_no_number_of_days_is_refused() {
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
