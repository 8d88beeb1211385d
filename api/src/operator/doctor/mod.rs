//! `waypost-api doctor`: checks what an operator can get wrong and what can go wrong, and says what
//! to do. One run reports everything that can be found: a fault hides only what cannot be known
//! before it is repaired. It changes nothing.

mod configuration;
mod installation;
mod postgres_server;
mod redis_server;
mod report;

use waypost_core::clock::Clock;
use waypost_core::config::ExaminedSettings;

use super::CommandError;
use super::output::OutputFormat;
use report::Report;

/// Runs all checks and prints them.
///
/// # Errors
/// If a check found an error.
pub(super) async fn run(format: OutputFormat) -> Result<(), CommandError> {
    let examined = ExaminedSettings::from_env();
    let clock = Clock::system();
    let mut report = Report::default();
    configuration::check(&examined, &mut report).await;
    if let Some(settings) = &examined.settings {
        let mut database = None;
        if examined.is_right("DATABASE_URL") {
            database = postgres_server::check(settings, &clock, &mut report).await;
        }
        if examined.is_right("REDIS_URL") {
            redis_server::check(settings, &mut report).await;
        }
        if let Some(database) = database {
            installation::check(&examined, settings, &database, &mut report).await;
        }
    }
    report.print(format);
    report.result()
}
