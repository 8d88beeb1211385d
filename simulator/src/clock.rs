//! The time of day, from one place.
//!
//! The simulator lives in real time, as the providers do: signatures expire and waits end by the
//! clock on the wall, whatever time a test has given to Waypost.

use std::time::SystemTime;

use chrono::{DateTime, Utc};

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is no part of Waypost and keeps its own time"
)]
pub(crate) fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}
