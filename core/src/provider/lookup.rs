//! Looks up whether a provider has a mail, after the reply to its send was lost. The
//! adapters hold the conversation; the result is normalised here.
//!
//! A search proves only what it finds. Every provider's search lags behind the sends by
//! seconds or minutes, without a promise, so [`LookupResult::NotFound`] says nothing about
//! a mail sent a moment ago. A mail counts as found only if the reply itself shows the
//! attempt's id: if a provider ignored the filter and listed the account's latest mail
//! instead, a lost mail must not become a sent one.

use std::time::Duration;

use url::form_urlencoded;

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::outcome::{reason, unusable_reply};
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::ids::SendAttemptId;

/// The longest provider message id accepted from a search, in bytes.
const ID_BYTES_MAX: usize = 255;

/// The mail to look up.
#[derive(Clone)]
pub struct MessageQuery {
    /// The attempt whose id travelled with the mail.
    pub attempt_id: SendAttemptId,
    pub started_at: Timestamp,
    /// The recipient: it narrows a search that cannot filter by our ids.
    pub recipient: EmailAddress,
}

/// Addresses do not belong in logs.
impl std::fmt::Debug for MessageQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageQuery")
            .field("attempt_id", &self.attempt_id)
            .field("started_at", &self.started_at)
            .finish_non_exhaustive()
    }
}

/// The result of a look-up. Each variant has a different next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupResult {
    Taken {
        /// The provider's id of the mail, as in its events.
        provider_message_id: Option<String>,
    },
    /// The search does not show the mail, or not yet.
    NotFound,
    /// The provider throttles the look-ups.
    Throttled {
        /// The wait that the provider names.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// No usable reply: a failure, or a network device answered.
    Undecided { reason: String },
    /// The provider has no search, or none for this account.
    NoSearch { reason: String },
}

impl LookupResult {
    /// The result for a provider without a search.
    pub(super) fn not_offered() -> Self {
        Self::NoSearch {
            reason: "this provider has no search for mail".to_owned(),
        }
    }

    pub(super) fn no_search(reply: &ProviderReply, text: &str) -> Self {
        Self::NoSearch {
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }

    /// The result that holds for every provider; `None` if the adapter must decide. `text`
    /// is the provider's text about a limit.
    pub(super) fn common(reply: &ProviderReply, now: Timestamp, text: &str) -> Option<Self> {
        match (reply.status, unusable_reply(reply)) {
            (420 | 429, _) => Some(Self::Throttled {
                retry_after: reply.limit_wait(now),
                reason: reason(reply.status, text),
            }),
            (_, Some(why)) => Some(Self::undecided(reply, why)),
            (_, None) => None,
        }
    }

    /// The mail was found under this id. An id that does not fit an index is left out; the
    /// mail still counts as found.
    pub(super) fn taken(provider_message_id: Option<&str>) -> Self {
        let id = provider_message_id.map(str::trim).filter(|id| {
            (1..=ID_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control)
        });
        Self::Taken {
            provider_message_id: id.map(str::to_owned),
        }
    }
}

impl From<UnusableCredentials> for LookupResult {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}

/// A percent-encoded query of these names and values.
pub(super) fn query_string(pairs: &[(&str, &str)]) -> String {
    let mut query_string = form_urlencoded::Serializer::new(String::new());
    query_string.extend_pairs(pairs);
    query_string.finish()
}
