//! Events in Postgres.

use sqlx::{PgConnection, query, query_as};

use super::{Event, EventType, NewEvent};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};

/// Adds events of any number of messages. Those that metrics show are counted in the
/// same statement, by a trigger: opens and clicks once for each recipient, and not
/// where `data` says `"isBot": true`. Another trigger adds what they owe to webhooks.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn insert(connection: &mut PgConnection, events: &[NewEvent]) -> Result<(), Fault> {
    if events.is_empty() {
        return Ok(());
    }
    let column = |pick: fn(&NewEvent) -> uuid::Uuid| events.iter().map(pick).collect::<Vec<_>>();
    let types: Vec<&str> = events
        .iter()
        .map(|event| event.event_type.as_str())
        .collect();
    let data: Vec<Option<serde_json::Value>> =
        events.iter().map(|event| event.data.clone()).collect();
    query!(
        r#"INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data)
           SELECT message_id, id, organization_id, position, event_type::event_type, occurred_at, data
           FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::timestamptz[], $7::jsonb[])
             AS e (message_id, id, organization_id, position, event_type, occurred_at, data)"#,
        &column(|event| event.message_id.0),
        &column(|event| event.id.0),
        &column(|event| event.organization_id.0),
        &events.iter().map(|event| event.position).collect::<Vec<_>>(),
        &types as &[&str],
        &events.iter().map(|event| event.occurred_at).collect::<Vec<_>>(),
        &data as &[Option<serde_json::Value>],
    )
    .execute(connection)
    .await
    .or_fault("record events")?;
    Ok(())
}

/// The history of one message, oldest first.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
) -> Result<Vec<Event>, Fault> {
    query_as!(
        Event,
        r#"SELECT position, event_type AS "event_type: EventType", occurred_at
           FROM events
           WHERE message_id = $2 AND organization_id = $1
           ORDER BY occurred_at, position NULLS FIRST, id"#,
        organization_id.0,
        message_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list events")
}

/// The events of some recipients of one message, and those about all of them,
/// oldest first.
///
/// # Errors
/// A fault when Postgres is away.
pub async fn list_of_recipients(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
    positions: &[i32],
) -> Result<Vec<Event>, Fault> {
    query_as!(
        Event,
        r#"SELECT position, event_type AS "event_type: EventType", occurred_at
           FROM events
           WHERE message_id = $2 AND organization_id = $1
             AND (position IS NULL OR position = ANY($3))
           ORDER BY occurred_at, position NULLS FIRST, id"#,
        organization_id.0,
        message_id.0,
        positions,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the events of recipients")
}
