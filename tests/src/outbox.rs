//! The work that PostgreSQL records: outbox rows and attempts, which tests compare with
//! the messages that reached the simulator.

use std::fmt;

use sqlx::{PgConnection, Row};
use uuid::Uuid;
use waypost_core::clock::Timestamp;
use waypost_core::message::CHUNK_RECIPIENTS;

/// A row of the outbox.
#[derive(Debug, Clone)]
pub struct OutboxRow {
    pub message_id: Uuid,
    /// The chunk of its recipients.
    pub chunk: i32,
    /// Whether a worker has leased it.
    pub is_leased: bool,
    /// Whether one of its recipients is due.
    pub is_due: bool,
    /// When the relay looks at it.
    pub wake_at: Timestamp,
    /// Its open recipients: position, status, attempts, error, due time.
    pub recipients: Vec<String>,
}

/// A recorded call to a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub position: i32,
    pub account_id: Uuid,
    /// `None` while the outcome is not known.
    pub outcome: Option<String>,
    /// The HTTP status, if there was a response.
    pub status_code: Option<i32>,
}

impl OutboxRow {
    /// Whether [`TestApp::drain`](crate::TestApp::drain) waits for it.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_leased || self.is_due
    }
}

impl fmt::Display for OutboxRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.is_leased { "leased" } else { "free" };
        let due = if self.is_due { "due" } else { "not due" };
        let (id, chunk, wake_at) = (self.message_id, self.chunk, self.wake_at);
        write!(f, "{id} chunk {chunk}: {held}, {due}, relay at {wake_at}")?;
        self.recipients
            .iter()
            .take(5)
            .try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// All rows of the outbox. `now` decides which of them are due.
pub(crate) async fn outbox(connection: &mut PgConnection, now: Timestamp) -> Vec<OutboxRow> {
    let rows = sqlx::query(
        "SELECT o.message_id, o.chunk, o.leased_by IS NOT NULL AS leased, o.wake_at,
                o.dead_at IS NULL AND coalesce(bool_or(r.next_attempt_at <= $1), false) AS due,
                coalesce(array_agg(r.position || ' ' || r.status || ', ' || r.attempts || ' attempts, '
                    || coalesce(r.last_error, 'no error') || ', next ' || r.next_attempt_at
                    ORDER BY r.position) FILTER (WHERE r.position IS NOT NULL), '{}') AS recipients
         FROM outbox o
         LEFT JOIN recipients r
           ON r.message_id = o.message_id AND r.position / $2 = o.chunk AND r.status IN ('QUEUED', 'SENDING')
         GROUP BY o.message_id, o.chunk
         ORDER BY o.message_id, o.chunk",
    )
    .bind(now)
    .bind(CHUNK_RECIPIENTS)
    .fetch_all(connection)
    .await
    .expect("the outbox can be read");
    let left = rows.iter().map(|row| OutboxRow {
        message_id: row.get("message_id"),
        chunk: row.get("chunk"),
        is_leased: row.get("leased"),
        is_due: row.get("due"),
        wake_at: row.get("wake_at"),
        recipients: row.get("recipients"),
    });
    left.collect()
}

/// The number of outbox rows that are leased or due, of due webhooks, and of accepted tests
/// whose events are due. Cheaper than
/// [`outbox`].
pub(crate) async fn pending_count(connection: &mut PgConnection, now: Timestamp) -> i64 {
    let row = sqlx::query(
        "SELECT (
             SELECT count(*)
             FROM outbox o
             WHERE o.leased_by IS NOT NULL OR o.dead_at IS NULL AND EXISTS (
                 SELECT 1
                 FROM recipients r
                 WHERE r.message_id = o.message_id AND r.position / $2 = o.chunk
                   AND r.status IN ('QUEUED', 'SENDING') AND r.next_attempt_at <= $1)
         ) + (
             SELECT count(*)
             FROM webhook_deliveries d
             JOIN webhook_endpoints e ON e.id = d.webhook_endpoint_id
             WHERE d.status = 'PENDING' AND d.next_attempt_at <= $1 AND e.is_active
               AND (e.paused_until IS NULL OR e.paused_until <= $1)
         ) + (
             SELECT count(*)
             FROM test_reports
             WHERE accepted_at <= $1 - interval '100 ms'
         )",
    )
    .bind(now)
    .bind(CHUNK_RECIPIENTS)
    .fetch_one(connection)
    .await
    .expect("the outbox can be read");
    row.get(0)
}

/// The attempts of a message, in order.
pub(crate) async fn attempts(connection: &mut PgConnection, message_id: Uuid) -> Vec<Attempt> {
    let rows = sqlx::query(
        "SELECT position, provider_account_id, outcome::text AS outcome, status_code
         FROM send_attempts
         WHERE message_id = $1
         ORDER BY started_at, id",
    )
    .bind(message_id)
    .fetch_all(connection)
    .await
    .expect("attempts can be read");
    let attempts = rows.iter().map(|row| Attempt {
        position: row.get("position"),
        account_id: row.get("provider_account_id"),
        outcome: row.get("outcome"),
        status_code: row.get("status_code"),
    });
    attempts.collect()
}
