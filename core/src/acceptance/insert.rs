//! The INSERT of accepted messages: one statement writes any number of messages with all rows that
//! belong to them, except the DROPPED events of suppressed recipients, which few messages have.
//! Statements per message are what bounds acceptance, so there is one. Its parameters are arrays of
//! the composite types `new_message`, `new_recipient` and `new_key_claim`, which the migrations
//! define.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};
use sqlx::types::Json;
use sqlx::{Encode, PgConnection, Postgres, Type, query_file};
use uuid::Uuid;

use super::idempotency::{InsertEntry, stored};
use super::own_content::RecipientContent;
use crate::address::AddressHash;
use crate::attachment::AttachmentRef;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::delivery::job::SendJob;
use crate::event::{self, EventType, NewEvent};
use crate::fault::Fault;
use crate::idempotency::store;
use crate::idempotency::{KEY_LIFETIME, KeyClaim};
use crate::ids::{
    EventId, MessageId, OrganizationId, ProviderAccountId, RoutingRuleId, UnsubscribeGroupId,
};
use crate::message::{CHUNK_RECIPIENTS, RecipientKind, SimulatedOutcome};
use crate::routing::conditions::MessageClass;
use crate::suppression;
use crate::telemetry::traces::TraceContext;
use crate::template::render::VersionRef;
use crate::tracking::Tracking;

/// A message about to be written.
pub(super) struct NewMessage {
    pub(super) id: MessageId,
    pub(super) organization_id: OrganizationId,
    pub(super) provider_account_id: ProviderAccountId,
    pub(super) routing_rule_id: Option<RoutingRuleId>,
    pub(super) from_address: String,
    pub(super) from_mailbox: String,
    pub(super) reply_to: Option<String>,
    pub(super) subject: String,
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) metadata: Option<Value>,
    pub(super) version: Option<VersionRef>,
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub(super) tracking: Tracking,
    pub(super) headers: Vec<(String, String)>,
    pub(super) attachments: Vec<AttachmentRef>,
    pub(super) scheduled_at: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) is_shared: bool,
    pub(super) is_account_pinned: bool,
    pub(super) class: MessageClass,
    pub(super) test_outcome: Option<SimulatedOutcome>,
    /// Where its request stands in its trace.
    pub(super) trace: Option<TraceContext>,
    pub(super) created_at: Timestamp,
    pub(super) recipients: Vec<NewRecipient>,
}

/// A recipient about to be written; its position is its index in the list.
pub(super) struct NewRecipient {
    pub(super) address_sealed: Vec<u8>,
    pub(super) address_hash: AddressHash,
    /// The domain of the address, in lower case.
    pub(super) domain: String,
    /// The id of its DROPPED event, if it is suppressed and nothing is sent to it.
    pub(super) dropped_event: Option<EventId>,
    /// Whether the INSERT has to check that it is not suppressed.
    pub(super) is_unchecked: bool,
    pub(super) kind: RecipientKind,
    /// What it has instead of the message's content, if it was rendered with variables of
    /// its own.
    pub(super) own: Option<RecipientContent>,
    pub(super) metadata: Option<Value>,
}

/// What the INSERT left out.
#[derive(Default)]
pub(super) struct Inserted<'a> {
    /// Claims of keys that another request has. Neither they nor their messages were
    /// written.
    pub(super) taken: Vec<&'a KeyClaim>,
    /// Messages with unchecked recipients that turned out to be suppressed, with the
    /// positions of these. Neither the messages nor their claims were written.
    pub(super) suppressed: HashMap<MessageId, Vec<i32>>,
}

impl NewMessage {
    /// Its share of a batch: its rows, and its bodies and metadata and those of its
    /// recipients at one row for 8 KiB. Postgres takes no statement above 1 GiB.
    pub(super) fn weight(&self) -> usize {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let metadata =
            |json: &Option<Value>| json.as_ref().map_or(0, |json| json.to_string().len());
        let own = self
            .recipients
            .iter()
            .map(|to| to.own.as_ref().map_or(0, RecipientContent::bytes) + metadata(&to.metadata));
        let all = bytes(&self.html) + bytes(&self.text) + metadata(&self.metadata);
        3 + self.recipients.len() + (all + own.sum::<usize>()) / 8_192
    }

