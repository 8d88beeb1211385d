//! Retention in Postgres. What is looked for goes through organizations, since the rule
//! is the operator's and theirs together: `least` of both, where there is either.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::partition::Month;

/// The fewest days for which anybody keeps messages; nothing where all keep them for
/// ever.
pub(super) async fn find_shortest(
    connection: &mut PgConnection,
    operator_days: Option<u32>,
) -> Result<Option<u32>, Fault> {
    let days = query_scalar!(
        "SELECT least(min(retention_days), $1) FROM organizations",
        stored(operator_days),
    )
    .fetch_one(connection)
    .await
    .or_fault("find the shortest retention")?;
    Ok(days.and_then(|days| u32::try_from(days).ok()))
}

/// Whether somebody keeps a message of a month.
pub(super) async fn is_kept(
    connection: &mut PgConnection,
    month: Month,
    operator_days: Option<u32>,
    now: Timestamp,
) -> Result<bool, Fault> {
    // The limit keeps it a look at the index for each organization, whatever the planner
    // believes of the month.
    query_scalar!(
        r#"SELECT EXISTS (
               SELECT
               FROM (SELECT id, make_interval(days => least(retention_days, $1)) AS kept
                     FROM organizations) o
               CROSS JOIN LATERAL (
                   SELECT
                   FROM messages
                   WHERE organization_id = o.id
                     AND id >= waypost_uuid_floor($2) AND id < waypost_uuid_floor($3)
                   LIMIT 1
               ) m
               WHERE o.kept IS NULL OR $3 > $4::timestamptz - o.kept
           ) AS "is_kept!""#,
        stored(operator_days),
        month.begin(),
        month.end(),
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("look for who keeps a month")
}

/// The organizations that keep their messages for fewer days than the operator says,
/// with those days.
pub(super) async fn list_shorter(
    connection: &mut PgConnection,
    operator_days: Option<u32>,
) -> Result<Vec<(OrganizationId, u32)>, Fault> {
    let rows = query!(
        r#"SELECT id, retention_days AS "days!"
           FROM organizations
           WHERE retention_days IS NOT NULL AND ($1::integer IS NULL OR retention_days < $1)
           ORDER BY id"#,
        stored(operator_days),
    )
    .fetch_all(connection)
    .await
    .or_fault("list organizations with a retention of their own")?;
    let shorter = rows.into_iter();
    Ok(shorter
        .filter_map(|row| Some((OrganizationId(row.id), u32::try_from(row.days).ok()?)))
        .collect())
}

/// The oldest messages of an organization from before a moment that have no work to do
/// any more: as many as one transaction takes, by number and by recipients.
pub(super) async fn list_of_organization(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    before: Timestamp,
    (messages, recipients): (i64, i64),
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (SELECT id, sum(recipient_count) OVER (ORDER BY id) - recipient_count AS before
                 FROM (SELECT id, recipient_count
                       FROM messages
                       WHERE organization_id = $1 AND id < waypost_uuid_floor($2)
                         AND status NOT IN ('QUEUED', 'SENDING')
                         AND NOT EXISTS (SELECT FROM outbox WHERE message_id = messages.id)
                       ORDER BY id
                       LIMIT $3) oldest) counted
           WHERE before < $4
           ORDER BY id"#,
        organization_id.0,
        before,
        messages,
        recipients,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages whose time is over")
}

/// The same between two moments, whosever they are; the rule is the operator's days, and
/// now.
pub(super) async fn list_of_span(
    connection: &mut PgConnection,
    from: Timestamp,
    to: Timestamp,
    (operator_days, now): (Option<u32>, Timestamp),
    (messages, recipients): (i64, i64),
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (SELECT id, sum(recipient_count) OVER (ORDER BY id) - recipient_count AS before
                 FROM (SELECT m.id, m.recipient_count
                       FROM messages m
                       LEFT JOIN organizations o ON o.id = m.organization_id
                       WHERE m.id >= waypost_uuid_floor($1) AND m.id < waypost_uuid_floor($2)
                         AND m.id < waypost_uuid_floor($4::timestamptz - make_interval(days => least(o.retention_days, $3)))
                         AND m.status NOT IN ('QUEUED', 'SENDING')
                         AND NOT EXISTS (SELECT FROM outbox WHERE message_id = m.id)
                       ORDER BY m.id
                       LIMIT $5) oldest) counted
           WHERE before < $6
           ORDER BY id"#,
        from,
        to,
        stored(operator_days),
        now,
        messages,
        recipients,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages whose time is over")
}

