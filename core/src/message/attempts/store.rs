//! The attempts of a message in Postgres.

use sqlx::{PgConnection, query_as};

use super::{ATTEMPTS_SHOWN, AttemptItem};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};

/// The newest attempts of a message, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
) -> Result<Vec<AttemptItem>, Fault> {
    query_as!(
        AttemptItem,
        r#"SELECT a.id AS "id: SendAttemptId", r.address_hash AS "address_hash: AddressHash",
                  a.provider_account_id AS "provider_account_id: ProviderAccountId",
                  coalesce(t.provider_type::text, 'UNKNOWN') AS "provider_type!",
                  a.started_at, a.finished_at, coalesce(a.outcome::text, 'PENDING') AS "outcome!",
                  a.status_code, a.reason
           FROM (
               SELECT *
               FROM send_attempts
               WHERE message_id = $2 AND organization_id = $1
               ORDER BY started_at DESC, id DESC
               LIMIT $3
           ) a
           JOIN recipients r ON r.message_id = $2 AND r.position = a.position
           LEFT JOIN provider_account_types t ON t.provider_account_id = a.provider_account_id
           ORDER BY a.started_at, a.id"#,
        organization_id.0,
        message_id.0,
        ATTEMPTS_SHOWN,
    )
    .fetch_all(connection)
    .await
    .or_fault("list send attempts")
}
