//! The statements of message lists, and the roll-up by the scheduler that updates the
//! counters and the search index. The triggers that feed it are in the migrations.

use sqlx::{PgConnection, query, query_as, query_file_scalar, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::db::organization_shard::OrganizationShard;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::message::list::MessageList;
use crate::message::list::filter::IdBounds;
use crate::message::{MessageItem, MessageStatus};

/// The messages of a list that counters know.
#[derive(Clone, Copy)]
pub(super) struct Browsed<'a> {
    pub(super) list: MessageList,
    /// None is every status.
    pub(super) statuses: &'a [MessageStatus],
    pub(super) bounds: IdBounds,
}

impl Browsed<'_> {
    /// How many of the messages with these statuses have this id or a greater one.
    pub(super) async fn count_from(
        self,
        connection: &mut PgConnection,
        from: Uuid,
    ) -> Result<i64, Fault> {
        if from == Uuid::max() {
            return Ok(0);
        }
        if from == Uuid::nil() {
            return count(connection, self.list, self.statuses).await;
        }
        count_from(connection, self.list, self.statuses, from).await
    }
}

/// The number of the messages of a list, or of those with some statuses.
pub async fn count(
    connection: &mut PgConnection,
    list: MessageList,
    statuses: &[MessageStatus],
) -> Result<i64, Fault> {
    query_scalar!(
        r#"SELECT coalesce(sum(count), 0)::bigint AS "count!"
           FROM (SELECT status, count
                 FROM message_counts
                 WHERE organization_id = $1 AND is_test = $3
                 UNION ALL
                 SELECT status, change
                 FROM message_changes
                 WHERE organization_id = $1 AND is_test = $3) counted
           WHERE cardinality($2::message_status[]) = 0 OR status = ANY($2)"#,
        list.organization_id.0,
        statuses as &[MessageStatus],
        list.is_test,
    )
    .fetch_one(connection)
    .await
    .or_fault("count messages")
}

/// Counts by the counters of the hours that follow, and by the messages of the hour itself.
async fn count_from(
    connection: &mut PgConnection,
    list: MessageList,
    statuses: &[MessageStatus],
    from: Uuid,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"SELECT ((SELECT coalesce(sum(count), 0)
                    FROM (SELECT status, hour, count
                          FROM message_hours
                          WHERE organization_id = $1 AND is_test = $4 AND hour > waypost_message_hour($3)
                          UNION ALL
                          SELECT status, hour, change
                          FROM message_changes
                          WHERE organization_id = $1 AND is_test = $4 AND hour > waypost_message_hour($3)) counted
                    WHERE (cardinality($2::message_status[]) = 0 OR status = ANY($2))
                      -- Counts of a month whose messages are being deleted.
                      AND NOT EXISTS (SELECT
                                      FROM partition_drops d
                                      WHERE d.detached_at IS NOT NULL
                                        AND d.month = date_trunc('month', counted.hour, 'UTC')))
                   + (SELECT count(*)
                      FROM messages
                      WHERE organization_id = $1 AND is_test = $4 AND cardinality($2) = 0 AND id >= $3
                        AND id < waypost_uuid_floor(waypost_message_hour($3) + interval '1 hour'))
                   + (SELECT count(*)
                      FROM messages
                      WHERE organization_id = $1 AND is_test = $4 AND status = ANY($2) AND id >= $3
                        AND id < waypost_uuid_floor(waypost_message_hour($3) + interval '1 hour')))::bigint
                  AS "count!""#,
        list.organization_id.0,
        statuses as &[MessageStatus],
        from,
        list.is_test,
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

