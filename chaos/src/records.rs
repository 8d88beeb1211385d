//! What the service's own tables say. They do not decide what was lost or sent twice;
//! they explain it, and they are shown where something is wrong.

use std::collections::HashMap;

use sqlx::{Connection as _, PgConnection, Row as _};
use uuid::Uuid;

/// How a recipient ended.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) status: String,
    /// Attempts whose outcome nobody knew, for a while or for good: evidence that comes
    /// later makes an attempt ACCEPTED, but not the count of these smaller.
    pub(crate) unknowns: i64,
}

/// How all recipients ended, by message and position.
pub(crate) async fn endings(database_url: &str) -> sqlx::Result<HashMap<(String, usize), Ending>> {
    let mut connection = PgConnection::connect(database_url).await?;
    let rows = sqlx::query(
        "SELECT r.message_id, r.position, r.status::text AS status,
                greatest(r.unknowns, coalesce(a.unknowns, 0)) AS unknowns
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
    let endings = rows.iter().map(|row| {
        let position: i32 = row.get("position");
        let ending = Ending {
            status: row.get("status"),
            unknowns: row.get("unknowns"),
        };
        let id: Uuid = row.get("message_id");
        ((id.to_string(), position as usize), ending)
    });
    Ok(endings.collect())
}

/// Everything that is known of a recipient, as lines of JSON.
pub(crate) async fn history(
    database_url: &str,
    message_id: &str,
    position: usize,
) -> sqlx::Result<Vec<String>> {
    let mut connection = PgConnection::connect(database_url).await?;
    let mut lines = Vec::new();
    // Neither the sealed address nor a body.
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
            "SELECT to_jsonb(t)::text FROM events t
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
