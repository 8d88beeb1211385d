//! Retention in Postgres. The retention of a message is the `least` of the operator's and its
//! organization's, so queries go through the organizations.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::partition::Month;

/// The shortest retention of all organizations in days; `None` if all keep messages forever.
pub(super) async fn find_shortest(
    connection: &mut PgConnection,
    operator_days: Option<u32>,
) -> Result<Option<u32>, Fault> {
    let days = query_scalar!(
        "SELECT least(min(retention_days), $1) FROM organizations",
        as_integer(operator_days),
    )
    .fetch_one(connection)
    .await
    .or_fault("find the shortest retention")?;
    Ok(days.and_then(|days| u32::try_from(days).ok()))
}

/// Whether a message of a month is not expired.
pub(super) async fn is_kept(
    connection: &mut PgConnection,
    month: Month,
    operator_days: Option<u32>,
    now: Timestamp,
) -> Result<bool, Fault> {
    // The limit and the order force index look-ups per organization, whatever the statistics
    // of the month are.
    query_scalar!(
        r#"SELECT EXISTS (
               SELECT
               FROM (SELECT id, make_interval(days => least(retention_days, $1)) AS kept
                     FROM organizations) o
               -- The index has the live messages and the tests apart.
               CROSS JOIN (VALUES (false), (true)) list (is_test)
               CROSS JOIN LATERAL (
                   SELECT
                   FROM messages
                   WHERE (organization_id, is_test, id) >= (o.id, list.is_test, waypost_uuid_floor($2))
                     AND (organization_id, is_test, id) < (o.id, list.is_test, waypost_uuid_floor($3))
                     AND id >= waypost_uuid_floor($2) AND id < waypost_uuid_floor($3)
                   ORDER BY organization_id, is_test, id
                   LIMIT 1
               ) m
               WHERE o.kept IS NULL OR $3 > $4::timestamptz - o.kept
           ) AS "is_kept!""#,
        as_integer(operator_days),
        month.begin(),
        month.end(),
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("check whether a month is expired")
}

/// The organizations with a shorter retention than the operator's, and their days.
pub(super) async fn list_shorter(
    connection: &mut PgConnection,
    operator_days: Option<u32>,
) -> Result<Vec<(OrganizationId, u32)>, Fault> {
    let rows = query!(
        r#"SELECT id, retention_days AS "days!"
           FROM organizations
           WHERE retention_days IS NOT NULL AND ($1::integer IS NULL OR retention_days < $1)
           ORDER BY id"#,
        as_integer(operator_days),
    )
    .fetch_all(connection)
    .await
    .or_fault("list organizations with a shorter retention")?;
    let shorter = rows.into_iter();
    Ok(shorter
        .filter_map(|row| Some((OrganizationId(row.id), u32::try_from(row.days).ok()?)))
        .collect())
}

/// The oldest finished messages of an organization before a time: as many as one transaction
/// deletes, limited by messages and by recipients.
pub(super) async fn list_of_organization(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    before: Timestamp,
    (messages, recipients): (i64, i64),
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (SELECT id, sum(recipient_count) OVER (ORDER BY id) - recipient_count AS before
                 FROM (SELECT m.id, m.recipient_count
                       -- The index has the live messages and the tests apart, each in this order.
                       FROM (VALUES (false), (true)) list (is_test)
                       CROSS JOIN LATERAL (
                           SELECT id, recipient_count
                           FROM messages
                           WHERE (organization_id, is_test, id) >= ($1, list.is_test, $5)
                             AND (organization_id, is_test, id) < ($1, list.is_test, waypost_uuid_floor($2))
                             AND id < waypost_uuid_floor($2) AND status NOT IN ('QUEUED', 'SENDING')
                             AND NOT EXISTS (SELECT FROM outbox WHERE message_id = messages.id)
                           ORDER BY organization_id, is_test, id
                           LIMIT $3
                       ) m
                       ORDER BY m.id
                       LIMIT $3) oldest) counted
           WHERE before < $4
           ORDER BY id"#,
        organization_id.0,
        before,
        messages,
        recipients,
        Uuid::nil(),
    )
    .fetch_all(connection)
    .await
    .or_fault("list expired messages")
}

