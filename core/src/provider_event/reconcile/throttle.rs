//! How often accounts are asked. A process's own memory: a scheduler that takes the
//! lead knows nothing of it, asks once, and learns the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ids::ProviderAccountId;
use crate::provider::call::RETRY_AFTER_MAX;
use crate::provider::kind::ProviderType;

/// How long an account is left alone that gave no answer.
const UNANSWERED_WAIT: Duration = Duration::from_secs(10);
/// How long one is left alone that asked for it without saying for how long.
const THROTTLED_WAIT: Duration = Duration::from_secs(30);
/// How long it is remembered that an account has no search: it may buy one.
const WITHOUT_SEARCH: Duration = Duration::from_hours(24);

/// The accounts that are left alone. Cheap to clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct LookupThrottle(Arc<Mutex<HashMap<ProviderAccountId, AccountPause>>>);

/// How long an account is left alone, and why.
#[derive(Debug, Clone, Copy)]
struct AccountPause {
    until: Instant,
    has_search: bool,
}

/// How many looks are made at an account together, and how long it is left alone
/// after them.
///
/// `SendGrid` takes six requests a minute (page "Email Activity"), and a look that finds
/// something makes two or three. The others publish no figure (Postmark's and
/// Mailgun's sheets): three a second are nothing beside the sends.
fn pace(provider_type: ProviderType) -> (i64, Duration) {
    match provider_type {
        ProviderType::Sendgrid => (1, Duration::from_secs(20)),
        ProviderType::Postmark | ProviderType::Mailgun | ProviderType::Ses | ProviderType::Smtp => {
            (3, Duration::from_secs(1))
        }
    }
}

/// How many looks are made at an account together.
pub(super) fn at_once(provider_type: ProviderType) -> i64 {
    pace(provider_type).0
}

/// How long an account is left alone that asked for it.
pub(super) fn throttle_wait(asked: Option<Duration>) -> Duration {
    asked
        .unwrap_or(THROTTLED_WAIT)
        .clamp(Duration::from_secs(1), RETRY_AFTER_MAX)
}

impl LookupThrottle {
    /// Accounts that are not to be asked now.
    pub(super) fn resting(&self) -> Vec<ProviderAccountId> {
        self.pick(Instant::now(), |_| true)
    }

    /// Accounts that are known to have no search.
    pub(super) fn without_search(&self) -> Vec<ProviderAccountId> {
        self.pick(Instant::now(), |rest| !rest.has_search)
    }

    pub(super) fn looked(&self, account_id: ProviderAccountId, provider_type: ProviderType) {
        self.rest(account_id, AccountPause::after(pace(provider_type).1));
    }

    pub(super) fn throttled(&self, account_id: ProviderAccountId, asked: Option<Duration>) {
        self.rest(account_id, AccountPause::after(throttle_wait(asked)));
    }

    pub(super) fn unanswered(&self, account_id: ProviderAccountId) {
        self.rest(account_id, AccountPause::after(UNANSWERED_WAIT));
    }

    pub(super) fn cannot_be_searched(&self, account_id: ProviderAccountId) {
        let rest = AccountPause {
            has_search: false,
            ..AccountPause::after(WITHOUT_SEARCH)
        };
        self.rest(account_id, rest);
    }

    /// A rest never ends sooner because of another one.
    fn rest(&self, account_id: ProviderAccountId, rest: AccountPause) {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = rests.entry(account_id).or_insert(rest);
        if known.until < rest.until {
            *known = rest;
        }
    }

    fn pick(&self, now: Instant, wanted: impl Fn(&AccountPause) -> bool) -> Vec<ProviderAccountId> {
        let mut rests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rests.retain(|_, rest| rest.until > now);
        let picked = rests.iter().filter(|(_, rest)| wanted(rest));
        picked.map(|(account_id, _)| *account_id).collect()
    }
}

impl AccountPause {
    /// From now on, because it was asked.
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
    fn accounts_rest_as_long_as_they_must() {
        let paces = LookupThrottle::default();
        let start = Instant::now();
        let resting = |after: Duration| {
            let mut resting = paces.pick(start + after, |_| true);
            resting.sort_unstable();
            resting
        };
        let (sendgrid, postmark, poor) = (account(1), account(2), account(3));
        paces.looked(sendgrid, ProviderType::Sendgrid);
        paces.looked(postmark, ProviderType::Postmark);
        paces.cannot_be_searched(poor);
        // A shorter rest does not end a longer one, nor what is known.
        paces.looked(poor, ProviderType::Sendgrid);
        assert_eq!(paces.without_search(), [poor]);
        assert_eq!(resting(Duration::ZERO), [sendgrid, postmark, poor]);
        assert_eq!(resting(Duration::from_secs(10)), [sendgrid, poor]);
        paces.throttled(postmark, Some(Duration::from_mins(5)));
        paces.looked(postmark, ProviderType::Postmark);
        assert_eq!(resting(Duration::from_mins(4)), [postmark, poor]);
        assert_eq!(resting(Duration::from_hours(23)), [poor]);
        assert_eq!(resting(Duration::from_hours(25)), []);
    }

    #[test]
    fn what_a_provider_asks_for_is_bounded() {
        assert_eq!(throttle_wait(None), THROTTLED_WAIT);
        assert_eq!(throttle_wait(Some(Duration::ZERO)), Duration::from_secs(1));
        assert_eq!(throttle_wait(Some(Duration::MAX)), RETRY_AFTER_MAX);
    }
}
