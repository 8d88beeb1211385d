//! API keys in Postgres.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::keys::KeyChange;
use super::usage::{KeyUse, RECORD_INTERVAL};
use super::{ApiKey, ApiKeyHash, OpenedKey};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{ApiKeyId, OrganizationId};
use crate::limit::OwnRates;
use crate::network::Networks;
use crate::page::{Page, PageRequest, Place};
use crate::text::Name;

/// Adds a key's record.
pub async fn insert(
    connection: &mut PgConnection,
    key: &ApiKey,
    hash: ApiKeyHash,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO api_keys
             (id, organization_id, name, prefix, key_hash, permissions, allowed_ips, expires_at,
              revoked_at, created_at, created_by, is_test)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        key.id.0,
        key.organization_id.0,
        key.name,
        key.prefix,
        hash.0.as_slice(),
        &key.permissions.names(),
        &key.allowed_ips.texts(),
        key.expires_at,
        key.revoked_at,
        key.created_at,
        key.created_by,
        key.is_test,
    )
    .execute(connection)
    .await
    .or_fault("add an API key")?;
    Ok(())
}

/// The keys with these hashes, current or replaced by a rotation, and the rate limits of
/// their organizations. This is the only query that finds the organization instead of
/// being given it: it identifies the caller. A record that cannot be read fails only its
/// own key.
pub async fn list_by_hash(
    connection: &mut PgConnection,
    hashes: &[ApiKeyHash],
) -> Result<HashMap<ApiKeyHash, Result<Arc<OpenedKey>, Fault>>, Fault> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.0.to_vec()).collect();
    let rows = query!(
        r#"WITH secrets AS (
               SELECT key_hash, id, NULL::timestamptz AS valid_until
               FROM api_keys
               WHERE key_hash = ANY ($1)
               UNION ALL
               SELECT key_hash, api_key_id, valid_until
               FROM api_key_old_secrets
               WHERE key_hash = ANY ($1)
           )
           SELECT s.key_hash AS "key_hash!", s.valid_until AS secret_valid_until,
                  k.id, k.organization_id, k.name, k.prefix, k.is_test, k.permissions, k.allowed_ips,
                  k.expires_at, k.last_used_at, k.revoked_at, k.created_at, k.created_by,
                  (SELECT max(o.valid_until) FROM api_key_old_secrets o WHERE o.api_key_id = k.id)
                      AS old_secret_valid_until,
                  organizations.send_per_second, organizations.other_per_second
           FROM secrets s
           JOIN api_keys k ON k.id = s.id
           JOIN organizations ON organizations.id = k.organization_id"#,
        &hashes,
    )
    .fetch_all(connection)
    .await
    .or_fault("look up API keys")?;
    let number = |stored: Option<i32>| stored.and_then(|number| u32::try_from(number).ok());
    let opened = rows.into_iter().filter_map(|row| {
        let hash = ApiKeyHash(row.key_hash.try_into().ok()?);
        let record = ApiKey::try_from(ApiKeyRow {
            id: row.id,
            organization_id: row.organization_id,
            name: row.name,
            prefix: row.prefix,
            is_test: row.is_test,
            permissions: row.permissions,
            allowed_ips: row.allowed_ips,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked_at: row.revoked_at,
            created_at: row.created_at,
            created_by: row.created_by,
            old_secret_valid_until: row.old_secret_valid_until,
        });
        let opened = record.map(|record| {
            Arc::new(OpenedKey {
                record,
                secret_valid_until: row.secret_valid_until,
                rates: OwnRates {
                    send_per_second: number(row.send_per_second),
                    other_per_second: number(row.other_per_second),
                },
            })
        });
        Some((hash, opened))
    });
    Ok(opened.collect())
}

