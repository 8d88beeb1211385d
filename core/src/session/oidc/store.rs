//! Identities of users at OpenID Connect providers in Postgres, and what a sign-in there changes.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::auth::Role;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MembershipId, OrganizationId, UserId};

/// The user of an identity.
pub(super) async fn find_user(
    connection: &mut PgConnection,
    issuer: &str,
    subject: &str,
) -> Result<Option<UserId>, Fault> {
    query_scalar!(
        r#"SELECT user_id AS "user_id: UserId"
           FROM user_identities
           WHERE issuer = $1 AND subject = $2"#,
        issuer,
        subject,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an identity")
}

/// Whether a user has an identity at any provider.
pub(super) async fn has_identity(
    connection: &mut PgConnection,
    user_id: UserId,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1
               FROM user_identities
               WHERE user_id = $1
           ) AS "has_identity!""#,
        user_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("find an identity")
}

/// Adds an identity of a user.
pub(super) async fn insert(
    connection: &mut PgConnection,
    issuer: &str,
    subject: &str,
    (user_id, now): (UserId, Timestamp),
) -> Result<(), Fault> {
    query!(
        "INSERT INTO user_identities (issuer, subject, user_id, created_at)
         VALUES ($1, $2, $3, $4)",
        issuer,
        subject,
        user_id.0,
        now,
    )
    .execute(connection)
    .await
    .or_fault("add an identity")?;
    Ok(())
}

/// Removes the password of a user, and the links that would set one.
pub(super) async fn remove_password(
    connection: &mut PgConnection,
    user_id: UserId,
) -> Result<(), Fault> {
    query!(
        "UPDATE users SET password_hash = NULL WHERE id = $1",
        user_id.0,
    )
    .execute(&mut *connection)
    .await
    .or_fault("remove a password")?;
    query!("DELETE FROM password_resets WHERE user_id = $1", user_id.0)
        .execute(connection)
        .await
        .or_fault("end the links that set a password")?;
    Ok(())
}

/// The role of a user in an organization.
pub(super) async fn find_role(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    user_id: UserId,
) -> Result<Option<Role>, Fault> {
    let role = query_scalar!(
        "SELECT role
         FROM memberships
         WHERE organization_id = $1 AND user_id = $2",
        organization_id.0,
        user_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a role")?;
    let role = role.map(|role| role.parse());
    role.transpose()
        .map_err(|error: String| Fault::internal("read a role", error))
}

/// How many owners an organization has.
pub(super) async fn count_owners(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM memberships
           WHERE organization_id = $1 AND role = $2"#,
        organization_id.0,
        Role::Owner.as_str(),
    )
    .fetch_one(connection)
    .await
    .or_fault("count owners")
}

/// Gives a user a role in an organization, as a new member under `id` or as the present one.
/// Returns the id of the membership.
pub(super) async fn set_role(
    connection: &mut PgConnection,
    (organization_id, user_id): (OrganizationId, UserId),
    id: MembershipId,
    role: Role,
    now: Timestamp,
) -> Result<Uuid, Fault> {
    query_scalar!(
        "INSERT INTO memberships (id, organization_id, user_id, role, created_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (user_id, organization_id) DO UPDATE
         SET role = excluded.role
         RETURNING id",
        id.0,
        organization_id.0,
        user_id.0,
        role.as_str(),
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("set a role")
}
