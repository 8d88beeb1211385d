//! Metrics in Postgres. A trigger on `events` writes the deltas, unless the code that inserts the
//! events counts them itself. `waypost_metrics` reads roll-ups and deltas together.

use chrono::Timelike as _;
use sqlx::{PgConnection, query, query_file_scalar};

use super::selection::Selection;
use super::{
    AccountTimes, BreakdownRow, EventCounts, Granularity, GroupBy, KEYS_PER_MONTH_MAX, Percentiles,
    Period, SeriesBucket, TimeStep,
};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::db::organization_shard::OrganizationShard;
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// The counts of the buckets of a period that begin at `starts` (see [`super::buckets::starts`]),
/// including empty ones.
pub async fn series(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    selection: &Selection,
    period: Period,
    (granularity, starts): (Granularity, &[Timestamp]),
) -> Result<Vec<SeriesBucket>, Fault> {
    // Days of UTC serve buckets that begin with them.
    let begins_with_day = |at: &Timestamp| at.num_seconds_from_midnight() == 0;
    let is_by_day = granularity != Granularity::Hour && starts.iter().all(begins_with_day);
    let days = if is_by_day {
        period.whole_days()
    } else {
        (period.end_hour(), period.end_hour())
    };
    let counts = count(
        connection,
        organization_id,
        selection,
        (period, days),
        starts,
    )
    .await?;
    let buckets = starts.iter().zip(counts).map(|(at, counts)| SeriesBucket {
        at: *at,
        start: at.with_timezone(&period.zone).naive_local(),
        counts,
    });
    Ok(buckets.collect())
}

/// The counts of a period.
pub async fn summary(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    selection: &Selection,
    period: Period,
) -> Result<EventCounts, Fault> {
    let whole = [period.first_hour()];
    let span = (period, period.whole_days());
    let counts = count(connection, organization_id, selection, span, &whole).await?;
    Ok(counts.into_iter().next().unwrap_or_default())
}

/// The counts of a period from each of `starts` on until before the next; the days from the first
/// of `days` until before the second are read by the day.
async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    selection: &Selection,
    (period, days): (Period, (Timestamp, Timestamp)),
    starts: &[Timestamp],
) -> Result<Vec<EventCounts>, Fault> {
    let mut counts = vec![EventCounts::default(); starts.len()];
    if starts.is_empty() {
        return Ok(counts);
    }
    let rows = query!(
        r#"SELECT width_bucket(at, $9::timestamptz[]) AS "bucket!",
                  sum(sent)::bigint AS "sent!", sum(delivered)::bigint AS "delivered!",
                  sum(opened)::bigint AS "opened!", sum(clicked)::bigint AS "clicked!",
                  sum(bounced)::bigint AS "bounced!", sum(complained)::bigint AS "complained!",
                  sum(unsubscribed)::bigint AS "unsubscribed!"
           FROM waypost_metrics($1, $2::text::metric_dimension, $3, $4::text::metric_dimension, $5, $6, $7, $8)
           WHERE $10::text IS NULL OR key = $10
           GROUP BY 1"#,
        organization_id.0,
        selection.filter,
        selection.filter_key,
        selection.grouped_by,
        period.first_hour(),
        period.end_hour(),
        days.0,
        days.1,
        starts,
        selection.only,
    )
    .fetch_all(connection)
    .await
    .or_fault("read metrics")?;
    for row in rows {
        // The first bucket is 1.
        let nth = usize::try_from(row.bucket - 1).unwrap_or_default();
        if let Some(bucket) = counts.get_mut(nth) {
            *bucket = EventCounts {
                sent: row.sent,
                delivered: row.delivered,
                opened: row.opened,
                clicked: row.clicked,
                bounced: row.bounced,
                complained: row.complained,
                unsubscribed: row.unsubscribed,
            };
        }
    }
    Ok(counts)
}

