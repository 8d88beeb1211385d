//! What is kept up at a provider besides sending: the domains of an account, and the
//! URL that it tells of events under. The adapters hold these conversations; what
//! comes of them is said here in our own words.
//!
//! Every conversation looks before it changes something, so that one which is held
//! again after a crash finds what the first one did.

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use super::domain::FoundDomain;
use super::event_secrets::EventSecrets;
use super::outcome::reason;

/// Where a provider is to tell of events.
#[derive(Debug, Clone)]
pub struct EventTarget {
    /// The account's `webhookUrl`.
    pub url: EventUrl,
    /// What its calls are verified with so far.
    pub secrets: Option<EventSecrets>,
}

/// The URL itself: it carries the account's token.
#[derive(Clone)]
pub struct EventUrl(pub String);

/// URLs with a token do not belong into logs.
impl std::fmt::Debug for EventUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventUrl")
    }
}

/// What came of asking a provider to tell of events.
#[derive(Debug, Clone)]
pub enum Registration {
    /// It does from now on, and these verify its calls.
    Registered(EventSecrets),
    /// Nothing was asked: this is what to do by hand, step by step.
    ByHand { steps: Vec<String> },
    /// The provider refused. The same call would fare alike.
    Refused {
        reason: String,
        /// What to do about it, or by hand.
        steps: Vec<String>,
    },
    /// No answer: a limit, a failure, a network layer.
    Undecided { reason: String },
}

impl Registration {
    /// A provider whose API offers no such thing.
    pub(super) fn not_offered() -> Self {
        Self::Refused {
            reason: "this provider tells of no events".to_owned(),
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

/// What came of asking a provider to add, check or remove one domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainAnswer {
    /// The account has it, and so it stands.
    Known(FoundDomain),
    /// The account does not have it, or no longer.
    Missing,
    /// The credentials may not see the account's domains.
    NotVisible { reason: String },
    /// The provider refused. The same call would fare alike.
    Refused { reason: String },
    /// No answer: a limit, a failure, a network layer.
    Undecided { reason: String },
}

impl DomainAnswer {
    /// A provider whose API knows no domains.
    pub(super) fn not_offered() -> Self {
        Self::NotVisible {
            reason: "this provider tells of no domains".to_owned(),
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

    /// What a change that the provider did not make means: 400 to 499 is its
    /// refusal, anything else no answer to it.
    pub(super) fn unmade(reply: &ProviderReply, text: &str) -> Self {
        match reply.status {
            400..=499 => Self::refused(reply, text),
            _ => Self::undecided(reply, text),
        }
    }
}

impl From<UnusableCredentials> for DomainAnswer {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}
