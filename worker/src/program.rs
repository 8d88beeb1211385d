//! The program `waypost-worker`: sends accepted messages. `docs/configuration.md` has its
//! settings.

use std::process::ExitCode;

use clap::Parser;
use waypost_core::clock::Clock;
use waypost_core::{process, startup};

/// Waypost's worker: sends accepted messages. Its settings are variables of its
/// environment; `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(name = "waypost-worker", version)]
struct WorkerArguments {}

/// Parses the arguments, of which there are none but `--help` and `--version`, and serves until a
/// signal stops it.
pub fn main() -> ExitCode {
    process::prepare();
    let WorkerArguments {} = WorkerArguments::parse();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let serve = async |settings, shutdown| crate::run(&settings, Clock::system(), shutdown).await;
    let ended = startup::run_program("worker", serve).await;
    startup::exit_status("waypost-worker", ended.map(|()| ExitCode::SUCCESS))
}
