//! The rows of accounts that cannot send.

use sqlx::{PgConnection, query, query_scalar};

use super::SendingPaused;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};

/// Records why an account cannot send, unless a reason is already recorded or the account's
/// revision is higher. Returns the account's organization if it was changed.
pub(super) async fn pause_sending(
    connection: &mut PgConnection,
    id: ProviderAccountId,
    revision: u32,
    reason: &str,
    now: Timestamp,
) -> Result<Option<OrganizationId>, Fault> {
    query_scalar!(
        r#"UPDATE provider_accounts
           SET sending_paused_reason = $3, sending_paused_since = $4
           WHERE id = $1 AND revision = $2 AND sending_paused_since IS NULL
           RETURNING organization_id AS "organization_id: OrganizationId""#,
        id.0,
        i32::try_from(revision).unwrap_or(i32::MAX),
        reason,
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("record that an account cannot send")
}

/// Records that an account can send again. Returns the account's organization if it was
/// changed.
pub(super) async fn resume_sending(
    connection: &mut PgConnection,
    id: ProviderAccountId,
) -> Result<Option<OrganizationId>, Fault> {
    query_scalar!(
        r#"UPDATE provider_accounts
           SET sending_paused_reason = NULL, sending_paused_since = NULL
           WHERE id = $1 AND sending_paused_since IS NOT NULL
           RETURNING organization_id AS "organization_id: OrganizationId""#,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("record that an account sends again")
}

/// Records whether a provider accepts the credentials of an account, for its events.
pub(in crate::provider_account) async fn record_credentials(
    connection: &mut PgConnection,
    id: ProviderAccountId,
    are_valid: bool,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "SELECT CASE WHEN $3 THEN waypost_record_recovered($1, 'INVALID_CREDENTIALS', $2)
                     ELSE waypost_record_failing($1, 'INVALID_CREDENTIALS', $2) END",
        id.0,
        now,
        are_valid,
    )
    .fetch_one(connection)
    .await
    .or_fault("record whether credentials are valid")?;
    Ok(())
}

/// The paused accounts of all organizations, with the reasons.
pub async fn list_paused(
    connection: &mut PgConnection,
) -> Result<Vec<(ProviderAccountId, SendingPaused)>, Fault> {
    let rows = query!(
        r#"SELECT id AS "id: ProviderAccountId", sending_paused_reason AS "reason!", sending_paused_since AS "since!"
           FROM provider_accounts
           WHERE sending_paused_since IS NOT NULL AND is_active
           ORDER BY sending_paused_since, id"#,
    )
    .fetch_all(connection)
    .await
    .or_fault("list accounts that cannot send")?;
    let paused = rows.into_iter().map(|row| {
        let paused = SendingPaused {
            reason: row.reason,
            since: row.since,
        };
        (row.id, paused)
    });
    Ok(paused.collect())
}
