//! Expiry: from `expires_at` on nothing of a message is sent. The statement that writes attempts
//! refuses them, a worker makes no call, and [`end_expired`] fails what waits, so that nobody
//! waits for a mail that will not come.

use sqlx::{PgConnection, query};

use super::job::SendJob;
use super::lease::job;
use super::waiting::{self, EndedBy};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::Ids;

/// The reason of the DROPPED event of a recipient whose message expired, and its last error.
pub const EXPIRED: &str = "EXPIRED";

/// Fails what waits of up to `limit` chunks that have expired and that no worker has leased.
/// Returns how many chunks there were. Runs in a transaction.
pub async fn end_expired(
    connection: &mut PgConnection,
    ids: &Ids,
    now: Timestamp,
    limit: i64,
) -> Result<usize, Fault> {
    let rows = query!(
        "SELECT message_id, chunk, organization_id
         FROM outbox
         WHERE expires_at <= $1 AND dead_at IS NULL AND leased_by IS NULL
         ORDER BY expires_at
         LIMIT $2
         FOR UPDATE SKIP LOCKED",
        now,
        limit,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("find expired chunks")?;
    let jobs: Vec<SendJob> = rows
        .into_iter()
        .map(|row| job(row.message_id, row.chunk, row.organization_id))
        .collect();
    waiting::end(connection, &jobs, EndedBy::Expiry, ids, now).await?;
    Ok(jobs.len())
}
