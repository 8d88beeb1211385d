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

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::backend::Waiting;
use super::jobs::SendJob;
use super::lease::job;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// How far the clocks and delays of those who push may lie apart. A job taken
/// for lost within it is pushed twice, which is harmless.
const SLACK: Duration = Duration::from_secs(5);

/// Up to `limit` chunks that nobody holds and that Redis does not have, at most `each`
/// of one organization; they count as pushed now. `waiting` is since when jobs wait in
/// Redis.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn take_lost(
    connection: &mut PgConnection,
    now: Timestamp,
    waiting: &Waiting,
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
///
/// # Errors
/// A fault when Postgres is away.
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

/// Until when chunks must have been to be looked at for them to be taken.
struct Until {
    all: Timestamp,
    /// Another time for these.
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
