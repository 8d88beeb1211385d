//! `waypost-worker`: sends accepted messages. It takes no arguments; see
//! `docs/configuration.md` for its settings.

use std::process::ExitCode;

use clap::Parser;
use tokio_util::sync::CancellationToken;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::telemetry::traces;
use waypost_core::{fault, process, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Waypost's worker: sends accepted messages. Its settings are variables of its
/// environment; `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(version)]
struct WorkerArguments {}

fn main() -> ExitCode {
    process::prepare();
    let WorkerArguments {} = WorkerArguments::parse();
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
    telemetry::instruments::start("worker");
    if let Err(fault) = traces::start(settings.monitoring.traces.as_ref(), "worker") {
        return failed(&fault);
    }
    settings.warn_of_unknown();
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    let ended = waypost_worker::run(&settings, Clock::system(), shutdown).await;
    traces::stop();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("waypost-worker: {}", fault::error_chain(error));
    ExitCode::FAILURE
}
