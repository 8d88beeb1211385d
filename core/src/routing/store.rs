//! Routing rules in Postgres.

use std::collections::HashMap;

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::rule::{DomainPattern, OnUnknown, RoutingRule, RuleTerms, TagMatch};
use super::{RoutableAccount, RoutingSnapshot};
use crate::account_limiter::AccountLimits;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::organization;
use crate::provider::credentials::ReadCredentials;
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::text::{Name, Tag};
use crate::tracking::Tracking;

/// Inserts a rule.
pub(super) async fn insert(connection: &mut PgConnection, rule: &RoutingRule) -> Result<(), Fault> {
    let columns = RuleColumns::of(&rule.terms);
    query!(
        "INSERT INTO routing_rules
             (id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
              provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12)",
        rule.id.0,
        rule.organization_id.0,
        rule.terms.name.as_str(),
        columns.priority,
        rule.terms.is_active,
        columns.sender_domain,
        &columns.tags,
        rule.terms.tag_match.as_str(),
        rule.terms.provider_account_id.0,
        &columns.fallbacks,
        rule.terms.on_unknown.as_str(),
        rule.created_at,
    )
    .execute(connection)
    .await
    .or_fault("insert a routing rule")?;
    Ok(())
}

/// An organization's rules, in the order of evaluation.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Vec<RoutingRule>, Fault> {
    let rows = query_as!(
        RuleRow,
        "SELECT id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
                provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at
         FROM routing_rules
         WHERE organization_id = $1
         ORDER BY priority DESC, created_at, id",
        organization_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list routing rules")?;
    rows.into_iter().map(RoutingRule::try_from).collect()
}

/// The number of an organization's rules.
pub(super) async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<u64, Fault> {
    let count = query_scalar!(
        r#"SELECT count(*) AS "count!" FROM routing_rules WHERE organization_id = $1"#,
        organization_id.0,
    )
    .fetch_one(connection)
    .await
    .or_fault("count routing rules")?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// One rule.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: RoutingRuleId,
) -> Result<Option<RoutingRule>, Fault> {
    let row = query_as!(
        RuleRow,
        "SELECT id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
                provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at
         FROM routing_rules
         WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a routing rule")?;
    row.map(RoutingRule::try_from).transpose()
}

/// One rule, locked until the transaction ends.
pub(super) async fn find_for_update(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: RoutingRuleId,
) -> Result<Option<RoutingRule>, Fault> {
    query!(
        "SELECT id FROM routing_rules WHERE organization_id = $1 AND id = $2 FOR UPDATE",
        organization_id.0,
        id.0,
    )
    .fetch_optional(&mut *connection)
    .await
    .or_fault("lock a routing rule")?;
    find(connection, organization_id, id).await
}

/// Updates a rule.
pub(super) async fn update(connection: &mut PgConnection, rule: &RoutingRule) -> Result<(), Fault> {
    let columns = RuleColumns::of(&rule.terms);
    query!(
        "UPDATE routing_rules
         SET name = $3, priority = $4, is_active = $5, sender_domain = $6, tags = $7, tag_match = $8,
             provider_account_id = $9, fallback_provider_account_ids = $10, on_unknown = $11,
             updated_at = $12
         WHERE organization_id = $1 AND id = $2",
        rule.organization_id.0,
        rule.id.0,
        rule.terms.name.as_str(),
        columns.priority,
        rule.terms.is_active,
        columns.sender_domain,
        &columns.tags,
        rule.terms.tag_match.as_str(),
        rule.terms.provider_account_id.0,
        &columns.fallbacks,
        rule.terms.on_unknown.as_str(),
        rule.updated_at,
    )
    .execute(connection)
    .await
    .or_fault("change a routing rule")?;
    Ok(())
}

/// Deletes a rule; `false` if it does not exist.
pub(super) async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: RoutingRuleId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM routing_rules WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(connection)
    .await
    .or_fault("delete a routing rule")?;
    Ok(done.rows_affected() == 1)
}

/// Which of these accounts exist. They cannot be removed until the transaction ends.
pub(super) async fn lock_accounts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[ProviderAccountId],
) -> Result<Vec<ProviderAccountId>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    query_scalar!(
        r#"SELECT id AS "id: ProviderAccountId"
           FROM provider_accounts
           WHERE organization_id = $1 AND id = ANY($2)
           ORDER BY id
           FOR KEY SHARE"#,
        organization_id.0,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the accounts of a routing rule")
}

/// Takes an account that is being removed out of every rule: the first fallback moves up,
/// and a rule without fallbacks is deactivated. Returns the deactivated rules.
pub async fn remove_account(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    now: Timestamp,
) -> Result<Vec<RoutingRuleId>, Fault> {
    // Expressions in SET and RETURNING refer to the row before the update.
    let rows = query!(
        r#"WITH touched AS (
               SELECT id, provider_account_id = $2 AND is_active
                          AND fallback_provider_account_ids = '{}' AS goes_off
               FROM routing_rules
               WHERE organization_id = $1
                 AND (provider_account_id = $2 OR $2 = ANY(fallback_provider_account_ids))
               ORDER BY id
               FOR UPDATE
           )
           UPDATE routing_rules r
           SET provider_account_id =
                   CASE WHEN r.provider_account_id = $2
                        THEN coalesce(r.fallback_provider_account_ids[1], r.provider_account_id)
                        ELSE r.provider_account_id END,
               fallback_provider_account_ids =
                   CASE WHEN r.provider_account_id = $2 THEN r.fallback_provider_account_ids[2:]
                        ELSE array_remove(r.fallback_provider_account_ids, $2) END,
               is_active = r.is_active AND NOT touched.goes_off,
               updated_at = $3
           FROM touched
           WHERE r.organization_id = $1 AND r.id = touched.id
           RETURNING r.id, touched.goes_off AS "goes_off!""#,
        organization_id.0,
        account_id.0,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("remove an account from the routing rules")?;
    let switched_off = rows.into_iter().filter(|row| row.goes_off);
    Ok(switched_off.map(|row| RoutingRuleId(row.id)).collect())
}

