//! What is tracked, in Postgres: how much of a recipient is in the history, and that
//! a reader is proof of delivery.

use std::collections::HashSet;

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{EventId, MessageId, OrganizationId};
use crate::message::MessageStatus;

/// A recipient that was locked, with what is kept of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedHistory {
    pub(super) organization_id: OrganizationId,
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) status: MessageStatus,
    pub(super) accepted_at: Timestamp,
    /// Opens and clicks, by people and by machines, that are in the history.
    pub(super) counts: HistoryCounts,
}

/// Numbers of events in the history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HistoryCounts {
    pub(super) opens: i16,
    pub(super) clicks: i16,
    pub(super) machine_opens: i16,
    pub(super) machine_clicks: i16,
}

/// Locks recipients, those that there still are, in the order in which everybody
/// locks them.
pub(super) async fn lock(
    connection: &mut PgConnection,
    recipients: &[(OrganizationId, MessageId, i32)],
) -> Result<Vec<LockedHistory>, Fault> {
    let organizations: Vec<Uuid> = recipients.iter().map(|(id, ..)| id.0).collect();
    let messages: Vec<Uuid> = recipients.iter().map(|(_, id, _)| id.0).collect();
    let positions: Vec<i32> = recipients.iter().map(|(.., position)| *position).collect();
    let rows = query!(
        r#"SELECT r.organization_id, r.message_id, r.position, r.status AS "status: MessageStatus",
                  m.created_at, r.opens, r.clicks, r.machine_opens, r.machine_clicks
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS w (organization_id, message_id, position)
           JOIN recipients r ON r.message_id = w.message_id AND r.position = w.position
                AND r.organization_id = w.organization_id
           JOIN messages m ON m.id = w.message_id
           WHERE r.message_id = ANY($2) AND m.id = ANY($2)
           ORDER BY r.message_id, r.position
           FOR NO KEY UPDATE OF r"#,
        &organizations,
        &messages,
        &positions,
    )
    .fetch_all(connection)
    .await
    .or_fault("lock tracked recipients")?;
    let kept = rows.into_iter().map(|row| LockedHistory {
        organization_id: OrganizationId(row.organization_id),
        message_id: MessageId(row.message_id),
        position: row.position,
        status: row.status,
        accepted_at: row.created_at,
        counts: HistoryCounts {
            opens: row.opens.unwrap_or_default(),
            clicks: row.clicks.unwrap_or_default(),
            machine_opens: row.machine_opens.unwrap_or_default(),
            machine_clicks: row.machine_clicks.unwrap_or_default(),
        },
    });
    Ok(kept.collect())
}

/// Which of these events are in the history.
pub(super) async fn recorded(
    connection: &mut PgConnection,
    events: &[(MessageId, EventId)],
) -> Result<HashSet<EventId>, Fault> {
    let messages: Vec<Uuid> = events.iter().map(|(id, _)| id.0).collect();
    let ids: Vec<Uuid> = events.iter().map(|(_, id)| id.0).collect();
    let recorded = query_scalar!(
        "SELECT id FROM events WHERE message_id = ANY($1) AND id = ANY($2)",
        &messages,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("look for opens and clicks")?;
    Ok(recorded.into_iter().map(EventId).collect())
}

/// Writes how much is kept of recipients that the caller has locked.
pub(super) async fn update_counts(
    connection: &mut PgConnection,
    recipients: &[LockedHistory],
) -> Result<(), Fault> {
    let column = |pick: fn(&HistoryCounts) -> i16| -> Vec<i16> {
        recipients.iter().map(|kept| pick(&kept.counts)).collect()
    };
    query!(
        "UPDATE recipients r
         SET opens = nullif(k.opens, 0), clicks = nullif(k.clicks, 0),
             machine_opens = nullif(k.machine_opens, 0), machine_clicks = nullif(k.machine_clicks, 0)
         FROM UNNEST($1::uuid[], $2::int[], $3::smallint[], $4::smallint[], $5::smallint[], $6::smallint[])
           AS k (message_id, position, opens, clicks, machine_opens, machine_clicks)
         WHERE r.message_id = k.message_id AND r.message_id = ANY($1) AND r.position = k.position",
        &recipients.iter().map(|kept| kept.message_id.0).collect::<Vec<_>>(),
        &recipients.iter().map(|kept| kept.position).collect::<Vec<_>>(),
        &column(|counts| counts.opens),
        &column(|counts| counts.clicks),
        &column(|counts| counts.machine_opens),
        &column(|counts| counts.machine_clicks),
    )
    .execute(connection)
    .await
    .or_fault("count tracked events")?;
    Ok(())
}

/// A recipient whose copy was read, so that a mailbox took it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenedRecipient {
    pub(super) organization_id: OrganizationId,
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) at: Timestamp,
    /// The id of the event that says so.
    pub(super) event_id: EventId,
}

/// Moves recipients that the caller has locked from SENT to DELIVERED, by an event that
/// the provider's own takes the place of when it comes. To be followed by [`crate::message::store::refresh_aggregates`].
pub(super) async fn update_delivered(
    connection: &mut PgConnection,
    read: &[OpenedRecipient],
) -> Result<(), Fault> {
    query!(
        "UPDATE recipients r
         SET status = 'DELIVERED', delivered_at = d.at, implied_event_id = d.event_id
         FROM UNNEST($1::uuid[], $2::int[], $3::timestamptz[], $4::uuid[]) AS d (message_id, position, at, event_id)
         WHERE r.message_id = d.message_id AND r.message_id = ANY($1) AND r.position = d.position
           AND r.status = 'SENT'",
        &read
            .iter()
            .map(|read| read.message_id.0)
            .collect::<Vec<_>>(),
        &read.iter().map(|read| read.position).collect::<Vec<_>>(),
        &read.iter().map(|read| read.at).collect::<Vec<_>>(),
        &read.iter().map(|read| read.event_id.0).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("record a delivery")?;
    Ok(())
}
