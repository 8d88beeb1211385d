//! The time of day.
//!
//! The simulator uses the real time, as providers do: signatures expire and waits end by
//! the real clock, whatever time a test has set for Waypost.

use std::time::SystemTime;

use chrono::{DateTime, Utc};

#[expect(
    clippy::disallowed_methods,
    reason = "the simulator is independent of Waypost's clock"
)]
pub(crate) fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}