/// The oldest finished and expired messages of all organizations between two times.
pub(super) async fn list_in_range(
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
        as_integer(operator_days),
        now,
        messages,
        recipients,
    )
    .fetch_all(connection)
    .await
    .or_fault("list expired messages")
}

/// Deletes messages with all their rows, except unfinished ones. Returns their number.
pub(super) async fn delete(connection: &mut PgConnection, ids: &[MessageId]) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let deleted = query_scalar!(r#"SELECT waypost_delete_messages($1) AS "deleted!""#, &ids)
        .fetch_one(connection)
        .await
        .or_fault("delete expired messages")?;
    Ok(u64::try_from(deleted).unwrap_or_default())
}

/// Deletes up to `rows_max` child rows of each kind of finished messages, without those that
/// are locked. Returns their number.
pub(super) async fn delete_children(
    connection: &mut PgConnection,
    ids: &[MessageId],
    rows_max: i32,
) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let delete_children = query_scalar!(
        r#"SELECT waypost_delete_message_history($1, $2) AS "shed!""#,
        &ids,
        rows_max
    )
    .fetch_one(connection)
    .await
    .or_fault("delete the child rows of expired messages")?;
    Ok(u64::try_from(delete_children).unwrap_or_default())
}

/// The oldest finished messages between two times that have bodies: as many as one
/// transaction handles, limited by messages and by recipients.
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
    .or_fault("list expired bodies")
}

/// Deletes the bodies of messages, except unfinished ones. Returns their number.
pub(super) async fn delete_bodies(
    connection: &mut PgConnection,
    ids: &[MessageId],
) -> Result<u64, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let deleted = query_scalar!(r#"SELECT waypost_delete_bodies($1) AS "deleted!""#, &ids)
        .fetch_one(connection)
        .await
        .or_fault("delete expired bodies")?;
    Ok(u64::try_from(deleted).unwrap_or_default())
}

/// Deletes up to `limit` pieces of an organization's attachments of months that ended before a
/// time and have no message of the organization. Returns their number.
pub(super) async fn delete_attachments(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    before: Timestamp,
    limit: i64,
) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM attachment_contents
         WHERE (month, organization_id, sha256, piece) IN (
             SELECT c.month, c.organization_id, c.sha256, c.piece
             FROM (SELECT waypost_uuid_floor(month) AS month
                   FROM waypost_partitions()
                   WHERE parent = 'attachment_contents' AND is_attached
                     AND month + interval '1 month' <= $2::timestamptz) past
             JOIN attachment_contents c ON c.month = past.month AND c.organization_id = $1
             WHERE waypost_is_month_unused($1, past.month)
             LIMIT $3)",
        organization_id.0,
        before,
        limit,
    )
    .execute(connection)
    .await
    .or_fault("delete unused attachments")?;
    Ok(done.rows_affected())
}

/// Deletes rows in default partitions whose message is gone.
pub(super) async fn delete_orphans(
    connection: &mut PgConnection,
    limit: i32,
) -> Result<i64, Fault> {
    query_scalar!(r#"SELECT waypost_delete_orphans($1) AS "swept!""#, limit)
        .fetch_one(connection)
        .await
        .or_fault("delete orphans from default partitions")
}

/// Deletes the soft bounces of addresses whose bounces are all older than the window of their
/// organization.
pub(super) async fn delete_old_soft_bounces(
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
    .or_fault("delete old soft bounces")?;
    Ok(done.rows_affected())
}

fn as_integer(days: Option<u32>) -> Option<i32> {
    days.map(|days| i32::try_from(days).unwrap_or(i32::MAX))
}
