//! `GET /messages/outbound/{id}/details`. Addresses and bodies are for a key that may read
//! content; without that permission they are empty.

use chrono::SecondsFormat;
use poem::Response;
use serde_json::{Value, json};
use waypost_core::address::Mailbox;
use waypost_core::auth::Permission;
use waypost_core::clock::Timestamp;
use waypost_core::db;
use waypost_core::event::{self, Event, EventType};
use waypost_core::ids::MessageId;
use waypost_core::message::content::{ContentPart, ContentRefusal, StoredContent};
use waypost_core::message::envelope::{self, EnvelopeRecipient, MessageEnvelope};
use waypost_core::message::{MessageItem, MessageStatus, RecipientKind, store};

use super::answer;
use crate::compat::call::VendorCall;
use crate::error::{Failure, MESSAGE};
use crate::middleware::auth::Caller;

/// The most recipients that are shown: all.
const RECIPIENTS_MAX: i32 = 1_000;

/// `GET /messages/outbound/{id}/details`
pub(super) async fn get_details(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::MetricsRead)?;
    call.without_fields().await?;
    let id: MessageId = call.path_id("id", MESSAGE)?;
    let organization_id = caller.organization_id();
    let mut connection = db::snapshot(&call.context.pool, "show a message").await?;
    let found = store::find(&mut connection, organization_id, id).await?;
    let message = found.ok_or(Failure::NotFound(MESSAGE))?;
    let mut envelopes = envelope::list(&mut connection, organization_id, &[id]).await?;
    let events = event::store::list(&mut connection, organization_id, id).await?;
    drop(connection);
    let envelope = envelopes.remove(&id).ok_or(Failure::NotFound(MESSAGE))?;
    let private = Private::read(&call, &caller, id).await?;
    Ok(answer(&details(&message, &envelope, &private, &events)))
}

/// What only a key with a permission of its own may read.
#[derive(Default)]
struct Private {
    recipients: Vec<EnvelopeRecipient>,
    content: Option<StoredContent>,
}

impl Private {
    /// Nothing without the permission; no content if it is no longer stored.
    async fn read(call: &VendorCall, caller: &Caller, id: MessageId) -> Result<Self, Failure> {
        if caller.require(Permission::ContentRead).is_err() {
            return Ok(Self::default());
        }
        let (organization_id, origin) = (caller.organization_id(), caller.origin());
        let addresses = &call.context.addresses;
        let ids = [id];
        let reading = addresses.read(organization_id, origin, &ids, RECIPIENTS_MAX);
        let recipients = reading.await?.remove(&id).unwrap_or_default();
        let contents = &call.context.contents;
        let reading = contents.read(organization_id, origin, id, ContentPart::Message);
        let content = match reading.await {
            Ok(content) => Some(content),
            Err(ContentRefusal::Expired | ContentRefusal::Withheld) => None,
            Err(
                refusal @ (ContentRefusal::MessageNotFound
                | ContentRefusal::RecipientNotFound
                | ContentRefusal::AttachmentNotFound
                | ContentRefusal::Fault(_)),
            ) => return Err(refusal.into()),
        };
        Ok(Self {
            recipients,
            content,
        })
    }

    fn of_kind(&self, kind: RecipientKind) -> impl Iterator<Item = &Mailbox> {
        let of_kind = self.recipients.iter().filter(move |one| one.kind == kind);
        of_kind.filter_map(|one| one.mailbox.as_ref())
    }

    fn address(&self, position: i32) -> Option<&str> {
        let mut at = self.recipients.iter();
        let recipient = at.find(|one| one.position == position)?;
        Some(recipient.mailbox.as_ref()?.address().as_str())
    }
}

fn details(
    message: &MessageItem,
    envelope: &MessageEnvelope,
    private: &Private,
    events: &[Event],
) -> Value {
    let pairs = |kind| {
        let pairs = private.of_kind(kind).map(|mailbox| {
            let name = mailbox.name().unwrap_or_default();
            json!({ "Email": mailbox.address().as_str(), "Name": name })
        });
        pairs.collect::<Vec<Value>>()
    };
    let kinds = [RecipientKind::To, RecipientKind::Cc, RecipientKind::Bcc];
    let recipients = kinds.into_iter().flat_map(|kind| private.of_kind(kind));
    let recipients: Vec<&str> = recipients
        .map(|mailbox| mailbox.address().as_str())
        .collect();
    let content = private.content.as_ref();
    let files = content.map_or(&[][..], |content| content.attachments.as_slice());
    let files: Vec<&str> = files.iter().map(|file| file.filename.as_str()).collect();
    let html = content.and_then(|content| content.html.as_deref());
    let text = content.and_then(|content| content.text.as_deref());
    let group = envelope.unsubscribe_group_id;
    let stream = group.map_or_else(|| "outbound".to_owned(), |group| group.to_string());
    let shown = events.iter().filter_map(|event| of_event(event, private));
    json!({
        "MessageID": message.id.to_string(),
        "MessageStream": stream,
        "From": envelope.from.to_string(),
        "To": pairs(RecipientKind::To),
        "Cc": pairs(RecipientKind::Cc),
        "Bcc": pairs(RecipientKind::Bcc),
        "Recipients": recipients,
        "Subject": message.subject,
        "HtmlBody": html.unwrap_or_default(),
        "TextBody": text.unwrap_or_default(),
        // Waypost keeps no mail as it goes to the provider.
        "Body": "",
        "Tag": message.tags.first().map_or("", String::as_str),
        "Metadata": envelope.metadata.clone().unwrap_or_else(|| json!({})),
        "Attachments": files,
        "ReceivedAt": time(message.created_at),
        "Status": status(message.status),
        "Sandboxed": message.is_test,
        "MessageEvents": shown.collect::<Vec<Value>>(),
    })
}

fn time(at: Timestamp) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// The status of a message in the words of Postmark.
fn status(status: MessageStatus) -> &'static str {
    match status {
        MessageStatus::Queued | MessageStatus::Sending => "Queued",
        MessageStatus::Sent | MessageStatus::Delivered | MessageStatus::Bounced => "Sent",
        MessageStatus::Failed => "Processed",
    }
}

/// An event as Postmark shows it; `None` if it has none like it.
fn of_event(event: &Event, private: &Private) -> Option<Value> {
    let reason = event.reason.as_deref().unwrap_or_default();
    let (kind, details) = match event.event_type {
        EventType::Queued | EventType::Sent => return None,
        EventType::Delivered => ("Delivered", json!({ "DeliveryMessage": reason })),
        EventType::Deferred => ("Transient", json!({ "DeliveryMessage": reason })),
        EventType::Bounced | EventType::Dropped => ("Bounced", json!({ "Summary": reason })),
        EventType::Opened => ("Opened", json!({ "Summary": reason })),
        EventType::Clicked => {
            let link = event.url.as_deref().unwrap_or_default();
            (
                "LinkClicked",
                json!({ "Summary": link, "Link": link, "ClickLocation": "HTML" }),
            )
        }
        EventType::Complained | EventType::Unsubscribed => (
            "SubscriptionChanged",
            json!({ "Origin": "Recipient", "SuppressSending": "True" }),
        ),
    };
    let recipient = event.position.and_then(|at| private.address(at));
    Some(json!({
        "Recipient": recipient.unwrap_or_default(),
        "Type": kind,
        "ReceivedAt": time(event.occurred_at),
        "Details": details,
    }))
}
