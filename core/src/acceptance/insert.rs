//! The rows of accepted messages, as columns: one statement writes any number of
//! messages with all that belongs to them. Statements per message are what bounds
//! acceptance, so there is one.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::idempotency::{InsertEntry, stored};
use crate::address::AddressHash;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::delivery::job::SendJob;
use crate::fault::Fault;
use crate::idempotency::store::{self, ClaimColumns};
use crate::idempotency::{KEPT, KeyClaim};
use crate::ids::{
    EventId, MessageId, OrganizationId, ProviderAccountId, RoutingRuleId, UnsubscribeGroupId,
};
use crate::message::CHUNK_RECIPIENTS;
use crate::suppression;
use crate::template::render::VersionUse;
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
    pub(super) version: Option<VersionUse>,
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub(super) tracking: Tracking,
    pub(super) queued_event: EventId,
    pub(super) created_at: Timestamp,
    pub(super) recipients: Vec<NewRecipient>,
}

/// A recipient about to be written; its position is its place in the list.
pub(super) struct NewRecipient {
    pub(super) address_sealed: Vec<u8>,
    pub(super) address_hash: AddressHash,
    /// Its DROPPED event, where it is suppressed and nothing is sent to it.
    pub(super) dropped_event: Option<EventId>,
    /// Whether nobody knows yet if it is suppressed: the statement that writes it looks.
    pub(super) is_open: bool,
}

/// What the statement that writes messages found of them.
#[derive(Default)]
pub(super) struct Inserted<'a> {
    /// Claims whose keys are another request's. Their messages were not written.
    pub(super) taken: Vec<&'a KeyClaim>,
    /// Messages of which open recipients, at these positions, turned out to be
    /// suppressed. Neither they nor their claims were written.
    pub(super) set_aside: HashMap<MessageId, Vec<i32>>,
}

