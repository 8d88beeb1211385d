//! What providers report about mail that they took, normalised. A reader beside each
//! adapter turns a verified request into [`ProviderEvent`]s; the code that records them
//! does not depend on the provider.
//!
//! An event finds its recipient by the ids that travelled with the mail
//! ([`super::mail::TAG_MESSAGE`] and the constants next to it), so it may arrive before
//! the reply to the send. If the provider dropped the ids (delayed bounces), the provider's
//! own message id is used.

use serde_json::Value;

use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::ids::{MessageId, SendAttemptId};

/// One thing that happened to the mail of one recipient, as the provider reported it.
#[derive(Clone)]
pub struct ProviderEvent {
    /// Identifies the event within the account, also when it is reported again: the
    /// provider's own event id, or one that the reader derives from the parts that cannot
    /// differ.
    pub id: String,
    pub kind: ProviderEventKind,
    /// When it happened, by the provider's clock.
    pub occurred_at: Timestamp,
    /// Our ids, if the provider returned them.
    pub ids: Option<EventIds>,
    /// The provider's id of the mail, in the form of the reply to the send.
    pub provider_message_id: Option<String>,
    /// The address it is about, if the provider names it.
    pub recipient: Option<EmailAddress>,
    /// Details for the message history: some of `reason`, `smtpCode`, `url`, `userAgent`.
    /// Never an address.
    pub details: serde_json::Map<String, Value>,
    /// The provider's JSON, cut off after 16 KiB. It holds addresses and is stored sealed.
    pub raw: Vec<u8>,
}

/// Our ids, as they travelled with the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventIds {
    pub message_id: MessageId,
    /// The recipient's position in the message. `None` if the mail is shared: the event's
    /// address says which recipient it is about.
    pub position: Option<i32>,
    /// The attempt that sent the mail; of a shared mail, that of its first recipient.
    pub attempt_id: SendAttemptId,
}

/// The kind of a provider event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderEventKind {
    /// The provider took the mail.
    Sent,
    Delivered,
    /// The receiving server deferred it; the provider keeps trying.
    Deferred,
    /// It bounced, or the receiving server rejected it for good.
    Bounced(BounceType),
    /// The provider dropped it before the first try.
    Dropped,
    Opened {
        /// Whether a machine opened it: a prefetcher or a scanner.
        is_bot: bool,
    },
    /// A link in it was followed; `details.url` says which.
    Clicked {
        is_bot: bool,
    },
    /// The recipient marked it as spam.
    Complained,
    /// The recipient unsubscribed at the provider.
    Unsubscribed,
}

impl ProviderEventKind {
    /// The name in the metrics, as that of the event that follows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Deferred => "DEFERRED",
            Self::Bounced(_) => "BOUNCED",
            Self::Dropped => "DROPPED",
            Self::Opened { .. } => "OPENED",
            Self::Clicked { .. } => "CLICKED",
            Self::Complained => "COMPLAINED",
            Self::Unsubscribed => "UNSUBSCRIBED",
        }
    }
}

/// The kinds of bounce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceType {
    /// The address does not exist or never accepts mail.
    Hard,
    /// The address is valid; its mailbox was full or its server unreachable for longer
    /// than the provider tries.
    Soft,
    /// The receiving server refused this mail or this sender; the address is valid.
    Block,
}

impl BounceType {
    /// The name in webhooks and in the history: `hard`, `soft`, `block`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
            Self::Block => "block",
        }
    }
}

/// Addresses do not belong in logs.
impl std::fmt::Debug for ProviderEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderEvent")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("ids", &self.ids)
            .finish_non_exhaustive()
    }
}