/// A page of an organization's keys, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    page: PageRequest,
) -> Result<Page<ApiKey>, Fault> {
    let rows = query_as!(
        ApiKeyRow,
        "SELECT id, organization_id, name, prefix, is_test, permissions, allowed_ips, expires_at, last_used_at,
                revoked_at, created_at, created_by,
                (SELECT max(o.valid_until) FROM api_key_old_secrets o WHERE o.api_key_id = k.id) AS old_secret_valid_until
         FROM api_keys k
         WHERE organization_id = $1
           AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
         ORDER BY created_at DESC, id DESC
         LIMIT $2 OFFSET $3",
        organization_id.0,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.at),
        page.place().map(|place| place.id),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("list API keys")?;
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!" FROM api_keys WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("count API keys")?;
    let rows = rows.into_iter().map(ApiKey::try_from);
    let rows = rows.collect::<Result<_, _>>()?;
    let total = u64::try_from(total).unwrap_or_default();
    Ok(Page::of(rows, page, total, |last: &ApiKey| Place {
        at: last.created_at,
        id: last.id.0,
    }))
}

/// One key.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
) -> Result<Option<ApiKey>, Fault> {
    let row = query_as!(
        ApiKeyRow,
        "SELECT id, organization_id, name, prefix, is_test, permissions, allowed_ips, expires_at, last_used_at,
                revoked_at, created_at, created_by,
                (SELECT max(o.valid_until) FROM api_key_old_secrets o WHERE o.api_key_id = k.id) AS old_secret_valid_until
         FROM api_keys k
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an API key")?;
    row.map(ApiKey::try_from).transpose()
}

/// Finds and locks a key until the transaction ends.
pub(super) async fn find_for_update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
) -> Result<Option<ApiKey>, Fault> {
    query!(
        "SELECT id FROM api_keys WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id.0,
        id.0,
    )
    .fetch_optional(&mut *connection)
    .await
    .or_fault("lock an API key")?;
    find(connection, organization_id, id).await
}

/// Changes a key and returns it; `None` if there is no such key.
pub(super) async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
    change: &KeyChange,
) -> Result<Option<ApiKey>, Fault> {
    let permissions = change.permissions.as_ref().map(|some| some.names());
    let networks = change.allowed_ips.as_ref().map(Networks::texts);
    query!(
        "UPDATE api_keys
         SET name = coalesce($3, name),
             permissions = coalesce($4, permissions),
             allowed_ips = coalesce($5, allowed_ips),
             expires_at = CASE WHEN $6 THEN $7 ELSE expires_at END
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
        change.name.as_ref().map(Name::as_str),
        permissions as Option<Vec<String>>,
        networks as Option<Vec<String>>,
        change.expires_at.is_some(),
        change.expires_at.flatten(),
    )
    .execute(&mut *connection)
    .await
    .or_fault("change an API key")?;
    find(connection, organization_id, id).await
}

/// Adds the current secret of a key to its old secrets, limits the validity of all old
/// secrets to `grace_ends`, and deletes those that have ended by `now`.
pub(super) async fn retire_secret(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
    grace_ends: Timestamp,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO api_key_old_secrets (key_hash, api_key_id, organization_id, valid_until)
         SELECT key_hash, id, organization_id, $3
         FROM api_keys
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
        grace_ends,
    )
    .execute(&mut *connection)
    .await
    .or_fault("retire an API key's secret")?;
    query!(
        "UPDATE api_key_old_secrets
         SET valid_until = $3
         WHERE organization_id = $1 AND api_key_id = $2 AND valid_until > $3",
        organization_id.0,
        id.0,
        grace_ends,
    )
    .execute(&mut *connection)
    .await
    .or_fault("shorten the life of old secrets")?;
    query!(
        "DELETE FROM api_key_old_secrets
         WHERE organization_id = $1 AND api_key_id = $2 AND valid_until <= $3",
        organization_id.0,
        id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("delete ended secrets")?;
    Ok(())
}

