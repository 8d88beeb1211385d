//! Who a message is from and to, with the addresses themselves, and what happened to it last.
//! Recipients' addresses are encrypted at rest: whoever reads them leaves an entry in the audit
//! log. The content of messages is in [`super::content`].

mod store;

use std::collections::HashMap;

use serde_json::{Value, json};

use super::RecipientKind;
use super::compose::{stored_mailbox, stored_mailboxes};
use crate::address::Mailbox;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::{Clock, Timestamp};
use crate::crypto::seal::{Sealed, Sealer};
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::event::EventType;
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId, UnsubscribeGroupId};

/// What is known of a message besides its row in a list. No `Debug`: it must not be logged.
pub struct MessageEnvelope {
    /// The sender with its name; without one if the content is no longer stored.
    pub from: Mailbox,
    /// The addresses for replies; none if the content is no longer stored.
    pub reply_to: Vec<Mailbox>,
    pub metadata: Option<Value>,
    pub scheduled_at: Option<Timestamp>,
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// The newest event, except unsubscribes and what programs opened or clicked.
    pub last_event: Option<LastEvent>,
}

/// The newest event of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastEvent {
    pub event_type: EventType,
    pub reason: Option<String>,
}

/// A recipient with its address. No `Debug`: it must not be logged.
pub struct EnvelopeRecipient {
    pub position: i32,
    pub kind: RecipientKind,
    /// `None` if it was erased.
    pub mailbox: Option<Mailbox>,
}

/// The envelopes of messages; a message that does not exist has none.
///
/// # Errors
/// A fault if Postgres is unavailable, or a stored mailbox cannot be read.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[MessageId],
) -> Result<HashMap<MessageId, MessageEnvelope>, Fault> {
    let rows = store::list(connection, organization_id, ids).await?;
    let envelopes = rows.into_iter().map(|row| {
        let envelope = MessageEnvelope {
            from: stored_mailbox(&row.from)?,
            reply_to: stored_mailboxes(row.reply_to.as_deref().unwrap_or_default())?,
            metadata: row.metadata,
            scheduled_at: row.scheduled_at,
            unsubscribe_group_id: row.unsubscribe_group_id,
            last_event: row.last_type.map(|event_type| LastEvent {
                event_type,
                reason: row.last_reason,
            }),
        };
        Ok((row.id, envelope))
    });
    envelopes.collect()
}

/// Opens the addresses of recipients. Cheap to clone.
#[derive(Clone)]
pub struct AddressReader {
    pub pool: PgPool,
    pub sealer: Sealer,
    pub clock: Clock,
    pub ids: Ids,
}

impl AddressReader {
    /// The first `max` recipients of each of these messages, in the order of the request, and an
    /// entry in the audit log: of the first message, with the ids of all if there are several.
    ///
    /// # Errors
    /// A fault. Nothing is shown and nothing recorded then.
    pub async fn read(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        messages: &[MessageId],
        max: i32,
    ) -> Result<HashMap<MessageId, Vec<EnvelopeRecipient>>, Fault> {
        let doing = "read the addresses of recipients";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let rows = store::list_recipients(&mut transaction, organization_id, messages, max).await?;
        let mut found: HashMap<MessageId, Vec<EnvelopeRecipient>> = HashMap::new();
        for row in rows {
            let sealed = row.address_sealed.as_deref();
            let mailbox = sealed.map(|sealed| self.open(organization_id, row.message_id, sealed));
            found
                .entry(row.message_id)
                .or_default()
                .push(EnvelopeRecipient {
                    position: row.position,
                    kind: row.kind,
                    mailbox: mailbox.transpose()?,
                });
        }
        if let Some(change) = Self::entry(messages, &found) {
            let now = self.clock.now();
            audit::store::insert(
                &mut transaction,
                organization_id,
                origin,
                &change,
                &self.ids,
                now,
            )
            .await?;
        }
        transaction.commit().await.or_fault(doing)?;
        Ok(found)
    }

    /// The entry in the audit log; `None` if no message was found.
    fn entry(
        messages: &[MessageId],
        found: &HashMap<MessageId, Vec<EnvelopeRecipient>>,
    ) -> Option<AuditChange> {
        let read = messages.iter().filter(|id| found.contains_key(id));
        let read: Vec<MessageId> = read.copied().collect();
        let (first, others) = read.split_first()?;
        let mut metadata = json!({ "part": "addresses" });
        if !others.is_empty() {
            let ids: Vec<String> = read.iter().map(ToString::to_string).collect();
            metadata["messages"] = json!(ids);
        }
        Some(AuditChange::new("message.content_read", *first).with(metadata))
    }

    fn open(
        &self,
        organization_id: OrganizationId,
        id: MessageId,
        sealed: &[u8],
    ) -> Result<Mailbox, Fault> {
        let opened = self
            .sealer
            .open(organization_id, Sealed::Recipient, id.0, sealed)?;
        let text = String::from_utf8(opened)
            .map_err(|error| Fault::internal("read a recipient's address", error.utf8_error()))?;
        stored_mailbox(&text)
    }
}
