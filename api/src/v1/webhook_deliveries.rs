//! Webhook deliveries: listing and replaying them.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::types::Any;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::address::AddressHash;
use waypost_core::clock::delta;
use waypost_core::fault::Fault;
use waypost_core::ids::{WebhookDeliveryId, WebhookEndpointId};
use waypost_core::issue::Issue;
use waypost_core::webhook::deliveries::{Attempt, Delivery, DeliveryFilter};
use waypost_core::webhook::event_type::WebhookEventType;
use waypost_core::webhook::replay::{PERIOD_MAX, ReplayPeriod, Replayed};
use waypost_core::webhook::status::DeliveryStatus;

use super::webhook_endpoints::ENDPOINT;
use crate::context::Context;
use crate::error::{DELIVERY, Failure};
use crate::fields::time::{End, Moment};
use crate::fields::{Id, PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Time};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct WebhookDeliveriesApi {
    pub(crate) context: Arc<Context>,
}

/// The delivery of one event to one endpoint.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(super) struct WebhookDelivery {
    /// The id of the delivery. The endpoint gets it as the header `webhook-id`.
    id: Uuid,
    webhook_endpoint_id: Uuid,
    /// The id of the message; null if the event is about no message.
    message_id: Nullable<Uuid>,
    event_id: Uuid,
    event_type: String,
    /// The SHA-256 of the recipient's address in lower case, as lower-case hexadecimal;
    /// null if the event is about no message, or the recipient is no longer stored.
    to_hash: Nullable<String>,
    /// The status of the delivery.
    status: String,
    /// The number of attempts since the delivery was created, or since it was last
    /// replayed after its end.
    attempt_count: u32,
    /// When the next attempt is due; null if the delivery has ended.
    next_attempt_at: Nullable<Time>,
    created_at: Time,
    /// When the endpoint accepted the event, or the last attempt failed.
    ended_at: Nullable<Time>,
    /// The newest 20 attempts, oldest first.
    attempts: Vec<WebhookAttempt>,
}

/// A delivery with the body of its calls.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookDeliveryDetail {
    #[oai(flatten)]
    delivery: WebhookDelivery,
    /// The body that is posted, as a call builds it now; null if the message or the
    /// recipient's address is no longer stored. The earlier calls posted the same, except for
    /// what was learned since: `providerType` before the message was sent.
    payload: Nullable<Any<Value>>,
}

/// One call to an endpoint.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookAttempt {
    id: Uuid,
    started_at: Time,
    /// The duration of the call, in milliseconds.
    duration_ms: u32,
    /// The HTTP status; null if there was no response.
    status_code: Nullable<u16>,
    /// The first KiB of the response, or the error of the call.
    answer: Nullable<String>,
}

impl From<Delivery> for WebhookDelivery {
    fn from(delivery: Delivery) -> Self {
        let message_id = delivery.message().map(|id| id.0);
        let attempts = delivery.attempts.into_iter();
        Self {
            id: delivery.id.0,
            webhook_endpoint_id: delivery.webhook_endpoint_id.0,
            message_id: Nullable(message_id),
            event_id: delivery.event_id.0,
            event_type: delivery.event_type.to_string(),
            to_hash: Nullable(delivery.to_hash.map(AddressHash::to_hex)),
            status: delivery.status.to_string(),
            attempt_count: delivery.attempt_count,
            next_attempt_at: Nullable(delivery.next_attempt_at.map(Time)),
            created_at: Time(delivery.created_at),
            ended_at: Nullable(delivery.ended_at.map(Time)),
            attempts: attempts.map(WebhookAttempt::from).collect(),
        }
    }
}

impl From<Attempt> for WebhookAttempt {
    fn from(attempt: Attempt) -> Self {
        Self {
            id: attempt.id.0,
            started_at: Time(attempt.started_at),
            duration_ms: attempt.duration_ms,
            status_code: Nullable(attempt.status_code),
            answer: Nullable(attempt.answer),
        }
    }
}

/// Which deliveries to replay.
#[derive(Debug, Object)]
struct ReplayWebhooksRequest {
    /// Replays deliveries created at or after this time.
    since: Validated<Moment>,
    /// Replays deliveries created before this time, at most 30 days after `since`. A date
    /// without a time includes that whole day.
    until: Validated<End>,
    /// Replays only deliveries with this status. The default is all.
    status: Validated<Option<DeliveryStatus>>,
}

/// The number of replayed deliveries.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ReplayResult {
    replayed: u64,
    /// One request replays at most 100,000 deliveries. If there are more, the `since` of
    /// the next request; otherwise null.
    continue_from: Nullable<Time>,
}

impl From<Replayed> for ReplayResult {
    fn from(replayed: Replayed) -> Self {
        Self {
            replayed: replayed.count as u64,
            continue_from: Nullable(replayed.continue_from.map(Time)),
        }
    }
}

