//! `waypost-api wait-for-migrations`: waits until another process has migrated the database.
//! It lets a deployment start the programs of a new version only when their schema is there.
//! It migrates nothing itself.

use std::time::Duration;

use serde_json::json;
use waypost_core::config::Settings;
use waypost_core::db::connection_check::{self, SchemaRequirement};

use super::CommandError;
use super::output::OutputFormat;

/// The pause between two looks at the schema.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until every migration of this version is applied, and says on standard error what it
/// waits for.
///
/// # Errors
/// Why the database cannot be used, when waiting does not help or the time is over.
pub(super) async fn wait(time_max: Duration, format: OutputFormat) -> Result<(), CommandError> {
    let settings = Settings::from_env()?;
    let mut reported = None;
    let looks = async {
        loop {
            let found = connection_check::check(&settings.database_url, SchemaRequirement::Current);
            let unusable = match found.await {
                Err(unusable) if !unusable.is_setting() => unusable,
                settled => return settled,
            };
            if reported.as_ref() != Some(&unusable) {
                eprintln!("Waiting: {unusable}");
                reported = Some(unusable);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(time_max, looks).await {
        Ok(settled) => settled?,
        Err(_elapsed) => {
            let waited = humantime::format_duration(time_max);
            return Err(match reported {
                Some(unusable) => format!("gave up after {waited}: {unusable}"),
                None => format!("gave up after {waited}"),
            }
            .into());
        }
    }
    print_current(format);
    Ok(())
}

/// Says that the schema is that of this version.
pub(super) fn print_current(format: OutputFormat) {
    eprintln!("The schema is up to date");
    format.print(String::new, || json!({ "isCurrent": true }));
}
