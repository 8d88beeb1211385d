//! The progress of ramps in Postgres, and the counts of accounts that they mind.

use chrono::NaiveDate;
use serde::Deserialize;
use sqlx::types::Json;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::rates::AccountCounts;
use super::steps::RampStep;
use super::{Ramp, RampBounds, RampProgress, RampStage, RampState};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::routing::rule::RoutingRule;
use crate::routing::targets::Target;

/// The stage of the ramp of an account, as it is read with a rule.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::routing) struct StoredStage {
    #[serde(rename = "providerAccountId")]
    pub(in crate::routing) account_id: ProviderAccountId,
    #[serde(flatten)]
    pub(in crate::routing) stage: RampStage,
}

struct ProgressRow {
    provider_account_id: Uuid,
    base: i32,
    steps: i32,
    cap: i32,
    state: String,
    since: Timestamp,
    stepped_on: NaiveDate,
    halved_at: Option<Timestamp>,
}

impl TryFrom<ProgressRow> for RampProgress {
    type Error = Fault;

    fn try_from(row: ProgressRow) -> Result<Self, Fault> {
        let whole = |number: i32| u32::try_from(number).unwrap_or_default();
        Ok(Self {
            base: whole(row.base),
            steps: whole(row.steps),
            cap: whole(row.cap),
            state: RampState::parse(&row.state)
                .ok_or_else(|| Fault::internal("read a ramp", "its state is unknown"))?,
            since: row.since,
            stepped_on: row.stepped_on,
            halved_at: row.halved_at,
        })
    }
}