struct RuleColumns {
    priority: i32,
    sender_domain: Option<String>,
    tags: Vec<String>,
    fallbacks: Vec<Uuid>,
}

impl RuleColumns {
    fn of(terms: &RuleTerms) -> Self {
        Self {
            priority: i32::try_from(terms.priority).unwrap_or(i32::MAX),
            sender_domain: terms.sender_domain.as_ref().map(ToString::to_string),
            tags: terms
                .tags
                .iter()
                .map(|tag| tag.as_str().to_owned())
                .collect(),
            fallbacks: terms.fallbacks.iter().map(|id| id.0).collect(),
        }
    }
}

struct RuleRow {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    priority: i32,
    is_active: bool,
    sender_domain: Option<String>,
    tags: Vec<String>,
    tag_match: String,
    provider_account_id: Uuid,
    fallback_provider_account_ids: Vec<Uuid>,
    on_unknown: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl TryFrom<RuleRow> for RoutingRule {
    type Error = Fault;

    /// Fails if a column cannot be parsed: a rule without one of its conditions would
    /// match messages of others.
    fn try_from(row: RuleRow) -> Result<Self, Fault> {
        let unreadable = |what: &str| Fault::internal("read a routing rule", what);
        let sender_domain = row.sender_domain.map(|text| {
            DomainPattern::parse(&text).ok_or_else(|| unreadable("its sender domain is invalid"))
        });
        let tags: Result<Vec<Tag>, _> = row.tags.into_iter().map(Tag::parse).collect();
        let fallbacks = row.fallback_provider_account_ids.into_iter();
        Ok(Self {
            id: RoutingRuleId(row.id),
            organization_id: OrganizationId(row.organization_id),
            terms: RuleTerms {
                name: Name::parse(row.name).map_err(|_| unreadable("its name is invalid"))?,
                priority: u32::try_from(row.priority).unwrap_or_default(),
                is_active: row.is_active,
                sender_domain: sender_domain.transpose()?,
                tags: tags.map_err(|_| unreadable("one of its tags is invalid"))?,
                tag_match: TagMatch::parse(&row.tag_match)
                    .ok_or_else(|| unreadable("its tag match is invalid"))?,
                provider_account_id: ProviderAccountId(row.provider_account_id),
                fallbacks: fallbacks.map(ProviderAccountId).collect(),
                on_unknown: OnUnknown::parse(&row.on_unknown)
                    .ok_or_else(|| unreadable("its on_unknown is invalid"))?,
            },
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// What routing needs of an organization; `None` if it does not exist.
pub async fn routing_snapshot(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<Option<RoutingSnapshot>, Fault> {
    let settings = organization::store::find_settings(&mut *connection, organization_id).await?;
    let Some(settings) = settings else {
        return Ok(None);
    };
    let rows = query!(
        r#"SELECT a.id, a.provider_type AS "provider_type: ProviderType", a.created_at, a.domains_visible,
                  a.max_rate_per_second, a.max_concurrency, a.revision,
                  a.sending_paused_since IS NOT NULL AS "is_paused!", d.domain AS "domain?", d.state AS "state?: DomainState",
                  -- Only in the first row of each account.
                  CASE WHEN row_number() OVER (PARTITION BY a.id ORDER BY d.domain) = 1
                       THEN a.credentials_sealed END AS credentials_sealed
           FROM provider_accounts a
           LEFT JOIN provider_domains d ON d.provider_account_id = a.id
           WHERE a.organization_id = $1 AND a.is_active
           ORDER BY a.created_at, a.id, d.domain"#,
        organization_id.0,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("read an organization's accounts")?;
    let mut accounts: Vec<RoutableAccount> = Vec::new();
    for row in rows {
        if let Some(sealed) = row.credentials_sealed {
            accounts.push(RoutableAccount {
                id: ProviderAccountId(row.id),
                provider_type: row.provider_type,
                created_at: row.created_at,
                limits: AccountLimits::from_columns(row.max_rate_per_second, row.max_concurrency),
                credentials: ReadCredentials::new(sealed),
                revision: u32::try_from(row.revision).unwrap_or_default(),
                is_paused: row.is_paused,
                domains_visible: row.domains_visible,
                domains: HashMap::new(),
            });
        }
        if let (Some(account), Some(domain), Some(state)) =
            (accounts.last_mut(), row.domain, row.state)
        {
            account.domains.insert(domain, state);
        }
    }
    let rules = list(connection, organization_id).await?;
    Ok(Some(RoutingSnapshot {
        unverified_domains: settings.unverified_domains,
        tracking: Tracking {
            opens: settings.track_opens,
            clicks: settings.track_clicks,
        },
        accounts,
        rules,
    }))
}
