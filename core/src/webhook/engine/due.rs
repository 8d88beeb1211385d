//! Due deliveries as they are read: those with all that their calls need, and orphans.

use serde_json::Value;
use uuid::Uuid;

use super::store::READ_MAX;
use super::{DueContent, DueDelivery, DueMessage};
use crate::clock::Timestamp;
use crate::ids::{EventId, MessageId, WebhookDeliveryId};
use crate::provider::kind::ProviderType;
use crate::webhook::event_type::WebhookEventType;

/// Due deliveries of an endpoint.
#[derive(Debug, Default)]
pub struct Due {
    pub deliveries: Vec<DueDelivery>,
    /// Deliveries whose event, message or recipient was deleted or erased, so that no body
    /// can be built.
    pub orphans: Vec<(MessageId, WebhookDeliveryId)>,
    /// When the last of them became due, if there may be more.
    pub more_from: Option<Timestamp>,
}

/// A due delivery; columns of deleted rows are `None`.
pub(super) struct DueRow {
    pub(super) id: Uuid,
    pub(super) attempts: i32,
    pub(super) due_at: Timestamp,
    pub(super) message_id: Uuid,
    pub(super) event_id: Uuid,
    pub(super) event_type: WebhookEventType,
    pub(super) content: Option<Value>,
    pub(super) created_at: Timestamp,
    pub(super) occurred_at: Option<Timestamp>,
    pub(super) data: Option<Value>,
    pub(super) from_address: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) tags: Option<Vec<String>>,
    pub(super) metadata: Option<Value>,
    pub(super) is_test: Option<bool>,
    pub(super) address_sealed: Option<Vec<u8>>,
    pub(super) provider_type: Option<ProviderType>,
    pub(super) traceparent: Option<String>,
}

impl Due {
    pub(super) fn of(rows: Vec<DueRow>) -> Self {
        let is_full = rows.len() >= READ_MAX;
        let mut due = Self {
            more_from: rows.iter().map(|row| row.due_at).max().filter(|_| is_full),
            ..Self::default()
        };
        for row in rows {
            let (message_id, id) = (MessageId(row.message_id), WebhookDeliveryId(row.id));
            match row.delivery() {
                Some(delivery) => due.deliveries.push(delivery),
                None => due.orphans.push((message_id, id)),
            }
        }
        due
    }
}

impl DueRow {
    /// The delivery; `None` if what its body needs is no longer stored.
    pub(super) fn delivery(self) -> Option<DueDelivery> {
        let (occurred_at, content) = match self.content {
            // An event without a message occurs when its deliveries are inserted.
            Some(Value::Object(content)) => (self.created_at, DueContent::Organization(content)),
            _ => (
                self.occurred_at?,
                DueContent::Message(Box::new(DueMessage {
                    data: self.data,
                    from_address: self.from_address?,
                    subject: self.subject?,
                    tags: self.tags?,
                    metadata: self.metadata,
                    is_test: self.is_test.unwrap_or_default(),
                    address_sealed: self.address_sealed?,
                    provider_type: self.provider_type,
                    trace: self.traceparent.and_then(|text| text.parse().ok()),
                })),
            ),
        };
        Some(DueDelivery {
            id: WebhookDeliveryId(self.id),
            attempts: self.attempts,
            message_id: MessageId(self.message_id),
            event_id: EventId(self.event_id),
            event_type: self.event_type,
            occurred_at,
            content,
        })
    }
}
