//! Sessions in Postgres. The statements find the organization instead of being given it: they
//! identify the caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use sqlx::{PgConnection, query, query_scalar};

use super::{
    IDLE_MAX, OpenedSession, OrganizationRole, SessionDetail, StartedSession, TokenHash, hash_of,
    permissions_of,
};
use crate::auth::Role;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, SessionId, UserId};
use crate::limit::OwnRates;
use crate::user::{AccountEmail, User};

/// Adds a session.
pub(super) async fn insert(
    connection: &mut PgConnection,
    started: &StartedSession,
    organization_id: OrganizationId,
    now: Timestamp,
) -> Result<(), Fault> {
    let hash = hash_of(&started.token);
    query!(
        "INSERT INTO sessions
             (id, token_hash, user_id, organization_id, created_at, last_used_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $5, $6)",
        started.id.0,
        hash.0.as_slice(),
        started.user_id.0,
        organization_id.0,
        now,
        started.expires_at,
    )
    .execute(connection)
    .await
    .or_fault("begin a session")?;
    Ok(())
}

/// Notes that a user begins a session: in the given organization, or in the one that the user
/// was last in. `None` if the user is no member there.
pub(super) async fn enter(
    connection: &mut PgConnection,
    user_id: UserId,
    organization_id: Option<OrganizationId>,
    now: Timestamp,
) -> Result<Option<OrganizationId>, Fault> {
    query_scalar!(
        r#"UPDATE memberships
           SET last_signed_in_at = $3
           WHERE id = (
               SELECT id
               FROM memberships
               WHERE user_id = $1 AND ($2::uuid IS NULL OR organization_id = $2)
               ORDER BY last_signed_in_at DESC NULLS LAST, created_at, id
               LIMIT 1
               FOR NO KEY UPDATE
           )
           RETURNING organization_id AS "organization_id: OrganizationId""#,
        user_id.0,
        organization_id.map(|id| id.0),
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a membership")
}

/// The sessions with these hashes, with what a request needs of them.
pub(super) async fn list_by_hash(
    connection: &mut PgConnection,
    hashes: &[TokenHash],
) -> Result<HashMap<TokenHash, Arc<OpenedSession>>, Fault> {
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.0.to_vec()).collect();
    let rows = query!(
        "SELECT s.token_hash, s.id, s.user_id, s.organization_id, s.last_used_at, s.expires_at,
                u.name, u.is_operator, m.role, o.send_per_second, o.other_per_second
         FROM sessions s
         JOIN users u ON u.id = s.user_id
         JOIN memberships m ON m.user_id = s.user_id AND m.organization_id = s.organization_id
         JOIN organizations o ON o.id = s.organization_id
         WHERE s.token_hash = ANY ($1)",
        &hashes,
    )
    .fetch_all(connection)
    .await
    .or_fault("look up sessions")?;
    let number = |stored: Option<i32>| stored.and_then(|number| u32::try_from(number).ok());
    let opened = rows.into_iter().filter_map(|row| {
        let hash = TokenHash(row.token_hash.try_into().ok()?);
        let role: Role = row.role.parse().ok()?;
        let session = OpenedSession {
            id: SessionId(row.id),
            user_id: UserId(row.user_id),
            user_name: row.name,
            organization_id: OrganizationId(row.organization_id),
            role,
            permissions: permissions_of(role, row.is_operator),
            expires_at: row.expires_at,
            rates: OwnRates {
                send_per_second: number(row.send_per_second),
                other_per_second: number(row.other_per_second),
            },
            last_used: AtomicI64::new(row.last_used_at.timestamp_micros()),
        };
        Some((hash, Arc::new(session)))
    });
    Ok(opened.collect())
}

/// A session with its user and organizations.
pub(super) async fn find_detail(
    connection: &mut PgConnection,
    id: SessionId,
) -> Result<Option<SessionDetail>, Fault> {
    let row = query!(
        r#"SELECT s.organization_id, s.created_at, s.expires_at, u.id AS user_id, u.email, u.name,
                  u.is_operator, u.created_at AS user_created_at,
                  u.totp_enabled_at IS NOT NULL AS "has_second_factor!",
                  u.password_hash IS NOT NULL AS "has_password!"
           FROM sessions s
           JOIN users u ON u.id = s.user_id
           WHERE s.id = $1"#,
        id.0,
    )
    .fetch_optional(&mut *connection)
    .await
    .or_fault("show a session")?;
    let Some(row) = row else {
        return Ok(None);
    };
    let user = User {
        id: UserId(row.user_id),
        email: AccountEmail::from_stored(row.email),
        name: row.name,
        has_second_factor: row.has_second_factor,
        has_password: row.has_password,
        is_operator: row.is_operator,
        created_at: row.user_created_at,
    };
    let organizations = list_organizations(connection, user.id).await?;
    let mut present = organizations.iter();
    let present = present.find(|one| one.id.0 == row.organization_id);
    Ok(present
        .map(|one| (one.role, (one.id, one.name.clone())))
        .map(|(role, organization)| SessionDetail {
            permissions: permissions_of(role, user.is_operator),
            user,
            organization,
            role,
            organizations,
            created_at: row.created_at,
            expires_at: row.expires_at,
        }))
}

/// The organizations of a user, by their names.
async fn list_organizations(
    connection: &mut PgConnection,
    user_id: UserId,
) -> Result<Vec<OrganizationRole>, Fault> {
    let rows = query!(
        "SELECT o.id, o.name, m.role
         FROM memberships m
         JOIN organizations o ON o.id = m.organization_id
         WHERE m.user_id = $1
         ORDER BY o.name, o.id",
        user_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the organizations of a user")?;
    let roles = rows.into_iter().filter_map(|row| {
        Some(OrganizationRole {
            id: OrganizationId(row.id),
            name: row.name,
            role: row.role.parse().ok()?,
        })
    });
    Ok(roles.collect())
}

/// Records when a session was used.
pub(super) async fn record_use(
    connection: &mut PgConnection,
    id: SessionId,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE sessions
         SET last_used_at = $2
         WHERE id = $1 AND last_used_at < $2",
        id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("record the use of a session")?;
    Ok(())
}

/// Deletes a session. True if there was one.
pub(super) async fn delete(connection: &mut PgConnection, id: SessionId) -> Result<bool, Fault> {
    let done = query!("DELETE FROM sessions WHERE id = $1", id.0)
        .execute(connection)
        .await
        .or_fault("end a session")?;
    Ok(done.rows_affected() > 0)
}

/// Deletes sessions that are idle or old. Returns how many.
pub async fn delete_ended(connection: &mut PgConnection, now: Timestamp) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM sessions
         WHERE last_used_at <= $1 OR expires_at <= $2",
        now - IDLE_MAX,
        now,
    )
    .execute(connection)
    .await
    .or_fault("delete ended sessions")?;
    Ok(done.rows_affected())
}
