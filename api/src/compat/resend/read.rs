//! `GET /emails/{id}` and `GET /emails`. Addresses and bodies are for a key that may read content;
//! without that permission they are empty.

use std::collections::HashMap;

use chrono::SecondsFormat;
use poem::Response;
use serde_json::{Value, json};
use uuid::Uuid;
use waypost_core::auth::Permission;
use waypost_core::clock::Timestamp;
use waypost_core::db;
use waypost_core::delivery::change::CANCELLED;
use waypost_core::event::EventType;
use waypost_core::ids::MessageId;
use waypost_core::issue::Issue;
use waypost_core::message::content::{ContentPart, ContentRefusal};
use waypost_core::message::envelope::{self, EnvelopeRecipient, MessageEnvelope};
use waypost_core::message::list::{MessageList, store as lists};
use waypost_core::message::{MessageItem, MessageStatus, RecipientKind, store};
use waypost_core::suppression;

use super::answer;
use crate::compat::call::VendorCall;
use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::middleware::auth::Caller;

/// The most recipients that are shown of a message alone: all.
const RECIPIENTS_MAX: i32 = 1_000;
/// The most recipients that are shown of each message of a list: as many as an email of Resend
/// has.
const RECIPIENTS_LISTED_MAX: i32 = 50;
/// Messages on a page, as with Resend.
const LIMIT_DEFAULT: u16 = 20;
const LIMIT_MAX: u16 = 100;

/// `GET /emails/{id}`
pub(super) async fn get_email(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::MetricsRead)?;
    call.without_fields().await?;
    let id: MessageId = call.path_id("id", MESSAGE)?;
    let context = &call.context;
    let organization_id = caller.organization_id();
    let mut connection = db::snapshot(&context.pool, "show a message").await?;
    let found = store::find(&mut connection, organization_id, id).await?;
    let message = found.ok_or(Failure::NotFound(MESSAGE))?;
    let mut envelopes = envelope::list(&mut connection, organization_id, &[id]).await?;
    drop(connection);
    let envelope = envelopes.remove(&id).ok_or(Failure::NotFound(MESSAGE))?;
    let mut recipients = addresses(context, &caller, &[id], RECIPIENTS_MAX).await?;
    let recipients = recipients.remove(&id).unwrap_or_default();
    let mut email = email(&message, &envelope, &recipients, context.clock.now());
    let (html, text) = bodies(context, &caller, id).await?;
    email["object"] = json!("email");
    email["html"] = json!(html);
    email["text"] = json!(text);
    email["tags"] = tags(&message.tags);
    Ok(answer(&email))
}

/// `GET /emails`: the newest first.
pub(super) async fn list_emails(mut call: VendorCall) -> Result<Response, Failure> {
    let caller = call.authorize(Permission::MetricsRead)?;
    call.without_fields().await?;
    let ListQuery { limit, place } = ListQuery::read(&call).map_err(Failure::Invalid)?;
    let context = &call.context;
    let organization_id = caller.organization_id();
    let list = MessageList {
        organization_id,
        is_test: caller.is_test(),
    };
    let mut connection = db::snapshot(&context.pool, "list messages").await?;
    let rows = i64::from(limit) + 1;
    let mut ids = match place {
        ListPlace::After(id) => lists::older_than(&mut connection, list, id, rows).await?,
        ListPlace::Before(id) => lists::newer_than(&mut connection, list, id, rows).await?,
    };
    let has_more = ids.len() > usize::from(limit);
    ids.truncate(usize::from(limit));
    let messages = lists::find_many(&mut connection, organization_id, &ids).await?;
    let envelopes = envelope::list(&mut connection, organization_id, &ids).await?;
    drop(connection);
    let recipients = addresses(context, &caller, &ids, RECIPIENTS_LISTED_MAX).await?;
    let now = context.clock.now();
    let emails = messages.iter().filter_map(|message| {
        let envelope = envelopes.get(&message.id)?;
        let recipients = recipients.get(&message.id).map_or(&[][..], Vec::as_slice);
        Some(email(message, envelope, recipients, now))
    });
    let emails: Vec<Value> = emails.collect();
    Ok(answer(
        &json!({ "object": "list", "has_more": has_more, "data": emails }),
    ))
}

/// Which page of the list is asked for.
struct ListQuery {
    limit: u16,
    place: ListPlace,
}

/// Where a page lies.
enum ListPlace {
    /// Older messages than this one.
    After(Uuid),
    /// Newer messages than this one.
    Before(Uuid),
}

impl ListQuery {
    fn read(call: &VendorCall) -> Result<Self, Vec<Issue>> {
        let mut issues = Vec::new();
        let mut given: HashMap<String, String> = HashMap::new();
        for (name, value) in call.query() {
            if !["limit", "after", "before"].contains(&name.as_str()) {
                issues.push(Issue::new(name, "is not a parameter of this operation"));
            } else if given.insert(name.clone(), value).is_some() {
                issues.push(Issue::new(name, "must not be given more than once"));
            }
        }
        let limit = given.get("limit").map_or(Some(LIMIT_DEFAULT), |text| {
            text.parse()
                .ok()
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
        });
        if limit.is_none() {
            let rule = format!("must be a number from 1 to {LIMIT_MAX}");
            issues.push(Issue::new("limit", rule));
        }
        let mut id = |name: &str| {
            let id = Uuid::parse_str(given.get(name)?).ok();
            if id.is_none() {
                issues.push(Issue::new(name, "must be the id of an email"));
            }
            id
        };
        let (after, before) = (id("after"), id("before"));
        let place = match (after, before) {
            (Some(id), None) => ListPlace::After(id),
            (None, Some(id)) => ListPlace::Before(id),
            (None, None) => ListPlace::After(Uuid::max()),
            (Some(_), Some(_)) => {
                issues.push(Issue::new(
                    "before",
                    "must not be given together with after",
                ));
                ListPlace::After(Uuid::max())
            }
        };
        match limit {
            Some(limit) if issues.is_empty() => Ok(Self { limit, place }),
            Some(_) | None => Err(issues),
        }
    }
}

