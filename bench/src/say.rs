//! Saying what happens, with the time since the beginning.

use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

static BEGUN: OnceLock<Instant> = OnceLock::new();

/// How long the run has lasted.
pub(crate) fn elapsed() -> Duration {
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// Prints a line of the run's diary.
pub(crate) fn say(text: impl Display) {
    println!("{:7.1} s  {text}", elapsed().as_secs_f64());
}
