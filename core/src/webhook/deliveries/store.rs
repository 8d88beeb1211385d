//! Deliveries and their attempts in Postgres, as customers read and replay them.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{Attempt, Delivery, DeliveryFilter};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, WebhookAttemptId, WebhookDeliveryId, WebhookEndpointId,
};
use crate::page::{Page, PageRequest, Place};
use crate::webhook::event_type::WebhookEventType;
use crate::webhook::replay::ReplayStep;
use crate::webhook::status::DeliveryStatus;

/// A page of an endpoint's deliveries, newest first, without their attempts.
pub(super) async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    endpoint_id: WebhookEndpointId,
    filter: &DeliveryFilter,
    page: PageRequest,
) -> Result<Page<Delivery>, Fault> {
    let total = count(&mut *connection, organization_id, endpoint_id, filter).await?;
    // Postgres walks over all rows before a page; skip that for a page behind the end.
    if page.is_past_end(total) {
        return Ok(Page::empty(total));
    }
    // One of the three branches has rows; each uses its own index.
    let rows = query_as!(
        DeliveryRow,
        r#"SELECT d.message_id AS "message_id!: MessageId", d.id AS "id!: WebhookDeliveryId",
                  d.webhook_endpoint_id AS "webhook_endpoint_id!: WebhookEndpointId",
                  d.event_id AS "event_id!: EventId", d.event_type AS "event_type!: WebhookEventType",
                  d.status AS "status!: DeliveryStatus", d.attempts AS "attempts!", d.next_attempt_at,
                  d.created_at AS "created_at!", d.ended_at,
                  (SELECT r.address_hash
                   FROM recipients r
                   WHERE r.message_id = d.message_id AND r.position = d.position) AS "to_hash: AddressHash"
           FROM (
               (SELECT *
                FROM webhook_deliveries
                WHERE organization_id = $1 AND webhook_endpoint_id = $2
                  AND $3::webhook_delivery_status IS NULL AND $7::uuid IS NULL AND ($6::uuid IS NULL OR id < $6)
                  AND id >= $9::uuid AND id < $10::uuid AND created_at >= $11::timestamptz AND created_at < $12::timestamptz
                  AND ($8::event_type IS NULL OR event_type = $8)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
               UNION ALL
               (SELECT *
                FROM webhook_deliveries
                WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND status = $3
                  AND $7 IS NULL AND ($6 IS NULL OR id < $6)
                  AND id >= $9 AND id < $10 AND created_at >= $11 AND created_at < $12
                  AND ($8 IS NULL OR event_type = $8)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
               UNION ALL
               (SELECT *
                FROM webhook_deliveries
                WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND message_id = $7
                  AND ($3 IS NULL OR status = $3) AND ($6 IS NULL OR id < $6)
                  AND id >= $9 AND id < $10 AND created_at >= $11 AND created_at < $12
                  AND ($8 IS NULL OR event_type = $8)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
               ORDER BY id DESC
               LIMIT $4 OFFSET $5
           ) d
           ORDER BY d.id DESC"#,
        organization_id.0,
        endpoint_id.0,
        filter.status as Option<DeliveryStatus>,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.id),
        filter.message_id.map(|id| id.0),
        filter.event_type as Option<WebhookEventType>,
        filter.first_id(),
        filter.end_id(),
        filter.from(),
        filter.to(),
    )
    .fetch_all(connection)
    .await
    .or_fault("list webhook deliveries")?;
    let rows = rows.into_iter().map(Delivery::from).collect();
    Ok(Page::of(rows, page, total, |last: &Delivery| {
        Place::of_id(last.id.0)
    }))
}

/// The number of an endpoint's deliveries.
async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    endpoint_id: WebhookEndpointId,
    filter: &DeliveryFilter,
) -> Result<u64, Fault> {
    let total = if filter.is_of_status_alone() {
        // Written so that index-only scans suffice.
        query_scalar!(
            r#"WITH endpoint AS (SELECT id FROM webhook_endpoints WHERE organization_id = $1 AND id = $2)
               SELECT (SELECT count(*)
                       FROM webhook_deliveries
                       WHERE webhook_endpoint_id = (SELECT id FROM endpoint)
                         AND $3::webhook_delivery_status IS NULL)
                    + (SELECT count(*)
                       FROM webhook_deliveries
                       WHERE webhook_endpoint_id = (SELECT id FROM endpoint) AND status = $3) AS "count!""#,
            organization_id.0,
            endpoint_id.0,
            filter.status as Option<DeliveryStatus>,
        )
        .fetch_one(connection)
        .await
    } else {
        query_scalar!(
            r#"SELECT (SELECT count(*)
                       FROM webhook_deliveries
                       WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND $4::uuid IS NULL
                         AND ($3::webhook_delivery_status IS NULL OR status = $3)
                         AND id >= $6::uuid AND id < $7::uuid
                         AND created_at >= $8::timestamptz AND created_at < $9::timestamptz
                         AND ($5::event_type IS NULL OR event_type = $5))
                    + (SELECT count(*)
                       FROM webhook_deliveries
                       WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND message_id = $4
                         AND ($3 IS NULL OR status = $3)
                         AND id >= $6 AND id < $7 AND created_at >= $8 AND created_at < $9
                         AND ($5 IS NULL OR event_type = $5)) AS "count!""#,
            organization_id.0,
            endpoint_id.0,
            filter.status as Option<DeliveryStatus>,
            filter.message_id.map(|id| id.0),
            filter.event_type as Option<WebhookEventType>,
            filter.first_id(),
            filter.end_id(),
            filter.from(),
            filter.to(),
        )
        .fetch_one(connection)
        .await
    };
    let total = total.or_fault("count webhook deliveries")?;
    Ok(u64::try_from(total).unwrap_or_default())
}

