//! Manages an account at its provider: its domains, and the URL for its event webhook. The
//! adapters hold these conversations; their results are normalised here.
//!
//! Every conversation reads before it changes something, so a conversation repeated after
//! a crash finds what the first one changed.

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::domain::FoundDomain;
use super::event_secrets::EventSecrets;
use super::outcome::reason;

/// Where a provider should report events.
#[derive(Debug, Clone)]
pub struct EventTarget {
    /// The account's `webhookUrl`.
    pub url: EventUrl,
    /// The secrets that verify its calls so far.
    pub secrets: Option<EventSecrets>,
}

/// The webhook URL: it contains the account's token.
#[derive(Clone)]
pub struct EventUrl(pub String);

/// URLs with a token do not belong in logs.
impl std::fmt::Debug for EventUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventUrl")
    }
}

/// The result of registering an event webhook.
#[derive(Debug, Clone)]
pub enum Registration {
    /// The webhook is registered, and these secrets verify its calls.
    Registered(EventSecrets),
    /// Nothing was changed: the steps for the customer.
    ByHand { steps: Vec<String> },
    /// The provider refused; the same call would fail again.
    Refused {
        reason: String,
        /// The steps for the customer.
        steps: Vec<String>,
    },
    /// No usable reply: a rate limit, a failure, a network device.
    Undecided { reason: String },
}

impl Registration {
    /// The result for a provider without event webhooks.
    pub(super) fn not_offered() -> Self {
        Self::Refused {
            reason: "this provider reports no events".to_owned(),
            steps: Vec::new(),
        }
    }

    pub(super) fn refused(reply: &ProviderReply, text: &str, steps: Vec<String>) -> Self {
        Self::Refused {
            reason: reason(reply.status, text),
            steps,
        }
    }

    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }
}

impl From<UnusableCredentials> for Registration {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}

/// The result of adding, verifying or removing a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainResult {
    /// The account has the domain, in this state.
    Known(FoundDomain),
    /// The account does not have the domain, or no longer.
    Missing,
    /// The credentials may not read the account's domains.
    NotVisible { reason: String },
    /// The provider refused; the same call would fail again.
    Refused { reason: String },
    /// No usable reply: a rate limit, a failure, a network device.
    Undecided { reason: String },
}

impl DomainResult {
    /// The result for a provider without a domain API.
    pub(super) fn not_offered() -> Self {
        Self::NotVisible {
            reason: "this provider has no API for domains".to_owned(),
        }
    }

    pub(super) fn not_visible(reply: &ProviderReply, text: &str) -> Self {
        Self::NotVisible {
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn refused(reply: &ProviderReply, text: &str) -> Self {
        Self::Refused {
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }

    /// The result of a change that the provider did not make: refused if the status is 400
    /// to 499, else undecided.
    pub(super) fn not_changed(reply: &ProviderReply, text: &str) -> Self {
        match reply.status {
            400..=499 => Self::refused(reply, text),
            _ => Self::undecided(reply, text),
        }
    }
}

impl From<UnusableCredentials> for DomainResult {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}
