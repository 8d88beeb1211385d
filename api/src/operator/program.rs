//! The program `waypost-api`: serves the API and runs the operator's commands.

use std::process::ExitCode;

use clap::Parser;
use waypost_core::{process, startup};

use super::ApiArguments;

/// Parses the arguments and runs their command.
pub fn main() -> ExitCode {
    process::prepare();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    let ended = super::run(ApiArguments::parse()).await;
    startup::exit_status("waypost-api", ended)
}
