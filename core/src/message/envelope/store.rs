//! Envelopes in Postgres.

use serde_json::Value;
use sqlx::{PgConnection, query, query_as};

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::event::EventType;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, UnsubscribeGroupId};
use crate::message::RecipientKind;

/// A message, as far as its envelope is concerned.
pub(super) struct EnvelopeRow {
    pub(super) id: MessageId,
    pub(super) from: String,
    pub(super) reply_to: Option<String>,
    pub(super) metadata: Option<Value>,
    pub(super) scheduled_at: Option<Timestamp>,
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub(super) last_type: Option<EventType>,
    pub(super) last_reason: Option<String>,
}

/// A recipient of one of several messages.
pub(super) struct AddressRow {
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) kind: RecipientKind,
    /// `None` if it was erased.
    pub(super) address_sealed: Option<Vec<u8>>,
}

/// What is known of messages besides their rows.
pub(super) async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
) -> Result<Vec<EnvelopeRow>, Fault> {
    let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.0).collect();
    let range = IdRange::of(&ids);
    query_as!(
        EnvelopeRow,
        r#"SELECT m.id AS "id: MessageId", coalesce(b.from_mailbox, m.from_address) AS "from!", b.reply_to AS "reply_to?",
                  m.metadata, m.scheduled_at,
                  m.unsubscribe_group_id AS "unsubscribe_group_id: UnsubscribeGroupId",
                  e.event_type AS "last_type?: EventType", e.reason AS "last_reason?"
           FROM UNNEST($2::uuid[]) AS given (id)
           CROSS JOIN LATERAL (
               SELECT *
               FROM messages
               WHERE id = given.id AND id BETWEEN $3 AND $4 AND organization_id = $1
               LIMIT 1
           ) m
           LEFT JOIN LATERAL (
               SELECT from_mailbox, reply_to
               FROM message_bodies
               WHERE message_id = m.id AND message_id BETWEEN $3 AND $4
               LIMIT 1
           ) b ON true
           LEFT JOIN LATERAL (
               SELECT event_type, data ->> 'reason' AS reason
               FROM message_events
               WHERE message_id = m.id AND message_id BETWEEN $3 AND $4 AND organization_id = $1
                 AND event_type <> 'UNSUBSCRIBED'
                 AND data ->> 'isBot' IS DISTINCT FROM 'true'
               ORDER BY occurred_at DESC, event_type NOT IN ('QUEUED', 'DROPPED', 'DEFERRED', 'SENT') DESC, id DESC
               LIMIT 1
           ) e ON true"#,
        organization_id.0,
        &ids,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the envelopes of messages")
}

/// The first `max` recipients of each of these messages.
pub(super) async fn list_recipients(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    messages: &[MessageId],
    max: i32,
) -> Result<Vec<AddressRow>, Fault> {
    let ids: Vec<uuid::Uuid> = messages.iter().map(|id| id.0).collect();
    let range = IdRange::of(&ids);
    let rows = query!(
        r#"SELECT message_id AS "message_id: MessageId", position, kind AS "kind: RecipientKind",
                  nullif(address_sealed, '') AS address_sealed
           FROM recipients
           WHERE message_id = ANY($2) AND message_id BETWEEN $3 AND $4 AND organization_id = $1 AND position < $5
           ORDER BY message_id, position"#,
        organization_id.0,
        &ids,
        range.first,
        range.last,
        max,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the addresses of recipients")?;
    let rows = rows.into_iter().map(|row| AddressRow {
        message_id: row.message_id,
        position: row.position,
        kind: row.kind.unwrap_or_default(),
        address_sealed: row.address_sealed,
    });
    Ok(rows.collect())
}
