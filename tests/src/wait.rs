//! Waiting for a state, with a bound. The one place of the tests that sleeps.

use std::time::Duration;

use tokio::time::Instant;

/// How long a state may take to come about. Builds and other tests share the
/// machine, so it is generous; a test that passes never waits for it.
pub const WAIT_MAX: Duration = Duration::from_secs(20);
/// How often a state is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until `reached` says yes.
///
/// # Panics
/// When that takes longer than [`WAIT_MAX`].
pub async fn wait_until(what: &str, reached: impl AsyncFn() -> bool) {
    assert!(
        wait_within(WAIT_MAX, reached).await,
        "not reached within {WAIT_MAX:?}: {what}"
    );
}

/// Waits until `reached` says yes, at most so long; false where it never did.
pub async fn wait_within(bound: Duration, reached: impl AsyncFn() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if reached().await {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
