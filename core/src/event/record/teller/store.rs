//! What is kept of an account whose provider tells: the signatures that were used,
//! whether one was ever genuine, how much was recorded nowhere.

use sqlx::{PgConnection, query, query_scalar};

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::inbound::ReplayGuard;

/// Uses a signature up; false where it came with another content before. Forgets a
/// few that are too old to be believed.
pub(in crate::event::record) async fn use_signature(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    guard: &ReplayGuard,
    now: Timestamp,
) -> Result<bool, Fault> {
    const DOING: &str = "use up a signature";
    query!(
        "DELETE FROM provider_signatures
         WHERE ctid = ANY(ARRAY(
             SELECT ctid
             FROM provider_signatures
             WHERE organization_id = $1 AND provider_account_id = $2 AND expires_at < $3
             ORDER BY expires_at
             LIMIT 10
             FOR UPDATE SKIP LOCKED))",
        organization_id.0,
        account_id.0,
        now,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    let inserted = query!(
        "INSERT INTO provider_signatures (provider_account_id, organization_id, token, content_hash, expires_at)
         VALUES ($2, $1, $3, $4, $5)
         ON CONFLICT (provider_account_id, token) DO NOTHING",
        organization_id.0,
        account_id.0,
        guard.token,
        guard.content.as_slice(),
        guard.until,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    if inserted.rows_affected() == 1 {
        return Ok(true);
    }
    let first = query_scalar!(
        "SELECT content_hash
         FROM provider_signatures
         WHERE organization_id = $1 AND provider_account_id = $2 AND token = $3",
        organization_id.0,
        account_id.0,
        guard.token,
    )
    .fetch_optional(connection)
    .await
    .or_fault(DOING)?;
    Ok(first.is_none_or(|first| first == guard.content))
}

/// How much of a request was acknowledged and not recorded.
#[derive(Debug, Clone, Copy)]
pub(in crate::event::record) struct Unrecorded {
    pub(in crate::event::record) unmatched: usize,
    pub(in crate::event::record) unreadable: usize,
}

/// Counts what was acknowledged and recorded nowhere. Called last in a transaction:
/// those for one account wait for each other from here on.
pub(in crate::event::record) async fn count_unrecorded(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    unrecorded: Unrecorded,
    now: Timestamp,
) -> Result<(), Fault> {
    let Unrecorded {
        unmatched,
        unreadable,
    } = unrecorded;
    if unmatched == 0 && unreadable == 0 {
        return Ok(());
    }
    let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
    // An account that was removed meanwhile is not counted for.
    query!(
        "INSERT INTO provider_event_counts AS c (provider_account_id, organization_id, unmatched, unreadable, updated_at)
         SELECT id, organization_id, $3, $4, $5
         FROM provider_accounts
         WHERE organization_id = $1 AND id = $2
         ON CONFLICT (provider_account_id)
         DO UPDATE SET unmatched = c.unmatched + excluded.unmatched,
                       unreadable = c.unreadable + excluded.unreadable,
                       updated_at = excluded.updated_at",
        organization_id.0,
        account_id.0,
        number(unmatched),
        number(unreadable),
        now,
    )
    .execute(connection)
    .await
    .or_fault("count events of unknown messages")?;
    Ok(())
}

/// Remembers that an account's events were found to be genuine, by these secrets.
pub(in crate::event::record) async fn mark_verified(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    secrets_sealed: &[u8],
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE provider_accounts
         SET events_verified_at = $4
         WHERE organization_id = $1 AND id = $2 AND event_secrets_sealed = $3
           AND events_verified_at IS NULL",
        organization_id.0,
        account_id.0,
        secrets_sealed,
        now,
    )
    .execute(connection)
    .await
    .or_fault("mark an account's events as verified")?;
    Ok(())
}
