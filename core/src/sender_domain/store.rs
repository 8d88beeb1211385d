//! The checks of sender domains in Postgres, and what accounts want of a domain.

use serde_json::Value;
use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{AccountDomain, DueSenderDomain, SenderDomainSummary};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{DomainId, OrganizationId, ProviderAccountId};
use crate::provider::domain::{DnsRecord, DomainState};
use crate::provider::kind::ProviderType;

/// The stored check of a domain.
#[derive(Debug, Clone)]
pub struct StoredCheck {
    /// Stands for the domain in the audit log.
    pub id: Uuid,
    pub checked_at: Option<Timestamp>,
    /// [`super::look_ups::DnsFacts`] as JSON; `None` before the first check.
    pub facts: Option<Value>,
    /// [`super::state::FoundState`] by the ids of the accounts' domains, as JSON.
    pub states: Value,
    pub broken_since: Option<Timestamp>,
}

/// The result of a check.
#[derive(Debug)]
pub struct CheckResult {
    pub checked_at: Timestamp,
    /// When the domain was to be checked again while this check ran.
    pub leased_until: Timestamp,
    pub next: Timestamp,
    pub status: &'static str,
    pub conflicts: Vec<String>,
    pub facts: Value,
    pub states: Value,
    pub broken_since: Option<Timestamp>,
}

/// All sender domains, in the order of their names.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<SenderDomainSummary>, Fault> {
    query_as!(
        SenderDomainSummary,
        r#"SELECT d.domain, array_agg(d.provider_account_id ORDER BY d.provider_account_id) AS "provider_account_ids!",
                  coalesce(c.status, 'unknown') AS "status!", coalesce(c.conflicts, '{}') AS "conflicts!",
                  c.checked_at AS "checked_at?", c.broken_since AS "broken_since?"
           FROM provider_domains d
           LEFT JOIN sender_domain_checks c ON c.organization_id = d.organization_id AND c.domain = d.domain
           WHERE d.organization_id = $1
           GROUP BY d.domain, c.organization_id, c.domain
           ORDER BY d.domain COLLATE "C""#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list sender domains")
}

/// What each account wants of a domain, the oldest account first. None if no account has it.
pub async fn list_accounts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
) -> Result<Vec<AccountDomain>, Fault> {
    let rows = query!(
        r#"SELECT d.id AS "id: DomainId", d.provider_account_id AS "provider_account_id: ProviderAccountId",
                  a.provider_type AS "provider_type: ProviderType", a.display_name,
                  d.domain, d.state AS "state: DomainState", d.dns_records
           FROM provider_domains d
           JOIN provider_accounts a ON a.id = d.provider_account_id
           WHERE d.organization_id = $1 AND d.domain = $2
           ORDER BY a.created_at, a.id"#,
        organization_id.0,
        domain,
    )
    .fetch_all(connection)
    .await
    .or_fault("find a sender domain")?;
    let accounts = rows.into_iter().map(|row| AccountDomain {
        id: row.id,
        provider_account_id: row.provider_account_id,
        provider_type: row.provider_type,
        display_name: row.display_name,
        domain: row.domain,
        state: row.state,
        records: read_records(&row.dns_records),
    });
    Ok(accounts.collect())
}

/// The records in a domain's `dns_records`. One of another form is left out.
#[must_use]
pub fn read_records(stored: &Value) -> Vec<DnsRecord> {
    let records = stored.as_array().into_iter().flatten();
    records
        .filter_map(|record| serde_json::from_value(record.clone()).ok())
        .collect()
}

