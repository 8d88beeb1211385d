//! The locks in Postgres.

use sqlx::{PgConnection, query};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::ProviderAccountId;

/// Takes a lock that is free or expired; false if another request holds it or the account
/// does not exist.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    account_id: ProviderAccountId,
    resource: &str,
    holder: Uuid,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO provider_claims (provider_account_id, subject, holder, held_until)
         SELECT id, $2, $3, $5
         FROM provider_accounts
         WHERE id = $1
         ON CONFLICT (provider_account_id, subject)
         DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
         WHERE provider_claims.held_until <= $4",
        account_id.0,
        resource,
        holder,
        now,
        until,
    )
    .execute(connection)
    .await
    .or_fault("lock a resource at a provider")?;
    Ok(done.rows_affected() == 1)
}

/// Releases a lock, unless it expired and another request holds it now.
pub(crate) async fn delete(
    connection: &mut PgConnection,
    account_id: ProviderAccountId,
    resource: &str,
    holder: Uuid,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM provider_claims
         WHERE provider_account_id = $1 AND subject = $2 AND holder = $3",
        account_id.0,
        resource,
        holder,
    )
    .execute(connection)
    .await
    .or_fault("release a lock at a provider")?;
    Ok(())
}