impl NewMessage {
    /// How much of a group this message fills: its rows, and its bodies and its
    /// metadata at one row for 8 KiB. Postgres takes no statement above 1 GiB.
    pub(super) fn weight(&self) -> usize {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let metadata = self.metadata.as_ref();
        let metadata = metadata.map_or(0, |metadata| metadata.to_string().len());
        4 + self.recipients.len() + (bytes(&self.html) + bytes(&self.text) + metadata) / 8_192
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

/// Writes messages with their bodies, recipients, first events and outbox rows,
/// in one statement and so in one transaction. `relay_grace` is how long the
/// relay leaves the push to whoever accepted them.
///
/// Those with a key claim it first, no key twice in one call. Where the key is
/// another request's, the message is left out, and where an open recipient is
/// suppressed, message and claim are: what was decided about them no longer holds.
///
/// # Errors
/// A fault; nothing is written then.
#[expect(clippy::too_many_lines, reason = "one statement and its columns")]
pub(super) async fn insert<'a>(
    connection: &mut PgConnection,
    entries: &[&'a InsertEntry],
    relay_grace: Duration,
) -> Result<Inserted<'a>, Fault> {
    let messages = entries.iter().filter_map(|entry| entry.message.as_ref());
    let messages: Vec<&NewMessage> = messages.collect();
    let message = MessageColumns::of(&messages);
    let recipient = RecipientColumns::of(&messages);
    let (job_ids, chunks) = job_columns(&messages);
    let kept = KeptColumns::of(entries);
    let claim = ClaimColumns::of(&kept.claims);
    let found = query!(
        r#"WITH listed AS (
               SELECT *
               FROM UNNEST($17::uuid[], $18::int[], $19::uuid[], $20::bytea[], $21::bytea[], $22::uuid[],
                           $39::bool[], $40::uuid[])
                 AS r (message_id, position, organization_id, sealed, hash, dropped_event_id, is_open, group_id)
           ), suppressed AS (
               SELECT r.message_id, r.position
               FROM listed r
               CROSS JOIN LATERAL (
                   SELECT 1
                   FROM suppressions s
                   WHERE s.organization_id = r.organization_id AND s.email_hash = r.hash
                     AND (s.unsubscribe_group_id IS NULL OR s.unsubscribe_group_id = r.group_id)
                   LIMIT 1
               ) s
               WHERE r.is_open
           ), kept AS (
               SELECT *
               FROM UNNEST($30::uuid[], $31::bytea[], $32::bytea[], $33::bytea[], $34::timestamptz[], $35::uuid[])
                 WITH ORDINALITY AS k (organization_id, key_hash, body_hash, answer, created_at, message_id, place)
               WHERE message_id IS NULL OR message_id <> ALL (ARRAY(SELECT DISTINCT message_id FROM suppressed))
           ), claim AS (
               INSERT INTO idempotency_keys (organization_id, key_hash, body_hash, answer, created_at)
               SELECT organization_id, key_hash, body_hash, answer, created_at
               FROM kept
               ON CONFLICT (organization_id, key_hash) DO UPDATE
               SET body_hash = EXCLUDED.body_hash, answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
               WHERE idempotency_keys.created_at <= EXCLUDED.created_at - $36::interval
               RETURNING organization_id, key_hash
           ), taken AS (
               SELECT k.message_id, k.place
               FROM kept k
               WHERE NOT EXISTS (
                   SELECT 1
                   FROM claim c
                   WHERE c.organization_id = k.organization_id AND c.key_hash = k.key_hash)
           ), left_out AS (
               SELECT message_id
               FROM taken
               WHERE message_id IS NOT NULL
               UNION
               SELECT message_id
               FROM suppressed
           ), new AS (
               SELECT *
               FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::text[],
                           $8::jsonb[], $9::int[], $10::timestamptz[], $11::text[], $12::text[], $13::text[],
                           $14::text[], $15::uuid[], $16::uuid[], $27::uuid[], $28::uuid[], $29::uuid[],
                           $37::bool[], $38::bool[])
                 AS n (id, organization_id, provider_account_id, from_address, to_hash, subject, tags,
                       metadata, recipient_count, created_at, from_mailbox, reply_to, html, text, event_id, group_id,
                       template_id, template_version_id, routing_rule_id, track_opens, track_clicks)
               WHERE id <> ALL (ARRAY(SELECT message_id FROM left_out))
           ), new_recipient AS (
               SELECT *
               FROM listed
               WHERE message_id <> ALL (ARRAY(SELECT message_id FROM left_out))
           ), message AS (
               INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject,
                                     status, tags, metadata, recipient_count, created_at, unsubscribe_group_id,
                                     template_id, template_version_id, routing_rule_id, track_opens,
                                     track_clicks)
               SELECT id, organization_id, provider_account_id, from_address, to_hash, subject,
                      'QUEUED', tags::text[], metadata, recipient_count, created_at, group_id,
                      template_id, template_version_id, routing_rule_id, track_opens, track_clicks
               FROM new
           ), body AS (
               INSERT INTO message_bodies (message_id, organization_id, from_mailbox, reply_to, html, text)
               SELECT id, organization_id, from_mailbox, reply_to, html, text
               FROM new
           ), recipient AS (
               INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash,
                                       status, last_error, next_attempt_at)
               SELECT message_id, position, organization_id, sealed, hash,
                      CASE WHEN dropped_event_id IS NULL THEN 'QUEUED' ELSE 'FAILED' END::message_status,
                      CASE WHEN dropped_event_id IS NOT NULL THEN $26 END,
                      'epoch'
               FROM new_recipient
           ), event AS (
               INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data)
               SELECT id, event_id, organization_id, NULL, 'QUEUED'::event_type, created_at, NULL
               FROM new
               UNION ALL
               SELECT r.message_id, r.dropped_event_id, r.organization_id, r.position, 'DROPPED', n.created_at,
                      jsonb_build_object('reason', $26::text)
               FROM new_recipient r
               JOIN new n ON n.id = r.message_id
               WHERE r.dropped_event_id IS NOT NULL
           ), job AS (
               INSERT INTO outbox (message_id, chunk, organization_id, wake_at)
               SELECT n.id, job.chunk, n.organization_id, n.created_at + $25
               FROM UNNEST($23::uuid[], $24::int[]) AS job (message_id, chunk)
               JOIN new n ON n.id = job.message_id
           )
           SELECT place AS "place?", NULL::uuid AS "message_id?", NULL::int AS "position?"
           FROM taken
           UNION ALL
           SELECT NULL, message_id, position
           FROM suppressed"#,
        &message.id, &message.organization_id, &message.provider_account_id,
        &message.from_address as &[&str], &message.to_hash as &[&[u8]],
        &message.subject as &[&str], &message.tags,
        &message.metadata as &[Option<&Value>],
        &message.recipient_count, &message.created_at,
        &message.from_mailbox as &[&str], &message.reply_to as &[Option<&str>],
        &message.html as &[Option<&str>], &message.text as &[Option<&str>],
        &message.event_id, &message.group_id as &[Option<Uuid>],
        &recipient.message_id, &recipient.position, &recipient.organization_id,
        &recipient.sealed as &[&[u8]], &recipient.hash as &[&[u8]],
        &recipient.dropped_event_id as &[Option<Uuid>],
        &job_ids, &chunks,
        delta(relay_grace) as _,
        suppression::REASON,
        &message.template_id as &[Option<Uuid>],
        &message.template_version_id as &[Option<Uuid>],
        &message.routing_rule_id as &[Option<Uuid>],
        &claim.organization_ids, &claim.key_hashes as &[&[u8]], &claim.body_hashes as &[&[u8]],
        &kept.answers, &claim.created_at, &kept.message_ids as &[Option<Uuid>],
        delta(KEPT) as _,
        &message.track_opens, &message.track_clicks,
        &recipient.is_open, &recipient.group_id as &[Option<Uuid>],
    )
    .fetch_all(connection)
    .await
    .or_fault("accept messages")?;
    let mut inserted = Inserted::default();
    for row in found {
        if let Some(place) = row.place {
            let place = usize::try_from(place - 1).unwrap_or(usize::MAX);
            inserted.taken.extend(kept.claims.get(place));
        }
        if let (Some(message_id), Some(position)) = (row.message_id, row.position) {
            let positions = inserted.set_aside.entry(MessageId(message_id));
            positions.or_default().push(position);
        }
    }
    Ok(inserted)
}

