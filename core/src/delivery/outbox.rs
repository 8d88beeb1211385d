//! The outbox: which chunks the relay or a worker takes from it.
//!
//! The jobs of an organization leave Redis in the order in which they were pushed. So if a
//! chunk was pushed before the organization's oldest job that still waits in Redis, its own
//! job does not wait any more: a worker got it, and then the chunk is leased, or it was lost.
//! The relay needs no mark per job to know that, and does not push a long backlog again.
//!
//! For most organizations all waiting jobs are in the stream, and the first entry of the
//! stream is the oldest of all of them. An organization with a backlog beside the stream has
//! a time of its own, so that its backlog does not hide what others lost.

use std::collections::HashMap;
use std::time::Duration;

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::job::SendJob;
use super::lease::job;
use crate::clock::{Clock, Timestamp, delta};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::job_queue::QueueWait;
use crate::message::CHUNK_RECIPIENTS;

/// How much the clocks and delays of the processes that push may differ. A job that is
/// wrongly found lost because of it is pushed twice, which is harmless.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(5);
/// Chunks of an account that one transaction makes due.
const WOKEN_MAX: i64 = 2_000;
/// How often such a transaction is run that Postgres ends because of a deadlock.
const DEADLOCK_TRIES: u32 = 4;

/// Up to `limit` chunks that no worker has leased and that Redis does not have, at most
/// `each` of one organization. They count as pushed now. `waiting` says since when jobs
/// wait in Redis.
pub async fn take_lost(
    connection: &mut PgConnection,
    now: Timestamp,
    waiting: &QueueWait,
    relay_grace: Duration,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let grace = delta(relay_grace);
    let before = |oldest: Timestamp| now.min(oldest - delta(CLOCK_TOLERANCE) + grace);
    let backlogged = waiting.backlogged.iter();
    let until = WakeUntil {
        others: waiting.oldest.map_or(now, before),
        backlogged: backlogged
            .map(|(key, oldest)| (OrganizationId(key.0), before(*oldest)))
            .collect(),
    };
    take(connection, now + grace, &until, each, limit).await
}

/// Up to `limit` due chunks that no worker has leased, at most `each` of one organization,
/// the oldest first. They count as pushed now. For a worker that runs the jobs itself while
/// Redis is away; so it does not wait for the dispatcher's grace period.
pub async fn take_due(
    connection: &mut PgConnection,
    now: Timestamp,
    relay_grace: Duration,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let grace = delta(relay_grace);
    let until = WakeUntil {
        others: now + grace,
        backlogged: HashMap::new(),
    };
    take(connection, now + grace, &until, each, limit).await
}

/// Makes mail due that waits for an account, or may be sent through it as a fallback: the
/// recipients, and their chunks that no worker has leased. The relay pushes the jobs. Runs
/// several transactions, so that each is short.
pub async fn wake_account(
    pool: &PgPool,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    clock: &Clock,
) -> Result<(), Fault> {
    let wake = || async {
        db::bounded(WAKE, async {
            let mut connection = pool.acquire().await.or_fault(WAKE)?;
            wake_some(&mut connection, organization_id, account_id, clock.now()).await
        })
        .await
    };
    while db::retry_deadlocks(DEADLOCK_TRIES, wake, db::is_deadlock).await? == WOKEN_MAX {}
    Ok(())
}

const WAKE: &str = "make the mail of an account due";