/// The stored check of a domain.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
) -> Result<Option<StoredCheck>, Fault> {
    query_as!(
        StoredCheck,
        "SELECT id, checked_at, facts, states, broken_since
         FROM sender_domain_checks
         WHERE organization_id = $1 AND domain = $2",
        organization_id.0,
        domain,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the check of a sender domain")
}

/// The facts of an account's domains, by domain.
pub async fn list_facts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domains: &[String],
) -> Result<Vec<(String, Timestamp, Value)>, Fault> {
    let rows = query!(
        r#"SELECT domain, checked_at AS "checked_at!", facts AS "facts!"
           FROM sender_domain_checks
           WHERE organization_id = $1 AND domain = ANY($2) AND facts IS NOT NULL AND checked_at IS NOT NULL"#,
        organization_id.0,
        domains,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the checks of domains")?;
    let rows = rows.into_iter();
    Ok(rows
        .map(|row| (row.domain, row.checked_at, row.facts))
        .collect())
}

/// Locks the check of a domain until the transaction ends, and returns it. Adds it if it is
/// missing.
pub async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
    now: Timestamp,
) -> Result<StoredCheck, Fault> {
    query_as!(
        StoredCheck,
        "INSERT INTO sender_domain_checks AS c (organization_id, domain, check_at)
         VALUES ($1, $2, $3)
         ON CONFLICT (organization_id, domain) DO UPDATE SET check_at = c.check_at
         RETURNING id, checked_at, facts, states, broken_since",
        organization_id.0,
        domain,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("lock the check of a sender domain")
}

/// Postpones the check of a domain to `until`, while one runs.
pub async fn postpone(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
    until: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE sender_domain_checks
         SET check_at = $3
         WHERE organization_id = $1 AND domain = $2",
        organization_id.0,
        domain,
        until,
    )
    .execute(connection)
    .await
    .or_fault("postpone the check of a sender domain")?;
    Ok(())
}

/// Stores the result of a check. If accounts have come to want other records meanwhile, the
/// domain stays due.
pub async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
    result: &CheckResult,
) -> Result<(), Fault> {
    query!(
        "UPDATE sender_domain_checks
         SET checked_at = $3, status = $4, conflicts = $5, facts = $6, states = $7, broken_since = $8,
             check_at = CASE WHEN check_at < $9 THEN check_at ELSE $10 END
         WHERE organization_id = $1 AND domain = $2",
        organization_id.0,
        domain,
        result.checked_at,
        result.status,
        &result.conflicts,
        result.facts,
        result.states,
        result.broken_since,
        result.leased_until,
        result.next,
    )
    .execute(connection)
    .await
    .or_fault("store the check of a sender domain")?;
    Ok(())
}

/// Removes the check of a domain that no account has, unless one has it again.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    domain: &str,
    leased_until: Timestamp,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM sender_domain_checks
         WHERE organization_id = $1 AND domain = $2 AND check_at >= $3",
        organization_id.0,
        domain,
        leased_until,
    )
    .execute(connection)
    .await
    .or_fault("remove the check of a sender domain")?;
    Ok(())
}

/// Leases due checks of all organizations, the longest overdue first. They are not due again
/// before `until`.
pub async fn lease(
    connection: &mut PgConnection,
    limit: i64,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<DueSenderDomain>, Fault> {
    query_as!(
        DueSenderDomain,
        r#"WITH due AS (
               SELECT organization_id, domain
               FROM sender_domain_checks
               WHERE check_at <= $1
               ORDER BY check_at
               LIMIT $3
               FOR UPDATE SKIP LOCKED
           )
           UPDATE sender_domain_checks c
           SET check_at = $2
           FROM due
           WHERE c.organization_id = due.organization_id AND c.domain = due.domain
           RETURNING c.organization_id AS "organization_id: OrganizationId", c.domain, c.check_at AS leased_until"#,
        now,
        until,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease due checks of sender domains")
}

/// Inserts the webhook deliveries of a change of an account's domain.
pub async fn announce(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    event_type: &str,
    at: Timestamp,
    content: &Value,
) -> Result<(), Fault> {
    query_scalar!(
        r#"SELECT waypost_add_organization_event($2, $1, $3, $4)::text AS "nothing?""#,
        organization_id.0,
        event_type,
        at,
        content,
    )
    .fetch_one(connection)
    .await
    .or_fault("announce a change of a sender domain")?;
    Ok(())
}
