//! Metrics in Postgres. A trigger on `events` writes the deltas, unless the code that inserts the
//! events counts them itself.

use sqlx::{PgConnection, query, query_scalar};

use super::{BreakdownRow, EventCounts, Granularity, GroupBy, Period, SeriesBucket};
use crate::db::OrFault;
use crate::db::organization_shard::OrganizationShard;
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// The counts of each bucket of a period, oldest first, including empty buckets.
pub async fn series(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    period: Period,
    granularity: Granularity,
) -> Result<Vec<SeriesBucket>, Fault> {
    if period.is_empty() {
        return Ok(Vec::new());
    }
    let rows = query!(
        r#"WITH counted AS (
               SELECT hour, sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_rollups
               WHERE organization_id = $1 AND dimension = 'TOTAL' AND hour >= $2 AND hour < $3
               UNION ALL
               SELECT hour, sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_deltas
               WHERE organization_id = $1 AND hour >= $2 AND hour < $3
           ), summed AS (
               SELECT date_trunc($4, hour AT TIME ZONE 'UTC') AS start,
                      sum(sent) AS sent, sum(delivered) AS delivered, sum(opened) AS opened,
                      sum(clicked) AS clicked, sum(bounced) AS bounced, sum(complained) AS complained,
                      sum(unsubscribed) AS unsubscribed
               FROM counted
               GROUP BY 1
           )
           SELECT b.start AS "start!",
                  coalesce(s.sent, 0)::bigint AS "sent!", coalesce(s.delivered, 0)::bigint AS "delivered!",
                  coalesce(s.opened, 0)::bigint AS "opened!", coalesce(s.clicked, 0)::bigint AS "clicked!",
                  coalesce(s.bounced, 0)::bigint AS "bounced!",
                  coalesce(s.complained, 0)::bigint AS "complained!",
                  coalesce(s.unsubscribed, 0)::bigint AS "unsubscribed!"
           FROM generate_series(date_trunc($4, $2::timestamptz AT TIME ZONE 'UTC'),
                                $3::timestamptz AT TIME ZONE 'UTC' - interval '1 hour',
                                ('1 ' || $4)::interval) AS b (start)
           LEFT JOIN summed s ON s.start = b.start
           ORDER BY b.start"#,
        organization_id.0,
        period.first_hour(),
        period.end_hour(),
        granularity.as_str(),
    )
    .fetch_all(connection)
    .await
    .or_fault("read metrics")?;
    let buckets = rows.into_iter().map(|row| SeriesBucket {
        start: row.start,
        counts: EventCounts {
            sent: row.sent,
            delivered: row.delivered,
            opened: row.opened,
            clicked: row.clicked,
            bounced: row.bounced,
            complained: row.complained,
            unsubscribed: row.unsubscribed,
        },
    });
    Ok(buckets.collect())
}

/// The counts of a period.
pub async fn summary(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    period: Period,
) -> Result<EventCounts, Fault> {
    let row = query!(
        r#"SELECT coalesce(sum(sent), 0)::bigint AS "sent!", coalesce(sum(delivered), 0)::bigint AS "delivered!",
                  coalesce(sum(opened), 0)::bigint AS "opened!", coalesce(sum(clicked), 0)::bigint AS "clicked!",
                  coalesce(sum(bounced), 0)::bigint AS "bounced!",
                  coalesce(sum(complained), 0)::bigint AS "complained!",
                  coalesce(sum(unsubscribed), 0)::bigint AS "unsubscribed!"
           FROM (
               SELECT sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_rollups
               WHERE organization_id = $1 AND dimension = 'TOTAL' AND hour >= $2 AND hour < $3
               UNION ALL
               SELECT sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_deltas
               WHERE organization_id = $1 AND hour >= $2 AND hour < $3
           ) counted"#,
        organization_id.0,
        period.first_hour(),
        period.end_hour(),
    )
    .fetch_one(connection)
    .await
    .or_fault("read metrics")?;
    Ok(EventCounts {
        sent: row.sent,
        delivered: row.delivered,
        opened: row.opened,
        clicked: row.clicked,
        bounced: row.bounced,
        complained: row.complained,
        unsubscribed: row.unsubscribed,
    })
}

