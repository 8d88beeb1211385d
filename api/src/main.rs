//! `waypost-api`: serves the API and runs the operator's commands.

use std::process::ExitCode;

use clap::Parser;
use waypost_api::operator::{self, Arguments};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    match operator::run(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("waypost-api: {}", waypost_core::fault::error_chain(&*error));
            ExitCode::FAILURE
        }
    }
}