/// The counts of a period for each value of a dimension, by descending `sent`, then by name.
/// Templates and accounts have their current names, followed by their ids if several have the
/// same name; deleted ones have their ids. Messages without a value are under `(none)`.
#[expect(clippy::too_many_lines, reason = "one statement and its columns")]
pub async fn breakdown(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    selection: &Selection,
    period: Period,
    group_by: GroupBy,
) -> Result<Vec<BreakdownRow>, Fault> {
    let (first_day, end_day) = period.whole_days();
    let rows = query!(
        r#"WITH counted AS (
               -- Bytewise order is faster to compare.
               SELECT coalesce($10, key) COLLATE "C" AS key, sum(sent)::bigint AS sent,
                      sum(delivered)::bigint AS delivered, sum(opened)::bigint AS opened,
                      sum(clicked)::bigint AS clicked, sum(bounced)::bigint AS bounced,
                      sum(complained)::bigint AS complained, sum(unsubscribed)::bigint AS unsubscribed
               FROM waypost_metrics($1, $2::text::metric_dimension, $3, $4::text::metric_dimension, $5, $6, $7, $8)
               WHERE $9::text IS NULL OR key = $9
               GROUP BY 1
           ), typed AS (
               SELECT CASE WHEN $11 = 'provider' THEN coalesce(t.provider_type::text, c.key) ELSE c.key END AS key,
                      sum(sent)::bigint AS sent, sum(delivered)::bigint AS delivered, sum(opened)::bigint AS opened,
                      sum(clicked)::bigint AS clicked, sum(bounced)::bigint AS bounced,
                      sum(complained)::bigint AS complained, sum(unsubscribed)::bigint AS unsubscribed
               FROM counted c
               -- Only keys that are ids are cast; older ones are provider types.
               LEFT JOIN provider_account_types t
                 ON t.provider_account_id = CASE WHEN $11 = 'provider' AND length(c.key) = 36 THEN c.key::uuid END
               GROUP BY 1
           ), named AS (
               SELECT c.*, coalesce(t.name, a.display_name) AS given
               FROM typed c
               LEFT JOIN templates t
                 ON t.organization_id = $1
                AND t.id = CASE WHEN $11 = 'template' AND length(c.key) = 36 THEN c.key::uuid END
               LEFT JOIN provider_accounts a
                 ON a.organization_id = $1
                AND a.id = CASE WHEN $11 = 'account' AND length(c.key) = 36 THEN c.key::uuid END
           ), labelled AS (
               SELECT n.*, (CASE WHEN key = '' THEN '(none)'
                                 WHEN given IS NULL THEN key
                                 WHEN count(*) OVER (PARTITION BY given) > 1 THEN given || ' (' || key || ')'
                                 ELSE given END) COLLATE "default" AS name
               FROM named n
           )
           SELECT key AS "key!", name AS "name!", sent AS "sent!", delivered AS "delivered!", opened AS "opened!",
                  clicked AS "clicked!", bounced AS "bounced!", complained AS "complained!",
                  unsubscribed AS "unsubscribed!"
           FROM labelled
           ORDER BY sent DESC, name, key"#,
        organization_id.0,
        selection.filter,
        selection.filter_key,
        selection.grouped_by,
        period.first_hour(),
        period.end_hour(),
        first_day,
        end_day,
        selection.only,
        selection.named,
        group_by.as_str(),
    )
    .fetch_all(connection)
    .await
    .or_fault("read metrics")?;
    let groups = rows.into_iter().map(|row| BreakdownRow {
        key: row.key,
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

/// How fast accounts were in a period, in the order of `accounts`.
pub async fn account_times(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    accounts: Vec<String>,
    period: Period,
) -> Result<Vec<AccountTimes>, Fault> {
    let (first_day, end_day) = period.whole_days();
    let rows = query!(
        r#"SELECT a.id AS "account!", g.name AS "grouped_by!", m.key::smallint AS "step!",
                  sum(m.sent + m.delivered)::bigint AS "count!"
           FROM UNNEST($2::text[]) AS a (id)
           CROSS JOIN (VALUES ('ACCEPT_TO_SENT'), ('SENT_TO_DELIVERED')) AS g (name)
           CROSS JOIN LATERAL waypost_metrics($1, 'ACCOUNT', a.id, g.name::metric_dimension, $3, $4, $5, $6) m
           GROUP BY 1, 2, 3
           ORDER BY 1, 2, 3"#,
        organization_id.0,
        &accounts,
        period.first_hour(),
        period.end_hour(),
        first_day,
        end_day,
    )
    .fetch_all(connection)
    .await
    .or_fault("read metrics")?;
    let percentiles = |account: &str, grouped_by: &str| {
        let rows = rows.iter();
        let of = rows.filter(|row| row.account == account && row.grouped_by == grouped_by);
        let steps = of.map(|row| (TimeStep(row.step), row.count));
        Percentiles::of(&steps.collect::<Vec<_>>())
    };
    let times = accounts.iter().map(|account| AccountTimes {
        account: account.clone(),
        accept_to_sent: percentiles(account, "ACCEPT_TO_SENT"),
        sent_to_delivered: percentiles(account, "SENT_TO_DELIVERED"),
    });
    Ok(times.collect())
}

/// Adds up to `limit` deltas of a shard of the organizations to the roll-ups of quarters and
/// days and returns their number. One statement deletes and adds them, so a reader counts each
/// delta once, and several callers may run at once.
///
/// # Errors
/// A fault if Postgres is away; nothing has changed then.
pub async fn roll_up(
    connection: &mut PgConnection,
    shard: OrganizationShard,
    limit: i64,
) -> Result<i64, Fault> {
    query_file_scalar!(
        "src/metrics/roll_up.sql",
        limit,
        shard.mask,
        shard.nth,
        KEYS_PER_MONTH_MAX,
    )
    .fetch_one(connection)
    .await
    .or_fault("roll up metrics")
}
