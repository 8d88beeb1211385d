//! Whether a provider has a mail: asked where the answer to its send was lost. The
//! adapters hold the conversation; what comes of it is said here in our own words.
//!
//! A search proves only what it finds. All of them lag behind the sends, by seconds or
//! minutes and without a promise, so [`LookupResult::NotFound`] says nothing of a mail that
//! was sent a moment ago. And a mail counts as found only where the answer itself shows
//! the attempt's id: a provider that did not understand the filter, and lists the
//! account's latest mail instead, must not make a lost mail a sent one.

use std::time::Duration;

use url::form_urlencoded;

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::outcome::{no_answer, reason};
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::ids::SendAttemptId;

/// The longest id of a provider that is taken from a search, in bytes.
const ID_BYTES_MAX: usize = 255;

/// The mail that is asked for.
#[derive(Clone)]
pub struct MessageQuery {
    /// The attempt whose id travelled with it.
    pub attempt_id: SendAttemptId,
    pub started_at: Timestamp,
    /// Whom it was sent to: it narrows a search that knows no ids of ours.
    pub recipient: EmailAddress,
}

/// Addresses do not belong into logs.
impl std::fmt::Debug for MessageQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sought")
            .field("attempt_id", &self.attempt_id)
            .field("started_at", &self.started_at)
            .finish_non_exhaustive()
    }
}

/// What came of asking for a mail. The variants say what is done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupResult {
    Taken {
        /// Its name there, as events repeat it.
        provider_message_id: Option<String>,
    },
    /// The search does not show it: not yet, or not at all.
    NotFound,
    /// The provider asks us to slow down.
    Throttled {
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// No answer to the question: a failure, a network layer.
    Undecided { reason: String },
    /// The provider has no search, or none for this account.
    NoSearch { reason: String },
}

impl LookupResult {
    /// A provider that cannot be asked.
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

    /// What holds for every provider, before its own words are read; nothing for what
    /// the adapter must decide. `text` is what the provider says of a limit.
    pub(super) fn common(reply: &ProviderReply, now: Timestamp, text: &str) -> Option<Self> {
        match (reply.status, no_answer(reply)) {
            (420 | 429, _) => Some(Self::Throttled {
                retry_after: reply.limit_wait(now),
                reason: reason(reply.status, text),
            }),
            (_, Some(why)) => Some(Self::undecided(reply, why)),
            (_, None) => None,
        }
    }

    /// The mail was found under this name. One that no index could take is left out:
    /// what was proved is proved without it.
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

/// A query of these names and values, percent-encoded.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs);
    query.finish()
}