/// How far the ramps of a rule are. They are locked until the transaction ends.
pub(super) async fn lock(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rule_id: RoutingRuleId,
) -> Result<Vec<(ProviderAccountId, RampProgress)>, Fault> {
    let rows = sqlx::query_as!(
        ProgressRow,
        "SELECT provider_account_id, base, steps, cap, state, since, stepped_on, halved_at
         FROM routing_ramps
         WHERE organization_id = $1 AND rule_id = $2
         ORDER BY provider_account_id
         FOR UPDATE",
        organization_id.0,
        rule_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("lock the ramps of a rule")?;
    let rows = rows.into_iter();
    rows.map(|row| Ok((ProviderAccountId(row.provider_account_id), row.try_into()?)))
        .collect()
}

/// Inserts a ramp that begins, in the place of the account's former one if it had one.
pub(super) async fn replace(
    connection: &mut PgConnection,
    rule: &RoutingRule,
    account_id: ProviderAccountId,
    new: &RampProgress,
) -> Result<(), Fault> {
    query!(
        "INSERT INTO routing_ramps AS p
             (rule_id, provider_account_id, organization_id, base, steps, cap, state, since, stepped_on)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (rule_id, provider_account_id) DO UPDATE
         SET base = EXCLUDED.base, steps = EXCLUDED.steps, cap = EXCLUDED.cap, state = EXCLUDED.state,
             since = EXCLUDED.since, stepped_on = EXCLUDED.stepped_on, halved_at = NULL, history = '[]',
             revision = p.revision + 1",
        rule.id.0,
        account_id.0,
        rule.organization_id.0,
        column(new.base),
        column(new.steps),
        column(new.cap),
        new.state.as_str(),
        new.since,
        new.stepped_on,
    )
    .execute(connection)
    .await
    .or_fault("insert a ramp")?;
    Ok(())
}

/// Changes a ramp whose target was changed.
pub(super) async fn change(
    connection: &mut PgConnection,
    rule: &RoutingRule,
    account_id: ProviderAccountId,
    changed: &RampProgress,
) -> Result<(), Fault> {
    query!(
        "UPDATE routing_ramps
         SET cap = $4, state = $5, since = $6, stepped_on = $7, revision = revision + 1
         WHERE rule_id = $1 AND provider_account_id = $2 AND organization_id = $3",
        rule.id.0,
        account_id.0,
        rule.organization_id.0,
        column(changed.cap),
        changed.state.as_str(),
        changed.since,
        changed.stepped_on,
    )
    .execute(connection)
    .await
    .or_fault("change a ramp")?;
    Ok(())
}

/// Deletes the ramps of a rule, except those of these accounts.
pub(super) async fn delete_others(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rule_id: RoutingRuleId,
    kept: &[ProviderAccountId],
) -> Result<(), Fault> {
    let kept: Vec<Uuid> = kept.iter().map(|id| id.0).collect();
    query!(
        "DELETE FROM routing_ramps
         WHERE organization_id = $1 AND rule_id = $2 AND provider_account_id <> ALL($3)",
        organization_id.0,
        rule_id.0,
        &kept,
    )
    .execute(connection)
    .await
    .or_fault("delete the ramps of a rule")?;
    Ok(())
}

/// A ramp of which a step may be due.
#[derive(Debug)]
pub(super) struct DueRamp {
    pub(super) organization_id: OrganizationId,
    pub(super) rule_id: RoutingRuleId,
    pub(super) account_id: ProviderAccountId,
    pub(super) progress: RampProgress,
    pub(super) bounds: RampBounds,
    revision: i32,
    targets: Vec<Target>,
}

impl DueRamp {
    /// Its target, and what the rule says of it.
    pub(super) fn target(&self) -> Option<(&Target, Ramp)> {
        let mut targets = self.targets.iter();
        let target = targets.find(|target| target.account_id == self.account_id)?;
        Some((target, target.ramp?))
    }
}

/// The ramps that have begun or begin until `today`, and are not finished, of all organizations;
/// up to `limit`, after a rule and account.
pub(super) async fn list_due(
    connection: &mut PgConnection,
    today: NaiveDate,
    after: (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<DueRamp>, Fault> {
    let rows = query!(
        r#"SELECT p.organization_id, p.rule_id, p.provider_account_id, p.base, p.steps, p.cap, p.state, p.since,
                  p.stepped_on, p.halved_at, p.revision, r.targets AS "targets: Json<Vec<Target>>",
                  r.ramp_bounce_rate, r.ramp_complaint_rate
           FROM routing_ramps p
           JOIN routing_rules r ON r.id = p.rule_id
           WHERE p.state <> 'finished' AND (p.state <> 'notBegun' OR p.stepped_on <= $1)
             AND (p.rule_id, p.provider_account_id) > ($2, $3)
           ORDER BY p.rule_id, p.provider_account_id
           LIMIT $4"#,
        today,
        after.0,
        after.1,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the ramps of targets")?;
    let rows = rows.into_iter().map(|row| {
        let progress = ProgressRow {
            provider_account_id: row.provider_account_id,
            base: row.base,
            steps: row.steps,
            cap: row.cap,
            state: row.state,
            since: row.since,
            stepped_on: row.stepped_on,
            halved_at: row.halved_at,
        };
        Ok(DueRamp {
            organization_id: OrganizationId(row.organization_id),
            rule_id: RoutingRuleId(row.rule_id),
            account_id: ProviderAccountId(row.provider_account_id),
            progress: progress.try_into()?,
            bounds: RampBounds {
                bounce_rate: row.ramp_bounce_rate,
                complaint_rate: row.ramp_complaint_rate,
            },
            revision: row.revision,
            targets: row.targets.0,
        })
    });
    rows.collect()
}

/// Stores steps of a ramp, the newest first; `false` if it was changed since it was read.
pub(super) async fn advance(
    connection: &mut PgConnection,
    due: &DueRamp,
    progress: &RampProgress,
    steps: &[RampStep],
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE routing_ramps
         SET base = $5, steps = $6, cap = $7, state = $8, since = $9, stepped_on = $10, halved_at = $11,
             revision = revision + 1, history = jsonb_path_query_array($12 || history, '$[0 to 49]')
         WHERE organization_id = $1 AND rule_id = $2 AND provider_account_id = $3 AND revision = $4",
        due.organization_id.0,
        due.rule_id.0,
        due.account_id.0,
        due.revision,
        column(progress.base),
        column(progress.steps),
        column(progress.cap),
        progress.state.as_str(),
        progress.since,
        progress.stepped_on,
        progress.halved_at,
        Json(steps) as _,
    )
    .execute(connection)
    .await
    .or_fault("store the steps of a ramp")?;
    Ok(done.rows_affected() == 1)
}

/// A ramp with its history.
#[derive(Debug)]
pub struct RampRecord {
    pub account_id: ProviderAccountId,
    pub stage: RampStage,
    /// Since when it is in its state.
    pub since: Timestamp,
    /// What happened to it, the newest first.
    pub steps: Vec<RampStep>,
}

/// The ramps of a rule with their histories.
///
/// # Errors
/// A fault if Postgres is unavailable.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rule_id: RoutingRuleId,
) -> Result<Vec<RampRecord>, Fault> {
    let rows = query!(
        r#"SELECT provider_account_id, cap, state, since, stepped_on, history AS "history: Json<Vec<RampStep>>"
           FROM routing_ramps
           WHERE organization_id = $1 AND rule_id = $2"#,
        organization_id.0,
        rule_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the ramps of a rule")?;
    let rows = rows.into_iter().map(|row| {
        let state = RampState::parse(&row.state);
        Ok(RampRecord {
            account_id: ProviderAccountId(row.provider_account_id),
            stage: RampStage {
                cap: u32::try_from(row.cap).unwrap_or_default(),
                state: state
                    .ok_or_else(|| Fault::internal("read a ramp", "its state is unknown"))?,
                stepped_on: row.stepped_on,
            },
            since: row.since,
            steps: row.history.0,
        })
    });
    rows.collect()
}

/// The quarters of an hour that are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedWindow {
    pub(super) first: Timestamp,
    /// The first if a longer time is looked at.
    pub(super) first_wide: Timestamp,
    pub(super) end: Timestamp,
}

/// What became of the mail of accounts in a window and in the wide one, in their order. It reads a
/// row for each quarter of an hour.
pub(super) async fn count(
    connection: &mut PgConnection,
    accounts: &[(OrganizationId, ProviderAccountId)],
    window: CountedWindow,
) -> Result<Vec<(AccountCounts, AccountCounts)>, Fault> {
    let (organizations, accounts): (Vec<Uuid>, Vec<Uuid>) = accounts
        .iter()
        .map(|(organization, account)| (organization.0, account.0))
        .unzip();
    let rows = query!(
        r#"SELECT coalesce(sum(c.sent) FILTER (WHERE c.at >= $3), 0)::bigint AS "sent!",
                  coalesce(sum(c.delivered) FILTER (WHERE c.at >= $3), 0)::bigint AS "delivered!",
                  coalesce(sum(c.bounced) FILTER (WHERE c.at >= $3), 0)::bigint AS "bounced!",
                  coalesce(sum(c.complained) FILTER (WHERE c.at >= $3), 0)::bigint AS "complained!",
                  coalesce(sum(c.sent), 0)::bigint AS "sent_wide!",
                  coalesce(sum(c.delivered), 0)::bigint AS "delivered_wide!",
                  coalesce(sum(c.bounced), 0)::bigint AS "bounced_wide!",
                  coalesce(sum(c.complained), 0)::bigint AS "complained_wide!"
           FROM UNNEST($1::uuid[], $2::uuid[]) WITH ORDINALITY AS a (organization_id, id, nth)
           LEFT JOIN LATERAL waypost_metrics(a.organization_id, 'ACCOUNT', a.id::text, 'TOTAL', $4, $5, $5, $5) c
             ON true
           GROUP BY a.nth
           ORDER BY a.nth"#,
        &organizations,
        &accounts,
        window.first,
        window.first_wide,
        window.end,
    )
    .fetch_all(connection)
    .await
    .or_fault("count the mail of accounts with ramps")?;
    let counts = rows.into_iter().map(|row| {
        let day = AccountCounts {
            sent: row.sent,
            delivered: row.delivered,
            bounced: row.bounced,
            complained: row.complained,
        };
        let week = AccountCounts {
            sent: row.sent_wide,
            delivered: row.delivered_wide,
            bounced: row.bounced_wide,
            complained: row.complained_wide,
        };
        (day, week)
    });
    Ok(counts.collect())
}

fn column(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
