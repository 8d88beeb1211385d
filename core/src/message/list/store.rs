//! The statements of message lists, and the roll-up by the scheduler that updates the
//! counters and the search index. The triggers that feed it are in the migrations.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::db::organization_shard::OrganizationShard;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::message::{MessageItem, MessageStatus};

/// The number of an organization's messages, or of those with one status.
pub async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"SELECT coalesce(sum(count), 0)::bigint AS "count!"
           FROM (SELECT status, count
                 FROM message_counts
                 WHERE organization_id = $1
                 UNION ALL
                 SELECT status, change
                 FROM message_changes
                 WHERE organization_id = $1) counted
           WHERE $2::message_status IS NULL OR status = $2"#,
        organization_id.0,
        status as Option<MessageStatus>,
    )
    .fetch_one(connection)
    .await
    .or_fault("count messages")
}

/// A position in the list of messages, newest first.
#[derive(Debug, Clone, Copy)]
pub struct ListOffset {
    /// The message at the position and all that follow have smaller ids.
    pub below: Uuid,
    /// How many of the messages below `below` come before it.
    pub skip: i64,
}

impl ListOffset {
    /// The position after the newest `skip` messages.
    #[must_use]
    pub fn from_newest(skip: i64) -> Self {
        let below = Uuid::max();
        Self { below, skip }
    }
}

/// Finds the hour of the message with `before` newer messages. `None` if the counted
/// hours do not contain it.
pub async fn find_offset(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
    before: i64,
) -> Result<Option<ListOffset>, Fault> {
    query_as!(
        ListOffset,
        r#"SELECT waypost_uuid_floor(hour + interval '1 hour') AS "below!", $3 - newer AS "skip!"
           FROM (SELECT hour, count, (sum(count) OVER (ORDER BY hour DESC))::bigint - count AS newer
                 FROM (SELECT hour, sum(count)::bigint AS count
                       FROM (SELECT status, hour, count
                             FROM message_hours
                             WHERE organization_id = $1
                             UNION ALL
                             SELECT status, hour, change
                             FROM message_changes
                             WHERE organization_id = $1) counted
                       WHERE hour IS NOT NULL AND ($2::message_status IS NULL OR status = $2)
                       GROUP BY hour) by_hour
                 WHERE count > 0
                   -- Counts of a month whose messages are being deleted.
                   AND NOT EXISTS (SELECT
                                   FROM partition_drops d
                                   WHERE d.detached_at IS NOT NULL
                                     AND d.month = date_trunc('month', by_hour.hour, 'UTC'))) placed
           WHERE newer <= $3 AND $3 < newer + count"#,
        organization_id.0,
        status as Option<MessageStatus>,
        before,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a page of messages")
}

/// The ids of messages, newest first, from a position.
pub async fn newest(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
    offset: ListOffset,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    // One of the two branches has rows; each uses its own index.
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND $2::message_status IS NULL AND id < $5
                ORDER BY id DESC
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND status = $2 AND id < $5
                ORDER BY id DESC
                LIMIT $4 OFFSET $3)
           ) m
           ORDER BY id DESC"#,
        organization_id.0,
        status as Option<MessageStatus>,
        offset.skip,
        limit,
        offset.below,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

/// The ids of messages, oldest first.
pub async fn oldest(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
    skip: i64,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND $2::message_status IS NULL
                ORDER BY id
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND status = $2
                ORDER BY id
                LIMIT $4 OFFSET $3)
           ) m
           ORDER BY id"#,
        organization_id.0,
        status as Option<MessageStatus>,
        skip,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

/// The limits of a scan.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a> {
    /// A pattern for `LIKE`.
    pub pattern: &'a str,
    /// Messages to scan.
    pub rows: i64,
    /// Matches that end the scan.
    pub limit: i64,
}

