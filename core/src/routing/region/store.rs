//! What the regions of accounts are read from.

use sqlx::{PgConnection, query};
use uuid::Uuid;

use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::credentials::ReadCredentials;
use crate::provider::kind::ProviderType;

/// The credentials of those of the accounts that exist.
pub(super) async fn list_credentials(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[ProviderAccountId],
) -> Result<Vec<(ProviderAccountId, ProviderType, ReadCredentials)>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = query!(
        r#"SELECT id, provider_type AS "provider_type: ProviderType", credentials_sealed
           FROM provider_accounts
           WHERE organization_id = $1 AND id = ANY($2)"#,
        organization_id.0,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the credentials of a rule's accounts")?;
    let found = rows.into_iter().map(|row| {
        let credentials = ReadCredentials::new(row.credentials_sealed);
        (ProviderAccountId(row.id), row.provider_type, credentials)
    });
    Ok(found.collect())
}
