//! API keys in Postgres.

use sqlx::{PgConnection, query};

use super::{ApiKey, KeyHash};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{ApiKeyId, OrganizationId};

/// Adds a key's record.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn insert(
    connection: &mut PgConnection,
    key: &ApiKey,
    hash: KeyHash,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO api_keys
             (id, organization_id, name, prefix, key_hash, permissions, expires_at, revoked_at, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        key.id.0,
        key.organization_id.0,
        key.name,
        key.prefix,
        hash.0.as_slice(),
        &key.permissions.names(),
        key.expires_at,
        key.revoked_at,
        key.created_at,
    )
    .execute(connection)
    .await
    .or_fault("add an API key")?;
    Ok(())
}

/// The record of the key with this hash. The one query that finds an
/// organization rather than being given one: this is how a caller is known.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn find_by_hash(
    connection: &mut PgConnection,
    hash: KeyHash,
) -> Result<Option<ApiKey>, Fault> {
    let row = query!(
        "SELECT id, organization_id, name, prefix, permissions, expires_at, revoked_at, created_at
         FROM api_keys
         WHERE key_hash = $1",
        hash.0.as_slice(),
    )
    .fetch_optional(connection)
    .await
    .or_fault("look up an API key")?;
    Ok(row.map(|row| ApiKey {
        id: ApiKeyId(row.id),
        organization_id: OrganizationId(row.organization_id),
        name: row.name,
        prefix: row.prefix,
        permissions: row
            .permissions
            .iter()
            .filter_map(|name| name.parse().ok())
            .collect(),
        expires_at: row.expires_at,
        revoked_at: row.revoked_at,
        created_at: row.created_at,
    }))
}