#[OpenApi(tag = "Section::WebhookEndpoints")]
impl WebhookDeliveriesApi {
    /// List a webhook endpoint's deliveries
    ///
    /// Requires the permission `SETTINGS_WRITE`. The newest delivery comes first, each
    /// with its attempts.
    #[oai(
        path = "/v1/webhook-endpoints/:id/deliveries",
        method = "get",
        operation_id = "list_webhook_deliveries"
    )]
    #[expect(clippy::too_many_arguments, reason = "each query parameter is one")]
    async fn list_webhook_deliveries(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
        /// Only deliveries with this status.
        status: Query<Validated<Option<DeliveryStatus>>>,
        /// Only deliveries of the events of this message.
        #[oai(name = "messageId")]
        message_id: Query<Validated<Option<Id>>>,
        /// Only deliveries of events of this type.
        #[oai(name = "eventType")]
        event_type: Query<Validated<Option<WebhookEventType>>>,
        /// Only deliveries created at or after this time.
        from: Query<Validated<Option<Moment>>>,
        /// Only deliveries created before this time. A date without a time includes that whole
        /// day.
        to: Query<Validated<Option<End>>>,
    ) -> Result<Json<Paged<WebhookDelivery>>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let mut issues = Vec::new();
        let page = cursor.read_page(page.0, limit.0, &mut issues);
        let message_id = message_id.0.take("messageId", &mut issues).flatten();
        let filter = DeliveryFilter {
            status: status.0.take("status", &mut issues).flatten(),
            message_id: message_id.map(|Id(id)| id.into()),
            event_type: event_type.0.take("eventType", &mut issues).flatten(),
            created_from: from.0.take("from", &mut issues).flatten().map(|at| at.0),
            created_to: to.0.take("to", &mut issues).flatten().map(|at| at.0),
        };
        let page = match page {
            Some(page) if issues.is_empty() => page,
            _ => return Err(Failure::Invalid(issues)),
        };
        let endpoints = &self.context.webhook_endpoints;
        let found = endpoints
            .list_deliveries(caller.organization_id(), id, &filter, page)
            .await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(WebhookDelivery::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Get a webhook delivery
    ///
    /// Requires the permission `SETTINGS_WRITE`. The delivery has its attempts and the body
    /// that is posted.
    #[oai(
        path = "/v1/webhook-endpoints/:id/deliveries/:deliveryId",
        method = "get",
        operation_id = "get_webhook_delivery"
    )]
    async fn get_webhook_delivery(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        /// The id of the webhook delivery.
        #[oai(name = "deliveryId")]
        delivery_id: Path<PathId>,
    ) -> Result<Json<Data<WebhookDeliveryDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let delivery_id: WebhookDeliveryId = delivery_id.0.of(DELIVERY)?;
        let endpoints = &self.context.webhook_endpoints;
        let (delivery, body) = endpoints
            .find_delivery(caller.organization_id(), id, delivery_id)
            .await?;
        let payload = body.map(|body| serde_json::from_slice(&body));
        let payload = payload.transpose().map_err(|error| {
            Failure::Fault(Fault::internal("read the body of a webhook call", error))
        })?;
        Ok(Json(Data {
            data: WebhookDeliveryDetail {
                delivery: delivery.into(),
                payload: Nullable(payload.map(Any)),
            },
        }))
    }

    /// Replay a webhook delivery
    ///
    /// Requires the permission `SETTINGS_WRITE`. The delivery is due again at once, with
    /// all attempts, even if it succeeded before. The endpoint gets the same
    /// `webhook-id`.
    #[oai(
        path = "/v1/webhook-endpoints/:id/deliveries/:deliveryId/replay",
        method = "post",
        operation_id = "replay_webhook_delivery"
    )]
    async fn replay_webhook_delivery(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        /// The id of the webhook delivery.
        #[oai(name = "deliveryId")]
        delivery_id: Path<PathId>,
    ) -> Result<Json<Data<WebhookDelivery>>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let delivery_id: WebhookDeliveryId = delivery_id.0.of(DELIVERY)?;
        let endpoints = &self.context.webhook_endpoints;
        let delivery = endpoints
            .replay_one(caller.organization_id(), caller.origin(), id, delivery_id)
            .await?;
        Ok(Json(Data {
            data: delivery.into(),
        }))
    }

    /// Replay the deliveries of a period
    ///
    /// Requires the permission `SETTINGS_WRITE`. All deliveries created in the period are
    /// due again at once. With `"status": "FAILED"`, successful deliveries are not
    /// repeated.
    #[oai(
        path = "/v1/webhook-endpoints/:id/replay",
        method = "post",
        operation_id = "replay_webhook_endpoint"
    )]
    async fn replay_webhook_endpoint(
        &self,
        caller: Requires<permission::SettingsWrite>,

        /// The id of the webhook endpoint.
        id: Path<PathId>,
        body: JsonBody<ReplayWebhooksRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<ReplayResult>>, Failure> {
        let caller = caller.authorize()?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let endpoints = &self.context.webhook_endpoints;
        endpoints.find(caller.organization_id(), id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let period = read_period(request, issues).map_err(Failure::Invalid)?;
        let replayed = endpoints
            .replay(caller.organization_id(), caller.origin(), id, period)
            .await?;
        Ok(Json(Data {
            data: replayed.into(),
        }))
    }
}

fn read_period(
    request: ReplayWebhooksRequest,
    mut issues: Vec<Issue>,
) -> Result<ReplayPeriod, Vec<Issue>> {
    let since = request.since.take("since", &mut issues);
    let until = request.until.take("until", &mut issues);
    let status = request.status.take("status", &mut issues);
    if let (Some(Moment(since)), Some(End(until))) = (since, until) {
        if until <= since {
            issues.push(Issue::new("until", "must come after since"));
        } else if until - since > delta(PERIOD_MAX) {
            issues.push(Issue::new("until", "must be at most 30 days after since"));
        }
    }
    match (since, until, status) {
        (Some(since), Some(until), Some(status)) if issues.is_empty() => Ok(ReplayPeriod {
            since: since.0,
            until: until.0,
            status,
        }),
        _ => Err(issues),
    }
}
