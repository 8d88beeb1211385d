//! What waits and what fails, in Postgres. For the operator, so over all organizations.

use std::time::Duration;

use sqlx::{PgConnection, query, query_as};

use super::{Backlog, FailingAccount, FailingEndpoint};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId, WebhookEndpointId};
use crate::provider::kind::ProviderType;

/// The most rows of one kind that are listed.
const ROWS_MAX: i64 = 1_000;

/// An active account with its credentials.
pub(super) struct SealedAccount {
    pub(super) id: ProviderAccountId,
    pub(super) organization_id: OrganizationId,
    pub(super) provider_type: ProviderType,
    pub(super) credentials_sealed: Vec<u8>,
}

/// The active accounts, the newest first.
pub(super) async fn list_accounts(
    connection: &mut PgConnection,
) -> Result<Vec<SealedAccount>, Fault> {
    query_as!(
        SealedAccount,
        r#"SELECT id AS "id: ProviderAccountId", organization_id AS "organization_id: OrganizationId",
                  provider_type AS "provider_type: ProviderType", credentials_sealed
           FROM provider_accounts
           WHERE is_active
           ORDER BY created_at DESC, id DESC
           LIMIT $1"#,
        ROWS_MAX,
    )
    .fetch_all(connection)
    .await
    .or_fault("list provider accounts")
}

/// The jobs that are due and that no worker has. A dead worker has none.
pub async fn find_backlog(connection: &mut PgConnection) -> Result<Backlog, Fault> {
    let row = query!(
        r#"SELECT count(*) FILTER (WHERE o.wake_at <= now()) AS "jobs!",
                  coalesce(extract(epoch FROM now() - min(o.wake_at) FILTER (WHERE o.wake_at <= now())) * 1000, 0)::bigint
                      AS "oldest_ms!",
                  count(*) FILTER (WHERE o.wake_at > now() AND o.due_at IS NULL) AS "waiting!"
           FROM outbox o
           WHERE o.dead_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM workers w WHERE w.id = o.leased_by AND w.leased_until > now())"#
    )
    .fetch_one(connection)
    .await
    .or_fault("read the outbox")?;
    Ok(Backlog {
        jobs: row.jobs,
        oldest: Duration::from_millis(u64::try_from(row.oldest_ms).unwrap_or_default()),
        waiting: row.waiting,
    })
}

/// The active accounts whose circuit breaker is open, those that fail longest first. A circuit
/// that was not reported for an hour counts as closed, as in `waypost_record_failing`.
pub async fn list_failing_accounts(
    connection: &mut PgConnection,
) -> Result<Vec<FailingAccount>, Fault> {
    query_as!(
        FailingAccount,
        r#"SELECT a.id AS "id: ProviderAccountId", a.provider_type AS "provider_type: ProviderType",
                  f.failing_since, last.answer AS "last_answer?"
           FROM provider_account_failures f
           JOIN provider_accounts a ON a.id = f.provider_account_id AND a.is_active
           LEFT JOIN LATERAL (
               SELECT coalesce(s.reason, 'status ' || s.status_code) AS answer
               FROM send_attempts s
               WHERE s.provider_account_id = a.id AND s.outcome IN ('UNAVAILABLE', 'UNKNOWN', 'THROTTLED')
               ORDER BY s.id DESC
               LIMIT 1
           ) last ON true
           WHERE f.is_failing AND f.cause = 'CALLS_FAILED' AND f.changed_at > now() - interval '1 hour'
           ORDER BY f.failing_since, a.id
           LIMIT $1"#,
        ROWS_MAX,
    )
    .fetch_all(connection)
    .await
    .or_fault("list failing provider accounts")
}

/// The webhook endpoints that fail, those that fail longest first. An endpoint that its owner
/// switched off is none of them.
pub async fn list_failing_endpoints(
    connection: &mut PgConnection,
) -> Result<Vec<FailingEndpoint>, Fault> {
    query_as!(
        FailingEndpoint,
        r#"SELECT e.id AS "id: WebhookEndpointId", e.organization_id AS "organization_id: OrganizationId",
                  e.url, e.is_active, e.failing_since AS "failing_since!", last.error AS "last_error?"
           FROM webhook_endpoints e
           LEFT JOIN LATERAL (
               SELECT coalesce('status ' || d.first_status_code, d.first_answer) AS error
               FROM webhook_deliveries d
               WHERE d.webhook_endpoint_id = e.id AND d.first_started_at IS NOT NULL
               ORDER BY d.id DESC
               LIMIT 1
           ) last ON true
           WHERE e.failing_since IS NOT NULL
           ORDER BY e.failing_since, e.id
           LIMIT $1"#,
        ROWS_MAX,
    )
    .fetch_all(connection)
    .await
    .or_fault("list failing webhook endpoints")
}
