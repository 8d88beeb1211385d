//! Members in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::Member;
use crate::auth::Role;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MembershipId, OrganizationId, SessionId, UserId};
use crate::page::{Page, PageRequest, Place};
use crate::user::AccountEmail;

/// Adds a member. False if the user is one already.
pub async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    member: &Member,
) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO memberships (id, organization_id, user_id, role, created_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (user_id, organization_id) DO NOTHING",
        member.id.0,
        organization_id.0,
        member.user_id.0,
        member.role.as_str(),
        member.created_at,
    )
    .execute(connection)
    .await
    .or_fault("add a member")?;
    Ok(done.rows_affected() > 0)
}

/// One member.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MembershipId,
) -> Result<Option<Member>, Fault> {
    let row = query_as!(
        MemberRow,
        "SELECT m.id, m.user_id, u.email, u.name, m.role, m.last_signed_in_at, m.created_at
         FROM memberships m
         JOIN users u ON u.id = m.user_id
         WHERE m.organization_id = $1 AND m.id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a member")?;
    row.map(Member::try_from).transpose()
}

/// Whether the user with this address is a member.
pub async fn is_member(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    email: &AccountEmail,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (
               SELECT 1
               FROM memberships m
               JOIN users u ON u.id = m.user_id
               WHERE m.organization_id = $1 AND u.email = $2
           ) AS "is_member!""#,
        organization_id.0,
        email.as_str(),
    )
    .fetch_one(connection)
    .await
    .or_fault("find a member")
}

/// A page of an organization's members, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    page: PageRequest,
) -> Result<Page<Member>, Fault> {
    let rows = query_as!(
        MemberRow,
        "SELECT m.id, m.user_id, u.email, u.name, m.role, m.last_signed_in_at, m.created_at
         FROM memberships m
         JOIN users u ON u.id = m.user_id
         WHERE m.organization_id = $1
           AND ($4::timestamptz IS NULL OR (m.created_at, m.id) < ($4, $5::uuid))
         ORDER BY m.created_at DESC, m.id DESC
         LIMIT $2 OFFSET $3",
        organization_id.0,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.at),
        page.place().map(|place| place.id),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("list members")?;
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!" FROM memberships WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("count members")?;
    let rows = rows.into_iter().map(Member::try_from);
    let rows = rows.collect::<Result<_, _>>()?;
    let total = u64::try_from(total).unwrap_or_default();
    Ok(Page::of(rows, page, total, |last: &Member| Place {
        at: last.created_at,
        id: last.id.0,
    }))
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

/// The organizations that would have no owner without the user.
pub async fn list_owned_alone(
    connection: &mut PgConnection,
    user_id: UserId,
) -> Result<Vec<OrganizationId>, Fault> {
    query_scalar!(
        r#"SELECT m.organization_id AS "id: OrganizationId"
           FROM memberships m
           WHERE m.user_id = $1 AND m.role = $2
             AND NOT EXISTS (
                 SELECT 1
                 FROM memberships other
                 WHERE other.organization_id = m.organization_id
                   AND other.role = $2
                   AND other.user_id <> $1
             )"#,
        user_id.0,
        Role::Owner.as_str(),
    )
    .fetch_all(connection)
    .await
    .or_fault("list organizations")
}

/// Changes the role of a member.
pub(super) async fn set_role(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MembershipId,
    role: Role,
) -> Result<(), Fault> {
    query!(
        "UPDATE memberships
         SET role = $3
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
        role.as_str(),
    )
    .execute(connection)
    .await
    .or_fault("change a member")?;
    Ok(())
}

/// Deletes the sessions of a user in an organization and returns them.
pub(super) async fn end_sessions(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    user_id: UserId,
) -> Result<Vec<SessionId>, Fault> {
    query_scalar!(
        r#"DELETE FROM sessions
           WHERE organization_id = $1 AND user_id = $2
           RETURNING id AS "id: SessionId""#,
        organization_id.0,
        user_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("end the sessions of a member")
}

/// Deletes a member.
pub(super) async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MembershipId,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM memberships
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("remove a member")?;
    Ok(())
}

/// Deletes all members of an organization with their sessions in it, and returns the
/// memberships.
pub async fn delete_all(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<(MembershipId, UserId)>, Fault> {
    query!(
        "DELETE FROM sessions WHERE organization_id = $1",
        organization_id.0
    )
    .execute(&mut *connection)
    .await
    .or_fault("end the sessions of an organization")?;
    let rows = query!(
        r#"DELETE FROM memberships
           WHERE organization_id = $1
           RETURNING id AS "id: MembershipId", user_id AS "user_id: UserId""#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("remove the members of an organization")?;
    Ok(rows.into_iter().map(|row| (row.id, row.user_id)).collect())
}

/// The memberships of a user, with their organizations.
pub async fn list_of_user(
    connection: &mut PgConnection,
    user_id: UserId,
) -> Result<Vec<(MembershipId, OrganizationId)>, Fault> {
    let rows = query!(
        r#"SELECT id AS "id: MembershipId", organization_id AS "organization_id: OrganizationId"
           FROM memberships
           WHERE user_id = $1
           ORDER BY created_at, id"#,
        user_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the memberships of a user")?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id, row.organization_id))
        .collect())
}

struct MemberRow {
    id: Uuid,
    user_id: Uuid,
    email: String,
    name: String,
    role: String,
    last_signed_in_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl TryFrom<MemberRow> for Member {
    type Error = Fault;

    fn try_from(row: MemberRow) -> Result<Self, Fault> {
        let role = row.role.parse();
        Ok(Self {
            id: MembershipId(row.id),
            user_id: UserId(row.user_id),
            email: AccountEmail::from_stored(row.email),
            name: row.name,
            role: role.map_err(|error: String| Fault::internal("read a role", error))?,
            last_signed_in_at: row.last_signed_in_at,
            created_at: row.created_at,
        })
    }
}
