//! Provider accounts and their domains in Postgres.

use sqlx::{PgConnection, query, query_as};

use super::domains::first_check;
use super::pause::SendingPaused;
use super::{DomainRecord, ProviderAccount};
use crate::account_limiter::AccountLimits;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{DomainId, Ids, OrganizationId, ProviderAccountId};
use crate::provider::credentials::ReadCredentials;
use crate::provider::domain::{DomainState, FoundDomain};
use crate::provider::event_secrets::EventToken;
use crate::provider::kind::ProviderType;

/// The sealed parts of an account.
#[derive(Debug)]
pub struct SealedSecrets {
    pub credentials: Vec<u8>,
    /// The secrets that verify its provider's events, if known.
    pub event_secrets: Option<Vec<u8>>,
}

/// Adds an account.
pub async fn insert(
    connection: &mut PgConnection,
    account: &ProviderAccount,
    sealed: &SealedSecrets,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO provider_accounts
             (id, organization_id, provider_type, display_name, is_active, credentials_sealed,
              domains_visible, event_token, event_secrets_sealed, created_at, updated_at,
              max_rate_per_second, max_concurrency)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        account.id.0,
        account.organization_id.0,
        account.provider_type as ProviderType,
        account.display_name,
        account.is_active,
        sealed.credentials,
        account.domains_visible,
        account.event_token.as_str(),
        sealed.event_secrets,
        account.created_at,
        account.updated_at,
        stored(account.limits.max_rate_per_second),
        stored(account.limits.max_concurrency),
    )
    .execute(connection)
    .await
    .or_fault("add a provider account")?;
    Ok(())
}

/// An organization's accounts, oldest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<ProviderAccount>, Fault> {
    let rows = query_as!(
        AccountRow,
        r#"SELECT id AS "id: ProviderAccountId", organization_id AS "organization_id: OrganizationId",
                  provider_type AS "provider_type: ProviderType", display_name, is_active, domains_visible,
                  event_token AS "event_token: EventToken", events_verified_at, created_at, updated_at,
                  max_rate_per_second, max_concurrency, sending_paused_reason, sending_paused_since, credentials_sealed
           FROM provider_accounts
           WHERE organization_id = $1
           ORDER BY created_at, id"#,
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list provider accounts")?;
    Ok(rows.into_iter().map(ProviderAccount::from).collect())
}

/// One account.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ProviderAccountId,
) -> Result<Option<ProviderAccount>, Fault> {
    let row = query_as!(
        AccountRow,
        r#"SELECT id AS "id: ProviderAccountId", organization_id AS "organization_id: OrganizationId",
                  provider_type AS "provider_type: ProviderType", display_name, is_active, domains_visible,
                  event_token AS "event_token: EventToken", events_verified_at, created_at, updated_at,
                  max_rate_per_second, max_concurrency, sending_paused_reason, sending_paused_since, credentials_sealed
           FROM provider_accounts
           WHERE organization_id = $1 AND id = $2"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a provider account")?;
    Ok(row.map(ProviderAccount::from))
}