/// Claims with their answers, in the one order in which everybody takes them.
#[derive(Default)]
struct KeptColumns<'a> {
    claims: Vec<&'a KeyClaim>,
    answers: Vec<Vec<u8>>,
    message_ids: Vec<Option<Uuid>>,
}

impl<'a> KeptColumns<'a> {
    fn of(entries: &[&'a InsertEntry]) -> Self {
        let keyed = entries
            .iter()
            .filter_map(|entry| Some((entry, entry.claim.as_ref()?)));
        let mut keyed: Vec<_> = keyed.collect();
        keyed.sort_by_key(|(_, claim)| store::order(claim));
        let mut columns = Self::default();
        for (entry, claim) in keyed {
            columns.claims.push(claim);
            columns.answers.push(stored(&entry.acceptance));
            let message = entry.message.as_ref();
            columns
                .message_ids
                .push(message.map(|message| message.id.0));
        }
        columns
    }
}

fn job_columns(messages: &[&NewMessage]) -> (Vec<Uuid>, Vec<i32>) {
    let jobs = messages.iter().flat_map(|message| message.jobs());
    jobs.map(|job| (job.message_id.0, job.chunk)).unzip()
}

#[derive(Default)]
struct MessageColumns<'a> {
    id: Vec<Uuid>,
    organization_id: Vec<Uuid>,
    provider_account_id: Vec<Uuid>,
    routing_rule_id: Vec<Option<Uuid>>,
    from_address: Vec<&'a str>,
    to_hash: Vec<&'a [u8]>,
    subject: Vec<&'a str>,
    tags: Vec<String>,
    metadata: Vec<Option<&'a Value>>,
    recipient_count: Vec<i32>,
    created_at: Vec<Timestamp>,
    from_mailbox: Vec<&'a str>,
    reply_to: Vec<Option<&'a str>>,
    html: Vec<Option<&'a str>>,
    text: Vec<Option<&'a str>>,
    event_id: Vec<Uuid>,
    template_id: Vec<Option<Uuid>>,
    template_version_id: Vec<Option<Uuid>>,
    group_id: Vec<Option<Uuid>>,
    track_opens: Vec<bool>,
    track_clicks: Vec<bool>,
}

