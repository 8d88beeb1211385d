//! The counts of attempts by recipient domain in Postgres.

use std::collections::BTreeMap;

use sqlx::{PgConnection, query, query_file_scalar, query_scalar};

use super::{HealthSpan, MailFigures};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::db::organization_shard::OrganizationShard;
use crate::fault::Fault;
use crate::ids::{self, OrganizationId, ProviderAccountId};
use crate::metrics::{EventCounts, KEYS_PER_MONTH_MAX, TimeStep};

/// What became of an account's mail in a window, by recipient domain. It reads whole days by the
/// day, and the rest by the quarter of an hour: for an account that sends to 500 domains all the
/// time, some 100,000 rows at most.
pub(super) async fn read(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    span: HealthSpan,
) -> Result<BTreeMap<String, MailFigures>, Fault> {
    let mut domains: BTreeMap<String, MailFigures> = BTreeMap::new();
    read_counts(
        &mut *connection,
        (organization_id, account_id),
        span,
        &mut domains,
    )
    .await?;
    read_attempts(
        connection,
        (organization_id, account_id),
        span,
        &mut domains,
    )
    .await?;
    Ok(domains)
}

/// Reads what metrics count.
async fn read_counts(
    connection: &mut PgConnection,
    (organization_id, account_id): (OrganizationId, ProviderAccountId),
    span: HealthSpan,
    domains: &mut BTreeMap<String, MailFigures>,
) -> Result<(), Fault> {
    let (first_day, end_day) = span.whole_days();
    let rows = query!(
        r#"SELECT key AS "domain!", sum(sent)::bigint AS "sent!", sum(delivered)::bigint AS "delivered!",
                  sum(opened)::bigint AS "opened!", sum(clicked)::bigint AS "clicked!",
                  sum(bounced)::bigint AS "bounced!", sum(complained)::bigint AS "complained!",
                  sum(unsubscribed)::bigint AS "unsubscribed!"
           FROM waypost_metrics($1, 'ACCOUNT', $2, 'RECIPIENT_DOMAIN', $3, $4, $5, $6)
           GROUP BY key"#,
        organization_id.0,
        account_id.0.to_string(),
        span.from,
        span.end(),
        first_day,
        end_day,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the metrics of an account")?;
    for row in rows {
        domains.entry(row.domain).or_default().counts = EventCounts {
            sent: row.sent,
            delivered: row.delivered,
            opened: row.opened,
            clicked: row.clicked,
            bounced: row.bounced,
            complained: row.complained,
            unsubscribed: row.unsubscribed,
        };
    }
    Ok(())
}

/// Reads the attempts and deferrals.
async fn read_attempts(
    connection: &mut PgConnection,
    (organization_id, account_id): (OrganizationId, ProviderAccountId),
    span: HealthSpan,
    domains: &mut BTreeMap<String, MailFigures>,
) -> Result<(), Fault> {
    let (first_day, end_day) = span.whole_days();
    let rows = query!(
        r#"SELECT recipient_domain AS "domain!", accepted_in AS "accepted_in!", sum(attempts)::bigint AS "attempts!",
                  sum(accepted)::bigint AS "accepted!", sum(rejected)::bigint AS "rejected!",
                  sum(deferred)::bigint AS "deferred!"
           FROM (
               SELECT recipient_domain, accepted_in, attempts, accepted, rejected, deferred
               FROM attempt_days
               WHERE provider_account_id = $2 AND organization_id = $1 AND day >= $5 AND day < $6
               UNION ALL
               SELECT recipient_domain, accepted_in, attempts, accepted, rejected, deferred
               FROM attempt_quarters
               WHERE provider_account_id = $2 AND organization_id = $1 AND quarter >= $3 AND quarter < $5
               UNION ALL
               SELECT recipient_domain, accepted_in, attempts, accepted, rejected, deferred
               FROM attempt_quarters
               WHERE provider_account_id = $2 AND organization_id = $1 AND quarter >= $6 AND quarter < $4
               UNION ALL
               SELECT recipient_domain, (-1)::smallint, 0, 0, 0, deferred
               FROM deferral_deltas
               WHERE provider_account_id = $2 AND organization_id = $1 AND quarter >= $3 AND quarter < $4
           ) c
           GROUP BY 1, 2"#,
        organization_id.0,
        account_id.0,
        span.from,
        span.end(),
        first_day,
        end_day,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the attempts of an account")?;
    for row in rows {
        let figures = domains.entry(row.domain).or_default();
        figures.attempts += row.attempts;
        figures.accepted += row.accepted;
        figures.rejected += row.rejected;
        figures.deferred += row.deferred;
        if row.accepted_in >= 0 {
            let step = TimeStep(row.accepted_in);
            *figures.accepted_in.entry(step).or_default() += row.accepted;
        }
    }
    Ok(())
}

/// The accounts of a shard with something to count before `until`, those first that wait
/// longest.
pub(super) async fn list_due(
    connection: &mut PgConnection,
    shard: OrganizationShard,
    until: Timestamp,
) -> Result<Vec<ProviderAccountId>, Fault> {
    query_scalar!(
        r#"SELECT c.provider_account_id AS "id: ProviderAccountId"
           FROM attempt_rollup_cursors c
           WHERE (uuid_hash(c.organization_id) & $1) = $2
             AND (EXISTS (SELECT FROM deferral_deltas d WHERE d.provider_account_id = c.provider_account_id)
                  -- An ordered look-up with a LIMIT, so that it uses the index.
                  OR (SELECT s.id
                      FROM send_attempts s
                      WHERE s.provider_account_id = c.provider_account_id AND s.id > c.read_to AND s.id < $3
                      ORDER BY s.id
                      LIMIT 1) IS NOT NULL)
           ORDER BY c.read_to"#,
        shard.mask,
        shard.nth,
        ids::first_of(until),
    )
    .fetch_all(connection)
    .await
    .or_fault("list accounts with new attempts")
}

/// Counts up to `limit` attempts that began before the first time, and up to `limit` deferrals,
/// of an account, and returns their number. Attempts that began after the second time and have
/// not ended hold up those after them. To be called in a transaction of its own.
pub(super) async fn roll_up(
    connection: &mut PgConnection,
    account_id: ProviderAccountId,
    (until, open_since): (Timestamp, Timestamp),
    limit: i64,
) -> Result<i64, Fault> {
    const DOING: &str = "count the attempts of an account";
    // Otherwise Postgres may read all attempts of the time and sort them, as for the latest calls.
    query!(
        "SELECT set_config(name, 'off', true) FROM UNNEST(ARRAY['enable_bitmapscan', 'enable_seqscan']) AS name",
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    query_file_scalar!(
        "src/provider_account/health/domains/roll_up.sql",
        account_id.0,
        ids::first_of(until),
        ids::first_of(open_since),
        limit,
        KEYS_PER_MONTH_MAX,
    )
    .fetch_one(connection)
    .await
    .or_fault(DOING)
}

/// Inserts the cursors of accounts that have none. Attempts are later than their account.
pub(super) async fn insert_cursors(connection: &mut PgConnection) -> Result<(), Fault> {
    query!(
        "INSERT INTO attempt_rollup_cursors (provider_account_id, organization_id, read_to)
         SELECT a.id, a.organization_id, waypost_uuid_floor(a.created_at)
         FROM provider_accounts a
         WHERE NOT EXISTS (SELECT FROM attempt_rollup_cursors c WHERE c.provider_account_id = a.id)
         ON CONFLICT (provider_account_id) DO NOTHING",
    )
    .execute(connection)
    .await
    .or_fault("insert the cursors of accounts")?;
    Ok(())
}

/// Deletes up to `limit` rows of each table from before `until`.
pub(super) async fn delete_old(
    connection: &mut PgConnection,
    until: Timestamp,
    limit: i64,
) -> Result<(), Fault> {
    query!(
        "WITH quarters AS (
             DELETE FROM attempt_quarters
             WHERE ctid = ANY(ARRAY(SELECT ctid FROM attempt_quarters WHERE quarter < $1 LIMIT $2))
         ), deltas AS (
             -- Of accounts that were deleted; the others are counted.
             DELETE FROM deferral_deltas
             WHERE ctid = ANY(ARRAY(SELECT ctid FROM deferral_deltas WHERE quarter < $1 LIMIT $2))
         )
         DELETE FROM attempt_days
         WHERE ctid = ANY(ARRAY(SELECT ctid FROM attempt_days WHERE day < $1 - interval '1 day' LIMIT $2))",
        until,
        limit,
    )
    .execute(connection)
    .await
    .or_fault("delete old counts of accounts")?;
    Ok(())
}
