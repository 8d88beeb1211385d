//! All programs of Waypost in one file, for the image: they share most of their code, and four files
//! would make the image twice as large. The name by which the file is called chooses the program;
//! the image has a link of each name.

use std::env;
use std::path::Path;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let called = env::args_os().next().unwrap_or_default();
    let name = Path::new(&called)
        .file_name()
        .and_then(|name| name.to_str());
    match name {
        Some("waypost-api") => waypost_api::operator::program::main(),
        Some("waypost-worker") => waypost_worker::program::main(),
        Some("waypost-scheduler") => waypost_scheduler::program::main(),
        Some("waypost-smtp") => waypost_api::submission::program::main(),
        _ => {
            eprintln!(
                "waypost: call this file as waypost-api, waypost-worker, waypost-scheduler or waypost-smtp: by a link \
                 of that name"
            );
            ExitCode::FAILURE
        }
    }
}
