//! Events: the history of a message, in ten types, ordered by when they occurred. Every
//! event is stored; `message::status` decides whether it also moves a status. Metrics are
//! counted when events are inserted (`metrics`).

pub mod store;

use std::fmt;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::ids::{EventId, MessageId, OrganizationId, ProviderAccountId, SendAttemptId};

/// The key in `data` of the send attempt's id.
pub const ATTEMPT_ID: &str = "attemptId";
/// The key in `data` of the provider's message id.
pub const PROVIDER_MESSAGE_ID: &str = "providerMessageId";

/// The ten types of events, in histories, subscriptions and webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "event_type", rename_all = "UPPERCASE")]
pub enum EventType {
    Queued,
    Sent,
    /// The provider confirmed delivery to the mailbox.
    Delivered,
    /// The tracking pixel was loaded.
    Opened,
    Clicked,
    /// A hard, soft or block bounce.
    Bounced,
    Complained,
    Unsubscribed,
    Dropped,
    /// The receiving server deferred delivery.
    Deferred,
}

impl EventType {
    /// All types, in the order of the API.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Sent,
        Self::Delivered,
        Self::Opened,
        Self::Clicked,
        Self::Bounced,
        Self::Complained,
        Self::Unsubscribed,
        Self::Dropped,
        Self::Deferred,
    ];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Sent => "SENT",
            Self::Delivered => "DELIVERED",
            Self::Opened => "OPENED",
            Self::Clicked => "CLICKED",
            Self::Bounced => "BOUNCED",
            Self::Complained => "COMPLAINED",
            Self::Unsubscribed => "UNSUBSCRIBED",
            Self::Dropped => "DROPPED",
            Self::Deferred => "DEFERRED",
        }
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event to be inserted.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub id: EventId,
    pub message_id: MessageId,
    pub organization_id: OrganizationId,
    /// The recipient's position in the message.
    pub position: i32,
    pub event_type: EventType,
    pub occurred_at: Timestamp,
    /// Details, such as a `reason`.
    pub data: Option<serde_json::Value>,
}

/// An event, as read. No `Debug`: its link must not be logged.
#[derive(Clone)]
pub struct Event {
    /// The recipient's position; `None` if the event is about all recipients.
    pub position: Option<i32>,
    pub event_type: EventType,
    pub occurred_at: Timestamp,
    pub attempt_id: Option<SendAttemptId>,
    pub provider_message_id: Option<String>,
    /// The recipient's address; `None` if the event is about all recipients.
    pub address_hash: Option<AddressHash>,
    /// The account of the attempt.
    pub provider_account_id: Option<ProviderAccountId>,
    /// Why, in the provider's words or in ours.
    pub reason: Option<String>,
    pub bounce_type: Option<String>,
    /// The link that was clicked.
    pub url: Option<String>,
    /// Whether a program opened or clicked, not a person.
    pub is_bot: Option<bool>,
}
