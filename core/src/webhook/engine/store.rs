//! The statements of webhook workers.

use std::time::Duration;

use chrono::SecondsFormat;
use serde_json::json;
use sqlx::{PgConnection, query, query_as, query_scalar};
use url::Url;
use uuid::Uuid;

use super::due::{Due, DueRow};
use super::endpoint_health::EndpointHealth;
use super::{CallRecord, Deactivation, DueDelivery, LeasedEndpoint};
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, WebhookDeliveryId, WebhookEndpointId, WorkerId};
use crate::provider::kind::ProviderType;
use crate::webhook::event_type::WebhookEventType;
use crate::webhook::schedule::AttemptDecision;

/// Leases those of the wanted endpoints that no other live worker has leased and that may
/// be called. An endpoint that `worker` has leased already is returned too: a worker asks
/// only for endpoints that it does not serve yet.
pub async fn lease(
    connection: &mut PgConnection,
    worker: WorkerId,
    wanted: &[WebhookEndpointId],
    now: Timestamp,
) -> Result<Vec<WebhookEndpointId>, Fault> {
    let wanted: Vec<Uuid> = wanted.iter().map(|id| id.0).collect();
    query_scalar!(
        r#"WITH free AS (
               SELECT e.id
               FROM webhook_endpoints e
               WHERE e.id = ANY($2) AND e.is_active
                 AND (e.paused_until IS NULL OR e.paused_until <= $3)
                 AND (e.leased_by = $1 OR NOT EXISTS (
                     SELECT FROM workers w WHERE w.id = e.leased_by AND w.leased_until > clock_timestamp()))
               FOR NO KEY UPDATE OF e SKIP LOCKED
           )
           UPDATE webhook_endpoints e
           SET leased_by = $1
           FROM free
           WHERE e.id = free.id
           RETURNING e.id AS "id: WebhookEndpointId""#,
        worker.0,
        &wanted,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease webhook endpoints")
}

