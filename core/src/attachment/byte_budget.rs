//! The bytes of large requests and files that a process holds at the same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a permit of the semaphore.
const UNIT: u64 = 1 << 10;

/// A number of bytes to share. Cheap to clone; clones share it. Who needs more than is left
/// is refused and does not wait: a waiting request would hold what it has.
#[derive(Debug, Clone)]
pub struct ByteBudget {
    units: Arc<Semaphore>,
}

/// Bytes of a [`ByteBudget`] that are in use until this is dropped.
#[derive(Debug)]
pub struct ReservedBytes {
    _permit: OwnedSemaphorePermit,
}

/// The process holds as many bytes of requests and files as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the memory for large requests is in use")]
pub struct BudgetExceeded;

impl ByteBudget {
    /// A budget of `bytes`.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let units = usize::try_from(bytes / UNIT).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))),
        }
    }

    /// Takes `bytes`, rounded up to whole KiB.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn reserve(&self, bytes: u64) -> Result<ReservedBytes, BudgetExceeded> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| BudgetExceeded)?;
        let permit = Arc::clone(&self.units).try_acquire_many_owned(units);
        Ok(ReservedBytes {
            _permit: permit.map_err(|_| BudgetExceeded)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_reserved_than_there_is_and_all_comes_back() {
        let budget = ByteBudget::new(10 << 10);
        let first = budget.reserve(6 << 10).unwrap();
        assert!(budget.reserve((4 << 10) + 1).is_err());
        let second = budget.reserve(4 << 10).unwrap();
        assert!(budget.reserve(1).is_err());
        drop(first);
        assert!(budget.reserve(6 << 10).is_ok());
        drop(second);
        assert!(budget.reserve(10 << 10).is_ok());
        assert!(budget.reserve(u64::MAX).is_err());
    }
}
