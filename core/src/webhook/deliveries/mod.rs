//! What was delivered to an endpoint, and how it went: for the organization to read.

pub(super) mod store;

use super::endpoint::{EndpointRefusal, WebhookEndpoints};
use super::status::DeliveryStatus;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::{self, PgConnection};
use crate::event::EventType;
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId, WebhookEndpointId,
};
use crate::page::{Page, PageRequest};

/// Attempts that are shown of one delivery, the newest: each replay adds more.
const ATTEMPTS_SHOWN: i64 = 20;

/// One event for one endpoint.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its id, which receivers see as `webhook-id`.
    pub id: WebhookDeliveryId,
    pub webhook_endpoint_id: WebhookEndpointId,
    /// The message that the event is about.
    pub message_id: MessageId,
    pub event_id: EventId,
    pub event_type: EventType,
    /// The hash of the recipient's address.
    pub to_hash: Option<AddressHash>,
    pub status: DeliveryStatus,
    /// Attempts since it was made or replayed.
    pub attempt_count: u32,
    pub next_attempt_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When the endpoint took it, or the last attempt failed.
    pub ended_at: Option<Timestamp>,
    /// The newest attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// One call to an endpoint.
#[derive(Debug, Clone)]
pub struct Attempt {
    pub id: WebhookAttemptId,
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// The HTTP status; nothing where no answer came.
    pub status_code: Option<u16>,
    /// The beginning of the answer, or what went wrong.
    pub answer: Option<String>,
}

impl WebhookEndpoints {
    /// A page of an endpoint's deliveries, newest first, all or of one status.
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

/// Fills in the attempts.
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