    /// The jobs that send it: one for each chunk that has a recipient to send to.
    pub(super) fn jobs(&self) -> impl Iterator<Item = SendJob> + '_ {
        let size = usize::try_from(CHUNK_RECIPIENTS).unwrap_or(usize::MAX);
        let chunks = (0..).zip(self.recipients.chunks(size));
        chunks
            .filter(|(_, recipients)| recipients.iter().any(|to| to.dropped_event.is_none()))
            .map(|(chunk, _)| SendJob {
                message_id: self.id,
                chunk,
                organization_id: self.organization_id,
            })
    }

    fn recipient_count(&self) -> i32 {
        i32::try_from(self.recipients.len()).unwrap_or(i32::MAX)
    }
}

/// Writes messages with their bodies, recipients and outbox rows, in one statement and so in one
/// transaction. The relay waits `relay_grace` before it pushes their jobs itself. A second
/// statement writes the DROPPED events of recipients that are known to be suppressed
/// ([`drops_recipients`]).
///
/// A message with an idempotency key claims it first; no key may come twice in one call.
/// If another request has the key, the message is left out. If an unchecked recipient is
/// suppressed, message and claim are left out. The caller decides about both again.
///
/// # Errors
/// A fault; nothing is written then.
pub(super) async fn insert<'a>(
    connection: &mut PgConnection,
    entries: &[&'a InsertEntry],
    relay_grace: Duration,
) -> Result<Inserted<'a>, Fault> {
    let messages = entries.iter().filter_map(|entry| entry.message.as_ref());
    let messages: Vec<&NewMessage> = messages.collect();
    let message_rows: Vec<MessageRow<'_>> = messages.iter().map(|m| MessageRow::of(m)).collect();
    let recipients = messages.iter().flat_map(|m| RecipientRow::all_of(m));
    let recipient_rows: Vec<RecipientRow<'_>> = recipients.collect();
    let claims = claims_in_order(entries);
    let claim_rows: Vec<ClaimRow<'_>> = claims.iter().map(ClaimRow::of).collect();
    let newest_claim = claims.iter().map(|(claim, _)| claim.at).max();
    let bulk = messages.iter().filter(|m| m.class == MessageClass::Bulk);
    let bulk: Vec<Uuid> = bulk.map(|message| message.id.0).collect();
    let left_out = query_file!(
        "src/acceptance/insert.sql",
        &message_rows as &[MessageRow<'_>],
        &recipient_rows as &[RecipientRow<'_>],
        &claim_rows as &[ClaimRow<'_>],
        delta(KEY_LIFETIME) as _,
        suppression::REASON,
        delta(relay_grace) as _,
        newest_claim,
        &bulk,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("accept messages")?;
    let mut inserted = Inserted::default();
    for row in left_out {
        if let Some(ordinality) = row.ordinality {
            let index = usize::try_from(ordinality - 1).unwrap_or(usize::MAX);
            inserted
                .taken
                .extend(claims.get(index).map(|(claim, _)| *claim));
        }
        if let (Some(message_id), Some(position)) = (row.message_id, row.position) {
            let positions = inserted.suppressed.entry(MessageId(message_id));
            positions.or_default().push(position);
        }
    }
    event::store::insert(connection, &dropped_events(entries, &inserted)).await?;
    Ok(inserted)
}

/// Whether a recipient of these entries is known to be suppressed. Then [`insert`] runs two
/// statements, and its caller begins a transaction.
pub(super) fn drops_recipients(entries: &[&InsertEntry]) -> bool {
    let messages = entries.iter().filter_map(|entry| entry.message.as_ref());
    messages
        .flat_map(|message| &message.recipients)
        .any(|recipient| recipient.dropped_event.is_some())
}

/// The DROPPED events of the messages that were inserted.
fn dropped_events(entries: &[&InsertEntry], inserted: &Inserted<'_>) -> Vec<NewEvent> {
    let is_taken = |claim: &KeyClaim| {
        inserted
            .taken
            .iter()
            .any(|taken| std::ptr::eq(*taken, claim))
    };
    let written = entries
        .iter()
        .filter(|entry| !entry.claim.as_ref().is_some_and(is_taken))
        .filter_map(|entry| entry.message.as_ref())
        .filter(|message| !inserted.suppressed.contains_key(&message.id));
    let events = written.flat_map(|message| {
        let recipients = (0..).zip(&message.recipients);
        recipients.filter_map(|(position, recipient)| {
            Some(NewEvent {
                id: recipient.dropped_event?,
                message_id: message.id,
                organization_id: message.organization_id,
                position,
                event_type: EventType::Dropped,
                occurred_at: message.created_at,
                data: Some(json!({ "reason": suppression::REASON })),
            })
        })
    });
    events.collect()
}

/// A list as JSON; NULL if it is empty.
fn non_empty<T>(list: &[T]) -> Option<Json<&[T]>> {
    (!list.is_empty()).then_some(Json(list))
}

/// The claims of entries, in the order in which every process takes them.
fn claims_in_order<'a>(entries: &[&'a InsertEntry]) -> Vec<(&'a KeyClaim, &'a InsertEntry)> {
    let claims = entries
        .iter()
        .filter_map(|entry| Some((entry.claim.as_ref()?, *entry)));
    let mut claims: Vec<_> = claims.collect();
    claims.sort_by_key(|(claim, _)| store::order(claim));
    claims
}

/// A value of the type `new_message`; the fields in its order.
#[derive(Encode)]
struct MessageRow<'a> {
    id: Uuid,
    organization_id: Uuid,
    provider_account_id: Uuid,
    routing_rule_id: Option<Uuid>,
    template_id: Option<Uuid>,
    template_version_id: Option<Uuid>,
    unsubscribe_group_id: Option<Uuid>,
    from_address: &'a str,
    from_mailbox: &'a str,
    to_hash: &'a [u8],
    reply_to: Option<&'a str>,
    subject: &'a str,
    html: Option<&'a str>,
    text: Option<&'a str>,
    tags: &'a [String],
    metadata: Option<&'a Value>,
    track_opens: bool,
    track_clicks: bool,
    recipient_count: i32,
    chunks: Vec<i32>,
    /// For programs from before the migration `queued_events`: they write the event themselves.
    queued_event_id: Option<Uuid>,
    created_at: Timestamp,
    headers: Option<Json<&'a [(String, String)]>>,
    attachments: Option<Json<&'a [AttachmentRef]>>,
    scheduled_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    is_shared: Option<bool>,
    is_account_pinned: Option<bool>,
    test_outcome: Option<SimulatedOutcome>,
    traceparent: Option<String>,
}

