//! The count of wrong passwords and codes of an account. An attempt is counted before the
//! password is checked, so that attempts at the same time count too, and is taken back if it was
//! right. Accounts that do not exist are counted alike, so that the answers do not tell which
//! exist.

mod store;

use chrono::TimeDelta;

use super::{AccountEmail, UserRefusal};
use crate::clock::Clock;
use crate::db::{OrFault, PgPool};
use crate::fault::Fault;

pub use store::delete_old;

/// Wrong passwords and codes of one account within [`WINDOW`].
pub const ATTEMPTS_MAX: i32 = 10;
/// How long wrong passwords and codes count, from the first of them.
pub const WINDOW: TimeDelta = TimeDelta::minutes(15);

/// Counts the attempts of accounts.
pub(super) struct Attempts<'a> {
    pub(super) pool: &'a PgPool,
    pub(super) clock: &'a Clock,
}

impl Attempts<'_> {
    /// Counts an attempt.
    pub(super) async fn take(&self, email: &AccountEmail) -> Result<(), UserRefusal> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.or_fault("count an attempt")?;
        let taken = store::take(&mut connection, email.hash(), now).await?;
        if taken.failures <= ATTEMPTS_MAX {
            return Ok(());
        }
        let wait = taken.window_started_at + WINDOW - now;
        let wait = wait.to_std().unwrap_or_default();
        Err(UserRefusal::TooManyAttempts(wait))
    }

    /// Takes back one attempt, which was right.
    pub(super) async fn give_back(&self, email: &AccountEmail) -> Result<(), Fault> {
        let mut connection = self.pool.acquire().await.or_fault("count an attempt")?;
        store::give_back(&mut connection, email.hash()).await
    }

    /// Forgets the attempts of an account, whose user has proved to be the right one.
    pub(super) async fn clear(&self, email: &AccountEmail) -> Result<(), Fault> {
        let mut connection = self.pool.acquire().await.or_fault("count an attempt")?;
        store::delete(&mut connection, email.hash()).await
    }
}
