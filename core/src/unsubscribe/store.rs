//! Unsubscribe groups in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{GroupChange, UnsubscribeGroup};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, UnsubscribeGroupId};
use crate::organization;
use crate::text::{Description, Name};

/// Inserts a group. Call [`unset_default`] first if the group is the default.
pub async fn insert(connection: &mut PgConnection, group: &UnsubscribeGroup) -> Result<(), Fault> {
    query!(
        "INSERT INTO unsubscribe_groups (id, organization_id, name, description, is_default, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        group.id.0,
        group.organization_id.0,
        group.name,
        group.description,
        group.is_default,
        group.created_at,
    )
    .execute(connection)
    .await
    .or_fault("add an unsubscribe group")?;
    Ok(())
}

/// Lists an organization's groups, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<UnsubscribeGroup>, Fault> {
    query_as!(
        UnsubscribeGroup,
        r#"SELECT id AS "id: UnsubscribeGroupId", organization_id AS "organization_id: OrganizationId",
                  name, description, is_default, created_at
           FROM unsubscribe_groups
           WHERE organization_id = $1
           ORDER BY id"#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list unsubscribe groups")
}

/// One group.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
) -> Result<Option<UnsubscribeGroup>, Fault> {
    query_as!(
        UnsubscribeGroup,
        r#"SELECT id AS "id: UnsubscribeGroupId", organization_id AS "organization_id: OrganizationId",
                  name, description, is_default, created_at
           FROM unsubscribe_groups
           WHERE organization_id = $1 AND id = $2"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an unsubscribe group")
}

/// Unsets the organization's default group. Other callers for the organization wait until
/// the transaction ends.
pub async fn unset_default(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<(), Fault> {
    organization::store::lock(connection, organization_id).await?;
    query!(
        "UPDATE unsubscribe_groups SET is_default = false WHERE organization_id = $1 AND is_default",
        organization_id.0,
    )
    .execute(connection)
    .await
    .or_fault("unset the default group")?;
    Ok(())
}

/// Changes a group and returns it. `None` if it does not exist. Call [`unset_default`]
/// first if the group becomes the default.
pub async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
    change: GroupChange,
) -> Result<Option<UnsubscribeGroup>, Fault> {
    query_as!(
        UnsubscribeGroup,
        r#"UPDATE unsubscribe_groups
           SET name = coalesce($3, name),
               description = CASE WHEN $4 THEN $6 ELSE description END,
               is_default = coalesce($5, is_default)
           WHERE organization_id = $1 AND id = $2
           RETURNING id AS "id: UnsubscribeGroupId", organization_id AS "organization_id: OrganizationId",
                     name, description, is_default, created_at"#,
        organization_id.0,
        id.0,
        change.name.map(Name::into_string),
        change.description.is_some(),
        change.is_default,
        change.description.flatten().map(Description::into_string),
    )
    .fetch_optional(connection)
    .await
    .or_fault("change an unsubscribe group")
}

/// Whether an organization has a group.
pub async fn exists(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT 1 FROM unsubscribe_groups WHERE organization_id = $1 AND id = $2) AS "exists!""#,
        organization_id.0,
        id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("find an unsubscribe group")
}

/// The groups among `ids` that exist in an organization.
pub async fn list_existing(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[UnsubscribeGroupId],
) -> Result<Vec<UnsubscribeGroupId>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    query_scalar!(
        r#"SELECT id AS "id: UnsubscribeGroupId" FROM unsubscribe_groups WHERE organization_id = $1 AND id = ANY($2)"#,
        organization_id.0,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("find unsubscribe groups")
}

/// Returns a group's name and prevents its removal until the transaction ends. `None` if it
/// does not exist.
pub async fn lock_shared(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
) -> Result<Option<String>, Fault> {
    query_scalar!(
        "SELECT name FROM unsubscribe_groups WHERE organization_id = $1 AND id = $2 FOR KEY SHARE",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock an unsubscribe group")
}

/// The recipient that a link was sent to. The fields of a removed message are `None`.
#[derive(Debug)]
pub struct LinkedRecipient {
    pub organization_name: String,
    /// The colour of the organization's pages, as `#rrggbb`.
    pub brand_color: Option<String>,
    /// The sender's display name and address. Only the address once the bodies have been
    /// removed.
    pub sender: Option<String>,
    /// The recipient's position in the message.
    pub position: Option<i32>,
    /// When the message was accepted.
    pub accepted_at: Option<Timestamp>,
}

/// Finds the recipient that a link was sent to. `None` if the organization no longer exists.
pub async fn find_linked_recipient(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
    address_hash: AddressHash,
) -> Result<Option<LinkedRecipient>, Fault> {
    query_as!(
        LinkedRecipient,
        r#"SELECT o.name AS organization_name, o.brand_color,
                  coalesce(b.from_mailbox, m.from_address) AS sender,
                  r.position AS "position?", m.created_at AS "accepted_at?"
           FROM organizations o
           LEFT JOIN messages m ON m.id = $2 AND m.organization_id = o.id
           LEFT JOIN message_bodies b ON b.message_id = $2 AND b.organization_id = o.id
           LEFT JOIN recipients r
             ON r.message_id = $2 AND r.organization_id = o.id AND r.address_hash = $3
           WHERE o.id = $1"#,
        organization_id.0,
        message_id.0,
        address_hash as AddressHash,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the recipient of an unsubscribe link")
}

/// Locks a group for removal until the transaction ends. False if it does not exist.
pub async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
) -> Result<bool, Fault> {
    let row = query!(
        "SELECT id FROM unsubscribe_groups WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock an unsubscribe group")?;
    Ok(row.is_some())
}

/// Deletes a group. False if it does not exist.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: UnsubscribeGroupId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM unsubscribe_groups WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("delete an unsubscribe group")?;
    Ok(done.rows_affected() == 1)
}