/// A page of a message's deliveries to all endpoints, newest first, without their attempts.
pub(super) async fn list_of_message(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
    page: PageRequest,
) -> Result<Page<Delivery>, Fault> {
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!" FROM webhook_deliveries WHERE organization_id = $1 AND message_id = $2"#,
        organization_id.0,
        message_id.0,
    )
    .fetch_one(&mut *connection)
    .await
    .or_fault("count the webhook deliveries of a message")?;
    let total = u64::try_from(total).unwrap_or_default();
    if page.is_past_end(total) {
        return Ok(Page::empty(total));
    }
    let rows = query_as!(
        DeliveryRow,
        r#"SELECT d.message_id AS "message_id!: MessageId", d.id AS "id!: WebhookDeliveryId",
                  d.webhook_endpoint_id AS "webhook_endpoint_id!: WebhookEndpointId",
                  d.event_id AS "event_id!: EventId", d.event_type AS "event_type!: WebhookEventType",
                  d.status AS "status!: DeliveryStatus", d.attempts AS "attempts!", d.next_attempt_at,
                  d.created_at AS "created_at!", d.ended_at,
                  (SELECT r.address_hash
                   FROM recipients r
                   WHERE r.message_id = d.message_id AND r.position = d.position) AS "to_hash: AddressHash"
           FROM (
               SELECT *
               FROM webhook_deliveries
               WHERE organization_id = $1 AND message_id = $2 AND ($5::uuid IS NULL OR id < $5)
               ORDER BY id DESC
               LIMIT $3 OFFSET $4
           ) d
           ORDER BY d.id DESC"#,
        organization_id.0,
        message_id.0,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.id),
    )
    .fetch_all(connection)
    .await
    .or_fault("list the webhook deliveries of a message")?;
    let rows = rows.into_iter().map(Delivery::from).collect();
    Ok(Page::of(rows, page, total, |last: &Delivery| {
        Place::of_id(last.id.0)
    }))
}

/// One delivery, without its attempts.
pub(in crate::webhook) async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    endpoint_id: WebhookEndpointId,
    id: WebhookDeliveryId,
) -> Result<Option<Delivery>, Fault> {
    let row = query_as!(
        DeliveryRow,
        r#"SELECT d.message_id AS "message_id!: MessageId", d.id AS "id!: WebhookDeliveryId",
                  d.webhook_endpoint_id AS "webhook_endpoint_id!: WebhookEndpointId",
                  d.event_id AS "event_id!: EventId", d.event_type AS "event_type!: WebhookEventType",
                  d.status AS "status!: DeliveryStatus", d.attempts AS "attempts!", d.next_attempt_at,
                  d.created_at AS "created_at!", d.ended_at,
                  (SELECT r.address_hash
                   FROM recipients r
                   WHERE r.message_id = d.message_id AND r.position = d.position) AS "to_hash: AddressHash"
           FROM webhook_deliveries d
           WHERE d.organization_id = $1 AND d.webhook_endpoint_id = $2 AND d.id = $3"#,
        organization_id.0,
        endpoint_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a webhook delivery")?;
    Ok(row.map(Delivery::from))
}

/// The newest attempts of some deliveries, up to `each_max` of each, oldest first, with
/// the ids of their deliveries.
pub(super) async fn list_attempts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    deliveries: &[Delivery],
    each_max: i64,
) -> Result<Vec<(WebhookDeliveryId, Attempt)>, Fault> {
    let message_ids: Vec<Uuid> = deliveries.iter().map(|one| one.message_id.0).collect();
    let ids: Vec<Uuid> = deliveries.iter().map(|one| one.id.0).collect();
    let rows = query!(
        r#"SELECT d.id AS "delivery_id!: WebhookDeliveryId", a.id AS "id!: WebhookAttemptId",
                  a.started_at AS "started_at!", a.duration_ms AS "duration_ms!", a.status_code, a.answer
           FROM UNNEST($2::uuid[], $3::uuid[]) AS d (message_id, id)
           CROSS JOIN LATERAL (
               SELECT id, started_at, duration_ms, status_code, answer
               FROM webhook_attempts
               WHERE message_id = d.message_id AND webhook_delivery_id = d.id AND organization_id = $1
               UNION ALL
               -- The first attempt is stored in the delivery.
               SELECT first_attempt_id, first_started_at, first_duration_ms, first_status_code, first_answer
               FROM webhook_deliveries
               WHERE message_id = d.message_id AND id = d.id AND organization_id = $1
                 AND first_attempt_id IS NOT NULL
               ORDER BY id DESC
               LIMIT $4
           ) a
           ORDER BY a.id"#,
        organization_id.0,
        &message_ids,
        &ids,
        each_max,
    )
    .fetch_all(connection)
    .await
    .or_fault("list webhook attempts")?;
    let attempts = rows.into_iter().map(|row| {
        let attempt = Attempt {
            id: row.id,
            started_at: row.started_at,
            duration_ms: u32::try_from(row.duration_ms).unwrap_or_default(),
            status_code: row.status_code.and_then(|code| u16::try_from(code).ok()),
            answer: row.answer,
        };
        (row.delivery_id, attempt)
    });
    Ok(attempts.collect())
}

