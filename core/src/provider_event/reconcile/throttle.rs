//! Limits how often accounts are searched. Local to the process: a new leader starts
//! without pauses, and learns them again from the first answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ids::ProviderAccountId;
use crate::provider::call::RETRY_AFTER_MAX;
use crate::provider::kind::ProviderType;

/// The pause of an account that did not answer.
const NO_ANSWER_PAUSE: Duration = Duration::from_secs(10);
/// The pause of an account that throttled a lookup without naming a time.
const THROTTLED_PAUSE: Duration = Duration::from_secs(30);
/// The pause of an account without a message search. It ends, because the customer may
/// buy one.
const NO_SEARCH_PAUSE: Duration = Duration::from_hours(24);

/// The paused accounts. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub struct LookupThrottle(Arc<Mutex<HashMap<ProviderAccountId, AccountPause>>>);

#[derive(Debug, Clone, Copy)]
struct AccountPause {
    until: Instant,
    has_search: bool,
}

/// How many lookups of an account run together, and the pause after them.
///
/// `SendGrid` allows six requests a minute (page "Email Activity"), and a lookup that
/// finds the message makes two or three. The others publish no limit (Postmark's and
/// Mailgun's sheets); three lookups a second are few beside the sends.
fn rate_limit(provider_type: ProviderType) -> (i64, Duration) {
    match provider_type {
        ProviderType::Sendgrid => (1, Duration::from_secs(20)),
        ProviderType::Postmark | ProviderType::Mailgun | ProviderType::Ses | ProviderType::Smtp => {
            (3, Duration::from_secs(1))
        }
    }
}

/// How many lookups of an account run together.
pub(super) fn batch_max(provider_type: ProviderType) -> i64 {
    rate_limit(provider_type).0
}

/// The pause of an account that throttled a lookup.
pub(super) fn throttled_pause(requested: Option<Duration>) -> Duration {
    requested
        .unwrap_or(THROTTLED_PAUSE)
        .clamp(Duration::from_secs(1), RETRY_AFTER_MAX)
}

impl LookupThrottle {
    /// Accounts that must not be searched now.
    pub(super) fn paused(&self) -> Vec<ProviderAccountId> {
        self.accounts_where(Instant::now(), |_| true)
    }

    /// Accounts that are known to have no message search.
    pub(super) fn without_search(&self) -> Vec<ProviderAccountId> {
        self.accounts_where(Instant::now(), |pause| !pause.has_search)
    }

    pub(super) fn record_lookup(&self, account_id: ProviderAccountId, provider_type: ProviderType) {
        self.pause(account_id, AccountPause::after(rate_limit(provider_type).1));
    }

    pub(super) fn record_throttled(
        &self,
        account_id: ProviderAccountId,
        requested: Option<Duration>,
    ) {
        self.pause(account_id, AccountPause::after(throttled_pause(requested)));
    }

    pub(super) fn record_no_answer(&self, account_id: ProviderAccountId) {
        self.pause(account_id, AccountPause::after(NO_ANSWER_PAUSE));
    }

    pub(super) fn record_no_search(&self, account_id: ProviderAccountId) {
        let pause = AccountPause {
            has_search: false,
            ..AccountPause::after(NO_SEARCH_PAUSE)
        };
        self.pause(account_id, pause);
    }

    /// Pauses an account. A longer pause stays in force.
    fn pause(&self, account_id: ProviderAccountId, pause: AccountPause) {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pauses.entry(account_id).or_insert(pause);
        if known.until < pause.until {
            *known = pause;
        }
    }

    fn accounts_where(
        &self,
        now: Instant,
        matches: impl Fn(&AccountPause) -> bool,
    ) -> Vec<ProviderAccountId> {
        let mut pauses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.retain(|_, pause| pause.until > now);
        let picked = pauses.iter().filter(|(_, pause)| matches(pause));
        picked.map(|(account_id, _)| *account_id).collect()
    }
}

impl AccountPause {
    /// A pause that starts now.
    fn after(wait: Duration) -> Self {
        Self {
            until: Instant::now() + wait,
            has_search: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn account(number: u128) -> ProviderAccountId {
        ProviderAccountId(Uuid::from_u128(number))
    }

    #[test]
    fn an_account_is_paused_for_the_longest_of_its_pauses() {
        let throttle = LookupThrottle::default();
        let start = Instant::now();
        let paused = |after: Duration| {
            let mut paused = throttle.accounts_where(start + after, |_| true);
            paused.sort_unstable();
            paused
        };
        let (sendgrid, postmark, without_search) = (account(1), account(2), account(3));
        throttle.record_lookup(sendgrid, ProviderType::Sendgrid);
        throttle.record_lookup(postmark, ProviderType::Postmark);
        throttle.record_no_search(without_search);
        // A shorter pause neither ends a longer one nor changes what is known.
        throttle.record_lookup(without_search, ProviderType::Sendgrid);
        assert_eq!(throttle.without_search(), [without_search]);
        assert_eq!(paused(Duration::ZERO), [sendgrid, postmark, without_search]);
        assert_eq!(paused(Duration::from_secs(10)), [sendgrid, without_search]);
        throttle.record_throttled(postmark, Some(Duration::from_mins(5)));
        throttle.record_lookup(postmark, ProviderType::Postmark);
        assert_eq!(paused(Duration::from_mins(4)), [postmark, without_search]);
        assert_eq!(paused(Duration::from_hours(23)), [without_search]);
        assert_eq!(paused(Duration::from_hours(25)), []);
    }

    #[test]
    fn a_requested_pause_is_bounded() {
        assert_eq!(throttled_pause(None), THROTTLED_PAUSE);
        assert_eq!(
            throttled_pause(Some(Duration::ZERO)),
            Duration::from_secs(1)
        );
        assert_eq!(throttled_pause(Some(Duration::MAX)), RETRY_AFTER_MAX);
    }
}
