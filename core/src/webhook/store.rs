//! Endpoints and their secrets in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};

use super::endpoint::{EndpointChange, WebhookEndpoint};
use super::event_type::WebhookEventType;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, WebhookEndpointId};
use crate::text::Tag;

/// Replaced secrets that may still sign, at most: attempts alternate between all secrets.
const OLD_SECRETS_MAX: i64 = 2;

/// Inserts an endpoint.
pub(super) async fn insert(
    connection: &mut PgConnection,
    endpoint: &WebhookEndpoint,
    secret_sealed: &[u8],
) -> Result<(), Fault> {
    query!(
        "INSERT INTO webhook_endpoints
             (id, organization_id, url, events, is_active, secret_sealed, failing_since, created_at, updated_at, tags)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        endpoint.id.0,
        endpoint.organization_id.0,
        endpoint.url,
        &endpoint.events as &[WebhookEventType],
        endpoint.is_active,
        secret_sealed,
        endpoint.failing_since,
        endpoint.created_at,
        endpoint.updated_at,
        &endpoint.tags,
    )
    .execute(connection)
    .await
    .or_fault("insert a webhook endpoint")?;
    Ok(())
}

/// An organization's endpoints, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<WebhookEndpoint>, Fault> {
    query_as!(
        WebhookEndpoint,
        r#"SELECT id AS "id!: WebhookEndpointId", organization_id AS "organization_id!: OrganizationId",
                  url, events AS "events!: Vec<WebhookEventType>", tags, is_active, failing_since, created_at, updated_at
           FROM webhook_endpoints
           WHERE organization_id = $1
           ORDER BY id"#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list webhook endpoints")
}

/// The number of an organization's endpoints.
pub(super) async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<u64, Fault> {
    let count = query_scalar!(
        r#"SELECT count(*) AS "count!" FROM webhook_endpoints WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("count webhook endpoints")?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// One endpoint.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
) -> Result<Option<WebhookEndpoint>, Fault> {
    query_as!(
        WebhookEndpoint,
        r#"SELECT id AS "id!: WebhookEndpointId", organization_id AS "organization_id!: OrganizationId",
                  url, events AS "events!: Vec<WebhookEventType>", tags, is_active, failing_since, created_at, updated_at
           FROM webhook_endpoints
           WHERE organization_id = $1 AND id = $2"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a webhook endpoint")
}

/// Locks an endpoint against other changes until the transaction ends; `false` if it does
/// not exist.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
) -> Result<bool, Fault> {
    let found = query!(
        "SELECT id FROM webhook_endpoints WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock a webhook endpoint")?;
    Ok(found.is_some())
}

/// Changes an endpoint. A new URL, or activating it, clears its failures.
pub(super) async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
    change: &EndpointChange,
    now: Timestamp,
) -> Result<Option<WebhookEndpoint>, Fault> {
    let tags = change.tags.as_ref();
    let tags: Option<Vec<&str>> = tags.map(|tags| tags.iter().map(Tag::as_str).collect());
    query_as!(
        WebhookEndpoint,
        r#"UPDATE webhook_endpoints
           SET url = coalesce($3, url),
               events = coalesce($4, events),
               is_active = coalesce($5, is_active),
               tags = coalesce($7, tags),
               failing_since = CASE
                   WHEN url <> $3 OR (NOT is_active AND $5) THEN NULL
                   ELSE failing_since
               END,
               updated_at = $6
           WHERE organization_id = $1 AND id = $2
           RETURNING id AS "id!: WebhookEndpointId", organization_id AS "organization_id!: OrganizationId",
                     url, events AS "events!: Vec<WebhookEventType>", tags, is_active, failing_since, created_at, updated_at"#,
        organization_id.0,
        id.0,
        change.url.as_ref().map(|url| url.as_str()),
        change.events.as_deref() as Option<&[WebhookEventType]>,
        change.is_active,
        now,
        tags.as_deref() as Option<&[&str]>,
    )
    .fetch_optional(connection)
    .await
    .or_fault("change a webhook endpoint")
}

/// Deletes an endpoint with its secrets; `false` if it does not exist. The scheduler
/// deletes its deliveries.
pub(super) async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM webhook_endpoints WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("delete a webhook endpoint")?;
    Ok(done.rows_affected() == 1)
}

/// The sealed secrets that sign for an endpoint, newest first; empty if it does not
/// exist.
pub async fn list_secrets(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
    now: Timestamp,
) -> Result<Vec<Vec<u8>>, Fault> {
    query_scalar!(
        r#"SELECT s.secret_sealed AS "secret_sealed!"
           FROM (
               SELECT secret_sealed, NULL AS created_at
               FROM webhook_endpoints
               WHERE organization_id = $1 AND id = $2
               UNION ALL
               SELECT o.secret_sealed, o.created_at
               FROM webhook_endpoint_old_secrets o
               JOIN webhook_endpoints e ON e.id = o.webhook_endpoint_id
               WHERE e.organization_id = $1 AND e.id = $2 AND o.valid_until > $3
           ) s
           ORDER BY s.created_at DESC NULLS FIRST"#,
        organization_id.0,
        id.0,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("find signing secrets")
}

/// Moves the current secret to the old secrets, valid until `until`. Older ones end by
/// then too, and only the newest [`OLD_SECRETS_MAX`] are kept. The endpoint must be
/// locked.
pub(super) async fn retire_secret(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), Fault> {
    // Keeps the order of rotations within one microsecond.
    query!(
        "INSERT INTO webhook_endpoint_old_secrets (webhook_endpoint_id, secret_sealed, valid_until, created_at)
         SELECT e.id, e.secret_sealed, $4,
                greatest($3, (SELECT max(o.created_at) + interval '1 microsecond'
                              FROM webhook_endpoint_old_secrets o
                              WHERE o.webhook_endpoint_id = e.id))
         FROM webhook_endpoints e
         WHERE e.organization_id = $1 AND e.id = $2",
        organization_id.0,
        id.0,
        now,
        until,
    )
    .execute(&mut *connection)
    .await
    .or_fault("retire a signing secret")?;
    query!(
        "UPDATE webhook_endpoint_old_secrets
         SET valid_until = $2
         WHERE webhook_endpoint_id = $1 AND valid_until > $2",
        id.0,
        until,
    )
    .execute(&mut *connection)
    .await
    .or_fault("limit the validity of signing secrets")?;
    query!(
        "DELETE FROM webhook_endpoint_old_secrets
         WHERE webhook_endpoint_id = $1
           AND (valid_until <= $2
                OR created_at NOT IN (
                    SELECT created_at
                    FROM webhook_endpoint_old_secrets
                    WHERE webhook_endpoint_id = $1
                    ORDER BY created_at DESC
                    LIMIT $3))",
        id.0,
        now,
        OLD_SECRETS_MAX,
    )
    .execute(connection)
    .await
    .or_fault("delete old signing secrets")?;
    Ok(())
}

/// Replaces the current secret.
pub(super) async fn replace_secret(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: WebhookEndpointId,
    secret_sealed: &[u8],
    now: Timestamp,
) -> Result<Option<WebhookEndpoint>, Fault> {
    query_as!(
        WebhookEndpoint,
        r#"UPDATE webhook_endpoints
           SET secret_sealed = $3, updated_at = $4
           WHERE organization_id = $1 AND id = $2
           RETURNING id AS "id!: WebhookEndpointId", organization_id AS "organization_id!: OrganizationId",
                     url, events AS "events!: Vec<WebhookEventType>", tags, is_active, failing_since, created_at, updated_at"#,
        organization_id.0,
        id.0,
        secret_sealed,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("replace a signing secret")
}
