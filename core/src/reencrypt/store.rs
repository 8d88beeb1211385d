//! Sealed secrets in Postgres.

use sqlx::{query, query_as};
use uuid::Uuid;

use super::SecretColumn;
use crate::crypto::seal::NO_ORGANIZATION;
use crate::db::{OrFault as _, PgConnection};
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// A sealed secret.
pub(super) struct SealedRow {
    pub(super) organization_id: OrganizationId,
    /// The row that the secret is bound to.
    pub(super) row: Uuid,
    pub(super) sealed: Vec<u8>,
}

const DOING: &str = "re-encrypt secrets";

/// All secrets of a column that are under another key than `key`; all secrets if it is `None`.
/// The second and third byte of a secret are the id of its key (`crypto/seal.rs`).
pub(super) async fn list_not_under(
    connection: &mut PgConnection,
    column: SecretColumn,
    key: Option<u16>,
) -> Result<Vec<SealedRow>, Fault> {
    let key = key
        .map(|key| key.to_be_bytes().to_vec())
        .unwrap_or_default();
    let rows = match column {
        SecretColumn::Credentials => {
            query_as!(
                SealedRow,
                r#"SELECT organization_id, id AS row, credentials_sealed AS sealed
                   FROM provider_accounts
                   WHERE substring(credentials_sealed FROM 2 FOR 2) <> $1"#,
                &key,
            )
            .fetch_all(connection)
            .await
        }
        SecretColumn::EventSecrets => {
            query_as!(
                SealedRow,
                r#"SELECT organization_id, id AS row, event_secrets_sealed AS "sealed!"
                   FROM provider_accounts
                   WHERE substring(event_secrets_sealed FROM 2 FOR 2) <> $1"#,
                &key,
            )
            .fetch_all(connection)
            .await
        }
        SecretColumn::WebhookSecrets => {
            query_as!(
                SealedRow,
                r#"SELECT organization_id, id AS row, secret_sealed AS sealed
                   FROM webhook_endpoints
                   WHERE substring(secret_sealed FROM 2 FOR 2) <> $1"#,
                &key,
            )
            .fetch_all(connection)
            .await
        }
        SecretColumn::OldWebhookSecrets => {
            query_as!(
                SealedRow,
                r#"SELECT e.organization_id, e.id AS row, o.secret_sealed AS sealed
                   FROM webhook_endpoint_old_secrets o
                   JOIN webhook_endpoints e ON e.id = o.webhook_endpoint_id
                   WHERE substring(o.secret_sealed FROM 2 FOR 2) <> $1"#,
                &key,
            )
            .fetch_all(connection)
            .await
        }
        SecretColumn::TotpSecrets => {
            query_as!(
                SealedRow,
                r#"SELECT $2::uuid AS "organization_id!: OrganizationId", id AS row, totp_secret_sealed AS "sealed!"
                   FROM users
                   WHERE substring(totp_secret_sealed FROM 2 FOR 2) <> $1"#,
                &key,
                NO_ORGANIZATION.0,
            )
            .fetch_all(connection)
            .await
        }
    };
    rows.or_fault("list the sealed secrets")
}

/// Replaces a secret unless it has changed since it was read. True if it was replaced.
pub(super) async fn replace(
    connection: &mut PgConnection,
    column: SecretColumn,
    old: &SealedRow,
    new: &[u8],
) -> Result<bool, Fault> {
    let (row, old) = (old.row, old.sealed.as_slice());
    let statement = match column {
        SecretColumn::Credentials => query!(
            "UPDATE provider_accounts SET credentials_sealed = $3
             WHERE id = $1 AND credentials_sealed = $2",
            row,
            old,
            new,
        ),
        SecretColumn::EventSecrets => query!(
            "UPDATE provider_accounts SET event_secrets_sealed = $3
             WHERE id = $1 AND event_secrets_sealed = $2",
            row,
            old,
            new,
        ),
        SecretColumn::WebhookSecrets => query!(
            "UPDATE webhook_endpoints SET secret_sealed = $3
             WHERE id = $1 AND secret_sealed = $2",
            row,
            old,
            new,
        ),
        SecretColumn::OldWebhookSecrets => query!(
            "UPDATE webhook_endpoint_old_secrets SET secret_sealed = $3
             WHERE webhook_endpoint_id = $1 AND secret_sealed = $2",
            row,
            old,
            new,
        ),
        SecretColumn::TotpSecrets => query!(
            "UPDATE users SET totp_secret_sealed = $3
             WHERE id = $1 AND totp_secret_sealed = $2",
            row,
            old,
            new,
        ),
    };
    let done = statement.execute(connection).await.or_fault(DOING)?;
    Ok(done.rows_affected() > 0)
}
