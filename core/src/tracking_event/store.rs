//! Tracking in Postgres: the event counts of a recipient, and deliveries implied by opens
//! and clicks.

use std::collections::HashSet;

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{EventId, MessageId, OrganizationId};
use crate::message::MessageStatus;

/// A locked recipient.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedHistory {
    pub(super) organization_id: OrganizationId,
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) status: MessageStatus,
    pub(super) accepted_at: Timestamp,
    pub(super) counts: RecordedCounts,
}

/// The numbers of opens and clicks by people and by bots in a recipient's history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct RecordedCounts {
    pub(super) opens: i16,
    pub(super) clicks: i16,
    pub(super) bot_opens: i16,
    pub(super) bot_clicks: i16,
}

/// Locks the recipients that still exist, in the order that all transactions use.
pub(super) async fn lock(
    connection: &mut PgConnection,
    recipients: &[(OrganizationId, MessageId, i32)],
) -> Result<Vec<LockedHistory>, Fault> {
    let organizations: Vec<Uuid> = recipients.iter().map(|(id, ..)| id.0).collect();
    let messages: Vec<Uuid> = recipients.iter().map(|(_, id, _)| id.0).collect();
    let positions: Vec<i32> = recipients.iter().map(|(.., position)| *position).collect();
    let rows = query!(
        r#"SELECT r.organization_id, r.message_id, r.position, r.status AS "status: MessageStatus",
                  m.created_at, r.opens, r.clicks, r.bot_opens, r.bot_clicks
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
    let recipients = rows.into_iter().map(|row| LockedHistory {
        organization_id: OrganizationId(row.organization_id),
        message_id: MessageId(row.message_id),
        position: row.position,
        status: row.status,
        accepted_at: row.created_at,
        counts: RecordedCounts {
            opens: row.opens.unwrap_or_default(),
            clicks: row.clicks.unwrap_or_default(),
            bot_opens: row.bot_opens.unwrap_or_default(),
            bot_clicks: row.bot_clicks.unwrap_or_default(),
        },
    });
    Ok(recipients.collect())
}

/// The ids among `events` that exist.
pub(super) async fn list_recorded(
    connection: &mut PgConnection,
    events: &[(MessageId, EventId)],
) -> Result<HashSet<EventId>, Fault> {
    let messages: Vec<Uuid> = events.iter().map(|(id, _)| id.0).collect();
    let ids: Vec<Uuid> = events.iter().map(|(_, id)| id.0).collect();
    let list_recorded = query_scalar!(
        "SELECT id FROM events WHERE message_id = ANY($1) AND id = ANY($2)",
        &messages,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("look for opens and clicks")?;
    Ok(list_recorded.into_iter().map(EventId).collect())
}

/// Updates the event counts of locked recipients.
pub(super) async fn update_counts(
    connection: &mut PgConnection,
    recipients: &[LockedHistory],
) -> Result<(), Fault> {
    let column = |pick: fn(&RecordedCounts) -> i16| -> Vec<i16> {
        recipients
            .iter()
            .map(|recipient| pick(&recipient.counts))
            .collect()
    };
    query!(
        "UPDATE recipients r
         SET opens = nullif(k.opens, 0), clicks = nullif(k.clicks, 0),
             bot_opens = nullif(k.bot_opens, 0), bot_clicks = nullif(k.bot_clicks, 0)
         FROM UNNEST($1::uuid[], $2::int[], $3::smallint[], $4::smallint[], $5::smallint[], $6::smallint[])
           AS k (message_id, position, opens, clicks, bot_opens, bot_clicks)
         WHERE r.message_id = k.message_id AND r.message_id = ANY($1) AND r.position = k.position",
        &recipients.iter().map(|recipient| recipient.message_id.0).collect::<Vec<_>>(),
        &recipients.iter().map(|recipient| recipient.position).collect::<Vec<_>>(),
        &column(|counts| counts.opens),
        &column(|counts| counts.clicks),
        &column(|counts| counts.bot_opens),
        &column(|counts| counts.bot_clicks),
    )
    .execute(connection)
    .await
    .or_fault("count tracked events")?;
    Ok(())
}

/// A delivery that an open or click by a person proves.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImpliedDelivery {
    pub(super) organization_id: OrganizationId,
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) at: Timestamp,
    /// The id of the DELIVERED event.
    pub(super) event_id: EventId,
}

/// Sets locked recipients from SENT to DELIVERED. The provider's DELIVERED event replaces the
/// implied one later. Call [`crate::message::store::refresh_aggregates`] afterwards.
pub(super) async fn update_delivered(
    connection: &mut PgConnection,
    deliveries: &[ImpliedDelivery],
) -> Result<(), Fault> {
    query!(
        "UPDATE recipients r
         SET status = 'DELIVERED', delivered_at = d.at, implied_event_id = d.event_id
         FROM UNNEST($1::uuid[], $2::int[], $3::timestamptz[], $4::uuid[]) AS d (message_id, position, at, event_id)
         WHERE r.message_id = d.message_id AND r.message_id = ANY($1) AND r.position = d.position
           AND r.status = 'SENT'",
        &deliveries
            .iter()
            .map(|delivery| delivery.message_id.0)
            .collect::<Vec<_>>(),
        &deliveries.iter().map(|delivery| delivery.position).collect::<Vec<_>>(),
        &deliveries.iter().map(|delivery| delivery.at).collect::<Vec<_>>(),
        &deliveries.iter().map(|delivery| delivery.event_id.0).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("record a delivery")?;
    Ok(())
}
