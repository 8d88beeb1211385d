//! What lists of messages read in Postgres, and what the scheduler does so that
//! they may: folding the counters, and filling the index that searches go by. The
//! triggers that feed both are in the migrations.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::message::{MessageItem, MessageStatus};

/// How many messages an organization has, or how many with a status.
///
/// # Errors
/// A fault when Postgres is away.
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
                 FROM message_count_deltas
                 WHERE organization_id = $1
                 UNION ALL
                 SELECT moved.status, moved.change
                 FROM message_moves m
                 CROSS JOIN LATERAL (VALUES (m.was, -m.count), (m.status, m.count)) AS moved (status, change)
                 WHERE m.organization_id = $1) counted
           WHERE $2::message_status IS NULL OR status = $2"#,
        organization_id.0,
        status as Option<MessageStatus>,
    )
    .fetch_one(connection)
    .await
    .or_fault("count messages")
}

/// The ids of messages, newest first, `skip` of them left out.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn newest(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: Option<MessageStatus>,
    skip: i64,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    // One branch of the two has rows, each along an index of its own.
    query_scalar!(
        r#"SELECT id AS "id!: MessageId"
           FROM (
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND $2::message_status IS NULL
                ORDER BY id DESC
                LIMIT $4 OFFSET $3)
               UNION ALL
               (SELECT id
                FROM messages
                WHERE organization_id = $1 AND status = $2
                ORDER BY id DESC
                LIMIT $4 OFFSET $3)
           ) m
           ORDER BY id DESC"#,
        organization_id.0,
        status as Option<MessageStatus>,
        skip,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

/// The same from the other end: oldest first.
///
/// # Errors
/// A fault when Postgres is away.
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

/// What a walk looks for, and how far it goes.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    /// A pattern for `LIKE`.
    pub pattern: &'a str,
    /// The messages that are looked at.
    pub rows: i64,
    /// The matches that end it.
    pub limit: i64,
}

/// Walks from the newest message on; answers those whose subjects match.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn walk(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    walk: Walk<'_>,
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
                    FROM message_subject_queue
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
        walk.pattern,
        walk.rows,
        walk.limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// The same among the messages of one status.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn walk_status(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    status: MessageStatus,
    walk: Walk<'_>,
) -> Result<Vec<MessageId>, Fault> {
    // Written so that only the index of statuses serves it: the planner is fond of
    // walking all messages instead, which are many where the status is rare.
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
        walk.pattern,
        walk.rows,
        walk.limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// The newest messages whose subjects match, by the trigram index.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn look_up(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    pattern: &str,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    // OFFSET 0 keeps the order out of the inner part: all matches first, so that no
    // plan walks from the newest on in search of something rare.
    query_scalar!(
        r#"SELECT message_id AS "message_id!: MessageId"
           FROM (
               SELECT message_id
               FROM message_subjects
               WHERE organization_id = $1 AND subject LIKE lower($2)
               UNION ALL
               SELECT message_id
               FROM message_subject_queue
               WHERE organization_id = $1 AND subject LIKE lower($2)
               OFFSET 0
           ) matched
           ORDER BY message_id DESC
           LIMIT $3"#,
        organization_id.0,
        pattern,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// Those of some messages that have a status, newest first.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn keep_status(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
    status: MessageStatus,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT m.id AS "id: MessageId"
           FROM UNNEST($2::uuid[]) AS given (id)
           CROSS JOIN LATERAL (
               SELECT id, status
               FROM messages
               WHERE id = given.id AND organization_id = $1
               LIMIT 1
           ) m
           WHERE m.status = $3
           ORDER BY m.id DESC"#,
        organization_id.0,
        &uuids(ids),
        status as MessageStatus,
    )
    .fetch_all(connection)
    .await
    .or_fault("search messages")
}

/// Messages by their ids, newest first.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn find_many(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
) -> Result<Vec<MessageItem>, Fault> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
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
               WHERE id = given.id AND organization_id = $1
               LIMIT 1
           ) m
           ORDER BY m.id DESC"#,
        organization_id.0,
        &uuids(ids),
    )
    .fetch_all(connection)
    .await
    .or_fault("list messages")
}

fn uuids(ids: &[MessageId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

/// Folds changes into the counters, up to `limit` new or deleted messages and as many
/// moves, and says how many there were of those that there were more of; as
/// [`crate::metrics::store::fold`] does.
///
/// # Errors
/// A fault when Postgres is away; nothing has changed then.
pub async fn fold_counts(connection: &mut PgConnection, limit: i64) -> Result<i64, Fault> {
    query_scalar!(
        r#"WITH taken AS (
               DELETE FROM message_count_deltas
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_count_deltas LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, status, change
           ), moved AS (
               DELETE FROM message_moves
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_moves LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, was, status, count
           ), folded AS (
               INSERT INTO message_counts (organization_id, status, count)
               SELECT organization_id, status, sum(change)
               FROM (SELECT organization_id, status, change FROM taken
                     UNION ALL
                     SELECT organization_id, status, count FROM moved
                     UNION ALL
                     SELECT organization_id, was, -count FROM moved) changes
               GROUP BY organization_id, status
               ORDER BY organization_id, status
               ON CONFLICT (organization_id, status) DO UPDATE
               SET count = message_counts.count + excluded.count
           )
           SELECT greatest((SELECT count(*) FROM taken), (SELECT count(*) FROM moved)) AS "taken!""#,
        limit,
    )
    .fetch_one(connection)
    .await
    .or_fault("fold the counts of messages")
}

/// Moves up to `limit` subjects from the queue to where the index is and says how
/// many they were.
///
/// # Errors
/// A fault when Postgres is away; nothing has changed then.
pub async fn index_subjects(connection: &mut PgConnection, limit: i64) -> Result<i64, Fault> {
    let done = query!(
        r#"WITH taken AS (
               DELETE FROM message_subject_queue
               WHERE ctid = ANY(ARRAY(SELECT ctid FROM message_subject_queue LIMIT $1 FOR UPDATE SKIP LOCKED))
               RETURNING organization_id, message_id, subject
           )
           INSERT INTO message_subjects (organization_id, message_id, subject)
           SELECT organization_id, message_id, subject
           FROM taken
           ORDER BY message_id
           ON CONFLICT DO NOTHING"#,
        limit,
    )
    .execute(connection)
    .await
    .or_fault("index subjects")?;
    Ok(i64::try_from(done.rows_affected()).unwrap_or(i64::MAX))
}