impl<'a> MessageRow<'a> {
    fn of(message: &'a NewMessage) -> Self {
        let first = message.recipients.first();
        let first = first.expect("a draft has at least one recipient");
        let version = message.version.as_ref();
        Self {
            id: message.id.0,
            organization_id: message.organization_id.0,
            provider_account_id: message.provider_account_id.0,
            routing_rule_id: message.routing_rule_id.map(|id| id.0),
            template_id: version.map(|version| version.template_id.0),
            template_version_id: version.map(|version| version.version_id.0),
            unsubscribe_group_id: message.unsubscribe_group_id.map(|id| id.0),
            from_address: &message.from_address,
            from_mailbox: &message.from_mailbox,
            to_hash: &first.address_hash.0,
            reply_to: message.reply_to.as_deref(),
            subject: &message.subject,
            html: message.html.as_deref(),
            text: message.text.as_deref(),
            tags: &message.tags,
            metadata: message.metadata.as_ref(),
            track_opens: message.tracking.opens,
            track_clicks: message.tracking.clicks,
            recipient_count: message.recipient_count(),
            chunks: message.jobs().map(|job| job.chunk).collect(),
            queued_event_id: None,
            created_at: message.created_at,
            headers: non_empty(&message.headers),
            attachments: non_empty(&message.attachments),
            scheduled_at: message.scheduled_at,
            expires_at: message.expires_at,
            is_shared: message.is_shared.then_some(true),
            is_account_pinned: message.is_account_pinned.then_some(true),
            test_outcome: message.test_outcome,
            traceparent: message.trace.map(|trace| trace.to_string()),
        }
    }
}

