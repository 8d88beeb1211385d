//! The deliveries of an endpoint with their attempts, for customers to read.

pub(super) mod store;

use super::endpoint::{EndpointRefusal, WebhookEndpoints};
use super::event_type::WebhookEventType;
use super::status::DeliveryStatus;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::{self, PgConnection};
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId, WebhookEndpointId,
};
use crate::page::{Page, PageRequest};

/// The newest attempts of a delivery that are listed: each replay adds more.
const ATTEMPTS_SHOWN: i64 = 20;

/// One event for one endpoint.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The id, which receivers see as `webhook-id`.
    pub id: WebhookDeliveryId,
    pub webhook_endpoint_id: WebhookEndpointId,
    /// The message, or the id of an event without one (see [`Delivery::message`]).
    pub(super) message_id: MessageId,
    pub event_id: EventId,
    pub event_type: WebhookEventType,
    /// The hash of the recipient's address.
    pub to_hash: Option<AddressHash>,
    pub status: DeliveryStatus,
    /// Attempts since the delivery was created or replayed.
    pub attempt_count: u32,
    pub next_attempt_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When the endpoint accepted it, or the last attempt failed.
    pub ended_at: Option<Timestamp>,
    /// The newest attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

impl Delivery {
    /// The message that the event is about; `None` if it is about the organization.
    #[must_use]
    pub fn message(&self) -> Option<MessageId> {
        let is_of_message = self.event_type.is_of_message();
        is_of_message.then_some(self.message_id)
    }
}

/// One call to an endpoint.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub id: WebhookAttemptId,
    pub started_at: Timestamp,
    pub duration_ms: u32,
    /// The HTTP status; `None` if there was no answer.
    pub status_code: Option<u16>,
    /// The beginning of the answer, or the error.
    pub answer: Option<String>,
}

impl WebhookEndpoints {
    /// A page of an endpoint's deliveries, newest first, with any status or the given
    /// one.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn list_deliveries(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookEndpointId,
        status: Option<DeliveryStatus>,
        page: PageRequest,
    ) -> Result<Page<Delivery>, EndpointRefusal> {
        let mut connection = db::snapshot(&self.pool, "list webhook deliveries").await?;
        super::store::find(&mut connection, organization_id, endpoint_id)
            .await?
            .ok_or(EndpointRefusal::NotFound)?;
        let mut found =
            store::list(&mut connection, organization_id, endpoint_id, status, page).await?;
        add_attempts(&mut connection, organization_id, &mut found.rows).await?;
        Ok(found)
    }
}

/// Reads the attempts of deliveries.
pub(super) async fn add_attempts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    deliveries: &mut [Delivery],
) -> Result<(), Fault> {
    let attempts =
        store::list_attempts(connection, organization_id, deliveries, ATTEMPTS_SHOWN).await?;
    for (delivery_id, attempt) in attempts {
        let delivery = deliveries.iter_mut().find(|one| one.id == delivery_id);
        if let Some(delivery) = delivery {
            delivery.attempts.push(attempt);
        }
    }
    Ok(())
}
