//! The domains of accounts in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};

use super::DueDomain;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{DomainId, OrganizationId, ProviderAccountId};
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::provider_account::DomainRecord;

/// When a domain was checked, and when it is checked next.
#[derive(Debug, Clone, Copy)]
pub struct DomainCheck {
    /// When the provider last reported its state; `None` if it never did.
    pub at: Option<Timestamp>,
    pub next: Timestamp,
}

/// Adds a domain; false if the account already has it.
pub async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    record: &DomainRecord,
    check: DomainCheck,
) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO provider_domains
             (id, organization_id, provider_account_id, domain, state, dns_records, created_at,
              is_added, checked_at, check_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, true, $8, $9)
         ON CONFLICT ON CONSTRAINT provider_domains_account_domain_key DO NOTHING",
        record.id.0,
        organization_id.0,
        record.provider_account_id.0,
        record.domain,
        record.state as DomainState,
        record.dns_records,
        record.created_at,
        check.at,
        check.next,
    )
    .execute(connection)
    .await
    .or_fault("add a domain")?;
    Ok(done.rows_affected() == 1)
}

/// One domain of an account. Locks its row until the transaction ends.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    id: DomainId,
) -> Result<Option<DomainRecord>, Fault> {
    query_as!(
        DomainRecord,
        r#"SELECT id AS "id: DomainId", provider_account_id AS "provider_account_id: ProviderAccountId",
                  domain, state AS "state: DomainState", dns_records, created_at
           FROM provider_domains
           WHERE organization_id = $1 AND provider_account_id = $2 AND id = $3
           FOR UPDATE"#,
        organization_id.0,
        account_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a domain")
}

/// The number of an account's domains, and whether one has this name.
pub async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    domain: &str,
) -> Result<(i64, bool), Fault> {
    let row = query!(
        r#"SELECT count(*) AS "count!", coalesce(bool_or(domain = $3), false) AS "has!"
           FROM provider_domains
           WHERE organization_id = $1 AND provider_account_id = $2"#,
        organization_id.0,
        account_id.0,
        domain,
    )
    .fetch_one(connection)
    .await
    .or_fault("count an account's domains")?;
    Ok((row.count, row.has))
}

/// Stores a domain's state and its checks.
pub async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    record: &DomainRecord,
    check: DomainCheck,
) -> Result<(), Fault> {
    query!(
        "UPDATE provider_domains
         SET state = $3, dns_records = $4, checked_at = coalesce($5, checked_at), check_at = $6
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        record.id.0,
        record.state as DomainState,
        record.dns_records,
        check.at,
        check.next,
    )
    .execute(connection)
    .await
    .or_fault("update a domain")?;
    Ok(())
}

/// Postpones the checks of an account's domains to `next` or later.
pub async fn postpone(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    next: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE provider_domains
         SET check_at = $3
         WHERE organization_id = $1 AND provider_account_id = $2 AND check_at < $3",
        organization_id.0,
        account_id.0,
        next,
    )
    .execute(connection)
    .await
    .or_fault("postpone domain checks")?;
    Ok(())
}

/// Removes a domain; false if it does not exist.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: DomainId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM provider_domains WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("remove a domain")?;
    Ok(done.rows_affected() == 1)
}

/// Whether a domain is due, of whatever account.
pub async fn is_any_due(connection: &mut PgConnection, now: Timestamp) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT FROM provider_domains WHERE check_at <= $1) AS "exists!""#,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("find domains that are due")
}

/// Leases due domains of active accounts of one provider, of all organizations: at most one
/// per account, the longest overdue first, chosen from the thousand longest overdue. They
/// are not due again before `until`.
pub async fn lease(
    connection: &mut PgConnection,
    provider_type: ProviderType,
    limit: i64,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<DueDomain>, Fault> {
    query_as!(
        DueDomain,
        r#"WITH due AS (
               SELECT d.id, d.provider_account_id, d.check_at
               FROM provider_domains d
               JOIN provider_accounts a ON a.id = d.provider_account_id
               WHERE d.check_at <= $1 AND a.is_active AND a.provider_type = $3
               ORDER BY d.check_at
               LIMIT 1000
           ), first AS (
               SELECT DISTINCT ON (provider_account_id) id, check_at
               FROM due
               ORDER BY provider_account_id, check_at
           ), chosen AS (
               SELECT id
               FROM provider_domains
               WHERE id IN (SELECT id FROM first ORDER BY check_at LIMIT $4)
                 AND check_at <= $1
               ORDER BY id
               FOR UPDATE SKIP LOCKED
           )
           UPDATE provider_domains d
           SET check_at = $2
           FROM chosen
           WHERE d.id = chosen.id
           RETURNING d.id AS "id: DomainId", d.organization_id AS "organization_id: OrganizationId",
                     d.provider_account_id AS "provider_account_id: ProviderAccountId", d.domain"#,
        now,
        until,
        provider_type as ProviderType,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease due domains")
}

/// Locks an account against removal until the transaction ends; false if it does not exist.
pub async fn lock_account(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
) -> Result<bool, Fault> {
    let found = query_scalar!(
        r#"SELECT 1 AS "one!" FROM provider_accounts
           WHERE organization_id = $1 AND id = $2
           FOR KEY SHARE"#,
        organization_id.0,
        account_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("lock an account")?;
    Ok(found.is_some())
}
