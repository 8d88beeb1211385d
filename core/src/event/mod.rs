//! Events: the history of a message, in ten types. Every event is kept, in the
//! order of when it occurred; whether it also moves a status is decided in
//! `message::status`. Recording an event is what counts it (`metrics`).

pub mod store;

use std::fmt;

use crate::clock::Timestamp;
use crate::ids::{EventId, MessageId, OrganizationId, SendAttemptId};

/// What `data` calls the call to a provider that an event is of.
pub const ATTEMPT_ID: &str = "attemptId";
/// What `data` calls the provider's id of the copy that an event is of.
pub const PROVIDER_MESSAGE_ID: &str = "providerMessageId";

/// The ten types, shared by the history, by subscriptions and by webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, sqlx::Type)]
#[sqlx(type_name = "event_type", rename_all = "UPPERCASE")]
pub enum EventType {
    Queued,
    Sent,
    /// The provider confirmed delivery to the mailbox.
    Delivered,
    /// Opened, as the tracking pixel tells.
    Opened,
    Clicked,
    /// A hard, soft or block bounce.
    Bounced,
    Complained,
    Unsubscribed,
    Dropped,
    /// Put off for a while by the receiving side.
    Deferred,
}

impl EventType {
    /// All of them, in the order of the contract.
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

    /// The wire name.
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

/// One row of a message's history, about to be recorded.
#[derive(Debug, Clone)]
pub struct NewEvent {
    pub id: EventId,
    /// The message it is about.
    pub message_id: MessageId,
    pub organization_id: OrganizationId,
    /// Which recipient it is about.
    pub position: i32,
    pub event_type: EventType,
    pub occurred_at: Timestamp,
    /// Particulars, such as a `reason`.
    pub data: Option<serde_json::Value>,
}

/// One row of a message's history, as read.
#[derive(Debug, Clone)]
pub struct Event {
    /// Which recipient it is about; nothing where it is about all of them.
    pub position: Option<i32>,
    pub event_type: EventType,
    pub occurred_at: Timestamp,
    /// The call to a provider that it is of, where that is known.
    pub attempt_id: Option<SendAttemptId>,
    /// The provider's id of the copy that it is of, where that is known.
    pub provider_message_id: Option<String>,
}
