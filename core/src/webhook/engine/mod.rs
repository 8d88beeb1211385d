//! What the workers that deliver webhooks read and write in Postgres: leases of
//! endpoints, due deliveries, and the results of calls.
//!
//! One worker at a time serves an endpoint and leases its row. So single deliveries need
//! no marks, calls to an endpoint are limited across all workers, and one worker knows
//! the endpoint's health. A lease is valid as long as its worker's own lease
//! (`delivery::lease`); the endpoints of a dead worker are free without any cleanup.
//!
//! A trigger inserts deliveries in the transaction of their event and notifies the worker
//! that serves the endpoint. A notification may be lost: the relay repeats it as long as
//! a delivery is due.
//!
//! Promised: every delivery to an active endpoint is tried, at least once, until it is
//! accepted or given up. A call whose result was not recorded, because its worker died,
//! is repeated. Not promised: an order.

mod body;
mod due;
pub mod endpoint_health;
pub mod store;

use serde_json::{Map, Value};
use url::Url;

use crate::clock::Timestamp;
use crate::ids::{
    EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId, WebhookEndpointId,
    WorkerId,
};
use crate::provider::kind::ProviderType;
use crate::telemetry::traces::TraceContext;
pub use due::Due;
use endpoint_health::EndpointHealth;

use super::event_type::WebhookEventType;
use super::schedule::AttemptDecision;

/// The channel of notifications about endpoints. The triggers use the same name.
pub const CHANNEL: &str = "waypost_webhooks";

/// A notification on [`CHANNEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointNotification {
    /// A delivery is due at the endpoint.
    Due(WebhookEndpointId),
    /// The endpoint was changed or deleted.
    Changed(WebhookEndpointId),
}

impl EndpointNotification {
    /// Parses a notification; `None` if it is unknown.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, id) = text.split_once(' ')?;
        let id = id.parse().ok()?;
        match word {
            "due" => Some(Self::Due(id)),
            "changed" => Some(Self::Changed(id)),
            _ => None,
        }
    }
}

/// An endpoint as its worker uses it.
#[derive(Debug, Clone)]
pub struct LeasedEndpoint {
    pub id: WebhookEndpointId,
    pub organization_id: OrganizationId,
    pub url: Url,
    /// The URL as stored; the parsed one may be written differently.
    pub url_text: String,
    /// The sealed secrets that sign, newest first.
    pub secrets_sealed: Vec<Vec<u8>>,
    pub health: EndpointHealth,
}

/// A due delivery with the content of its call.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    pub id: WebhookDeliveryId,
    /// Attempts made so far.
    pub attempts: i32,
    /// The message, or the event's own id if it has none.
    pub message_id: MessageId,
    pub event_id: EventId,
    pub event_type: WebhookEventType,
    pub occurred_at: Timestamp,
    pub content: DueContent,
}

/// What the event of a due delivery says.
#[derive(Debug, Clone)]
pub enum DueContent {
    Message(Box<DueMessage>),
    /// The fields of an event about the organization.
    Organization(Map<String, Value>),
}

/// An event of a message, with what its body needs of the message and the recipient.
#[derive(Debug, Clone)]
pub struct DueMessage {
    /// The event's data.
    pub data: Option<Value>,
    pub from_address: String,
    pub subject: String,
    pub tags: Vec<String>,
    pub metadata: Option<Value>,
    pub is_test: bool,
    /// The recipient's sealed mailbox.
    pub address_sealed: Vec<u8>,
    /// The provider that the message was sent through, if known.
    pub provider_type: Option<ProviderType>,
    /// Where the request that sent it stands in its trace.
    pub trace: Option<TraceContext>,
}

impl DueDelivery {
    /// Where its message stands in its trace; `None` also for an event of the organization.
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        match &self.content {
            DueContent::Message(message) => message.trace,
            DueContent::Organization(_) => None,
        }
    }
}

/// One call to an endpoint, as stored.
#[derive(Debug, Clone)]
pub struct EndpointCall {
    pub id: WebhookAttemptId,
    pub started_at: Timestamp,
    pub duration_ms: i32,
    /// The HTTP status, if there was an answer.
    pub status_code: Option<i32>,
    /// The beginning of the answer, or the error.
    pub answer: Option<String>,
}

/// The result of a call, to be recorded.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// The worker that made the call.
    pub worker: WorkerId,
    pub endpoint_id: WebhookEndpointId,
    /// The URL that was called, as stored.
    pub url_text: String,
    pub organization_id: OrganizationId,
    pub message_id: MessageId,
    pub delivery_id: WebhookDeliveryId,
    /// Attempts before this call. A record that is repeated or too late does not match
    /// and is ignored.
    pub attempts_before: i32,
    pub attempt: EndpointCall,
    /// What to do with the delivery.
    pub decision: AttemptDecision,
    /// The endpoint's new health, if it changed.
    pub health: Option<EndpointHealth>,
    /// Why the endpoint is deactivated, if it is.
    pub deactivated: Option<Deactivation>,
}

/// Why an endpoint is deactivated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deactivation {
    /// The endpoint answered 410.
    Gone,
    /// The endpoint failed for five days.
    Failing,
}

impl Deactivation {
    /// The name in the audit log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "GONE",
            Self::Failing => "FAILING",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_notifications_are_parsed() {
        let id = "0190a0b0-0000-7000-8000-000000000001";
        let endpoint = id.parse().unwrap();
        assert_eq!(
            EndpointNotification::parse(&format!("due {id}")),
            Some(EndpointNotification::Due(endpoint))
        );
        assert_eq!(
            EndpointNotification::parse(&format!("changed {id}")),
            Some(EndpointNotification::Changed(endpoint))
        );
        for text in ["", "due", "due x", &format!("gone {id}"), id] {
            assert_eq!(EndpointNotification::parse(text), None, "{text}");
        }
    }
}
