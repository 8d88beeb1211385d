//! The attempts of a message, as its owner reads them: one call to one provider for
//! one recipient each. They are written by `queue::attempt`, before the call, and
//! closed by `queue::outcome`.

pub mod store;

use std::time::Duration;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::ids::{ProviderAccountId, SendAttemptId};

/// Attempts of one message that are shown: the newest.
pub const ATTEMPTS_SHOWN: i64 = 500;

/// One call to one provider.
#[derive(Debug, Clone)]
pub struct AttemptItem {
    pub id: SendAttemptId,
    /// The hash of the recipient's address.
    pub address_hash: AddressHash,
    pub provider_account_id: ProviderAccountId,
    /// Which provider; known of accounts that are gone too.
    pub provider_type: String,
    pub started_at: Timestamp,
    /// When its outcome was known; nothing while the call is under way.
    pub finished_at: Option<Timestamp>,
    /// Its outcome in the contract's words; `PENDING` while the call is under way.
    pub outcome: String,
    /// The status of the provider's answer, where there was one.
    pub status_code: Option<i32>,
    /// What the provider said, or what went wrong.
    pub reason: Option<String>,
}

impl AttemptItem {
    /// How long it took until its outcome was known. Never negative, though an
    /// event may have proved the outcome by another machine's clock.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let finished_at = self.finished_at?;
        Some((finished_at - self.started_at).to_std().unwrap_or_default())
    }
}