/// Scans from the newest message and returns those whose subjects match.
pub async fn scan(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    scan: Scan<'_>,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT message_id AS "message_id!: MessageId"
           FROM (
               SELECT message_id, subject
               FROM (
                   (SELECT message_id, subject
                    FROM message_subjects
                    WHERE organization_id = $1
                    ORDER BY message_id DESC
                    LIMIT $3)
                   UNION ALL
                   (SELECT message_id, subject
                    FROM new_messages
                    WHERE organization_id = $1
                    ORDER BY message_id DESC
                    LIMIT $3)
               ) both_places
               ORDER BY message_id DESC
               LIMIT $3
           ) near
           WHERE subject LIKE lower($2)
           ORDER BY message_id DESC
           LIMIT $4"#,
        organization_id.0,
        scan.pattern,
        scan.rows,
        scan.limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// Scans the messages with one status.
pub async fn scan_status(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: MessageStatus,
    scan: Scan<'_>,
) -> Result<Vec<MessageId>, Fault> {
    // Written so that only the index on the status fits. Otherwise the planner prefers to
    // scan all messages, which are many if the status is rare.
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               SELECT organization_id, status, id, subject
               FROM messages
               WHERE (organization_id, status, id) >= ($1, $2, '00000000-0000-0000-0000-000000000000'::uuid)
                 AND (organization_id, status, id) <= ($1, $2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
               ORDER BY organization_id DESC, status DESC, id DESC
               LIMIT $4
           ) near
           WHERE lower(subject) LIKE lower($3)
           ORDER BY organization_id DESC, status DESC, id DESC
           LIMIT $5"#,
        organization_id.0,
        status as MessageStatus,
        scan.pattern,
        scan.rows,
        scan.limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// A search by the trigram index.
#[derive(Debug, Clone, Copy)]
pub struct IndexSearch<'a> {
    /// A pattern for `LIKE`.
    pub pattern: &'a str,
    /// A pattern for the index that matches at least the same subjects.
    pub index_pattern: &'a str,
    /// Matches to return, at most.
    pub limit: i64,
    /// Matches to sort, at most.
    pub matches_max: i64,
}

/// The newest messages whose subjects match, by the trigram index; `None` if more match
/// than may be sorted.
pub async fn search_index(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    search_index: IndexSearch<'_>,
) -> Result<Option<Vec<MessageId>>, Fault> {
    // MATERIALIZED makes Postgres plan for all matches, so that it neither scans from the
    // newest message for a rare text nor reads tables sequentially in the hope of a
    // common one. The CTE is still read only as far as needed. `subject
    //
    // ''` keeps the second pattern out of the index.
    let rows = query!(
        r#"WITH matched AS MATERIALIZED (
               SELECT message_id
               FROM message_subjects
               WHERE organization_id = $1 AND subject LIKE lower($4) AND subject || '' LIKE lower($2)
               UNION ALL
               SELECT message_id
               FROM new_messages
               WHERE organization_id = $1 AND subject LIKE lower($2)
           ), read AS (SELECT message_id FROM matched LIMIT $5)
           SELECT message_id AS "message_id!: MessageId", count(*) OVER () AS "matches!"
           FROM read
           ORDER BY message_id DESC
           LIMIT $3"#,
        organization_id.0,
        search_index.pattern,
        search_index.limit,
        search_index.index_pattern,
        search_index.matches_max,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")?;
    let are_all = |matches: i64| matches < search_index.matches_max;
    Ok(rows
        .first()
        .is_none_or(|row| are_all(row.matches))
        .then(|| rows.into_iter().map(|row| row.message_id).collect()))
}

/// Those of some messages that have a status, newest first.
pub async fn filter_by_status(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
    status: MessageStatus,
) -> Result<Vec<MessageId>, Fault> {
    let ids = uuids(ids);
    let range = IdRange::of(&ids);
    query_scalar!(
        r#"SELECT m.id AS "id: MessageId"
           FROM UNNEST($2::uuid[]) AS given (id)
           CROSS JOIN LATERAL (
               SELECT id, status
               FROM messages
               WHERE id = given.id AND id BETWEEN $4 AND $5 AND organization_id = $1
               LIMIT 1
           ) m
           WHERE m.status = $3
           ORDER BY m.id DESC"#,
        organization_id.0,
        &ids,
        status as MessageStatus,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// Messages by their ids, newest first.
pub async fn find_many(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
) -> Result<Vec<MessageItem>, Fault> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = uuids(ids);
    let range = IdRange::of(&ids);
    query_as!(
        MessageItem,
        r#"SELECT m.id AS "id: MessageId", m.provider_account_id AS "provider_account_id: ProviderAccountId",
                  m.from_address, m.to_hash AS "to_hash: AddressHash", m.subject,
                  m.status AS "status: MessageStatus", m.tags, m.recipient_count,
                  m.provider_message_id, m.created_at, m.sent_at, m.delivered_at
           FROM UNNEST($2::uuid[]) AS given (id)
           CROSS JOIN LATERAL (
               SELECT *
               FROM messages
               WHERE id = given.id AND id BETWEEN $3 AND $4 AND organization_id = $1
               LIMIT 1
           ) m
           ORDER BY m.id DESC"#,
        organization_id.0,
        &ids,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

fn uuids(ids: &[MessageId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

/// Rolls up the counters and the search index of a shard of the organizations, in one
/// statement: counts new messages, indexes their subjects, and adds changes of status and
/// deletions, up to `limit` rows of each. Returns the largest of the numbers of rows.
///
/// # Errors
/// A fault if Postgres is unavailable; nothing has changed then.
pub async fn roll_up(
    connection: &mut PgConnection,
    shard: OrganizationShard,
    limit: i64,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"WITH new AS (
               DELETE FROM new_messages
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM new_messages WHERE (uuid_hash(organization_id) & $2) = $3
                                      LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, message_id, status, subject
           ), taken AS (
               DELETE FROM message_count_deltas
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_count_deltas WHERE (uuid_hash(organization_id) & $2) = $3
                                      LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, status, hour, change
           ), moved AS (
               DELETE FROM message_transitions
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_transitions WHERE (uuid_hash(organization_id) & $2) = $3
                                      LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, was, status, hour, count
           ), indexed AS (
               INSERT INTO message_subjects (organization_id, message_id, subject)
               SELECT organization_id, message_id, subject
               FROM new
               WHERE subject IS NOT NULL
               ORDER BY message_id
               ON CONFLICT DO NOTHING
           ), changes AS (
               SELECT organization_id, status, hour, sum(change) AS change
               FROM (SELECT organization_id, status, waypost_message_hour(message_id) AS hour, 1 AS change
                     FROM new
                     WHERE status IS NOT NULL
                     UNION ALL
                     SELECT organization_id, status, hour, change FROM taken
                     UNION ALL
                     SELECT organization_id, status, hour, count FROM moved
                     UNION ALL
                     SELECT organization_id, was, hour, -count FROM moved) each
               GROUP BY organization_id, status, hour
               -- Most new messages are sent already, so that the changes of their first
               -- status add up to zero.
               HAVING sum(change) <> 0
           ), counted AS (
               INSERT INTO message_counts (organization_id, status, count)
               SELECT organization_id, status, sum(change)
               FROM changes
               GROUP BY organization_id, status
               ORDER BY organization_id, status
               ON CONFLICT (organization_id, status) DO UPDATE
               SET count = message_counts.count + excluded.count
           ), counted_by_hour AS (
               INSERT INTO message_hours (organization_id, status, hour, count)
               SELECT organization_id, status, hour, change
               FROM changes
               WHERE hour IS NOT NULL
               ORDER BY organization_id, status, hour
               ON CONFLICT (organization_id, status, hour) DO UPDATE
               SET count = message_hours.count + excluded.count
           )
           SELECT greatest((SELECT count(*) FROM new), (SELECT count(*) FROM taken), (SELECT count(*) FROM moved))
                  AS "taken!""#,
        limit,
        shard.mask,
        shard.nth,
    )
    .fetch_one(connection)
    .await
    .or_fault("roll up message counters")
}
