//! The program `waypost-scheduler`: runs the periodic tasks. `docs/configuration.md` has its
//! settings.

use std::process::ExitCode;

use clap::Parser;
use waypost_core::clock::Clock;
use waypost_core::{process, startup};

/// Waypost's scheduler: runs the periodic tasks, such as recovering jobs and leases, creating
/// partitions and deleting expired messages. Its settings are environment variables;
/// `waypost-api config` prints them.
#[derive(Debug, Parser)]
#[command(name = "waypost-scheduler", version)]
struct SchedulerArguments {}

/// Parses the arguments, of which there are none but `--help` and `--version`, and serves until a
/// signal stops it.
pub fn main() -> ExitCode {
    process::prepare();
    let SchedulerArguments {} = SchedulerArguments::parse();
    run()
}

// One thread is enough: Postgres does the work.
#[tokio::main(worker_threads = 1)]
async fn run() -> ExitCode {
    let serve = async |settings, shutdown| crate::run(&settings, Clock::system(), shutdown).await;
    let ended = startup::run_program("scheduler", serve).await;
    startup::exit_status("waypost-scheduler", ended.map(|()| ExitCode::SUCCESS))
}
