//! What was delivered to webhook endpoints, and delivering it again.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::registry::MetaSchemaRef;
use poem_openapi::{Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::address::AddressHash;
use waypost_core::auth::Permission;
use waypost_core::clock::delta;
use waypost_core::ids::{WebhookDeliveryId, WebhookEndpointId};
use waypost_core::issue::Issue;
use waypost_core::webhook::deliveries::{Attempt, Delivery};
use waypost_core::webhook::replay::{PERIOD_MAX, ReplayPeriod, Replayed};
use waypost_core::webhook::status::DeliveryStatus;

use super::webhook_endpoints::ENDPOINT;
use crate::auth::Caller;
use crate::body::{JsonBody, OTHER_BYTES_MAX};
use crate::context::Context;
use crate::error::{DELIVERY, Failure};
use crate::fields::time::{End, Moment};
use crate::fields::{self, PageLimit, PageNumber};
use crate::ids::PathId;
use crate::query::Query;
use crate::response::{Data, Nullable, Paged, Pagination, Time, read_page};
use crate::v1::Section;
use crate::validate::{Field, Validated, problem};

pub(crate) struct WebhookDeliveriesApi {
    pub(crate) context: Arc<Context>,
}

/// One event for one endpoint.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookDelivery {
    /// The receiver sees it as `webhook-id`.
    id: Uuid,
    webhook_endpoint_id: Uuid,
    message_id: Uuid,
    event_id: Uuid,
    event_type: String,
    /// The lower-case hexadecimal SHA-256 of the recipient's address, trimmed and in
    /// lower case; null where the recipient is not on record any more.
    to_hash: Nullable<String>,
    /// PENDING, DELIVERED or FAILED.
    status: String,
    /// Attempts since it was made, or last replayed after its end.
    attempt_count: u32,
    /// When the next attempt is due; null once it ended.
    next_attempt_at: Nullable<Time>,
    created_at: Time,
    /// When the endpoint took it, or the last attempt failed.
    ended_at: Nullable<Time>,
    /// The newest 20 attempts, oldest first.
    attempts: Vec<WebhookAttempt>,
}

/// One call to an endpoint.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct WebhookAttempt {
    id: Uuid,
    started_at: Time,
    /// How long it took, in milliseconds.
    duration_ms: u32,
    /// The HTTP status; null where no answer came.
    status_code: Nullable<u16>,
    /// The first KiB of the answer, or what went wrong.
    answer: Nullable<String>,
}

impl From<Delivery> for WebhookDelivery {
    fn from(delivery: Delivery) -> Self {
        let attempts = delivery.attempts.into_iter();
        Self {
            id: delivery.id.0,
            webhook_endpoint_id: delivery.webhook_endpoint_id.0,
            message_id: delivery.message_id.0,
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

/// Which deliveries are to be made again.
#[derive(Debug, Object)]
struct ReplayWebhooksRequest {
    /// Deliveries that were made from then on.
    since: Validated<Moment>,
    /// And before then; at most 30 days later. A day without a time is the last one, whole.
    until: Validated<End>,
    /// Only those that stand so; all where nothing is said.
    status: Validated<Option<DeliveryStatus>>,
}

/// How many deliveries are due again.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct ReplayResult {
    replayed: u64,
    /// One request replays 100,000 at the most. Where there are more: the `since` of
    /// the next one. Null where all are done.
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

impl Field for DeliveryStatus {
    fn schema() -> MetaSchemaRef {
        fields::words(&Self::ALL.map(Self::as_str))
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        fields::string(value)?.parse().or_else(problem)
    }
}

#[OpenApi(tag = "Section::WebhookEndpoints")]
impl WebhookDeliveriesApi {
    /// List a webhook endpoint's deliveries
    ///
    /// Takes the permission SETTINGS_WRITE. Newest first, each with its attempts.
    #[oai(
        path = "/v1/webhook-endpoints/:id/deliveries",
        method = "get",
        operation_id = "list_webhook_deliveries"
    )]
    async fn list_webhook_deliveries(
        &self,
        caller: Caller,
        id: Path<PathId>,
        /// The page, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// Rows on a page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// Only deliveries that stand so.
        status: Query<Validated<Option<DeliveryStatus>>>,
    ) -> Result<Json<Paged<WebhookDelivery>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
        let id: WebhookEndpointId = id.0.of(ENDPOINT)?;
        let mut issues = Vec::new();
        let page = read_page(page.0, limit.0, &mut issues);
        let status = status.0.take("status", &mut issues);
        let (Some(page), Some(status)) = (page, status) else {
            return Err(Failure::Invalid(issues));
        };
        let endpoints = &self.context.webhook_endpoints;
        let found = endpoints
            .list_deliveries(caller.organization_id(), id, status, page)
            .await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(WebhookDelivery::from).collect(),
            pagination: Pagination::of(page, found.total),
        }))
    }

    /// Deliver an event again
    ///
    /// Takes the permission SETTINGS_WRITE. The delivery is due at once, with all its
    /// attempts, whether it was taken before or not; the receiver knows it by the same
    /// `webhook-id`.
    #[oai(
        path = "/v1/webhook-endpoints/:id/deliveries/:deliveryId/replay",
        method = "post",
        operation_id = "replay_webhook_delivery"
    )]
    async fn replay_webhook_delivery(
        &self,
        caller: Caller,
        id: Path<PathId>,
        #[oai(name = "deliveryId")] delivery_id: Path<PathId>,
    ) -> Result<Json<Data<WebhookDelivery>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
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

    /// Deliver the events of a period again
    ///
    /// Takes the permission SETTINGS_WRITE. What was delivered or failed in the period
    /// is due again, what still waits is due at once. `"status": "FAILED"` leaves out
    /// what was taken.
    #[oai(
        path = "/v1/webhook-endpoints/:id/replay",
        method = "post",
        operation_id = "replay_webhook_endpoint"
    )]
    async fn replay_webhook_endpoint(
        &self,
        caller: Caller,
        id: Path<PathId>,
        body: JsonBody<ReplayWebhooksRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<ReplayResult>>, Failure> {
        caller.require(Permission::SettingsWrite)?;
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
