//! Reads the service's tables. They do not decide what was lost or sent twice; they
//! explain it, and the report prints them if something is wrong.

use std::collections::HashMap;

use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

/// The final state of a recipient.
#[derive(Debug, Clone)]
pub(crate) struct FinalState {
    pub(crate) status: String,
    /// Attempts with an unknown outcome, for a while or for good: later evidence changes
    /// an attempt to ACCEPTED, but does not lower this count.
    pub(crate) unknowns: i64,
    /// Whether its message was cancelled.
    pub(crate) is_cancelled: bool,
}

/// The final states of all recipients, by message and position.
pub(crate) async fn final_states(
    database_url: &str,
) -> sqlx::Result<HashMap<(String, usize), FinalState>> {
    let mut connection = PgConnection::connect(database_url).await?;
    let rows = sqlx::query(
        "SELECT r.message_id, r.position, r.status::text AS status,
                greatest(r.unknowns, coalesce(a.unknowns, 0)) AS unknowns,
                coalesce(r.last_error = 'CANCELLED', false) AS cancelled
         FROM recipients r
         LEFT JOIN (
             SELECT message_id, position, count(*) AS unknowns
             FROM send_attempts
             WHERE outcome = 'UNKNOWN'
             GROUP BY message_id, position
         ) a USING (message_id, position)",
    )
    .fetch_all(&mut connection)
    .await?;
    connection.close().await?;
    let final_states = rows.iter().map(|row| {
        let position: i32 = row.get("position");
        let final_state = FinalState {
            status: row.get("status"),
            unknowns: row.get("unknowns"),
            is_cancelled: row.get("cancelled"),
        };
        let id: Uuid = row.get("message_id");
        ((id.to_string(), position as usize), final_state)
    });
    Ok(final_states.collect())
}

/// All rows about a recipient, as lines of JSON.
pub(crate) async fn history(
    database_url: &str,
    message_id: &str,
    position: usize,
) -> sqlx::Result<Vec<String>> {
    let mut connection = PgConnection::connect(database_url).await?;
    let mut lines = Vec::new();
    // Without the sealed address and the body.
    for (name, query) in [
        (
            "recipient",
            "SELECT (to_jsonb(t) - 'address_sealed' - 'address_hash')::text FROM recipients t
             WHERE message_id = $1 AND position = $2",
        ),
        (
            "attempt",
            "SELECT to_jsonb(t)::text FROM send_attempts t
             WHERE message_id = $1 AND position = $2 ORDER BY started_at, id",
        ),
        (
            "event",
            "SELECT to_jsonb(t)::text FROM message_events t
             WHERE message_id = $1 AND coalesce(position, $2) = $2 ORDER BY occurred_at, id",
        ),
        (
            "outbox",
            "SELECT to_jsonb(t)::text FROM outbox t WHERE message_id = $1 AND chunk = $2 / 100",
        ),
        (
            "webhook",
            "SELECT to_jsonb(t)::text FROM webhook_deliveries t
             WHERE message_id = $1 AND position = $2 ORDER BY created_at, id",
        ),
    ] {
        let rows = sqlx::query_scalar::<_, String>(query)
            .bind(message_id.parse::<Uuid>().unwrap_or_default())
            .bind(position as i32)
            .fetch_all(&mut connection)
            .await?;
        lines.extend(rows.into_iter().map(|row| format!("{name} {row}")));
    }
    connection.close().await?;
    Ok(lines)
}
