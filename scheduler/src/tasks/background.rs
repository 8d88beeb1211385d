//! Work that a task starts and does not wait for: a server or a provider may be slow to answer.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tracing::warn;
use waypost_core::fault::Fault;

/// Starts the work on each of those that are due, each with a permit. Only one task acquires
/// these permits, and it leases no more than are free, so there is one for each. A failure is
/// logged with `message`.
pub(super) fn start<T, F>(
    permits: &Arc<Semaphore>,
    due: Vec<T>,
    message: &'static str,
    work: impl Fn(T) -> F,
) where
    F: Future<Output = Result<(), Fault>> + Send + 'static,
{
    for one in due {
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            break;
        };
        let working = work(one);
        tokio::spawn(async move {
            if let Err(fault) = working.await {
                warn!(cause = fault.chain(), "{message}");
            }
            drop(permit);
        });
    }
}
