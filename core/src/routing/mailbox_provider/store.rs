//! The mailbox providers of domains in PostgreSQL.

use sqlx::{PgConnection, query, query_scalar};

use super::MailboxProvider;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;

/// A domain as it is stored.
pub(super) struct StoredDomain {
    pub(super) domain: String,
    /// `None` before the first look-up that was answered.
    pub(super) provider: Option<MailboxProvider>,
    pub(super) wanted_at: Timestamp,
}

/// Those of the domains that are stored.
pub(super) async fn list(
    connection: &mut PgConnection,
    domains: &[String],
) -> Result<Vec<StoredDomain>, Fault> {
    let rows = query!(
        "SELECT domain, provider, wanted_at
         FROM mailbox_provider_domains
         WHERE domain = ANY($1)",
        domains,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the mailbox providers of domains")?;
    let stored = rows.into_iter().map(|row| StoredDomain {
        domain: row.domain,
        provider: row.provider.as_deref().and_then(MailboxProvider::parse),
        wanted_at: row.wanted_at,
    });
    Ok(stored.collect())
}

/// Records that domains are asked for. New ones are looked up as soon as may be.
pub(super) async fn insert_wanted(
    connection: &mut PgConnection,
    domains: &[String],
    now: Timestamp,
) -> Result<(), Fault> {
    // In one order, so that two statements do not wait for each other.
    query!(
        "INSERT INTO mailbox_provider_domains (domain, wanted_at, check_at)
         SELECT domain, $2, $2
         FROM unnest($1::text[]) domain
         ORDER BY domain
         ON CONFLICT (domain) DO UPDATE SET wanted_at = excluded.wanted_at",
        domains,
        now,
    )
    .execute(connection)
    .await
    .or_fault("ask for the mailbox providers of domains")?;
    Ok(())
}

/// Deletes some of the domains that were not asked for since `wanted_since`.
pub(super) async fn delete_unwanted(
    connection: &mut PgConnection,
    wanted_since: Timestamp,
    limit: i64,
) -> Result<(), Fault> {
    query!(
        "DELETE FROM mailbox_provider_domains
         WHERE domain IN (SELECT domain
                          FROM mailbox_provider_domains
                          WHERE wanted_at < $1
                          ORDER BY wanted_at
                          LIMIT $2
                          FOR UPDATE SKIP LOCKED)",
        wanted_since,
        limit,
    )
    .execute(connection)
    .await
    .or_fault("delete domains that nobody asks for")?;
    Ok(())
}

/// Leases domains whose look-up is due.
pub(super) async fn lease(
    connection: &mut PgConnection,
    limit: i64,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<String>, Fault> {
    query_scalar!(
        "UPDATE mailbox_provider_domains
         SET check_at = $3
         WHERE domain IN (SELECT domain
                          FROM mailbox_provider_domains
                          WHERE check_at <= $2
                          ORDER BY check_at
                          LIMIT $1
                          FOR UPDATE SKIP LOCKED)
         RETURNING domain",
        limit,
        now,
        until,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease domains whose mailbox provider is due")
}

/// Records what DNS said of a domain.
pub(super) async fn upsert(
    connection: &mut PgConnection,
    domain: &str,
    provider: MailboxProvider,
    now: Timestamp,
    next: Timestamp,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO mailbox_provider_domains (domain, provider, wanted_at, resolved_at, check_at)
         VALUES ($1, $2, $3, $3, $4)
         ON CONFLICT (domain) DO UPDATE
         SET provider = excluded.provider, resolved_at = excluded.resolved_at,
             check_at = excluded.check_at, failures = 0",
        domain,
        provider.as_str(),
        now,
        next,
    )
    .execute(connection)
    .await
    .or_fault("record the mailbox provider of a domain")?;
    Ok(())
}

/// Records that a look-up failed: the answer before stays, and the next look-up comes after a
/// minute, then each time after twice as long, at most a day.
pub(super) async fn record_failure(
    connection: &mut PgConnection,
    domain: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE mailbox_provider_domains
         SET failures = least(failures + 1, 20),
             check_at = $2::timestamptz + least(interval '1 minute' * 2 ^ failures, interval '1 day')
         WHERE domain = $1",
        domain,
        now,
    )
    .execute(connection)
    .await
    .or_fault("record a look-up of a mailbox provider that failed")?;
    Ok(())
}
