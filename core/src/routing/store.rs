//! Routing rules in Postgres.

use std::collections::HashMap;

use sqlx::types::Json;
use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::conditions::{Conditions, MessageClass};
use super::mailbox_provider::MailboxProvider;
use super::ramp::RampBounds;
use super::ramp::store::StoredStage;
use super::rule::{DomainPattern, OnUnknown, RoutingRule, RuleTerms, TagMatch};
use super::target_health::{self, Prefer};
use super::targets::{OverCap, Sticky, Target};
use super::{RoutableAccount, RoutingSnapshot};
use crate::account_limiter::AccountLimits;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::organization;
use crate::provider::credentials::ReadCredentials;
use crate::provider::domain::DomainState;
use crate::provider::kind::ProviderType;
use crate::provider::region::AccountRegion;
use crate::text::{Name, Tag};
use crate::tracking::Tracking;

/// Inserts a rule.
pub(super) async fn insert(connection: &mut PgConnection, rule: &RoutingRule) -> Result<(), Fault> {
    let columns = RuleColumns::of(&rule.terms);
    query!(
        "INSERT INTO routing_rules
             (id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
              provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at,
              targets, sticky, over_cap, recipient_domains, message_class, min_size_bytes, max_size_bytes,
              is_test, ramp_bounce_rate, ramp_complaint_rate, region, recipient_mailbox_providers, prefer)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14, $15, $16, $17, $18, $19,
                 $20, $21, $22, $23, $24, $25)",
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
        columns.targets as _,
        rule.terms.sticky.as_str(),
        rule.terms.over_cap.as_str(),
        &columns.recipient_domains,
        rule.terms.conditions.message_class as _,
        columns.min_size_bytes,
        columns.max_size_bytes,
        rule.terms.conditions.test,
        rule.terms.ramp_bounds.bounce_rate,
        rule.terms.ramp_bounds.complaint_rate,
        rule.terms.region.map(AccountRegion::as_str),
        &columns.recipient_mailbox_providers,
        rule.terms.prefer.as_str(),
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
        r#"SELECT id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
                provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at,
                targets AS "targets: Json<Vec<Target>>", sticky, over_cap,
                recipient_domains, message_class AS "message_class: MessageClass", min_size_bytes,
                max_size_bytes, is_test, ramp_bounce_rate, ramp_complaint_rate,
                region, recipient_mailbox_providers, prefer,
                (SELECT jsonb_agg(jsonb_build_object('providerAccountId', p.provider_account_id, 'cap', p.cap,
                                                     'state', p.state, 'steppedOn', p.stepped_on))
                 FROM routing_ramps p
                 WHERE p.rule_id = routing_rules.id) AS "stages: Json<Vec<StoredStage>>"
         FROM routing_rules
         WHERE organization_id = $1
         ORDER BY priority DESC, created_at, id"#,
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
        r#"SELECT id, organization_id, name, priority, is_active, sender_domain, tags, tag_match,
                provider_account_id, fallback_provider_account_ids, on_unknown, created_at, updated_at,
                targets AS "targets: Json<Vec<Target>>", sticky, over_cap,
                recipient_domains, message_class AS "message_class: MessageClass", min_size_bytes,
                max_size_bytes, is_test, ramp_bounce_rate, ramp_complaint_rate,
                region, recipient_mailbox_providers, prefer,
                (SELECT jsonb_agg(jsonb_build_object('providerAccountId', p.provider_account_id, 'cap', p.cap,
                                                     'state', p.state, 'steppedOn', p.stepped_on))
                 FROM routing_ramps p
                 WHERE p.rule_id = routing_rules.id) AS "stages: Json<Vec<StoredStage>>"
         FROM routing_rules
         WHERE organization_id = $1 AND id = $2"#,
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
             updated_at = $12, targets = $13, sticky = $14, over_cap = $15, recipient_domains = $16,
             message_class = $17, min_size_bytes = $18, max_size_bytes = $19, is_test = $20,
             ramp_bounce_rate = $21, ramp_complaint_rate = $22,
             region = $23, recipient_mailbox_providers = $24, prefer = $25
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
        columns.targets as _,
        rule.terms.sticky.as_str(),
        rule.terms.over_cap.as_str(),
        &columns.recipient_domains,
        rule.terms.conditions.message_class as _,
        columns.min_size_bytes,
        columns.max_size_bytes,
        rule.terms.conditions.test,
        rule.terms.ramp_bounds.bounce_rate,
        rule.terms.ramp_bounds.complaint_rate,
        rule.terms.region.map(AccountRegion::as_str),
        &columns.recipient_mailbox_providers,
        rule.terms.prefer.as_str(),
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

/// Takes an account that is being removed out of every rule: the next target takes its place
/// as the first; if none is left, the first fallback moves up, and a rule without fallbacks is
/// deactivated, unless it has a region: it keeps its messages there. Returns the deactivated rules.
pub async fn remove_account(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    now: Timestamp,
) -> Result<Vec<RoutingRuleId>, Fault> {
    // Expressions in SET and RETURNING refer to the row before the update.
    let rows = query!(
        r#"WITH touched AS (
               SELECT id, provider_account_id = $2 AS is_main, is_active, region,
                      -- Those of a rule to which an older program gave another account count no more.
                      CASE WHEN targets->0->>'providerAccountId' = provider_account_id::text
                           THEN jsonb_path_query_array(targets, '$[*] ? (@.providerAccountId != $id)',
                                                       jsonb_build_object('id', $2::uuid))
                           ELSE '[]' END AS targets,
                      array_remove(fallback_provider_account_ids, $2) AS fallbacks
               FROM routing_rules
               WHERE organization_id = $1
                 AND (provider_account_id = $2 OR $2 = ANY(fallback_provider_account_ids)
                      OR targets @> jsonb_build_array(jsonb_build_object('providerAccountId', $2::uuid)))
               ORDER BY id
               FOR UPDATE
           ), left_over AS (
               SELECT *, is_main AND targets = '[]' AS moves_up,
                      is_main AND is_active AND region IS NULL AND targets = '[]' AND fallbacks = '{}' AS goes_off
               FROM touched
           )
           UPDATE routing_rules r
           SET provider_account_id =
                   CASE WHEN NOT l.is_main THEN r.provider_account_id
                        ELSE coalesce((l.targets->0->>'providerAccountId')::uuid, l.fallbacks[1],
                                      r.provider_account_id) END,
               targets = l.targets,
               fallback_provider_account_ids = CASE WHEN l.moves_up THEN l.fallbacks[2:] ELSE l.fallbacks END,
               is_active = r.is_active AND NOT l.goes_off,
               updated_at = $3
           FROM left_over l
           WHERE r.organization_id = $1 AND r.id = l.id
           RETURNING r.id, l.goes_off AS "goes_off!""#,
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

/// What rules look at of an accepted message, besides what its lease contains.
#[derive(Debug)]
pub struct MessageTraits {
    /// Each domain once, that of the first recipient first. `None` if they were not recorded:
    /// the message is older than their column.
    pub recipient_domains: Option<Vec<String>>,
    /// Of those domains that were looked up.
    pub mailbox_providers: HashMap<String, MailboxProvider>,
    pub class: MessageClass,
    pub size_bytes: u64,
}

/// The traits of a message; `None` if it does not exist any more.
pub async fn message_traits(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
) -> Result<Option<MessageTraits>, Fault> {
    let row = query!(
        r#"SELECT (SELECT array_agg(d.domain ORDER BY d.first)
                   FROM (SELECT domain, min(position) AS first
                         FROM recipients
                         WHERE message_id = $2
                         GROUP BY domain) d) AS "domains: Vec<Option<String>>",
                  (SELECT jsonb_object_agg(p.domain, p.provider)
                   FROM mailbox_provider_domains p
                   WHERE p.provider IS NOT NULL
                     AND p.domain IN (SELECT r.domain FROM recipients r WHERE r.message_id = $2))
                  AS "providers: Json<HashMap<String, String>>",
                  m.message_class AS "class: MessageClass",
                  octet_length(m.subject) + coalesce(octet_length(b.html), 0) + coalesce(octet_length(b.text), 0)
                  + coalesce((SELECT sum((file ->> 'size')::bigint)::bigint
                              FROM jsonb_array_elements(b.attachments) file), 0) AS "size_bytes!"
           FROM messages m
           JOIN message_bodies b ON b.message_id = m.id AND b.message_id = $2
           WHERE m.organization_id = $1 AND m.id = $2"#,
        organization_id.0,
        message_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("read the traits of a message")?;
    let providers = |stored: Option<Json<HashMap<String, String>>>| {
        let stored = stored.map(|stored| stored.0).unwrap_or_default();
        let parsed = stored.into_iter();
        parsed.filter_map(|(domain, word)| Some((domain, MailboxProvider::parse(&word)?)))
    };
    Ok(row.map(|row| MessageTraits {
        mailbox_providers: providers(row.providers).collect(),
        recipient_domains: row
            .domains
            .and_then(|domains| domains.into_iter().collect()),
        class: row.class.unwrap_or_default(),
        size_bytes: u64::try_from(row.size_bytes).unwrap_or_default(),
    }))
}

struct RuleColumns {
    priority: i32,
    sender_domain: Option<String>,
    tags: Vec<String>,
    fallbacks: Vec<Uuid>,
    targets: Json<Vec<Target>>,
    recipient_domains: Vec<String>,
    recipient_mailbox_providers: Vec<String>,
    min_size_bytes: Option<i32>,
    max_size_bytes: Option<i32>,
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
            targets: Json(terms.targets.clone()),
            recipient_domains: terms
                .conditions
                .recipient_domains
                .iter()
                .map(ToString::to_string)
                .collect(),
            recipient_mailbox_providers: terms
                .conditions
                .recipient_mailbox_providers
                .iter()
                .map(|provider| provider.as_str().to_owned())
                .collect(),
            min_size_bytes: size_column(terms.conditions.min_size_bytes),
            max_size_bytes: size_column(terms.conditions.max_size_bytes),
        }
    }
}