/// Releases the lease of an endpoint.
pub async fn release(
    connection: &mut PgConnection,
    worker: WorkerId,
    id: WebhookEndpointId,
) -> Result<(), Fault> {
    query!(
        "UPDATE webhook_endpoints
         SET leased_by = NULL, polled_until = NULL
         WHERE id = $2 AND leased_by = $1",
        worker.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("release a webhook endpoint")?;
    Ok(())
}

/// Announces that `worker` polls an endpoint for due deliveries, so that it needs no
/// notifications.
pub async fn announce_polling(
    connection: &mut PgConnection,
    worker: WorkerId,
    id: WebhookEndpointId,
    duration: Duration,
) -> Result<(), Fault> {
    query!(
        "UPDATE webhook_endpoints
         SET polled_until = clock_timestamp() + $3
         WHERE id = $2 AND leased_by = $1",
        worker.0,
        id.0,
        delta(duration) as _,
    )
    .execute(connection)
    .await
    .or_fault("announce polling of a webhook endpoint")?;
    Ok(())
}

/// The current endpoint; `None` if `worker` has no lease of it or it is inactive.
pub async fn find_leased(
    connection: &mut PgConnection,
    worker: WorkerId,
    id: WebhookEndpointId,
    now: Timestamp,
) -> Result<Option<LeasedEndpoint>, Fault> {
    let row = query!(
        r#"SELECT e.organization_id, e.url, e.secret_sealed, e.failures, e.failing_since, e.paused_until,
                  ARRAY(SELECT o.secret_sealed
                        FROM webhook_endpoint_old_secrets o
                        WHERE o.webhook_endpoint_id = e.id AND o.valid_until > $3
                        ORDER BY o.created_at DESC) AS "old_secrets!"
           FROM webhook_endpoints e
           WHERE e.id = $2 AND e.leased_by = $1 AND e.is_active"#,
        worker.0,
        id.0,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("read a webhook endpoint")?;
    let Some(row) = row else {
        return Ok(None);
    };
    let url = Url::parse(&row.url)
        .map_err(|error| Fault::internal("read a webhook endpoint's URL", error))?;
    Ok(Some(LeasedEndpoint {
        id,
        organization_id: OrganizationId(row.organization_id),
        url,
        url_text: row.url,
        secrets_sealed: std::iter::once(row.secret_sealed)
            .chain(row.old_secrets)
            .collect(),
        health: EndpointHealth {
            failures: row.failures,
            failing_since: row.failing_since,
            paused_until: row.paused_until,
        },
    }))
}

/// Deliveries read by one statement.
pub const READ_MAX: usize = 256;

/// Up to [`READ_MAX`] due deliveries of an endpoint, longest due first, without those in
/// flight and those due before `from`. The LIMITs make each lookup one by primary key,
/// even if the planner's statistics of a growing table are out of date.
pub async fn list_due(
    connection: &mut PgConnection,
    endpoint: &LeasedEndpoint,
    now: Timestamp,
    in_flight: &[WebhookDeliveryId],
    from: Option<Timestamp>,
) -> Result<Due, Fault> {
    let in_flight: Vec<Uuid> = in_flight.iter().map(|id| id.0).collect();
    let rows = query_as!(
        DueRow,
        r#"SELECT d.id, d.attempts, d.next_attempt_at AS "due_at!", d.message_id, d.event_id,
                  d.event_type AS "event_type: WebhookEventType", d.content, d.created_at, e.occurred_at AS "occurred_at?", e.data, m.from_address AS "from_address?",
                  coalesce(c.subject, m.subject) AS "subject?", m.tags AS "tags?", m.is_test AS "is_test?", m.traceparent AS "traceparent?",
                  CASE WHEN c.metadata IS NULL THEN m.metadata ELSE coalesce(m.metadata, '{}') || c.metadata
                  END AS metadata, r.address_sealed AS "address_sealed?",
                  p.provider_type AS "provider_type?: ProviderType"
           FROM (
               SELECT id, attempts, next_attempt_at, message_id, event_id, event_type, position, content, created_at
               FROM webhook_deliveries
               WHERE webhook_endpoint_id = $1 AND status = 'PENDING' AND next_attempt_at <= $3
                 AND next_attempt_at >= coalesce($6, '-infinity'::timestamptz)
                 -- Postgres hashes a subquery, but scans an array for every row.
                 AND organization_id = $2 AND id NOT IN (SELECT UNNEST($4::uuid[]))
               ORDER BY next_attempt_at
               LIMIT $5
           ) d
           LEFT JOIN LATERAL (
               SELECT occurred_at, data FROM message_events WHERE message_id = d.message_id AND id = d.event_id LIMIT 1
           ) e ON true
           LEFT JOIN LATERAL (
               SELECT from_address, subject, tags, metadata, is_test, provider_account_id, traceparent
               FROM messages
               WHERE id = d.message_id
               LIMIT 1
           ) m ON true
           LEFT JOIN LATERAL (
               -- The address is empty where it was erased.
               SELECT nullif(address_sealed, '') AS address_sealed, provider_account_id
               FROM recipients
               WHERE message_id = d.message_id AND position = d.position
               LIMIT 1
           ) r ON true
           LEFT JOIN LATERAL (
               SELECT subject, metadata
               FROM recipient_contents
               WHERE message_id = d.message_id AND position = d.position
               LIMIT 1
           ) c ON true
           LEFT JOIN LATERAL (
               SELECT provider_type
               FROM provider_account_types
               WHERE provider_account_id = coalesce(r.provider_account_id, m.provider_account_id)
               LIMIT 1
           ) p ON true"#,
        endpoint.id.0,
        endpoint.organization_id.0,
        now,
        &in_flight,
        READ_MAX as i64,
        from,
    )
    .fetch_all(connection)
    .await
    .or_fault("list due webhook deliveries")?;
    Ok(Due::of(rows))
}

/// A delivery with the content of its calls, by the message's id and its own, whether it is due
/// or not. `None` if what its content needs is no longer stored.
pub(in crate::webhook) async fn find_content(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    (message_id, id): (MessageId, WebhookDeliveryId),
) -> Result<Option<DueDelivery>, Fault> {
    let row = query_as!(
        DueRow,
        r#"SELECT d.id AS "id!", d.attempts AS "attempts!", coalesce(d.next_attempt_at, d.created_at) AS "due_at!",
                  d.message_id AS "message_id!", d.event_id AS "event_id!",
                  d.event_type AS "event_type!: WebhookEventType", d.content, d.created_at AS "created_at!", e.occurred_at AS "occurred_at?", e.data, m.from_address AS "from_address?",
                  coalesce(c.subject, m.subject) AS "subject?", m.tags AS "tags?", m.is_test AS "is_test?", m.traceparent AS "traceparent?",
                  CASE WHEN c.metadata IS NULL THEN m.metadata ELSE coalesce(m.metadata, '{}') || c.metadata
                  END AS metadata, nullif(r.address_sealed, '') AS "address_sealed?",
                  p.provider_type AS "provider_type?: ProviderType"
           FROM webhook_deliveries d
           LEFT JOIN LATERAL (
               SELECT occurred_at, data FROM message_events WHERE message_id = d.message_id AND id = d.event_id LIMIT 1
           ) e ON true
           LEFT JOIN messages m ON m.id = d.message_id
           LEFT JOIN recipients r ON r.message_id = d.message_id AND r.position = d.position
           LEFT JOIN recipient_contents c ON c.message_id = d.message_id AND c.position = d.position
           LEFT JOIN provider_account_types p
             ON p.provider_account_id = coalesce(r.provider_account_id, m.provider_account_id)
           WHERE d.organization_id = $1 AND d.message_id = $2 AND d.id = $3"#,
        organization_id.0,
        message_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the content of a webhook delivery")?;
    Ok(row.and_then(DueRow::delivery))
}

/// Marks deliveries as failed without a call.
pub async fn fail_orphans(
    connection: &mut PgConnection,
    orphans: &[(MessageId, WebhookDeliveryId)],
    now: Timestamp,
) -> Result<(), Fault> {
    if orphans.is_empty() {
        return Ok(());
    }
    let (message_ids, ids): (Vec<Uuid>, Vec<Uuid>) = orphans
        .iter()
        .map(|(message_id, id)| (message_id.0, id.0))
        .unzip();
    query!(
        "UPDATE webhook_deliveries
         SET status = 'FAILED', next_attempt_at = NULL, ended_at = $3
         WHERE message_id = ANY($1) AND id = ANY($2) AND status = 'PENDING'",
        &message_ids,
        &ids,
        now,
    )
    .execute(connection)
    .await
    .or_fault("fail webhook deliveries without content")?;
    Ok(())
}

/// Records calls and updates their deliveries. A record that is repeated, or that comes
/// after another worker's, counts once. Calls of deleted deliveries are not recorded.
///
/// # Errors
/// A fault if Postgres is unavailable; nothing is recorded then.
pub async fn record(connection: &mut PgConnection, calls: &[&CallRecord]) -> Result<(), Fault> {
    let columns = CallColumns::of(calls);
    query!(
        r#"WITH call AS (
               SELECT *
               FROM UNNEST($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[],
                           $7::uuid[], $8::timestamptz[], $9::int[], $10::int[], $11::text[])
                 AS c (message_id, delivery_id, attempts_before, status, next_attempt_at, ended_at,
                       id, started_at, duration_ms, status_code, answer)
           ), moved AS (
               UPDATE webhook_deliveries d
               SET status = c.status::webhook_delivery_status,
                   attempts = d.attempts + 1,
                   next_attempt_at = c.next_attempt_at,
                   ended_at = c.ended_at,
                   first_attempt_id = coalesce(d.first_attempt_id, c.id),
                   first_started_at = CASE WHEN d.first_attempt_id IS NULL THEN c.started_at ELSE d.first_started_at END,
                   first_duration_ms = CASE WHEN d.first_attempt_id IS NULL THEN c.duration_ms ELSE d.first_duration_ms END,
                   first_status_code = CASE WHEN d.first_attempt_id IS NULL THEN c.status_code ELSE d.first_status_code END,
                   first_answer = CASE WHEN d.first_attempt_id IS NULL THEN c.answer ELSE d.first_answer END
               FROM call c
               WHERE d.message_id = c.message_id AND d.id = c.delivery_id
                 AND d.status = 'PENDING' AND d.attempts = c.attempts_before
                 -- A call may be recorded twice, if the first commit was not acknowledged. It
                 -- must not count for a replay in between.
                 AND d.first_attempt_id IS DISTINCT FROM c.id
                 AND (d.first_attempt_id IS NULL
                      OR NOT EXISTS (
                          SELECT 1
                          FROM webhook_attempts a
                          WHERE a.message_id = c.message_id AND a.id = c.id))
               RETURNING c.id AS call_id, d.organization_id, d.first_attempt_id
           )
           INSERT INTO webhook_attempts (message_id, id, organization_id, webhook_delivery_id,
                                         started_at, duration_ms, status_code, answer)
           SELECT c.message_id, c.id, m.organization_id, c.delivery_id,
                  c.started_at, c.duration_ms, c.status_code, c.answer
           FROM moved m
           JOIN call c ON c.id = m.call_id
           -- The first attempt is stored in the delivery.
           WHERE m.first_attempt_id <> m.call_id"#,
        &columns.message_ids,
        &columns.delivery_ids,
        &columns.attempts_before,
        &columns.statuses as &[&str],
        &columns.next_attempts_at as &[Option<Timestamp>],
        &columns.ended_at as &[Option<Timestamp>],
        &columns.attempt_ids,
        &columns.started_at,
        &columns.durations_ms,
        &columns.status_codes as &[Option<i32>],
        &columns.answers as &[Option<&str>],
    )
    .execute(connection)
    .await
    .or_fault("record webhook attempts")?;
    Ok(())
}

#[derive(Default)]
struct CallColumns<'a> {
    message_ids: Vec<Uuid>,
    delivery_ids: Vec<Uuid>,
    attempts_before: Vec<i32>,
    statuses: Vec<&'static str>,
    next_attempts_at: Vec<Option<Timestamp>>,
    ended_at: Vec<Option<Timestamp>>,
    attempt_ids: Vec<Uuid>,
    started_at: Vec<Timestamp>,
    durations_ms: Vec<i32>,
    status_codes: Vec<Option<i32>>,
    answers: Vec<Option<&'a str>>,
}

impl<'a> CallColumns<'a> {
    fn of(calls: &[&'a CallRecord]) -> Self {
        let mut columns = Self::default();
        for call in calls {
            let attempt = &call.attempt;
            let ended_at =
                attempt.started_at + chrono::TimeDelta::milliseconds(attempt.duration_ms.into());
            let (status, next_attempt_at, ended_at) = match call.decision {
                AttemptDecision::Delivered => ("DELIVERED", None, Some(ended_at)),
                AttemptDecision::RetryAt(at) => ("PENDING", Some(at), None),
                AttemptDecision::Failed => ("FAILED", None, Some(ended_at)),
            };
            columns.message_ids.push(call.message_id.0);
            columns.delivery_ids.push(call.delivery_id.0);
            columns.attempts_before.push(call.attempts_before);
            columns.statuses.push(status);
            columns.next_attempts_at.push(next_attempt_at);
            columns.ended_at.push(ended_at);
            columns.attempt_ids.push(attempt.id.0);
            columns.started_at.push(attempt.started_at);
            columns.durations_ms.push(attempt.duration_ms);
            columns.status_codes.push(attempt.status_code);
            columns.answers.push(attempt.answer.as_deref());
        }
        columns
    }
}

/// Records the health of an endpoint, if the caller still has its lease and the URL is
/// the one that was called.
pub async fn update_health(
    connection: &mut PgConnection,
    call: &CallRecord,
    health: EndpointHealth,
) -> Result<(), Fault> {
    query!(
        "UPDATE webhook_endpoints
         SET failures = $4, failing_since = $5, paused_until = $6
         WHERE id = $2 AND leased_by = $1 AND url = $3",
        call.worker.0,
        call.endpoint_id.0,
        call.url_text,
        health.failures,
        health.failing_since,
        health.paused_until,
    )
    .execute(connection)
    .await
    .or_fault("record the health of a webhook endpoint")?;
    Ok(())
}

/// Deactivates an endpoint. `false` if it was inactive already, the caller has lost its
/// lease, or its URL is not the one that was called.
pub async fn deactivate(
    connection: &mut PgConnection,
    call: &CallRecord,
    now: Timestamp,
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE webhook_endpoints
         SET is_active = false, updated_at = $4
         WHERE id = $2 AND leased_by = $1 AND url = $3 AND is_active",
        call.worker.0,
        call.endpoint_id.0,
        call.url_text,
        now,
    )
    .execute(connection)
    .await
    .or_fault("deactivate a webhook endpoint")?;
    Ok(done.rows_affected() == 1)
}

/// Inserts the event of a deactivation for the organization's other endpoints that subscribed
/// to it. The endpoint itself must be inactive already.
pub async fn insert_disabled_event(
    connection: &mut PgConnection,
    call: &CallRecord,
    reason: Deactivation,
    now: Timestamp,
) -> Result<(), Fault> {
    let since = call.health.and_then(|health| health.failing_since);
    let content = json!({
        "webhookEndpointId": call.endpoint_id,
        "reason": reason.as_str(),
        "failingSince": since.map(|since| since.to_rfc3339_opts(SecondsFormat::Millis, true)),
    });
    query!(
        "SELECT waypost_add_organization_event('WEBHOOK_ENDPOINT_DISABLED', $1, $2, $3)",
        call.organization_id.0,
        now,
        content,
    )
    .fetch_one(connection)
    .await
    .or_fault("insert the event of a deactivated webhook endpoint")?;
    Ok(())
}

/// Notifies the workers of all endpoints with due deliveries and returns the number of
/// these endpoints. Earlier notifications may have been lost, and retries have none.
pub async fn notify_due(connection: &mut PgConnection, now: Timestamp) -> Result<i64, Fault> {
    query_scalar!(
        r#"SELECT count(pg_notify('waypost_webhooks', 'due ' || e.id)) AS "count!"
           FROM webhook_endpoints e
           CROSS JOIN LATERAL (
               SELECT d.next_attempt_at
               FROM webhook_deliveries d
               WHERE d.webhook_endpoint_id = e.id AND d.status = 'PENDING'
               ORDER BY d.next_attempt_at
               LIMIT 1
           ) first
           WHERE e.is_active AND (e.paused_until IS NULL OR e.paused_until <= $1)
             AND first.next_attempt_at <= $1"#,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("find due webhook deliveries")
}

/// How long a transaction may still insert deliveries after an endpoint was deleted.
const DELETION_GRACE: Duration = Duration::from_secs(600);

/// Deletes up to `limit` deliveries of deleted endpoints, with their attempts, and
/// returns their number. Also deletes the records of deleted
/// endpoints without deliveries.
pub async fn delete_of_deleted(connection: &mut PgConnection, limit: i64) -> Result<u64, Fault> {
    let deleted = query_scalar!(
        r#"WITH doomed AS (
               SELECT d.message_id, d.id
               FROM webhook_endpoint_deletions gone
               CROSS JOIN LATERAL (
                   SELECT message_id, id
                   FROM webhook_deliveries
                   WHERE webhook_endpoint_id = gone.webhook_endpoint_id
                   ORDER BY id DESC
                   LIMIT $1
               ) d
               LIMIT $1
           ), attempt AS (
               DELETE FROM webhook_attempts a
               USING doomed
               WHERE a.message_id = doomed.message_id AND a.webhook_delivery_id = doomed.id
           ), delivery AS (
               DELETE FROM webhook_deliveries d
               USING doomed
               WHERE d.message_id = doomed.message_id AND d.id = doomed.id
               RETURNING d.id
           )
           SELECT count(*) AS "count!"
           FROM delivery"#,
        limit,
    )
    .fetch_one(&mut *connection)
    .await
    .or_fault("delete the deliveries of deleted webhook endpoints")?;
    query!(
        "DELETE FROM webhook_endpoint_deletions gone
         WHERE gone.deleted_at < now() - $1::interval
           AND NOT EXISTS (
               SELECT FROM webhook_deliveries d WHERE d.webhook_endpoint_id = gone.webhook_endpoint_id)",
        delta(DELETION_GRACE) as _,
    )
    .execute(connection)
    .await
    .or_fault("delete records of deleted webhook endpoints")?;
    Ok(u64::try_from(deleted).unwrap_or_default())
}