/// The counts of a period for each value of a dimension, by descending `sent`, then by name.
/// A template has its current name, followed by its id if another template has the same name.
/// A deleted template has its id. Messages without a template are under `(none)`.
pub async fn breakdown(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    period: Period,
    group_by: GroupBy,
) -> Result<Vec<BreakdownRow>, Fault> {
    let (first_day, end_day) = period.whole_days();
    let rows = query!(
        r#"WITH counted AS (
               SELECT key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_days
               WHERE organization_id = $1 AND dimension = $4::text::metric_dimension AND day >= $5 AND day < $6
               UNION ALL
               SELECT key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_rollups
               WHERE organization_id = $1 AND dimension = $4::text::metric_dimension AND hour >= $2 AND hour < $5
               UNION ALL
               SELECT key, sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_rollups
               WHERE organization_id = $1 AND dimension = $4::text::metric_dimension AND hour >= $6 AND hour < $3
               UNION ALL
               SELECT CASE $4 WHEN 'PROVIDER' THEN provider WHEN 'DOMAIN' THEN domain ELSE template END,
                      sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM metric_deltas
               WHERE organization_id = $1 AND hour >= $2 AND hour < $3
           ), summed AS (
               -- Bytewise order is faster to compare.
               SELECT key COLLATE "C" AS key, sum(sent)::bigint AS sent, sum(delivered)::bigint AS delivered,
                      sum(opened)::bigint AS opened, sum(clicked)::bigint AS clicked,
                      sum(bounced)::bigint AS bounced, sum(complained)::bigint AS complained,
                      sum(unsubscribed)::bigint AS unsubscribed
               FROM counted
               GROUP BY 1
           ), named AS (
               SELECT s.*,
                      (CASE WHEN $4 <> 'TEMPLATE' THEN s.key
                           WHEN s.key = '' THEN '(none)'
                           WHEN t.name IS NULL THEN s.key
                           WHEN count(*) OVER (PARTITION BY t.name) > 1 THEN t.name || ' (' || s.key || ')'
                           ELSE t.name END) COLLATE "default" AS name
               FROM summed s
               LEFT JOIN templates t
                 -- Only keys of this dimension are ids; others must not be cast.
                 ON t.organization_id = $1 AND t.id = CASE $4 WHEN 'TEMPLATE' THEN nullif(s.key, '')::uuid END
           )
           SELECT name AS "name!", sent AS "sent!", delivered AS "delivered!", opened AS "opened!",
                  clicked AS "clicked!", bounced AS "bounced!", complained AS "complained!",
                  unsubscribed AS "unsubscribed!"
           FROM named
           ORDER BY sent DESC, name, key"#,
        organization_id.0,
        period.first_hour(),
        period.end_hour(),
        dimension_of(group_by),
        first_day,
        end_day,
    )
    .fetch_all(connection)
    .await
    .or_fault("read metrics")?;
    let groups = rows.into_iter().map(|row| BreakdownRow {
        name: row.name,
        counts: EventCounts {
            sent: row.sent,
            delivered: row.delivered,
            opened: row.opened,
            clicked: row.clicked,
            bounced: row.bounced,
            complained: row.complained,
            unsubscribed: row.unsubscribed,
        },
    });
    Ok(groups.collect())
}

/// The name of the dimension in the database.
fn dimension_of(group_by: GroupBy) -> &'static str {
    match group_by {
        GroupBy::Provider => "PROVIDER",
        GroupBy::Domain => "DOMAIN",
        GroupBy::Template => "TEMPLATE",
    }
}

/// Adds up to `limit` deltas of a shard of the organizations to the hourly and daily roll-ups
/// and returns their number. One statement deletes and adds them, so a reader counts each
/// delta once, and several callers may run at once.
///
/// # Errors
/// A fault if Postgres is away; nothing has changed then.
pub async fn roll_up(
    connection: &mut PgConnection,
    shard: OrganizationShard,
    limit: i64,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"WITH taken AS (
               DELETE FROM metric_deltas
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM metric_deltas WHERE (uuid_hash(organization_id) & $2) = $3
                                      LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING *
           ), summed AS (
               SELECT t.organization_id, d.dimension, t.hour, d.key,
                      sum(t.sent) AS sent, sum(t.delivered) AS delivered, sum(t.opened) AS opened,
                      sum(t.clicked) AS clicked, sum(t.bounced) AS bounced, sum(t.complained) AS complained,
                      sum(t.unsubscribed) AS unsubscribed
               FROM taken t
               CROSS JOIN LATERAL (
                   VALUES ('TOTAL'::metric_dimension, ''), ('PROVIDER', t.provider),
                          ('DOMAIN', t.domain), ('TEMPLATE', t.template)
               ) AS d (dimension, key)
               GROUP BY 1, 2, 3, 4
           ), rolled_up AS (
               INSERT INTO metric_rollups (organization_id, dimension, hour, key, sent, delivered, opened, clicked,
                                           bounced, complained, unsubscribed)
               SELECT *
               FROM summed
               -- Simultaneous roll-ups lock the rows in the same order.
               ORDER BY organization_id, dimension, hour, key
               ON CONFLICT (organization_id, dimension, hour, key) DO UPDATE
               SET sent = metric_rollups.sent + excluded.sent,
                   delivered = metric_rollups.delivered + excluded.delivered,
                   opened = metric_rollups.opened + excluded.opened,
                   clicked = metric_rollups.clicked + excluded.clicked,
                   bounced = metric_rollups.bounced + excluded.bounced,
                   complained = metric_rollups.complained + excluded.complained,
                   unsubscribed = metric_rollups.unsubscribed + excluded.unsubscribed
           ), rolled_up_by_day AS (
               INSERT INTO metric_days (organization_id, dimension, day, key, sent, delivered, opened, clicked,
                                        bounced, complained, unsubscribed)
               SELECT organization_id, dimension, date_trunc('day', hour, 'UTC'), key, sum(sent), sum(delivered),
                      sum(opened), sum(clicked), sum(bounced), sum(complained), sum(unsubscribed)
               FROM summed
               WHERE dimension <> 'TOTAL'
               GROUP BY 1, 2, 3, 4
               ORDER BY 1, 2, 3, 4
               ON CONFLICT (organization_id, dimension, day, key) DO UPDATE
               SET sent = metric_days.sent + excluded.sent,
                   delivered = metric_days.delivered + excluded.delivered,
                   opened = metric_days.opened + excluded.opened,
                   clicked = metric_days.clicked + excluded.clicked,
                   bounced = metric_days.bounced + excluded.bounced,
                   complained = metric_days.complained + excluded.complained,
                   unsubscribed = metric_days.unsubscribed + excluded.unsubscribed
           )
           SELECT count(*) AS "taken!" FROM taken"#,
        limit,
        shard.mask,
        shard.nth,
    )
    .fetch_one(connection)
    .await
    .or_fault("roll up metrics")
}
