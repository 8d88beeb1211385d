//! The program `waypost-smtp`: takes mail over SMTP. `docs/configuration.md` has its
//! settings.

use std::process::ExitCode;

use clap::Parser;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::{process, startup};

use super::SubmissionListeners;

/// Waypost's SMTP submission: takes mail of programs that speak SMTP. Its settings are
/// variables of its environment; `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(name = "waypost-smtp", version)]
struct SubmissionArguments {}

/// Parses the arguments, of which there are none but `--help` and `--version`, and serves until a
/// signal stops it.
pub fn main() -> ExitCode {
    process::prepare();
    let SubmissionArguments {} = SubmissionArguments::parse();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let serve = async |settings: Settings, shutdown| {
        let listeners = SubmissionListeners::bind(&settings.submission).await?;
        super::serve(&settings, Clock::system(), listeners, shutdown).await
    };
    let ended = startup::run_program("smtp", serve).await;
    startup::exit_status("waypost-smtp", ended.map(|()| ExitCode::SUCCESS))
}