/// Makes a delivery due again, as if it were new; a pending one is due now. `false` if it
/// does not exist.
pub(in crate::webhook) async fn replay(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    endpoint_id: WebhookEndpointId,
    id: WebhookDeliveryId,
    now: Timestamp,
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE webhook_deliveries
         SET attempts = CASE WHEN status = 'PENDING' THEN attempts ELSE 0 END,
             next_attempt_at = least(next_attempt_at, $4),
             ended_at = NULL,
             status = 'PENDING'
         WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND id = $3",
        organization_id.0,
        endpoint_id.0,
        id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("replay a webhook delivery")?;
    Ok(done.rows_affected() == 1)
}

/// Replays up to `step.limit` deliveries, oldest first, and returns them. Locked rows are
/// being delivered at this moment and are skipped.
pub(in crate::webhook) async fn replay_step(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    endpoint_id: WebhookEndpointId,
    step: &ReplayStep,
    now: Timestamp,
) -> Result<Vec<(WebhookDeliveryId, Timestamp)>, Fault> {
    let rows = query!(
        r#"WITH chosen AS (
               SELECT message_id, id
               FROM webhook_deliveries
               WHERE organization_id = $1 AND webhook_endpoint_id = $2 AND id > $3 AND id < $4
                 AND created_at >= $5 AND created_at < $6
                 AND ($7::webhook_delivery_status IS NULL OR status = $7)
               ORDER BY id
               LIMIT $8
               FOR UPDATE SKIP LOCKED
           )
           UPDATE webhook_deliveries d
           SET attempts = CASE WHEN d.status = 'PENDING' THEN d.attempts ELSE 0 END,
               next_attempt_at = least(d.next_attempt_at, $9),
               ended_at = NULL,
               status = 'PENDING'
           FROM chosen c
           WHERE d.message_id = c.message_id AND d.id = c.id
           RETURNING d.id AS "id!: WebhookDeliveryId", d.created_at AS "created_at!""#,
        organization_id.0,
        endpoint_id.0,
        step.after,
        step.before,
        step.period.since,
        step.period.until,
        step.period.status as Option<DeliveryStatus>,
        step.limit,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("replay webhook deliveries")?;
    let mut replayed: Vec<_> = rows
        .into_iter()
        .map(|row| (row.id, row.created_at))
        .collect();
    replayed.sort_unstable();
    Ok(replayed)
}

/// Notifies the worker that serves the endpoint, when the transaction commits.
pub(in crate::webhook) async fn notify_due(
    connection: &mut PgConnection,
    endpoint_id: WebhookEndpointId,
) -> Result<(), Fault> {
    query!(
        "SELECT pg_notify('waypost_webhooks', 'due ' || $1::text)",
        endpoint_id.to_string(),
    )
    .fetch_one(connection)
    .await
    .or_fault("notify of due webhook deliveries")?;
    Ok(())
}

struct DeliveryRow {
    message_id: MessageId,
    id: WebhookDeliveryId,
    webhook_endpoint_id: WebhookEndpointId,
    event_id: EventId,
    event_type: WebhookEventType,
    status: DeliveryStatus,
    attempts: i32,
    next_attempt_at: Option<Timestamp>,
    created_at: Timestamp,
    ended_at: Option<Timestamp>,
    to_hash: Option<AddressHash>,
}

impl From<DeliveryRow> for Delivery {
    fn from(row: DeliveryRow) -> Self {
        Self {
            id: row.id,
            webhook_endpoint_id: row.webhook_endpoint_id,
            message_id: row.message_id,
            event_id: row.event_id,
            event_type: row.event_type,
            to_hash: row.to_hash,
            status: row.status,
            attempt_count: u32::try_from(row.attempts).unwrap_or_default(),
            next_attempt_at: row.next_attempt_at,
            created_at: row.created_at,
            ended_at: row.ended_at,
            attempts: Vec::new(),
        }
    }
}
