//! What providers tell about mail they took, in our own words. A reader beside each
//! adapter turns a verified request into [`ProviderEvent`]s at once; who records
//! them need not know which provider spoke.
//!
//! An event finds its recipient by the ids that travelled with the mail
//! ([`super::mail::TAG_MESSAGE`] and its neighbours), so it may come before the
//! answer to the send. Only where a provider dropped them (delayed bounces) is the
//! provider's own message id looked for.

use serde_json::Value;

use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::ids::{MessageId, SendAttemptId};

/// One thing that happened to one recipient's copy, as the provider told it.
#[derive(Clone)]
pub struct ProviderEvent {
    /// What tells it from all other events of the account, also when it is told
    /// again: the provider's own event id, or what the reader made up from the
    /// parts that cannot differ.
    pub id: String,
    pub happening: ProviderEventKind,
    /// When it happened, by the provider's clock.
    pub occurred_at: Timestamp,
    /// Our ids, where they came back.
    pub copy: Option<EventIds>,
    /// The provider's id of the mail, in the form in which the send's answer gave it.
    pub provider_message_id: Option<String>,
    /// The address it is about, where the provider says so.
    pub recipient: Option<EmailAddress>,
    /// Particulars that our history keeps: some of `reason`, `smtpCode`, `url`,
    /// `userAgent`. Never an address.
    pub details: serde_json::Map<String, Value>,
    /// The provider's own words for it, as they came: its JSON, cut off after
    /// 16 KiB. Holds addresses; kept sealed.
    pub raw: Vec<u8>,
}

/// Our ids, as they travelled with the mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventIds {
    pub message_id: MessageId,
    /// The recipient's position in it.
    pub position: i32,
    /// The attempt that put it on the wire.
    pub attempt_id: SendAttemptId,
}

/// What happened to a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderEventKind {
    /// The provider took it, or says that it did.
    Sent,
    Delivered,
    /// The receiving side put it off; the provider goes on trying.
    Deferred,
    /// It came back, or was refused for good.
    Bounced(BounceType),
    /// The provider dropped it before it tried.
    Dropped,
    Opened {
        /// By a machine: a prefetcher or a scanner.
        is_bot: bool,
    },
    /// A link in it was followed; `details.url` says which.
    Clicked {
        is_bot: bool,
    },
    /// It was marked as spam.
    Complained,
    /// The recipient unsubscribed at the provider.
    Unsubscribed,
}

/// The three kinds of bounce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BounceType {
    /// The address does not exist or never will take mail.
    Hard,
    /// The address is fine; its mailbox was full, its server away, for longer than
    /// the provider tries.
    Soft,
    /// The receiving side refused this mail or this sender; the address is fine.
    Block,
}

impl BounceType {
    /// The word in webhooks and in the history: `hard`, `soft`, `block`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hard => "hard",
            Self::Soft => "soft",
            Self::Block => "block",
        }
    }
}

/// Addresses do not belong into logs.
impl std::fmt::Debug for ProviderEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderEvent")
            .field("id", &self.id)
            .field("happening", &self.happening)
            .field("copy", &self.copy)
            .finish_non_exhaustive()
    }
}