/// The account with an event token, of any organization, and its sealed event secrets if
/// there are any.
pub async fn find_by_event_token(
    connection: &mut PgConnection,
    token: &str,
) -> Result<Option<(ProviderAccount, Option<Vec<u8>>)>, Fault> {
    let row = query!(
        r#"SELECT id, organization_id, provider_type AS "provider_type: ProviderType", display_name,
                  is_active, domains_visible, event_token AS "event_token: EventToken",
                  event_secrets_sealed, events_verified_at, created_at, updated_at,
                  max_rate_per_second, max_concurrency, sending_paused_reason, sending_paused_since, credentials_sealed
           FROM provider_accounts
           WHERE event_token = $1"#,
        token,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an account by its token")?;
    Ok(row.map(|row| {
        let account = ProviderAccount {
            id: ProviderAccountId(row.id),
            organization_id: OrganizationId(row.organization_id),
            provider_type: row.provider_type,
            display_name: row.display_name,
            credentials: ReadCredentials::new(row.credentials_sealed),
            is_active: row.is_active,
            domains_visible: row.domains_visible,
            event_token: row.event_token,
            events_verified_at: row.events_verified_at,
            limits: AccountLimits::from_columns(row.max_rate_per_second, row.max_concurrency),
            paused: paused(row.sending_paused_reason, row.sending_paused_since),
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        (account, row.event_secrets_sealed)
    }))
}

/// An account's sealed credentials.
pub async fn find_credentials(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ProviderAccountId,
) -> Result<Option<Vec<u8>>, Fault> {
    let row = query!(
        "SELECT credentials_sealed
         FROM provider_accounts
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a provider account's credentials")?;
    Ok(row.map(|row| row.credentials_sealed))
}

/// An account's sealed event secrets, if there are any.
pub async fn find_event_secrets(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ProviderAccountId,
) -> Result<Option<Vec<u8>>, Fault> {
    let row = query!(
        "SELECT event_secrets_sealed
         FROM provider_accounts
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find an account's event secrets")?;
    Ok(row.and_then(|row| row.event_secrets_sealed))
}

/// The columns of an account to change; a field that is `None` stays.
#[derive(Debug, Default)]
pub struct AccountChange {
    pub display_name: Option<String>,
    pub is_active: Option<bool>,
    /// New credentials, sealed.
    pub credentials_sealed: Option<Vec<u8>>,
    /// New event secrets, sealed. No event has been verified with them yet.
    pub event_secrets_sealed: Option<Vec<u8>>,
    /// Whether the credentials can list the account's domains.
    pub domains_visible: Option<bool>,
    /// A new limit on calls per second, or `Some(None)` for none.
    pub max_rate_per_second: Option<Option<u32>>,
    /// A new limit on calls in flight, or `Some(None)` for none.
    pub max_concurrency: Option<Option<u32>>,
    /// Whether the change may have repaired the account: it raises the revision and ends a
    /// pause.
    pub is_repaired: bool,
}

/// Changes an account and returns it; `None` if it does not exist.
pub async fn update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ProviderAccountId,
    change: &AccountChange,
    now: Timestamp,
) -> Result<Option<ProviderAccount>, Fault> {
    let row = query_as!(
        AccountRow,
        r#"UPDATE provider_accounts
           SET display_name = coalesce($3, display_name),
               is_active = coalesce($4, is_active),
               credentials_sealed = coalesce($5, credentials_sealed),
               domains_visible = coalesce($6, domains_visible),
               event_secrets_sealed = coalesce($7, event_secrets_sealed),
               events_verified_at = CASE WHEN $7::bytea IS NULL THEN events_verified_at END,
               max_rate_per_second = CASE WHEN $9 THEN $10 ELSE max_rate_per_second END,
               max_concurrency = CASE WHEN $11 THEN $12 ELSE max_concurrency END,
               revision = CASE WHEN $13 THEN revision + 1 ELSE revision END,
               sending_paused_reason = CASE WHEN NOT $13 THEN sending_paused_reason END,
               sending_paused_since = CASE WHEN NOT $13 THEN sending_paused_since END,
               updated_at = $8
           WHERE organization_id = $1 AND id = $2
           RETURNING id AS "id: ProviderAccountId", organization_id AS "organization_id: OrganizationId",
                     provider_type AS "provider_type: ProviderType", display_name, is_active, domains_visible,
                     event_token AS "event_token: EventToken", events_verified_at, created_at, updated_at,
                     max_rate_per_second, max_concurrency, sending_paused_reason, sending_paused_since, credentials_sealed"#,
        organization_id.0,
        id.0,
        change.display_name,
        change.is_active,
        change.credentials_sealed,
        change.domains_visible,
        change.event_secrets_sealed,
        now,
        change.max_rate_per_second.is_some(),
        stored(change.max_rate_per_second.flatten()),
        change.max_concurrency.is_some(),
        stored(change.max_concurrency.flatten()),
        change.is_repaired,
    )
    .fetch_optional(connection)
    .await
    .or_fault("change a provider account")?;
    Ok(row.map(ProviderAccount::from))
}

/// Removes an account with its domains; false if it does not exist.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: ProviderAccountId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM provider_accounts WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("delete a provider account")?;
    Ok(done.rows_affected() == 1)
}

/// The stored domains of an account, by name.
pub async fn list_domains(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
) -> Result<Vec<DomainRecord>, Fault> {
    query_as!(
        DomainRecord,
        r#"SELECT id AS "id: DomainId", provider_account_id AS "provider_account_id: ProviderAccountId",
                  domain, state AS "state: DomainState", dns_records, created_at
           FROM provider_domains
           WHERE organization_id = $1 AND provider_account_id = $2
           ORDER BY domain"#,
        organization_id.0,
        account_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list an account's domains")
}

/// Records that an account's domains cannot be listed: domains from the provider's list are
/// deleted, domains added by the customer stay with the state `unknown`. All get this state
/// first, so that a trigger inserts the events of the verified ones.
pub async fn hide_domains(
    connection: &mut PgConnection,
    account: &ProviderAccount,
) -> Result<(), Fault> {
    query!(
        "UPDATE provider_domains
         SET state = 'unknown'
         WHERE organization_id = $1 AND provider_account_id = $2",
        account.organization_id.0,
        account.id.0,
    )
    .execute(&mut *connection)
    .await
    .or_fault("mark domains as not visible")?;
    query!(
        "DELETE FROM provider_domains
         WHERE organization_id = $1 AND provider_account_id = $2 AND NOT is_added",
        account.organization_id.0,
        account.id.0,
    )
    .execute(connection)
    .await
    .or_fault("remove domains that are not visible")?;
    Ok(())
}

/// Stores the domains that an account has at its provider: new ones are added, known ones
/// updated, missing ones deleted. Known DNS records stay if the provider's list has none.
/// Mailgun lists one domain of many, so other domains added by the customer are not treated
/// as missing.
pub async fn replace_domains(
    connection: &mut PgConnection,
    account: &ProviderAccount,
    found: &[FoundDomain],
    ids: &Ids,
    now: Timestamp,
) -> Result<(), Fault> {
    let names: Vec<&str> = found.iter().map(|domain| domain.domain.as_str()).collect();
    remove_vanished(&mut *connection, account, &names).await?;
    let new_ids: Vec<uuid::Uuid> = found.iter().map(|_| ids.next_at(now)).collect();
    let states: Vec<&str> = found.iter().map(|domain| domain.state.as_str()).collect();
    let checks = found
        .iter()
        .map(|domain| first_check(domain.state, now, ids.fraction()));
    let checks: Vec<Timestamp> = checks.collect();
    let records: Vec<serde_json::Value> = found
        .iter()
        .map(|domain| serde_json::to_value(&domain.dns_records).unwrap_or_default())
        .collect();
    query!(
        r#"INSERT INTO provider_domains
               (id, organization_id, provider_account_id, domain, state, dns_records, created_at,
                checked_at, check_at)
           SELECT id, $1, $2, domain, state::domain_state, dns_records, $7, $7, check_at
           FROM UNNEST($3::uuid[], $4::text[], $5::text[], $6::jsonb[], $8::timestamptz[])
                AS d (id, domain, state, dns_records, check_at)
           ON CONFLICT ON CONSTRAINT provider_domains_account_domain_key
           DO UPDATE SET state = excluded.state,
                         checked_at = excluded.checked_at,
                         check_at = excluded.check_at,
                         dns_records = CASE WHEN excluded.dns_records = '[]'::jsonb
                                            THEN provider_domains.dns_records
                                            ELSE excluded.dns_records END"#,
        account.organization_id.0,
        account.id.0,
        &new_ids,
        &names as &[&str],
        &states as &[&str],
        &records,
        now,
        &checks,
    )
    .execute(connection)
    .await
    .or_fault("record an account's domains")?;
    Ok(())
}

/// Removes the domains that an account no longer has at its provider. The verified ones are
/// marked first, so that a trigger inserts their events.
async fn remove_vanished(
    connection: &mut PgConnection,
    account: &ProviderAccount,
    present: &[&str],
) -> Result<(), Fault> {
    let keeps_added = account.provider_type == ProviderType::Mailgun;
    query!(
        "UPDATE provider_domains
         SET state = 'unverified'
         WHERE organization_id = $1 AND provider_account_id = $2 AND domain <> ALL($3::text[])
           AND NOT (is_added AND $4) AND state = 'verified'",
        account.organization_id.0,
        account.id.0,
        present as &[&str],
        keeps_added,
    )
    .execute(&mut *connection)
    .await
    .or_fault("mark vanished domains")?;
    query!(
        "DELETE FROM provider_domains
         WHERE organization_id = $1 AND provider_account_id = $2 AND domain <> ALL($3::text[])
           AND NOT (is_added AND $4)",
        account.organization_id.0,
        account.id.0,
        present as &[&str],
        keeps_added,
    )
    .execute(connection)
    .await
    .or_fault("remove vanished domains")?;
    Ok(())
}

struct AccountRow {
    id: ProviderAccountId,
    organization_id: OrganizationId,
    provider_type: ProviderType,
    display_name: String,
    is_active: bool,
    domains_visible: bool,
    event_token: EventToken,
    events_verified_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
    max_rate_per_second: Option<i32>,
    max_concurrency: Option<i32>,
    sending_paused_reason: Option<String>,
    sending_paused_since: Option<Timestamp>,
    credentials_sealed: Vec<u8>,
}

impl From<AccountRow> for ProviderAccount {
    fn from(row: AccountRow) -> Self {
        Self {
            id: row.id,
            organization_id: row.organization_id,
            provider_type: row.provider_type,
            display_name: row.display_name,
            credentials: ReadCredentials::new(row.credentials_sealed),
            is_active: row.is_active,
            domains_visible: row.domains_visible,
            event_token: row.event_token,
            events_verified_at: row.events_verified_at,
            limits: AccountLimits::from_columns(row.max_rate_per_second, row.max_concurrency),
            paused: paused(row.sending_paused_reason, row.sending_paused_since),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

fn paused(reason: Option<String>, since: Option<Timestamp>) -> Option<SendingPaused> {
    Some(SendingPaused {
        reason: reason?,
        since: since?,
    })
}

/// A limit as its column stores it.
fn stored(bound: Option<u32>) -> Option<i32> {
    bound.map(|number| i32::try_from(number).unwrap_or(i32::MAX))
}
