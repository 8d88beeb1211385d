//! The usage of targets in Postgres: a row for each rule, account and length of window. A row
//! holds the newest window, so nothing has to be deleted.

use std::time::Duration;

use sqlx::{PgConnection, query};

use super::{Grant, TargetUsage, UsageKey, UsageWindow};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId, RoutingRuleId};

/// Reserves up to `wanted` places of the current window, of which there are `cap`. None are
/// left if the rule was deleted.
pub async fn reserve(
    connection: &mut PgConnection,
    key: UsageKey,
    wanted: u32,
    cap: u32,
) -> Result<Grant, Fault> {
    let row = query!(
        r#"WITH moment AS (
               SELECT date_trunc($4::usage_window::text, now(), 'UTC') AS starts_at
           ), reserved AS (
               INSERT INTO routing_target_usage AS u
                   (rule_id, provider_account_id, window_kind, starts_at, used, granted)
               SELECT r.id, $3, $4, m.starts_at, least($5::int, $6::int), least($5::int, $6::int)
               FROM moment m
               JOIN routing_rules r ON r.id = $2 AND r.organization_id = $1
               ON CONFLICT (rule_id, provider_account_id, window_kind) DO UPDATE
               SET starts_at = greatest(u.starts_at, EXCLUDED.starts_at),
                   used = CASE WHEN u.starts_at < EXCLUDED.starts_at THEN EXCLUDED.used
                               ELSE least(u.used + $5::int, $6::int) END,
                   granted = CASE WHEN u.starts_at < EXCLUDED.starts_at THEN EXCLUDED.granted
                                  ELSE least($5::int, $6::int - u.used) END
               WHERE u.starts_at < EXCLUDED.starts_at OR u.used < $6::int
               RETURNING u.granted, u.starts_at
           )
           SELECT coalesce(r.granted, 0) AS "granted!", coalesce(r.starts_at, m.starts_at) AS "starts_at!",
                  extract(epoch FROM coalesce(r.starts_at, m.starts_at)
                                     + CASE $4::usage_window WHEN 'hour' THEN interval '1 hour'
                                                             ELSE interval '24 hours' END
                                     - clock_timestamp())::float8 AS "left!"
           FROM moment m
           LEFT JOIN reserved r ON true"#,
        key.organization_id.0,
        key.rule_id.0,
        key.account_id.0,
        key.window as UsageWindow,
        column(wanted),
        column(cap),
    )
    .fetch_one(connection)
    .await
    .or_fault("reserve places of a target")?;
    Ok(Grant {
        places: u32::try_from(row.granted).unwrap_or_default(),
        starts_at: row.starts_at,
        left: Duration::try_from_secs_f64(row.left).unwrap_or_default(),
    })
}

/// Gives back places that were reserved and not used, if their window is still the newest.
pub async fn give_back(
    connection: &mut PgConnection,
    key: UsageKey,
    starts_at: Timestamp,
    places: u32,
) -> Result<(), Fault> {
    query!(
        "UPDATE routing_target_usage u
         SET used = greatest(u.used - $6, 0)
         FROM routing_rules r
         WHERE r.id = u.rule_id AND r.organization_id = $1
           AND u.rule_id = $2 AND u.provider_account_id = $3 AND u.window_kind = $4 AND u.starts_at = $5",
        key.organization_id.0,
        key.rule_id.0,
        key.account_id.0,
        key.window as UsageWindow,
        starts_at,
        column(places),
    )
    .execute(connection)
    .await
    .or_fault("give back places of a target")?;
    Ok(())
}

/// What the targets of a rule used of this hour and this day.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rule_id: RoutingRuleId,
) -> Result<Vec<TargetUsage>, Fault> {
    let rows = query!(
        r#"SELECT u.provider_account_id, u.window_kind AS "window: UsageWindow", u.used
           FROM routing_target_usage u
           JOIN routing_rules r ON r.id = u.rule_id AND r.organization_id = $1
           WHERE u.rule_id = $2 AND u.starts_at = date_trunc(u.window_kind::text, now(), 'UTC')"#,
        organization_id.0,
        rule_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the usage of a rule's targets")?;
    let usage = rows.into_iter().map(|row| TargetUsage {
        account_id: ProviderAccountId(row.provider_account_id),
        window: row.window,
        used: u32::try_from(row.used).unwrap_or_default(),
    });
    Ok(usage.collect())
}

fn column(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
