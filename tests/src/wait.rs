//! Waiting for a state, with a time limit. The tests sleep nowhere else.

use std::time::Duration;

use tokio::time::Instant;

/// Time limit of a wait. Builds and other tests share the machine, so it is long; a test
/// that passes does not wait for it.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often the state is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Waits until `reached` returns true.
///
/// # Panics
/// If that takes longer than [`WAIT_MAX`].
pub async fn wait_until(what: &str, reached: impl AsyncFn() -> bool) {
    assert!(
        wait_within(WAIT_MAX, reached).await,
        "not reached within {WAIT_MAX:?}: {what}"
    );
}

/// Waits until `reached` returns true, at most for `bound`; false if it did not.
pub async fn wait_within(bound: Duration, reached: impl AsyncFn() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if reached().await {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
