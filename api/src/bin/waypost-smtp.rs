//! `waypost-smtp`: takes mail over SMTP. It takes no arguments; see `docs/configuration.md` for
//! its settings.

use std::process::ExitCode;

use clap::Parser;
use tokio_util::sync::CancellationToken;
use waypost_api::submission::{self, SubmissionListeners};
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::fault::Fault;
use waypost_core::telemetry::traces;
use waypost_core::{fault, process, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Waypost's SMTP submission: takes mail of programs that speak SMTP. Its settings are
/// variables of its environment; `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(name = "waypost-smtp", version)]
struct SubmissionArguments {}

fn main() -> ExitCode {
    process::prepare();
    let SubmissionArguments {} = SubmissionArguments::parse();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let settings = match Settings::from_env() {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    telemetry::init(&settings.log.filter, settings.log.format);
    telemetry::log_panics();
    telemetry::instruments::start("smtp");
    if let Err(fault) = traces::start(settings.monitoring.traces.as_ref(), "smtp") {
        return failed(&fault);
    }
    settings.warn_of_unknown();
    let ended = serve(&settings).await;
    traces::stop();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => failed(&fault),
    }
}

async fn serve(settings: &Settings) -> Result<(), Fault> {
    let listeners = SubmissionListeners::bind(&settings.submission).await?;
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    submission::serve(settings, Clock::system(), listeners, shutdown).await
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("waypost-smtp: {}", fault::error_chain(error));
    ExitCode::FAILURE
}