fn size_column(bytes: Option<u32>) -> Option<i32> {
    bytes.map(|bytes| i32::try_from(bytes).unwrap_or(i32::MAX))
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
    targets: Json<Vec<Target>>,
    sticky: String,
    over_cap: String,
    recipient_domains: Vec<String>,
    message_class: Option<MessageClass>,
    min_size_bytes: Option<i32>,
    max_size_bytes: Option<i32>,
    is_test: Option<bool>,
    ramp_bounce_rate: f64,
    ramp_complaint_rate: f64,
    stages: Option<Json<Vec<StoredStage>>>,
    region: Option<String>,
    recipient_mailbox_providers: Vec<String>,
    prefer: String,
}

impl RuleRow {
    fn conditions(&mut self) -> Result<Conditions, Fault> {
        let patterns = std::mem::take(&mut self.recipient_domains).into_iter();
        let patterns: Option<Vec<DomainPattern>> =
            patterns.map(|text| DomainPattern::parse(&text)).collect();
        let providers = self.recipient_mailbox_providers.iter();
        let providers: Option<Vec<MailboxProvider>> =
            providers.map(|word| MailboxProvider::parse(word)).collect();
        let size = |bytes: Option<i32>| bytes.and_then(|bytes| u32::try_from(bytes).ok());
        Ok(Conditions {
            recipient_domains: patterns.ok_or_else(|| {
                Fault::internal("read a routing rule", "a recipient domain is invalid")
            })?,
            recipient_mailbox_providers: providers.ok_or_else(|| {
                Fault::internal("read a routing rule", "a mailbox provider is invalid")
            })?,
            message_class: self.message_class,
            min_size_bytes: size(self.min_size_bytes),
            max_size_bytes: size(self.max_size_bytes),
            test: self.is_test,
        })
    }

