//! `waypost-scheduler`: runs the periodic tasks. It takes no arguments; its settings are in
//! `docs/configuration.md`.

use std::process::ExitCode;

use clap::Parser;
use tokio_util::sync::CancellationToken;
use waypost_core::clock::Clock;
use waypost_core::config::Settings;
use waypost_core::telemetry::traces;
use waypost_core::{fault, process, telemetry};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Waypost's scheduler: runs the periodic tasks, such as recovering jobs and leases, creating
/// partitions and deleting expired messages. Its settings are environment variables;
/// `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(version)]
struct SchedulerArguments {}

fn main() -> ExitCode {
    process::prepare();
    let SchedulerArguments {} = SchedulerArguments::parse();
    run()
}

// One thread is enough: Postgres does the work.
#[tokio::main(worker_threads = 1)]
async fn run() -> ExitCode {
    let settings = match Settings::from_env() {
        Ok(settings) => settings,
        Err(error) => return failed(&error),
    };
    telemetry::init(&settings.log.filter, settings.log.format);
    telemetry::log_panics();
    telemetry::instruments::start("scheduler");
    if let Err(fault) = traces::start(settings.monitoring.traces.as_ref(), "scheduler") {
        return failed(&fault);
    }
    settings.warn_of_unknown();
    let shutdown = CancellationToken::new();
    tokio::spawn(telemetry::cancel_on_signal(shutdown.clone()));
    let ended = waypost_scheduler::run(&settings, Clock::system(), shutdown).await;
    traces::stop();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &(dyn std::error::Error + 'static)) -> ExitCode {
    eprintln!("waypost-scheduler: {}", fault::error_chain(error));
    ExitCode::FAILURE
}
