//! The relay's side of the outbox: which jobs Redis does not have.
//!
//! Jobs leave Redis in the order in which they came. So a chunk whose push lies
//! before that of the oldest job still waiting is not waiting any more: a worker
//! has it (then it is leased) or it was lost. That is told without a mark per
//! job, and a long backlog is not pushed again and again.

use std::time::Duration;

use sqlx::{PgConnection, query};

use super::jobs::SendJob;
use super::lease::job;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::fault::Fault;

/// How far the clocks and delays of those who push may lie apart. A job taken
/// for lost within it is pushed twice, which is harmless.
const SLACK: Duration = Duration::from_secs(5);

/// Up to `limit` chunks that nobody holds and that Redis does not have; they count
/// as pushed now. `oldest_waiting` is the push time of the oldest job that waits
/// in Redis.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn take_lost(
    connection: &mut PgConnection,
    now: Timestamp,
    oldest_waiting: Option<Timestamp>,
    relay_grace: Duration,
    limit: i64,
) -> Result<Vec<SendJob>, Fault> {
    let grace = delta(relay_grace);
    let before = oldest_waiting.map_or(now, |oldest| now.min(oldest - delta(SLACK) + grace));
    let rows = query!(
        r#"UPDATE outbox o
           SET wake_at = $2
           FROM (
               SELECT message_id, chunk
               FROM outbox
               WHERE wake_at <= $1 AND leased_by IS NULL
               ORDER BY wake_at
               LIMIT $3
               FOR UPDATE SKIP LOCKED
           ) lost
           WHERE o.message_id = lost.message_id AND o.chunk = lost.chunk
           RETURNING o.message_id, o.chunk, o.organization_id"#,
        before,
        now + grace,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("find jobs that Redis lost")?;
    Ok(rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect())
}
