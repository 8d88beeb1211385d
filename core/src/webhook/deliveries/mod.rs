//! The deliveries of an endpoint with their attempts, for customers to read.

pub(super) mod store;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta};
use uuid::Uuid;

use super::endpoint::{EndpointRefusal, WebhookEndpoints};
use super::engine;
use super::event_type::WebhookEventType;
use super::status::DeliveryStatus;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::{self, PgConnection};
use crate::fault::Fault;
use crate::ids::{
    self, EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId,
    WebhookEndpointId,
};
use crate::message;
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

/// Restricts a list of deliveries; `None` stands for no restriction.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    pub status: Option<DeliveryStatus>,
    /// Only deliveries of events of this message.
    pub message_id: Option<MessageId>,
    pub event_type: Option<WebhookEventType>,
    /// Only deliveries created at or after this time.
    pub created_from: Option<Timestamp>,
    /// Only deliveries created before this time.
    pub created_to: Option<Timestamp>,
}

impl DeliveryFilter {
    /// Whether it has no restriction but one of the status.
    fn is_of_status_alone(&self) -> bool {
        let Self {
            status: _,
            message_id,
            event_type,
            created_from,
            created_to,
        } = self;
        message_id.is_none()
            && event_type.is_none()
            && created_from.is_none()
            && created_to.is_none()
    }

    fn from(&self) -> Timestamp {
        self.created_from.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    fn to(&self) -> Timestamp {
        self.created_to.unwrap_or(LAST)
    }

    /// The first id that a delivery of the period can have.
    fn first_id(&self) -> Uuid {
        ids::first_of(self.from())
    }

    /// The first id after those of the period. Ids have milliseconds; the rest of the last
    /// one belongs to the period.
    fn end_id(&self) -> Uuid {
        ids::first_of(self.to() + TimeDelta::milliseconds(1))
    }
}

/// The end of the year 9999, after every delivery.
const LAST: Timestamp =
    DateTime::from_timestamp(253_402_300_799, 0).expect("the time is within the range");

impl WebhookEndpoints {
    /// A page of an endpoint's deliveries that match the filter, newest first.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn list_deliveries(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookEndpointId,
        filter: &DeliveryFilter,
        page: PageRequest,
    ) -> Result<Page<Delivery>, EndpointRefusal> {
        let mut connection = db::snapshot(&self.pool, "list webhook deliveries").await?;
        super::store::find(&mut connection, organization_id, endpoint_id)
            .await?
            .ok_or(EndpointRefusal::NotFound)?;
        let mut found =
            store::list(&mut connection, organization_id, endpoint_id, filter, page).await?;
        add_attempts(&mut connection, organization_id, &mut found.rows).await?;
        Ok(found)
    }

    /// A page of the deliveries of a message's events to all endpoints, newest first. `None`
    /// if the message does not exist.
    ///
    /// # Errors
    /// A fault if Postgres is unavailable.
    pub async fn list_message_deliveries(
        &self,
        organization_id: OrganizationId,
        message_id: MessageId,
        page: PageRequest,
    ) -> Result<Option<Page<Delivery>>, Fault> {
        let doing = "list the webhook deliveries of a message";
        let mut connection = db::snapshot(&self.pool, doing).await?;
        let known = message::store::is_test(&mut connection, organization_id, message_id).await?;
        if known.is_none() {
            return Ok(None);
        }
        let mut found =
            store::list_of_message(&mut connection, organization_id, message_id, page).await?;
        add_attempts(&mut connection, organization_id, &mut found.rows).await?;
        Ok(Some(found))
    }

    /// One delivery with the body of its calls. The body is built as a call would build it
    /// now; `None` if the message or the recipient's address is no longer stored.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn find_delivery(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookEndpointId,
        id: WebhookDeliveryId,
    ) -> Result<(Delivery, Option<Bytes>), EndpointRefusal> {
        let mut connection = db::snapshot(&self.pool, "show a webhook delivery").await?;
        super::store::find(&mut connection, organization_id, endpoint_id)
            .await?
            .ok_or(EndpointRefusal::NotFound)?;
        let mut delivery = store::find(&mut connection, organization_id, endpoint_id, id)
            .await?
            .ok_or(EndpointRefusal::DeliveryNotFound)?;
        let one = std::slice::from_mut(&mut delivery);
        add_attempts(&mut connection, organization_id, one).await?;
        let key = (delivery.message_id, id);
        let content = engine::store::find_content(&mut connection, organization_id, key).await?;
        let body = content.map(|content| content.body(&self.sealer, organization_id));
        Ok((delivery, body.transpose()?))
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