impl Type<Postgres> for MessageRow<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("new_message")
    }
}

impl PgHasArrayType for MessageRow<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("new_message")
    }
}

/// A value of the type `new_recipient`; the fields in its order.
#[derive(Encode)]
struct RecipientRow<'a> {
    message_id: Uuid,
    position: i32,
    organization_id: Uuid,
    address_sealed: &'a [u8],
    address_hash: &'a [u8],
    dropped_event_id: Option<Uuid>,
    is_unchecked: bool,
    unsubscribe_group_id: Option<Uuid>,
    kind: Option<RecipientKind>,
    subject: Option<&'a str>,
    html: Option<&'a str>,
    text: Option<&'a str>,
    metadata: Option<&'a Value>,
    scheduled_at: Option<Timestamp>,
    domain: &'a str,
}

impl<'a> RecipientRow<'a> {
    fn all_of(message: &'a NewMessage) -> impl Iterator<Item = Self> {
        (0..)
            .zip(&message.recipients)
            .map(|(position, recipient)| Self {
                message_id: message.id.0,
                position,
                organization_id: message.organization_id.0,
                address_sealed: &recipient.address_sealed,
                address_hash: &recipient.address_hash.0,
                dropped_event_id: recipient.dropped_event.map(|id| id.0),
                is_unchecked: recipient.is_unchecked,
                unsubscribe_group_id: message.unsubscribe_group_id.map(|id| id.0),
                kind: Some(recipient.kind).filter(|kind| *kind != RecipientKind::To),
                subject: recipient
                    .own
                    .as_ref()
                    .and_then(|own| own.subject.as_deref()),
                html: recipient.own.as_ref().and_then(|own| own.html.as_deref()),
                text: recipient.own.as_ref().and_then(|own| own.text.as_deref()),
                metadata: recipient.metadata.as_ref(),
                scheduled_at: message.scheduled_at,
                domain: &recipient.domain,
            })
    }
}

impl Type<Postgres> for RecipientRow<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("new_recipient")
    }
}

impl PgHasArrayType for RecipientRow<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("new_recipient")
    }
}

/// A value of the type `new_key_claim`; the fields in its order.
#[derive(Encode)]
struct ClaimRow<'a> {
    organization_id: Uuid,
    key_hash: &'a [u8],
    body_hash: &'a [u8],
    answer: Vec<u8>,
    created_at: Timestamp,
    message_id: Option<Uuid>,
    /// When the lifetime of the key begins, if that is not when the request arrived: when its
    /// message is due.
    kept_from: Option<Timestamp>,
}

impl<'a> ClaimRow<'a> {
    fn of((claim, entry): &(&'a KeyClaim, &'a InsertEntry)) -> Self {
        Self {
            organization_id: claim.organization_id.0,
            key_hash: &claim.key_hash.0,
            body_hash: &claim.body_hash.0,
            answer: stored(&entry.acceptance),
            created_at: claim.at,
            message_id: entry.message.as_ref().map(|message| message.id.0),
            kept_from: entry
                .message
                .as_ref()
                .and_then(|message| message.scheduled_at),
        }
    }
}

impl Type<Postgres> for ClaimRow<'_> {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("new_key_claim")
    }
}

impl PgHasArrayType for ClaimRow<'_> {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::array_of("new_key_claim")
    }
}
