//! The audit log in Postgres.

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::{Actor, Change, Origin};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{Ids, OrganizationId};

/// Writes one entry, in the transaction of the change that it is about.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    origin: &Origin,
    change: &Change,
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let (actor_id, actor_name) = match &origin.actor {
        Actor::ApiKey { id, name } => (Some(id.0), Some(name.as_str())),
        Actor::Recipient | Actor::System => (None, None),
    };
    query!(
        "INSERT INTO audit_logs
             (id, organization_id, action, occurred_at, actor_type, actor_id, actor_name,
              target_type, target_id, ip, user_agent, request_id, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        ids.next_at::<Uuid>(now),
        organization_id.0,
        change.action,
        now,
        origin.actor.kind(),
        actor_id,
        actor_name,
        change.target_type,
        change.target_id,
        origin.ip,
        origin.user_agent,
        origin.request_id,
        change.metadata,
    )
    .execute(connection)
    .await
    .or_fault("write the audit log")?;
    Ok(())
}
