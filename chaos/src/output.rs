//! Progress output, with the time since the start of the run.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

static START: OnceLock<Instant> = OnceLock::new();

/// Time since the start of the run.
pub(crate) fn elapsed() -> Duration {
    START.get_or_init(Instant::now).elapsed()
}

/// Prints a progress line.
pub(crate) fn progress(text: impl Display) {
    println!("{:7.1} s  {text}", elapsed().as_secs_f64());
}
