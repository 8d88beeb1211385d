//! The rows of accepted messages, as columns: one statement writes any number of
//! messages with all that belongs to them. Statements per message are what bounds
//! acceptance, so there is one.

use std::time::Duration;

use serde_json::Value;
use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::CHUNK_RECIPIENTS;
use crate::address::AddressHash;
use crate::clock::{Timestamp, delta};
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{EventId, MessageId, OrganizationId, ProviderAccountId, RoutingRuleId};
use crate::queue::jobs::SendJob;
use crate::template::render::VersionUse;

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
    pub(super) queued_event: EventId,
    pub(super) created_at: Timestamp,
    pub(super) recipients: Vec<NewRecipient>,
}

/// A recipient about to be written; its position is its place in the list.
pub(super) struct NewRecipient {
    pub(super) address_sealed: Vec<u8>,
    pub(super) address_hash: AddressHash,
}

impl NewMessage {
    /// How much of a group this message fills: its rows, and its bodies at one row
    /// for 8 KiB. Postgres takes no statement above 1 GiB.
    pub(super) fn weight(&self) -> usize {
        let bytes = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        4 + self.recipients.len() + (bytes(&self.html) + bytes(&self.text)) / 8_192
    }

    /// The jobs that send it.
    pub(super) fn jobs(&self) -> impl Iterator<Item = SendJob> + '_ {
        (0..self.chunk_count()).map(|chunk| SendJob {
            message_id: self.id,
            chunk,
        })
    }

    fn recipient_count(&self) -> i32 {
        i32::try_from(self.recipients.len()).unwrap_or(i32::MAX)
    }

    fn chunk_count(&self) -> i32 {
        (self.recipient_count() - 1) / CHUNK_RECIPIENTS + 1
    }
}

/// Writes messages with their bodies, recipients, QUEUED events and outbox rows,
/// in one statement and so in one transaction. `relay_grace` is how long the
/// relay leaves the push to whoever accepted them.
///
/// # Errors
/// A fault; nothing is written then.
pub(super) async fn insert(
    connection: &mut PgConnection,
    messages: &[&NewMessage],
    relay_grace: Duration,
) -> Result<(), Fault> {
    let message = MessageColumns::of(messages);
    let recipient = RecipientColumns::of(messages);
    query!(
        r#"WITH new AS (
               SELECT *
               FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::bytea[], $6::text[], $7::text[],
                           $8::jsonb[], $9::int[], $10::timestamptz[], $11::text[], $12::text[], $13::text[],
                           $14::text[], $15::uuid[], $16::uuid[], $17::uuid[], $25::uuid[])
                 AS n (id, organization_id, provider_account_id, from_address, to_hash, subject, tags,
                       metadata, recipient_count, created_at, from_mailbox, reply_to, html, text, event_id,
                       template_id, template_version_id, routing_rule_id)
           ), message AS (
               INSERT INTO messages (id, organization_id, provider_account_id, from_address, to_hash, subject,
                                     status, tags, metadata, recipient_count, created_at,
                                     template_id, template_version_id, routing_rule_id)
               SELECT id, organization_id, provider_account_id, from_address, to_hash, subject,
                      'QUEUED', tags::text[], metadata, recipient_count, created_at,
                      template_id, template_version_id, routing_rule_id
               FROM new
           ), body AS (
               INSERT INTO message_bodies (message_id, organization_id, from_mailbox, reply_to, html, text)
               SELECT id, organization_id, from_mailbox, reply_to, html, text
               FROM new
           ), recipient AS (
               INSERT INTO recipients (message_id, position, organization_id, address_sealed, address_hash,
                                       status, next_attempt_at)
               SELECT message_id, position, organization_id, sealed, hash, 'QUEUED', 'epoch'
               FROM UNNEST($18::uuid[], $19::int[], $20::uuid[], $21::bytea[], $22::bytea[])
                 AS r (message_id, position, organization_id, sealed, hash)
           ), event AS (
               INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at)
               SELECT id, event_id, organization_id, NULL, 'QUEUED', created_at
               FROM new
           )
           INSERT INTO outbox (message_id, chunk, organization_id, wake_at)
           SELECT id, chunk, organization_id, created_at + $24
           FROM new CROSS JOIN LATERAL generate_series(0, (recipient_count - 1) / $23::int) AS chunk"#,
        &message.id,
        &message.organization_id,
        &message.provider_account_id,
        &message.from_address as &[&str],
        &message.to_hash as &[&[u8]],
        &message.subject as &[&str],
        &message.tags,
        &message.metadata as &[Option<&Value>],
        &message.recipient_count,
        &message.created_at,
        &message.from_mailbox as &[&str],
        &message.reply_to as &[Option<&str>],
        &message.html as &[Option<&str>],
        &message.text as &[Option<&str>],
        &message.event_id,
        &message.template_id as &[Option<Uuid>],
        &message.template_version_id as &[Option<Uuid>],
        &recipient.message_id,
        &recipient.position,
        &recipient.organization_id,
        &recipient.sealed as &[&[u8]],
        &recipient.hash as &[&[u8]],
        CHUNK_RECIPIENTS,
        delta(relay_grace) as _,
        &message.routing_rule_id as &[Option<Uuid>],
    )
    .execute(connection)
    .await
    .or_fault("accept messages")?;
    Ok(())
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