impl<'a> MessageColumns<'a> {
    fn of(messages: &[&'a NewMessage]) -> Self {
        let mut columns = Self::default();
        for message in messages {
            let first = message
                .recipients
                .first()
                .expect("a draft has at least one recipient");
            columns.id.push(message.id.0);
            columns.organization_id.push(message.organization_id.0);
            columns
                .provider_account_id
                .push(message.provider_account_id.0);
            columns
                .routing_rule_id
                .push(message.routing_rule_id.map(|id| id.0));
            columns.from_address.push(&message.from_address);
            columns.to_hash.push(&first.address_hash.0);
            columns.subject.push(&message.subject);
            columns.tags.push(array_literal(&message.tags));
            columns.metadata.push(message.metadata.as_ref());
            columns.recipient_count.push(message.recipient_count());
            columns.created_at.push(message.created_at);
            columns.from_mailbox.push(&message.from_mailbox);
            columns.reply_to.push(message.reply_to.as_deref());
            columns.html.push(message.html.as_deref());
            columns.text.push(message.text.as_deref());
            columns.event_id.push(message.queued_event.0);
            let version = message.version.as_ref();
            columns
                .template_id
                .push(version.map(|version| version.template_id.0));
            columns
                .template_version_id
                .push(version.map(|version| version.version_id.0));
            let group_id = message.unsubscribe_group_id;
            columns.group_id.push(group_id.map(|id| id.0));
            columns.track_opens.push(message.tracking.opens);
            columns.track_clicks.push(message.tracking.clicks);
        }
        columns
    }
}

#[derive(Default)]
struct RecipientColumns<'a> {
    message_id: Vec<Uuid>,
    position: Vec<i32>,
    organization_id: Vec<Uuid>,
    sealed: Vec<&'a [u8]>,
    hash: Vec<&'a [u8]>,
    dropped_event_id: Vec<Option<Uuid>>,
    is_open: Vec<bool>,
    group_id: Vec<Option<Uuid>>,
}

impl<'a> RecipientColumns<'a> {
    fn of(messages: &[&'a NewMessage]) -> Self {
        let mut columns = Self::default();
        for message in messages {
            for (position, recipient) in (0..).zip(&message.recipients) {
                columns.message_id.push(message.id.0);
                columns.position.push(position);
                columns.organization_id.push(message.organization_id.0);
                columns.sealed.push(&recipient.address_sealed);
                columns.hash.push(&recipient.address_hash.0);
                let dropped_event = recipient.dropped_event;
                columns.dropped_event_id.push(dropped_event.map(|id| id.0));
                columns.is_open.push(recipient.is_open);
                let group_id = message.unsubscribe_group_id;
                columns.group_id.push(group_id.map(|id| id.0));
            }
        }
        columns
    }
}

/// A text array as Postgres reads it. Arrays of arrays must all have one length,
/// so tags travel as one literal a message.
fn array_literal(items: &[String]) -> String {
    let quoted = items.iter().map(|item| {
        let escaped = item.replace('\\', r"\\").replace('"', r#"\""#);
        format!("\"{escaped}\"")
    });
    format!("{{{}}}", quoted.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_quotes_commas_and_backslashes_are_escaped() {
        assert_eq!(array_literal(&[]), "{}");
        let tags = ["a,b", r#"say "hi""#, r"back\slash", "{x}", "NULL"].map(String::from);
        assert_eq!(
            array_literal(&tags),
            r#"{"a,b","say \"hi\"","back\\slash","{x}","NULL"}"#
        );
    }
}