/// Returns how many chunks it made due.
async fn wake_some(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    now: Timestamp,
) -> Result<i64, Fault> {
    query_scalar!(
        r#"WITH waiting AS (
               SELECT o.message_id, o.chunk
               FROM outbox o
               JOIN messages m ON m.id = o.message_id
               LEFT JOIN routing_rules r ON r.id = m.routing_rule_id AND r.organization_id = $1
               WHERE o.organization_id = $1 AND o.leased_by IS NULL AND o.dead_at IS NULL AND o.wake_at > $3
                 -- The time of a scheduled message has not come.
                 AND o.due_at IS NULL
                 AND (m.provider_account_id = $2 OR r.fallback_provider_account_ids @> ARRAY[$2])
               ORDER BY o.message_id, o.chunk
               LIMIT $4
               FOR UPDATE OF o SKIP LOCKED
           ), woken AS (
               UPDATE outbox o
               SET wake_at = $3
               FROM waiting w
               WHERE o.message_id = w.message_id AND o.chunk = w.chunk
           ), due AS (
               SELECT r.message_id, r.position
               FROM waiting w
               JOIN recipients r ON r.message_id = w.message_id
                                AND r.position >= w.chunk * $5 AND r.position < (w.chunk + 1) * $5
               WHERE r.status = 'QUEUED' AND r.next_attempt_at > $3
               ORDER BY r.message_id, r.position
               FOR UPDATE OF r
           ), made_due AS (
               UPDATE recipients r
               SET next_attempt_at = $3
               FROM due
               WHERE r.message_id = due.message_id AND r.position = due.position
           )
           SELECT count(*) AS "count!" FROM waiting"#,
        organization_id.0,
        account_id.0,
        now,
        WOKEN_MAX,
        CHUNK_RECIPIENTS,
    )
    .fetch_one(connection)
    .await
    .or_fault(WAKE)
}

/// The latest `wake_at` of chunks that are taken.
struct WakeUntil {
    /// Of organizations that are not in `backlogged`.
    others: Timestamp,
    backlogged: HashMap<OrganizationId, Timestamp>,
}

/// Goes from organization to organization along the index and takes the oldest chunks of
/// each, so that a million rows of one cost no more than a few. The order of organizations
/// is random, so that no organization is always beyond `limit`. The statement locks only the
/// rows that it takes, so concurrent callers get different rows.
async fn take(
    connection: &mut PgConnection,
    wake_at: Timestamp,
    until: &WakeUntil,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let (backlogged, backlogged_until): (Vec<Uuid>, Vec<Timestamp>) = until
        .backlogged
        .iter()
        .map(|(id, until)| (id.0, *until))
        .unzip();
    let mut rows = query!(
        r#"WITH RECURSIVE organizations AS (
               (SELECT organization_id FROM outbox ORDER BY organization_id LIMIT 1)
               UNION ALL
               SELECT next.organization_id
               FROM organizations previous
               CROSS JOIN LATERAL (
                   SELECT o.organization_id
                   FROM outbox o
                   WHERE o.organization_id > previous.organization_id
                   ORDER BY o.organization_id
                   LIMIT 1
               ) next
           ), walk AS MATERIALIZED (
               SELECT organization_id, coalesce(s.until, $2) AS until
               FROM organizations
               LEFT JOIN UNNEST($3::uuid[], $4::timestamptz[]) AS s (organization_id, until) USING (organization_id)
               ORDER BY random()
           ), taken AS (
               SELECT due.message_id, due.chunk, due.wake_at
               FROM walk
               CROSS JOIN LATERAL (
                   SELECT o.message_id, o.chunk, o.wake_at
                   FROM outbox o
                   WHERE o.organization_id = walk.organization_id
                     AND o.wake_at <= walk.until AND o.leased_by IS NULL AND o.dead_at IS NULL
                   ORDER BY o.wake_at
                   LIMIT $5
                   FOR UPDATE SKIP LOCKED
               ) due
               LIMIT $6
           )
           UPDATE outbox o
           SET wake_at = $1, due_at = NULL
           FROM taken
           -- With `ANY`, Postgres looks each row up by its key (see lease.sql).
           WHERE o.message_id = ANY(ARRAY[taken.message_id]) AND o.chunk = ANY(ARRAY[taken.chunk])
           RETURNING o.message_id, o.chunk, o.organization_id, taken.wake_at"#,
        wake_at,
        until.others,
        &backlogged,
        &backlogged_until,
        each,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("take jobs from the outbox")?;
    rows.sort_by_key(|row| row.wake_at);
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}
