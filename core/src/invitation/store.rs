//! Invitations in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{Invitation, OpenInvitation};
use crate::auth::Role;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{InvitationId, OrganizationId};
use crate::page::{Page, PageRequest, Place};
use crate::user::AccountEmail;

/// Adds an invitation, in place of an expired one of the address. False if there is one that
/// has not expired.
pub async fn insert(
    connection: &mut PgConnection,
    invitation: &Invitation,
    token_hash: [u8; 32],
) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO invitations AS i
             (id, organization_id, email, role, name, makes_operator, token_hash, created_at,
              expires_at, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (organization_id, email) DO UPDATE
         SET id = excluded.id, role = excluded.role, name = excluded.name,
             makes_operator = excluded.makes_operator, token_hash = excluded.token_hash,
             created_at = excluded.created_at, expires_at = excluded.expires_at,
             created_by = excluded.created_by
         WHERE i.expires_at <= excluded.created_at",
        invitation.id.0,
        invitation.organization_id.0,
        invitation.email.as_str(),
        invitation.role.as_str(),
        invitation.name,
        invitation.makes_operator,
        token_hash.as_slice(),
        invitation.created_at,
        invitation.expires_at,
        invitation.created_by,
    )
    .execute(connection)
    .await
    .or_fault("add an invitation")?;
    Ok(done.rows_affected() > 0)
}

/// Deletes the invitation of an address, if there is one.
pub async fn delete_of(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    email: &AccountEmail,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM invitations
         WHERE organization_id = $1 AND email = $2",
        organization_id.0,
        email.as_str(),
    )
    .execute(connection)
    .await
    .or_fault("withdraw an invitation")?;
    Ok(())
}

/// Deletes all invitations to an organization and returns them.
pub async fn delete_all(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<InvitationId>, Fault> {
    query_scalar!(
        r#"DELETE FROM invitations
           WHERE organization_id = $1
           RETURNING id AS "id: InvitationId""#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("withdraw the invitations to an organization")
}

/// One invitation that has not expired.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: InvitationId,
    now: Timestamp,
) -> Result<Option<Invitation>, Fault> {
    let row = query_as!(
        InvitationRow,
        "SELECT id, organization_id, email, role, name, makes_operator, created_at, expires_at,
                created_by
         FROM invitations
         WHERE organization_id = $1 AND id = $2 AND expires_at > $3",
        organization_id.0,
        id.0,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an invitation")?;
    row.map(Invitation::try_from).transpose()
}

/// The same, locked until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: InvitationId,
    now: Timestamp,
) -> Result<Option<Invitation>, Fault> {
    let row = query_as!(
        InvitationRow,
        "SELECT id, organization_id, email, role, name, makes_operator, created_at, expires_at,
                created_by
         FROM invitations
         WHERE organization_id = $1 AND id = $2 AND expires_at > $3
         FOR UPDATE",
        organization_id.0,
        id.0,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an invitation")?;
    row.map(Invitation::try_from).transpose()
}

/// A page of an organization's invitations that have not expired, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    page: PageRequest,
    now: Timestamp,
) -> Result<Page<Invitation>, Fault> {
    let rows = query_as!(
        InvitationRow,
        "SELECT id, organization_id, email, role, name, makes_operator, created_at, expires_at,
                created_by
         FROM invitations
         WHERE organization_id = $1 AND expires_at > $6
           AND ($4::timestamptz IS NULL OR (created_at, id) < ($4, $5::uuid))
         ORDER BY created_at DESC, id DESC
         LIMIT $2 OFFSET $3",
        organization_id.0,
        page.rows(),
        page.offset(),
        page.place().map(|place| place.at),
        page.place().map(|place| place.id),
        now,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("list invitations")?;
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM invitations
           WHERE organization_id = $1 AND expires_at > $2"#,
        organization_id.0,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("count invitations")?;
    let rows = rows.into_iter().map(Invitation::try_from);
    let rows = rows.collect::<Result<_, _>>()?;
    let total = u64::try_from(total).unwrap_or_default();
    Ok(Page::of(rows, page, total, |last: &Invitation| Place {
        at: last.created_at,
        id: last.id.0,
    }))
}

/// The invitation of a link, if it has not expired. The link identifies the organization.
pub(super) async fn look_up(
    connection: &mut PgConnection,
    token_hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<OpenInvitation>, Fault> {
    let row = query!(
        r#"SELECT i.id, i.organization_id, i.email, i.role, i.name, i.makes_operator, i.created_at,
                  i.expires_at, i.created_by, o.name AS organization_name,
                  EXISTS (SELECT 1 FROM users u WHERE u.email = i.email) AS "has_user!"
           FROM invitations i
           JOIN organizations o ON o.id = i.organization_id
           WHERE i.token_hash = $1 AND i.expires_at > $2"#,
        token_hash.as_slice(),
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("look up an invitation")?;
    let view = row.map(|row| {
        let invitation = InvitationRow {
            id: row.id,
            organization_id: row.organization_id,
            email: row.email,
            role: row.role,
            name: row.name,
            makes_operator: row.makes_operator,
            created_at: row.created_at,
            expires_at: row.expires_at,
            created_by: row.created_by,
        };
        Ok(OpenInvitation {
            invitation: invitation.try_into()?,
            organization_name: row.organization_name,
            has_user: row.has_user,
        })
    });
    view.transpose()
}

/// Deletes the invitation of a link, if it has not expired, and returns it.
pub(super) async fn use_up(
    connection: &mut PgConnection,
    token_hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<Invitation>, Fault> {
    let row = query_as!(
        InvitationRow,
        "DELETE FROM invitations
         WHERE token_hash = $1 AND expires_at > $2
         RETURNING id, organization_id, email, role, name, makes_operator, created_at, expires_at,
                   created_by",
        token_hash.as_slice(),
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("accept an invitation")?;
    row.map(Invitation::try_from).transpose()
}

/// Changes the role of an invitation.
pub(super) async fn set_role(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: InvitationId,
    role: Role,
) -> Result<(), Fault> {
    query!(
        "UPDATE invitations
         SET role = $3
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
        role.as_str(),
    )
    .execute(connection)
    .await
    .or_fault("change an invitation")?;
    Ok(())
}

/// Deletes an invitation.
pub(super) async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: InvitationId,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM invitations
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("withdraw an invitation")?;
    Ok(())
}

/// Deletes expired invitations. Returns how many.
pub async fn delete_expired(connection: &mut PgConnection, now: Timestamp) -> Result<u64, Fault> {
    let done = query!("DELETE FROM invitations WHERE expires_at <= $1", now)
        .execute(connection)
        .await
        .or_fault("delete expired invitations")?;
    Ok(done.rows_affected())
}

struct InvitationRow {
    id: Uuid,
    organization_id: Uuid,
    email: String,
    role: String,
    name: Option<String>,
    makes_operator: bool,
    created_at: Timestamp,
    expires_at: Timestamp,
    created_by: Option<Uuid>,
}

impl TryFrom<InvitationRow> for Invitation {
    type Error = Fault;

    fn try_from(row: InvitationRow) -> Result<Self, Fault> {
        let role = row.role.parse();
        Ok(Self {
            id: InvitationId(row.id),
            organization_id: OrganizationId(row.organization_id),
            email: AccountEmail::from_stored(row.email),
            role: role.map_err(|error: String| Fault::internal("read a role", error))?,
            name: row.name,
            makes_operator: row.makes_operator,
            created_at: row.created_at,
            expires_at: row.expires_at,
            created_by: row.created_by,
        })
    }
}