/// Deletes those of some messages that have no work to do any more, with all that is
/// theirs, and says how many they were.
pub(super) async fn delete(connection: &mut PgConnection, ids: &[MessageId]) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let deleted = query_scalar!(r#"SELECT waypost_delete_messages($1) AS "deleted!""#, &ids)
        .fetch_one(connection)
        .await
        .or_fault("delete messages whose time is over")?;
    Ok(u64::try_from(deleted).unwrap_or_default())
}

/// Deletes what hangs on messages that have no work to do, so many rows of each kind at the
/// most and none that somebody holds, and says how many rows they were.
pub(super) async fn shed(
    connection: &mut PgConnection,
    ids: &[MessageId],
    rows_max: i32,
) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let shed = query_scalar!(
        r#"SELECT waypost_shed_messages($1, $2) AS "shed!""#,
        &ids,
        rows_max
    )
    .fetch_one(connection)
    .await
    .or_fault("delete what hangs on messages whose time is over")?;
    Ok(u64::try_from(shed).unwrap_or_default())
}

/// Messages between two moments that have bodies and no work to do, oldest first: so many
/// at the most, and no further one after so many recipients.
pub(super) async fn list_bodies(
    connection: &mut PgConnection,
    (from, to): (Timestamp, Timestamp),
    (messages, recipients): (i64, i64),
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (SELECT id, sum(recipient_count) OVER (ORDER BY id) - recipient_count AS before
                 FROM (SELECT m.id, m.recipient_count
                       FROM message_bodies b
                       JOIN messages m ON m.id = b.message_id
                       WHERE b.message_id >= waypost_uuid_floor($1) AND b.message_id < waypost_uuid_floor($2)
                         AND m.status NOT IN ('QUEUED', 'SENDING')
                         AND NOT EXISTS (SELECT FROM outbox WHERE message_id = m.id)
                       ORDER BY b.message_id
                       LIMIT $3) oldest) counted
           WHERE before < $4
           ORDER BY id"#,
        from,
        to,
        messages,
        recipients,
    )
    .fetch_all(connection)
    .await
    .or_fault("list bodies whose time is over")
}

/// Deletes the bodies of those of some messages that have no work to do any more, and says
/// how many they were.
pub(super) async fn delete_bodies(
    connection: &mut PgConnection,
    ids: &[MessageId],
) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let deleted = query_scalar!(r#"SELECT waypost_delete_bodies($1) AS "deleted!""#, &ids)
        .fetch_one(connection)
        .await
        .or_fault("delete bodies whose time is over")?;
    Ok(u64::try_from(deleted).unwrap_or_default())
}

/// Deletes rows of default partitions whose message is gone.
pub(super) async fn sweep_defaults(
    connection: &mut PgConnection,
    limit: i32,
) -> Result<i64, Fault> {
    query_scalar!(r#"SELECT waypost_sweep_defaults($1) AS "swept!""#, limit)
        .fetch_one(connection)
        .await
        .or_fault("sweep default partitions")
}

/// Forgets soft bounces that count no more, since all of an address are too old.
pub(super) async fn forget_soft_bounces(
    connection: &mut PgConnection,
    limit: i32,
    now: Timestamp,
) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM soft_bounces
         WHERE ctid = ANY(ARRAY(
             SELECT s.ctid
             FROM soft_bounces s
             JOIN organizations o ON o.id = s.organization_id
             WHERE $1::timestamptz - make_interval(days => o.soft_bounce_window_days) >= ALL(s.bounced_at)
             LIMIT $2
             FOR UPDATE OF s SKIP LOCKED))",
        now,
        i64::from(limit),
    )
    .execute(connection)
    .await
    .or_fault("forget soft bounces")?;
    Ok(done.rows_affected())
}

fn stored(days: Option<u32>) -> Option<i32> {
    days.map(|days| i32::try_from(days).unwrap_or(i32::MAX))
}
