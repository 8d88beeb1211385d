//! The relay's side of the outbox: which jobs Redis does not have.
//!
//! The jobs of an organization leave Redis in the order in which they came. So a
//! chunk whose push lies before that of the organization's oldest job still waiting
//! is not waiting any more: a worker has it (then it is leased) or it was lost. That
//! is told without a mark per job, and a long backlog is not pushed again and again.
//!
//! Of most organizations all that waits is in the stream, whose first entry answers
//! for them together. Those that overflow have a time of their own, so that their
//! backlog does not hide what others lost.

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

/// How far the clocks and delays of those who push may lie apart. A job taken
/// for lost within it is pushed twice, which is harmless.
const SLACK: Duration = Duration::from_secs(5);
/// Chunks of an account that are woken in one transaction.
const WOKEN_AT_ONCE: i64 = 2_000;
/// How often such a transaction is tried that loses to another.
const WAKE_TRIES: u32 = 4;

/// Up to `limit` chunks that nobody holds and that Redis does not have, at most `each`
/// of one organization; they count as pushed now. `waiting` is since when jobs wait in
/// Redis.
pub async fn take_lost(
    connection: &mut PgConnection,
    now: Timestamp,
    waiting: &QueueWait,
    relay_grace: Duration,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let grace = delta(relay_grace);
    let before = |oldest: Timestamp| now.min(oldest - delta(SLACK) + grace);
    let of_some = waiting.overflowing.iter();
    let until = Until {
        all: waiting.oldest.map_or(now, before),
        of_some: of_some
            .map(|(lane, floor)| (OrganizationId(lane.0), before(*floor)))
            .collect(),
    };
    take(connection, now + grace, &until, each, limit).await
}

/// Up to `limit` chunks that nobody holds and whose time has come, at most `each` of
/// one organization; they count as pushed now. For whoever does the work himself
/// while Redis is away: what a dispatcher could not push is taken without waiting
/// out its grace. The oldest of an organization come first, and no organization
/// comes before another.
pub async fn take_due(
    connection: &mut PgConnection,
    now: Timestamp,
    relay_grace: Duration,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let grace = delta(relay_grace);
    let until = Until {
        all: now + grace,
        of_some: HashMap::new(),
    };
    take(connection, now + grace, &until, each, limit).await
}

/// Makes the mail due that waits for an account or may go through it as a fallback, some at
/// a time: its messages' recipients and their chunks that nobody holds. The relay pushes
/// them.
pub async fn wake_account(
    pool: &PgPool,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    clock: &Clock,
) -> Result<(), Fault> {
    let doing = "wake the mail of an account";
    let wake = || async {
        db::bounded(doing, async {
            let mut connection = pool.acquire().await.or_fault(doing)?;
            wake_some(&mut connection, organization_id, account_id, clock.now()).await
        })
        .await
    };
    while db::retry_deadlocks(WAKE_TRIES, wake, db::is_deadlock).await? == WOKEN_AT_ONCE {}
    Ok(())
}

/// Answers how many chunks were woken.
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
               WHERE o.organization_id = $1 AND o.leased_by IS NULL AND o.parked_at IS NULL AND o.wake_at > $3
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
        WOKEN_AT_ONCE,
        CHUNK_RECIPIENTS,
    )
    .fetch_one(connection)
    .await
    .or_fault("wake the mail of an account")
}

/// Until when chunks must have been to be looked at for them to be taken.
struct Until {
    all: Timestamp,
    of_some: HashMap<OrganizationId, Timestamp>,
}

/// Walks from organization to organization along the index and takes the oldest of
/// each, so that a million rows of one cost no more than a few. The walk is in a new
/// order every time: where `limit` ends it, nobody is always last. What is locked is
/// what is taken, so those who take at the same time share the rows out.
async fn take(
    connection: &mut PgConnection,
    wake_at: Timestamp,
    until: &Until,
    each: i64,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let (some, until_of_some): (Vec<Uuid>, Vec<Timestamp>) = until
        .of_some
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
                     AND o.wake_at <= walk.until AND o.leased_by IS NULL AND o.parked_at IS NULL
                   ORDER BY o.wake_at
                   LIMIT $5
                   FOR UPDATE SKIP LOCKED
               ) due
               LIMIT $6
           )
           UPDATE outbox o
           SET wake_at = $1
           FROM taken
           -- By `ANY`, as in a claim: looked up by its key, however small the outbox was before.
           WHERE o.message_id = ANY(ARRAY[taken.message_id]) AND o.chunk = ANY(ARRAY[taken.chunk])
           RETURNING o.message_id, o.chunk, o.organization_id, taken.wake_at"#,
        wake_at,
        until.all,
        &some,
        &until_of_some,
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
