//! Messages: accepted requests to send, and their recipients.
//!
//! A *message* is one accepted request. Each of its addresses is a *recipient* with its
//! own status, attempts and history; the message shows their aggregate. Recipients are
//! sent in *chunks* of up to [`CHUNK_RECIPIENTS`]. A chunk is one row of the outbox and
//! one job.

pub mod compose;
pub mod content;
pub mod envelope;
pub mod list;
pub mod own_content;
pub mod simulated_outcome;
pub mod status;
pub mod store;

use std::time::Duration;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::ids::{MessageId, ProviderAccountId, SendAttemptId, TemplateId, TemplateVersionId};
pub use simulated_outcome::SimulatedOutcome;
pub use status::MessageStatus;

/// Recipients that one job sends to, at most.
pub const CHUNK_RECIPIENTS: i32 = 100;
/// Attempts of one message that are listed: the newest.
pub const ATTEMPTS_SHOWN: i64 = 500;

/// Where a recipient stands in a mail. In a private mail every recipient is `To`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "recipient_kind", rename_all = "UPPERCASE")]
pub enum RecipientKind {
    #[default]
    To,
    Cc,
    Bcc,
}

impl RecipientKind {
    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::To => "TO",
            Self::Cc => "CC",
            Self::Bcc => "BCC",
        }
    }
}

/// A message in a list. No `Debug`: it must not be logged.
#[derive(Clone)]
pub struct MessageItem {
    pub id: MessageId,
    /// The account resolved at acceptance, until the first recipient was sent through
    /// another one.
    pub provider_account_id: ProviderAccountId,
    pub from_address: String,
    /// The first recipient's hash.
    pub to_hash: AddressHash,
    pub subject: String,
    /// The aggregate of its recipients' statuses.
    pub status: MessageStatus,
    pub tags: Vec<String>,
    pub is_test: bool,
    pub recipient_count: i32,
    /// The first recipient's message id at the provider.
    pub provider_message_id: Option<String>,
    pub created_at: Timestamp,
    /// When a provider first accepted a recipient.
    pub sent_at: Option<Timestamp>,
    /// When a mail server first accepted a recipient.
    pub delivered_at: Option<Timestamp>,
}

/// A message as shown alone. No `Debug`: it must not be logged.
#[derive(Clone)]
pub struct MessageRecord {
    pub item: MessageItem,
    /// The recipients of kind `To`, in the order of the request.
    pub to: Vec<AddressHash>,
    pub metadata: Option<serde_json::Value>,
    /// Not sent before this time.
    pub scheduled_at: Option<Timestamp>,
    pub template_id: Option<TemplateId>,
    /// The version that was rendered.
    pub template_version_id: Option<TemplateVersionId>,
    /// Its number; `None` also if the template was deleted.
    pub template_version_number: Option<i32>,
}

/// One recipient of a message. No `Debug`: its events must not be logged.
#[derive(Clone)]
pub struct RecipientItem {
    /// The position in the request, from 0.
    pub position: i32,
    /// The hash of the address.
    pub address_hash: AddressHash,
    pub kind: RecipientKind,
    pub status: MessageStatus,
    /// The account of the latest attempt.
    pub provider_account_id: Option<ProviderAccountId>,
    /// The message id at the provider.
    pub provider_message_id: Option<String>,
    /// Attempts made, without throttled ones.
    pub attempts: i32,
    /// The error of the latest failure.
    pub last_error: Option<String>,
    pub events: Vec<Event>,
}

/// A send attempt, as listed: one call to one provider for one recipient. Attempts are
/// written by `delivery::attempt` before the call and completed by `delivery::outcome`.
#[derive(Debug, Clone)]
pub struct AttemptItem {
    pub id: SendAttemptId,
    /// The hash of the recipient's address.
    pub address_hash: AddressHash,
    pub provider_account_id: ProviderAccountId,
    /// The provider type, also of accounts that are gone.
    pub provider_type: String,
    pub started_at: Timestamp,
    /// When the outcome was known; `None` while the call is running.
    pub finished_at: Option<Timestamp>,
    /// The outcome's name in the API; `PENDING` while the call is running.
    pub outcome: String,
    /// The status of the provider's answer, if there was one.
    pub status_code: Option<i32>,
    /// The provider's message, or the error.
    pub reason: Option<String>,
}

impl AttemptItem {
    /// The time until the outcome was known. Never negative, though an event may have
    /// proved the outcome by another machine's clock.
    #[must_use]
    pub fn duration(&self) -> Option<Duration> {
        let finished_at = self.finished_at?;
        Some((finished_at - self.started_at).to_std().unwrap_or_default())
    }
}
