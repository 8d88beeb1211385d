//! Removing many suppressions, in Postgres.

use sqlx::{PgConnection, query, query_scalar};

use crate::address::AddressHash;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, UnsubscribeGroupId};

/// Whether the organization has this group.
pub(super) async fn has_group(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    group_id: UnsubscribeGroupId,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT FROM unsubscribe_groups WHERE organization_id = $1 AND id = $2) AS "exists!""#,
        organization_id.0,
        group_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("find an unsubscribe group")
}

/// Deletes the suppressions of these addresses with this scope and returns their number. Rows
/// are locked in the order of their hashes, as imports write them.
pub(super) async fn delete_many(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    hashes: &[AddressHash],
    group_id: Option<UnsubscribeGroupId>,
) -> Result<usize, Fault> {
    let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
    let done = query!(
        "WITH found AS (
             SELECT id
             FROM suppressions
             WHERE organization_id = $1 AND email_hash = ANY($2)
               AND unsubscribe_group_id IS NOT DISTINCT FROM $3
             ORDER BY email_hash
             FOR UPDATE
         )
         DELETE FROM suppressions s
         USING found
         WHERE s.id = found.id",
        organization_id.0,
        &hashes as &[&[u8]],
        group_id.map(|id| id.0),
    )
    .execute(connection)
    .await
    .or_fault("remove suppressions")?;
    Ok(usize::try_from(done.rows_affected()).unwrap_or_default())
}
