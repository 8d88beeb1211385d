//! What the engine that delivers webhooks knows and does in Postgres: who serves an
//! endpoint, what is due there, and what came of it.
//!
//! An endpoint is *served* by one worker at a time, which leases its row. So nobody
//! needs to mark single deliveries as taken, calls to an endpoint are bounded across
//! all workers, and who serves it knows how it *fares*. A lease counts as long as its
//! worker is on the list of workers and alive (`queue::lease`); what a dead one held
//! is free without anybody's doing.
//!
//! Deliveries come into being in the transaction of their event, by a trigger, which
//! also *notifies* who serves the endpoint. A notification may be missed: the relay
//! repeats it as long as something is due.
//!
//! What is promised: every delivery to an active endpoint is tried until it is taken
//! or given up, at least once. A call whose result was not recorded (its worker died)
//! is made again. What is not promised: an order.

pub mod endpoint_health;
pub mod store;

use serde_json::Value;
use url::Url;

use crate::clock::Timestamp;
use crate::event::EventType;
use crate::ids::{
    EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId, WebhookEndpointId,
    WorkerId,
};
use crate::provider::kind::ProviderType;
use endpoint_health::EndpointHealth;

use super::schedule::AttemptDecision;

/// Where Postgres tells of deliveries and of changed endpoints; the triggers name it
/// too.
pub const CHANNEL: &str = "waypost_webhooks";

/// What is told on [`CHANNEL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointNotification {
    /// Something is due at an endpoint.
    Due(WebhookEndpointId),
    /// An endpoint was changed or deleted.
    Changed(WebhookEndpointId),
}

impl EndpointNotification {
    /// Reads what was told; nothing where it is something else.
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

/// An endpoint as who serves it sees it.
#[derive(Debug, Clone)]
pub struct ServedEndpoint {
    pub id: WebhookEndpointId,
    pub organization_id: OrganizationId,
    pub url: Url,
    /// The same as it is stored, which may be written otherwise.
    pub url_text: String,
    /// Its secret, sealed, and those that still sign beside it.
    pub secrets_sealed: Vec<Vec<u8>>,
    pub fare: EndpointHealth,
}

/// A delivery that is due, with all that it says.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    pub id: WebhookDeliveryId,
    /// The tries that were made.
    pub attempts: i32,
    pub message_id: MessageId,
    pub event_id: EventId,
    pub event_type: EventType,
    pub occurred_at: Timestamp,
    pub data: Option<Value>,
    pub from_address: String,
    pub subject: String,
    pub tags: Vec<String>,
    /// What the sender stored with the message.
    pub metadata: Option<Value>,
    /// The recipient's mailbox, sealed.
    pub address_sealed: Vec<u8>,
    /// Where the copy was sent through, if that is known.
    pub provider_type: Option<ProviderType>,
}

/// One call to an endpoint, as it is kept.
#[derive(Debug, Clone)]
pub struct EndpointCall {
    pub id: WebhookAttemptId,
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: i32,
    /// The HTTP status, where an answer came.
    pub status_code: Option<i32>,
    /// The beginning of the answer, or what went wrong.
    pub answer: Option<String>,
}

/// What came of a call.
#[derive(Debug, Clone)]
pub struct CallRecord {
    /// Who made it, serving the endpoint.
    pub worker: WorkerId,
    pub endpoint_id: WebhookEndpointId,
    /// The address that was called, as it is stored.
    pub url_text: String,
    pub organization_id: OrganizationId,
    pub message_id: MessageId,
    pub delivery_id: WebhookDeliveryId,
    /// The tries that were made before: what makes a record that comes twice, or too
    /// late, count once.
    pub attempts_before: i32,
    pub attempt: EndpointCall,
    /// What follows for the delivery.
    pub verdict: AttemptDecision,
    /// How the endpoint fares now, where that changed.
    pub fare: Option<EndpointHealth>,
    /// Why the endpoint is switched off, where it is.
    pub deactivated: Option<Deactivation>,
}

/// Why an endpoint is switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deactivation {
    /// It answered 410.
    Gone,
    /// It failed for five days.
    Failing,
}

impl Deactivation {
    /// The word in the audit log.
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
    fn news_are_read_and_anything_else_is_not() {
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