/// Finds the hour of the message with `before` newer messages. `None` if the counted
/// hours do not contain it.
pub async fn find_offset(
    connection: &mut PgConnection,
    list: MessageList,
    statuses: &[MessageStatus],
    before: i64,
) -> Result<Option<ListOffset>, Fault> {
    query_as!(
        ListOffset,
        r#"SELECT waypost_uuid_floor(hour + interval '1 hour') AS "below!", $3 - newer AS "skip!"
           FROM (SELECT hour, count, (sum(count) OVER (ORDER BY hour DESC))::bigint - count AS newer
                 FROM (SELECT hour, sum(count)::bigint AS count
                       FROM (SELECT status, hour, count
                             FROM message_hours
                             WHERE organization_id = $1 AND is_test = $4
                             UNION ALL
                             SELECT status, hour, change
                             FROM message_changes
                             WHERE organization_id = $1 AND is_test = $4) counted
                       WHERE hour IS NOT NULL AND (cardinality($2::message_status[]) = 0 OR status = ANY($2))
                       GROUP BY hour) by_hour
                 WHERE count > 0
                   -- Counts of a month whose messages are being deleted.
                   AND NOT EXISTS (SELECT
                                   FROM partition_drops d
                                   WHERE d.detached_at IS NOT NULL
                                     AND d.month = date_trunc('month', by_hour.hour, 'UTC'))) placed
           WHERE newer <= $3 AND $3 < newer + count"#,
        list.organization_id.0,
        statuses as &[MessageStatus],
        before,
        list.is_test,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a page of messages")
}

/// The ids of messages, newest first, from a position.
pub(super) async fn newest(
    connection: &mut PgConnection,
    of: Browsed<'_>,
    offset: ListOffset,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    // One of the three branches has rows; each is written so that only its own index fits, as
    // in [`scan_status`].
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               (SELECT id
                FROM messages
                WHERE (organization_id, is_test, id) >= ($1, $7, $6) AND (organization_id, is_test, id) < ($1, $7, $5)
                  AND cardinality($2::message_status[]) = 0 AND id < $5 AND id >= $6
                ORDER BY organization_id DESC, is_test DESC, id DESC
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT id
                FROM messages
                WHERE (organization_id, is_test, status, id) >= ($1, $7, $2[1], $6)
                  AND (organization_id, is_test, status, id) < ($1, $7, $2[1], $5)
                  AND cardinality($2) = 1 AND id < $5 AND id >= $6
                ORDER BY organization_id DESC, is_test DESC, status DESC, id DESC
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT one.id
                FROM unnest($2) AS given (status)
                CROSS JOIN LATERAL (
                    SELECT id
                    FROM messages
                    WHERE (organization_id, is_test, status, id) >= ($1, $7, given.status, $6)
                      AND (organization_id, is_test, status, id) < ($1, $7, given.status, $5)
                      AND cardinality($2) > 1 AND id < $5 AND id >= $6
                    ORDER BY organization_id DESC, is_test DESC, status DESC, id DESC
                    LIMIT $4::bigint + $3::bigint
                ) one
                ORDER BY one.id DESC
                LIMIT $4 OFFSET $3)
           ) m
           ORDER BY id DESC"#,
        of.list.organization_id.0,
        of.statuses as &[MessageStatus],
        offset.skip,
        limit,
        offset.below,
        of.bounds.from,
        of.list.is_test,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

/// The ids of messages, oldest first.
pub(super) async fn oldest(
    connection: &mut PgConnection,
    of: Browsed<'_>,
    skip: i64,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    // One of the three branches has rows; each is written so that only its own index fits, as
    // in [`scan_status`].
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               (SELECT id
                FROM messages
                WHERE (organization_id, is_test, id) >= ($1, $7, $6) AND (organization_id, is_test, id) < ($1, $7, $5)
                  AND cardinality($2::message_status[]) = 0 AND id < $5 AND id >= $6
                ORDER BY organization_id, is_test, id
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT id
                FROM messages
                WHERE (organization_id, is_test, status, id) >= ($1, $7, $2[1], $6)
                  AND (organization_id, is_test, status, id) < ($1, $7, $2[1], $5)
                  AND cardinality($2) = 1 AND id < $5 AND id >= $6
                ORDER BY organization_id, is_test, status, id
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT one.id
                FROM unnest($2) AS given (status)
                CROSS JOIN LATERAL (
                    SELECT id
                    FROM messages
                    WHERE (organization_id, is_test, status, id) >= ($1, $7, given.status, $6)
                      AND (organization_id, is_test, status, id) < ($1, $7, given.status, $5)
                      AND cardinality($2) > 1 AND id < $5 AND id >= $6
                    ORDER BY organization_id, is_test, status, id
                    LIMIT $4::bigint + $3::bigint
                ) one
                ORDER BY one.id
                LIMIT $4 OFFSET $3)
           ) m
           ORDER BY id"#,
        of.list.organization_id.0,
        of.statuses as &[MessageStatus],
        skip,
        limit,
        of.bounds.below,
        of.bounds.from,
        of.list.is_test,
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
    list: MessageList,
    scan: Scan<'_>,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT message_id AS "message_id!: MessageId"
           FROM (
               SELECT message_id, subject
               FROM (
                   (SELECT message_id, subject
                    FROM message_subjects
                    WHERE organization_id = $1 AND is_test = $5
                    ORDER BY message_id DESC
                    LIMIT $3)
                   UNION ALL
                   (SELECT message_id, subject
                    FROM new_messages
                    WHERE organization_id = $1 AND is_test = $5
                    ORDER BY message_id DESC
                    LIMIT $3)
               ) both_places
               ORDER BY message_id DESC
               LIMIT $3
           ) near
           WHERE subject LIKE lower($2)
           ORDER BY message_id DESC
           LIMIT $4"#,
        list.organization_id.0,
        scan.pattern,
        scan.rows,
        scan.limit,
        list.is_test,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// Scans the messages with one status.
pub async fn scan_status(
    connection: &mut PgConnection,
    list: MessageList,
    status: MessageStatus,
    scan: Scan<'_>,
) -> Result<Vec<MessageId>, Fault> {
    // Written so that only the index on the status fits. Otherwise the planner prefers to
    // scan all messages, which are many if the status is rare.
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               SELECT organization_id, is_test, status, id, subject
               FROM messages
               WHERE (organization_id, is_test, status, id) >= ($1, $6, $2, '00000000-0000-0000-0000-000000000000'::uuid)
                 AND (organization_id, is_test, status, id) <= ($1, $6, $2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid)
               ORDER BY organization_id DESC, is_test DESC, status DESC, id DESC
               LIMIT $4
           ) near
           WHERE lower(subject) LIKE lower($3)
           ORDER BY organization_id DESC, is_test DESC, status DESC, id DESC
           LIMIT $5"#,
        list.organization_id.0,
        status as MessageStatus,
        scan.pattern,
        scan.rows,
        scan.limit,
        list.is_test,
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
    list: MessageList,
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
               WHERE organization_id = $1 AND is_test = $6 AND subject LIKE lower($4) AND subject || '' LIKE lower($2)
               UNION ALL
               SELECT message_id
               FROM new_messages
               WHERE organization_id = $1 AND is_test = $6 AND subject LIKE lower($2)
           ), read AS (SELECT message_id FROM matched LIMIT $5)
           SELECT message_id AS "message_id!: MessageId", count(*) OVER () AS "matches!"
           FROM read
           ORDER BY message_id DESC
           LIMIT $3"#,
        list.organization_id.0,
        search_index.pattern,
        search_index.limit,
        search_index.index_pattern,
        search_index.matches_max,
        list.is_test,
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

