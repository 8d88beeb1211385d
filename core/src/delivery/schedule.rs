//! Scheduled chunks: the outbox alone knows them until they are due. Then they are pushed like
//! all others, once, and are the relay's from then on.

use std::time::Duration;

use sqlx::{PgConnection, query, query_scalar};

use super::job::SendJob;
use super::lease::job;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::fault::Fault;

/// Whether a scheduled chunk is due that no worker has leased.
pub async fn is_any_due(connection: &mut PgConnection, now: Timestamp) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT FROM outbox
                          WHERE due_at <= $1 AND leased_by IS NULL AND dead_at IS NULL) AS "exists!""#,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("find scheduled jobs that are due")
}

/// Up to `limit` scheduled chunks that are due, at most `each` of one organization, the oldest
/// first. They count as pushed now, so the caller pushes them; if it does not, they are lost
/// jobs, which [`super::outbox::take_lost`] finds `relay_grace` later.
///
/// Goes from organization to organization, as the relay does, so that the mail of one that is
/// due in a moment does not delay that of another. Concurrent callers get different chunks.
pub async fn take_scheduled(
    connection: &mut PgConnection,
    now: Timestamp,
    relay_grace: Duration,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let mut rows = query!(
        r#"WITH RECURSIVE organizations AS (
               (SELECT organization_id
                FROM outbox
                WHERE due_at IS NOT NULL
                ORDER BY organization_id
                LIMIT 1)
               UNION ALL
               SELECT next.organization_id
               FROM organizations previous
               CROSS JOIN LATERAL (
                   SELECT o.organization_id
                   FROM outbox o
                   WHERE o.due_at IS NOT NULL AND o.organization_id > previous.organization_id
                   ORDER BY o.organization_id
                   LIMIT 1
               ) next
           ), walk AS MATERIALIZED (
               SELECT organization_id
               FROM organizations
               ORDER BY random()
           ), taken AS (
               SELECT due.message_id, due.chunk, due.due_at
               FROM walk
               CROSS JOIN LATERAL (
                   SELECT o.message_id, o.chunk, o.due_at
                   FROM outbox o
                   WHERE o.organization_id = walk.organization_id
                     AND o.due_at <= $1 AND o.leased_by IS NULL AND o.dead_at IS NULL
                   ORDER BY o.due_at
                   LIMIT $3
                   FOR UPDATE SKIP LOCKED
               ) due
               LIMIT $4
           )
           UPDATE outbox o
           SET wake_at = $2, due_at = NULL
           FROM taken
           -- With `ANY`, Postgres looks each row up by its key (see lease.sql).
           WHERE o.message_id = ANY(ARRAY[taken.message_id]) AND o.chunk = ANY(ARRAY[taken.chunk])
           RETURNING o.message_id, o.chunk, o.organization_id, taken.due_at AS "due_at!""#,
        now,
        now + delta(relay_grace),
        each,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("take scheduled jobs from the outbox")?;
    rows.sort_by_key(|row| row.due_at);
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}