/// The recipients of messages, if the caller may read addresses.
async fn addresses(
    context: &Context,
    caller: &Caller,
    ids: &[MessageId],
    max: i32,
) -> Result<HashMap<MessageId, Vec<EnvelopeRecipient>>, Failure> {
    if caller.require(Permission::ContentRead).is_err() {
        return Ok(HashMap::new());
    }
    let organization_id = caller.organization_id();
    let reading = context
        .addresses
        .read(organization_id, caller.origin(), ids, max);
    Ok(reading.await?)
}

/// The bodies, if the caller may read them and they are still stored.
async fn bodies(
    context: &Context,
    caller: &Caller,
    id: MessageId,
) -> Result<(Option<String>, Option<String>), Failure> {
    if caller.require(Permission::ContentRead).is_err() {
        return Ok((None, None));
    }
    let (organization_id, origin) = (caller.organization_id(), caller.origin());
    let reading = context
        .contents
        .read(organization_id, origin, id, ContentPart::Message);
    match reading.await {
        Ok(content) => Ok((content.html, content.text)),
        Err(ContentRefusal::Expired | ContentRefusal::Withheld) => Ok((None, None)),
        Err(
            refusal @ (ContentRefusal::MessageNotFound
            | ContentRefusal::RecipientNotFound
            | ContentRefusal::AttachmentNotFound
            | ContentRefusal::Fault(_)),
        ) => Err(refusal.into()),
    }
}

/// What a list shows of a message.
fn email(
    message: &MessageItem,
    envelope: &MessageEnvelope,
    recipients: &[EnvelopeRecipient],
    now: Timestamp,
) -> Value {
    let time = |at: Timestamp| at.to_rfc3339_opts(SecondsFormat::Micros, false);
    let of_kind = |kind: RecipientKind| {
        let of_kind = recipients.iter().filter(|one| one.kind == kind);
        let mailboxes = of_kind.filter_map(|one| one.mailbox.as_ref());
        mailboxes
            .map(|mailbox| mailbox.to_string())
            .collect::<Vec<_>>()
    };
    let reply_to: Vec<String> = envelope.reply_to.iter().map(ToString::to_string).collect();
    json!({
        "id": message.id.to_string(),
        // What the provider calls it; not known before it is sent.
        "message_id": message.provider_message_id.as_deref().unwrap_or_default(),
        "from": envelope.from.to_string(),
        "to": of_kind(RecipientKind::To),
        "cc": of_kind(RecipientKind::Cc),
        "bcc": of_kind(RecipientKind::Bcc),
        "reply_to": reply_to,
        "subject": message.subject,
        "created_at": time(message.created_at),
        "scheduled_at": envelope.scheduled_at.map(time),
        "topic_id": envelope.unsubscribe_group_id.map(|id| id.to_string()),
        "last_event": last_event(message.status, envelope, now),
    })
}

/// The status of a message in the words of Resend.
fn last_event(status: MessageStatus, envelope: &MessageEnvelope, now: Timestamp) -> &'static str {
    let last = envelope.last_event.as_ref();
    let last_type = last.map(|last| last.event_type);
    let reason = last.and_then(|last| last.reason.as_deref());
    match status {
        MessageStatus::Queued if envelope.scheduled_at.is_some_and(|at| at > now) => "scheduled",
        MessageStatus::Queued | MessageStatus::Sending => match last_type {
            Some(EventType::Deferred) => "delivery_delayed",
            Some(
                EventType::Queued
                | EventType::Sent
                | EventType::Delivered
                | EventType::Opened
                | EventType::Clicked
                | EventType::Bounced
                | EventType::Complained
                | EventType::Unsubscribed
                | EventType::Dropped,
            )
            | None => "queued",
        },
        MessageStatus::Failed if reason == Some(CANCELLED) => "canceled",
        MessageStatus::Failed if reason == Some(suppression::REASON) => "suppressed",
        MessageStatus::Failed => "failed",
        MessageStatus::Sent | MessageStatus::Delivered | MessageStatus::Bounced => {
            let by_status = match status {
                MessageStatus::Delivered => "delivered",
                MessageStatus::Bounced => "bounced",
                MessageStatus::Sent
                | MessageStatus::Queued
                | MessageStatus::Sending
                | MessageStatus::Failed => "sent",
            };
            match last_type {
                Some(EventType::Opened) => "opened",
                Some(EventType::Clicked) => "clicked",
                Some(EventType::Complained) => "complained",
                Some(EventType::Delivered) => "delivered",
                Some(EventType::Bounced) => "bounced",
                Some(EventType::Deferred) => "delivery_delayed",
                Some(
                    EventType::Queued
                    | EventType::Sent
                    | EventType::Unsubscribed
                    | EventType::Dropped,
                )
                | None => by_status,
            }
        }
    }
}

/// `name:value` as a tag of Resend.
fn tags(tags: &[String]) -> Value {
    let tags = tags.iter().map(|tag| {
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        json!({ "name": name, "value": value })
    });
    Value::Array(tags.collect())
}