    fn region(&self) -> Result<Option<AccountRegion>, Fault> {
        let region = self.region.as_deref().map(|word| {
            let region = AccountRegion::parse(word);
            region.ok_or_else(|| Fault::internal("read a routing rule", "its region is invalid"))
        });
        region.transpose()
    }

    /// The targets. Older programs know none: if one of them gave the rule another account,
    /// that account alone sends the messages.
    fn targets(&mut self) -> Vec<Target> {
        let Json(mut targets) = std::mem::take(&mut self.targets);
        let stages = self.stages.take().unwrap_or_default().0;
        for target in &mut targets {
            let mut stages = stages.iter();
            let own = stages.find(|one| one.account_id == target.account_id);
            target.ramp_stage = own.map(|own| own.stage);
        }
        let first = targets.first().map(|target| target.account_id.0);
        match first == Some(self.provider_account_id) {
            true => targets,
            false => Vec::new(),
        }
    }
}

impl TryFrom<RuleRow> for RoutingRule {
    type Error = Fault;

    /// Fails if a column cannot be parsed: a rule without one of its conditions would
    /// match messages of others.
    fn try_from(mut row: RuleRow) -> Result<Self, Fault> {
        let targets = row.targets();
        let conditions = row.conditions()?;
        let region = row.region()?;
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
                conditions,
                region,
                targets,
                prefer: Prefer::parse(&row.prefer)
                    .ok_or_else(|| unreadable("its prefer is invalid"))?,
                sticky: Sticky::parse(&row.sticky)
                    .ok_or_else(|| unreadable("its sticky is invalid"))?,
                over_cap: OverCap::parse(&row.over_cap)
                    .ok_or_else(|| unreadable("its over_cap is invalid"))?,
                ramp_bounds: RampBounds {
                    bounce_rate: row.ramp_bounce_rate,
                    complaint_rate: row.ramp_complaint_rate,
                },
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
                region: None,
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
    let rules = list(&mut *connection, organization_id).await?;
    let health = target_health::of_rules(connection, organization_id, &rules).await?;
    Ok(Some(RoutingSnapshot {
        unverified_domains: settings.unverified_domains,
        tracking: Tracking {
            opens: settings.track_opens,
            clicks: settings.track_clicks,
        },
        accounts,
        rules,
        health,
    }))
}