/// Replaces the secret of a key and returns the key; `None` if there is no such key.
pub(super) async fn replace_secret(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
    hash: ApiKeyHash,
    prefix: &str,
) -> Result<Option<ApiKey>, Fault> {
    query!(
        "UPDATE api_keys
         SET key_hash = $3, prefix = $4
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
        hash.0.as_slice(),
        prefix,
    )
    .execute(&mut *connection)
    .await
    .or_fault("replace an API key's secret")?;
    find(connection, organization_id, id).await
}

/// Revokes a key.
pub(super) async fn revoke(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ApiKeyId,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE api_keys
         SET revoked_at = $3
         WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL",
        organization_id.0,
        id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("revoke an API key")?;
    Ok(())
}

/// Revokes all keys of an organization and returns those that were not revoked before.
pub async fn revoke_all(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    now: Timestamp,
) -> Result<Vec<ApiKeyId>, Fault> {
    query_scalar!(
        r#"UPDATE api_keys
           SET revoked_at = $2
           WHERE organization_id = $1 AND revoked_at IS NULL
           RETURNING id AS "id: ApiKeyId""#,
        organization_id.0,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("revoke the API keys of an organization")
}

/// Records when keys were used, unless another process recorded a use of the key within
/// the last minute.
pub(super) async fn record_uses(
    connection: &mut PgConnection,
    uses: &[KeyUse],
) -> Result<(), Fault> {
    let organization_ids: Vec<Uuid> = uses.iter().map(|one| one.organization_id.0).collect();
    let key_ids: Vec<Uuid> = uses.iter().map(|one| one.key_id.0).collect();
    let times: Vec<Timestamp> = uses.iter().map(|one| one.at).collect();
    query!(
        "WITH used AS (
             SELECT organization_id, key_id, max(at) AS at
             FROM UNNEST($1::uuid[], $2::uuid[], $3::timestamptz[]) AS u (organization_id, key_id, at)
             GROUP BY organization_id, key_id
         ), due AS (
             SELECT k.id, used.at
             FROM api_keys k
             JOIN used ON used.organization_id = k.organization_id AND used.key_id = k.id
             WHERE k.last_used_at IS NULL OR k.last_used_at <= used.at - $4::interval
             -- Key look-ups share this connection pool, so this does not wait for locks.
             FOR UPDATE OF k SKIP LOCKED
         )
         UPDATE api_keys k
         SET last_used_at = due.at
         FROM due
         WHERE k.id = due.id",
        &organization_ids,
        &key_ids,
        &times,
        RECORD_INTERVAL as _,
    )
    .execute(connection)
    .await
    .or_fault("record the use of API keys")?;
    Ok(())
}

struct ApiKeyRow {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    prefix: String,
    is_test: bool,
    permissions: Vec<String>,
    allowed_ips: Vec<String>,
    expires_at: Option<Timestamp>,
    last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    created_at: Timestamp,
    created_by: Option<Uuid>,
    old_secret_valid_until: Option<Timestamp>,
}

impl TryFrom<ApiKeyRow> for ApiKey {
    type Error = Fault;

    /// A network that cannot be parsed is a fault: leaving it out could make the key valid
    /// from anywhere.
    fn try_from(row: ApiKeyRow) -> Result<Self, Fault> {
        let networks: Result<Vec<_>, _> = row.allowed_ips.iter().map(|text| text.parse()).collect();
        let networks =
            networks.map_err(|error| Fault::internal("read an API key's networks", error))?;
        Ok(Self {
            id: ApiKeyId(row.id),
            organization_id: OrganizationId(row.organization_id),
            name: row.name,
            prefix: row.prefix,
            is_test: row.is_test,
            permissions: row
                .permissions
                .iter()
                .filter_map(|name| name.parse().ok())
                .collect(),
            allowed_ips: Networks(networks),
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            old_secret_valid_until: row.old_secret_valid_until,
            revoked_at: row.revoked_at,
            created_at: row.created_at,
            created_by: row.created_by,
        })
    }
}