/// The newest messages of a list that are older than one of them, newest first.
pub async fn older_than(
    connection: &mut PgConnection,
    list: MessageList,
    below: Uuid,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id: MessageId"
           FROM messages
           WHERE (organization_id, is_test, id) >= ($1, $2, '00000000-0000-0000-0000-000000000000'::uuid)
             AND (organization_id, is_test, id) < ($1, $2, $3) AND id < $3
           ORDER BY organization_id DESC, is_test DESC, id DESC
           LIMIT $4"#,
        list.organization_id.0,
        list.is_test,
        below,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list older messages")
}

/// The oldest messages of a list that are newer than one of them, oldest first.
pub async fn newer_than(
    connection: &mut PgConnection,
    list: MessageList,
    above: Uuid,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT id AS "id: MessageId"
           FROM messages
           WHERE (organization_id, is_test, id) > ($1, $2, $3)
             AND (organization_id, is_test, id) <= ($1, $2, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) AND id > $3
           ORDER BY organization_id, is_test, id
           LIMIT $4"#,
        list.organization_id.0,
        list.is_test,
        above,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list newer messages")
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
                  m.status AS "status: MessageStatus", m.tags, m.is_test, m.recipient_count,
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
/// statement: counts new messages, indexes their subjects and labels, and adds changes of
/// status and deletions, up to `limit` rows of each. Returns the largest of the numbers of rows.
///
/// # Errors
/// A fault if Postgres is unavailable; nothing has changed then.
pub async fn roll_up(
    connection: &mut PgConnection,
    shard: OrganizationShard,
    limit: i64,
) -> Result<i64, Fault> {
    query_file_scalar!("src/message/list/roll_up.sql", limit, shard.mask, shard.nth,)
        .fetch_one(connection)
        .await
        .or_fault("roll up message counters")
}
