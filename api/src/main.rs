//! `waypost-api`: serves the API and runs the operator's commands.

use std::process::ExitCode;

use clap::Parser;
use waypost_api::operator::{self, ApiArguments};
use waypost_core::{fault, process};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    process::prepare();
    run()
}

#[tokio::main]
async fn run() -> ExitCode {
    match operator::run(ApiArguments::parse()).await {
        Ok(status) => status,
        Err(error) => {
            eprintln!("waypost-api: {}", fault::error_chain(&*error));
            ExitCode::FAILURE
        }
    }
}
