//! The statements of recording, one each for any number of events and organizations. Rows
//! are locked in the same order as wherever outcomes are recorded: attempts, then
//! recipients, then messages, each in the order of their ids.

use std::collections::{HashMap, HashSet};

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::counts::CountedMessage;
use super::recipient_state::{Correction, FoldResult};
use super::recipients::RecipientKey;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId, TemplateId};
use crate::message::CHUNK_RECIPIENTS;
use crate::metrics::Dimensions;

/// The first half of the SHA-256 of a provider's event id.
pub(super) type EventHash = [u8; 16];

/// A raw event to be inserted.
#[derive(Debug)]
pub(super) struct NewProviderEvent<'a> {
    pub(super) organization_id: OrganizationId,
    pub(super) key: RecipientKey,
    pub(super) account_id: ProviderAccountId,
    pub(super) hash: EventHash,
    pub(super) raw_sealed: &'a [u8],
}

/// Inserts raw events and returns those that were new.
pub(super) async fn insert(
    connection: &mut PgConnection,
    events: &[NewProviderEvent<'_>],
    now: Timestamp,
) -> Result<HashSet<(MessageId, ProviderAccountId, EventHash)>, Fault> {
    // All transactions insert in the same order, so that they cannot deadlock.
    let rows = query!(
        r#"INSERT INTO provider_events
               (message_id, provider_account_id, event_hash, organization_id, position, received_at, payload_sealed)
           SELECT message_id, provider_account_id, event_hash, organization_id, position, $1, payload_sealed
           FROM UNNEST($2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::int[], $7::bytea[])
             AS e (organization_id, message_id, provider_account_id, event_hash, position, payload_sealed)
           ORDER BY message_id, provider_account_id, event_hash
           ON CONFLICT (message_id, provider_account_id, event_hash) DO NOTHING
           RETURNING message_id, provider_account_id, event_hash"#,
        now,
        &events.iter().map(|e| e.organization_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.key.0.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.account_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.hash.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        &events.iter().map(|e| e.key.1).collect::<Vec<_>>(),
        &events.iter().map(|e| e.raw_sealed).collect::<Vec<_>>() as &[&[u8]],
    )
    .fetch_all(connection)
    .await
    .or_fault("insert provider events")?;
    let fresh = rows.into_iter().filter_map(|row| {
        let hash = row.event_hash.try_into().ok()?;
        Some((
            MessageId(row.message_id),
            ProviderAccountId(row.provider_account_id),
            hash,
        ))
    });
    Ok(fresh.collect())
}

/// The result of [`accept_attempts`].
#[derive(Debug, Default)]
pub(super) struct ProvenAttempts {
    /// Attempts that were not known to be accepted before.
    pub(super) attempts: HashSet<SendAttemptId>,
    /// The recipients of those attempts that had no outcome yet.
    pub(super) unfinished: Vec<RecipientKey>,
}

/// Marks attempts as ACCEPTED, whatever their outcome was: the provider accepted the
/// message.
pub(super) async fn accept_attempts(
    connection: &mut PgConnection,
    attempts: &[(MessageId, SendAttemptId, OrganizationId)],
    now: Timestamp,
) -> Result<ProvenAttempts, Fault> {
    let mut proven = ProvenAttempts::default();
    if attempts.is_empty() {
        return Ok(proven);
    }
    let mut attempts = attempts.to_vec();
    attempts.sort_unstable();
    attempts.dedup();
    let messages: Vec<Uuid> = attempts.iter().map(|(message, ..)| message.0).collect();
    let range = IdRange::of(&messages);
    let rows = query!(
        r#"WITH locked AS (
               SELECT t.message_id, t.id, a.outcome IS NULL AS was_open
               FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[]) AS t (organization_id, message_id, id)
               CROSS JOIN LATERAL (
                   SELECT outcome
                   FROM send_attempts
                   WHERE message_id = t.message_id AND message_id BETWEEN $5 AND $6 AND id = t.id
                     AND organization_id = t.organization_id AND outcome IS DISTINCT FROM 'ACCEPTED'
                   FOR NO KEY UPDATE
               ) a
           )
           UPDATE send_attempts a
           SET outcome = 'ACCEPTED', finished_at = coalesce(a.finished_at, $4)
           FROM locked l
           WHERE a.message_id = l.message_id AND a.message_id = ANY($2) AND a.id = l.id
           RETURNING a.message_id, a.id, a.position, l.was_open AS "was_open!""#,
        &attempts.iter().map(|(_, _, of)| of.0).collect::<Vec<_>>(),
        &messages,
        &attempts.iter().map(|(_, id, _)| id.0).collect::<Vec<_>>(),
        now,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("mark send attempts as accepted")?;
    for row in rows {
        proven.attempts.insert(SendAttemptId(row.id));
        if row.was_open {
            proven
                .unfinished
                .push((MessageId(row.message_id), row.position));
        }
    }
    Ok(proven)
}

/// A change of one recipient.
#[derive(Debug)]
pub(super) struct RecipientChange<'a> {
    pub(super) organization_id: OrganizationId,
    pub(super) key: RecipientKey,
    pub(super) result: &'a FoldResult,
    /// The account that sent it, if the events are the first proof of that.
    pub(super) account_id: Option<ProviderAccountId>,
    /// The provider's message id, for a recipient that has none.
    pub(super) provider_message_id: Option<String>,
    /// Attempts to add to the recipient's count.
    pub(super) attempts: i32,
    /// Whether the message has to change too.
    pub(super) changes_message: bool,
}

/// The messages of the changed recipients.
#[derive(Debug, Default)]
pub(super) struct Updated {
    /// What the metrics need of the messages that were updated in the same statement.
    pub(super) messages: HashMap<MessageId, CountedMessage>,
    /// Messages whose aggregates must be updated by
    /// [`crate::message::store::refresh_aggregates`].
    pub(super) to_refresh: Vec<MessageId>,
}

impl Updated {
    fn of(changes: &[RecipientChange<'_>], messages: HashMap<MessageId, CountedMessage>) -> Self {
        let changed = changes.iter().filter(|change| change.changes_message);
        let changed = changed.map(|change| change.key.0);
        Self {
            to_refresh: changed.filter(|id| !messages.contains_key(id)).collect(),
            messages,
        }
    }
}

/// The arguments of [`update_recipients`], by column.
struct ChangeColumns<'a> {
    statuses: Vec<&'a str>,
    sent_at: Vec<Option<Timestamp>>,
    delivered_at: Vec<Option<Timestamp>>,
    implied: Vec<Option<Uuid>>,
    opened_at: Vec<Option<Timestamp>>,
    clicked_at: Vec<Option<Timestamp>>,
    bounced_at: Vec<Option<Timestamp>>,
    complained_at: Vec<Option<Timestamp>>,
    unsubscribed_at: Vec<Option<Timestamp>>,
    accounts: Vec<Option<Uuid>>,
    provider_message_ids: Vec<Option<&'a str>>,
    sets_error: Vec<bool>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> ChangeColumns<'a> {
    fn of(changes: &'a [RecipientChange<'a>]) -> Self {
        let states = || changes.iter().map(|change| &change.result.state);
        let errors = || changes.iter().map(|change| &change.result.error);
        Self {
            statuses: states().map(|state| state.status.as_str()).collect(),
            sent_at: states().map(|state| state.sent_at).collect(),
            delivered_at: states().map(|state| state.delivered_at).collect(),
            implied: states().map(|state| state.implied.map(|id| id.0)).collect(),
            opened_at: states().map(|state| state.opened_at).collect(),
            clicked_at: states().map(|state| state.clicked_at).collect(),
            bounced_at: states().map(|state| state.bounced_at).collect(),
            complained_at: states().map(|state| state.complained_at).collect(),
            unsubscribed_at: states().map(|state| state.unsubscribed_at).collect(),
            accounts: changes
                .iter()
                .map(|change| change.account_id.map(|id| id.0))
                .collect(),
            provider_message_ids: changes
                .iter()
                .map(|change| change.provider_message_id.as_deref())
                .collect(),
            sets_error: errors().map(Option::is_some).collect(),
            errors: errors().map(|error| error.as_ref()?.as_deref()).collect(),
        }
    }
}

/// Updates recipients. The message of an only recipient is updated in the same statement:
/// a transaction that changes such a message holds the lock of its recipient, so no other
/// lock is needed.
#[expect(clippy::too_many_lines, reason = "one statement and its columns")]
pub(super) async fn update_recipients(
    connection: &mut PgConnection,
    changes: &[RecipientChange<'_>],
) -> Result<Updated, Fault> {
    if changes.is_empty() {
        return Ok(Updated::default());
    }
    let columns = ChangeColumns::of(changes);
    let rows = query!(
        r#"WITH moved AS (
               UPDATE recipients r
               SET status = c.status::message_status,
                   sent_at = c.sent_at,
                   -- Counted as sent already, even if it is retried after it failed.
                   first_sent_at = CASE WHEN c.status = 'FAILED' THEN coalesce(r.first_sent_at, c.sent_at)
                                        ELSE r.first_sent_at END,
                   delivered_at = c.delivered_at,
                   implied_event_id = c.implied,
                   opened_at = c.opened_at,
                   clicked_at = c.clicked_at,
                   bounced_at = c.bounced_at,
                   complained_at = c.complained_at,
                   unsubscribed_at = c.unsubscribed_at,
                   provider_account_id = coalesce(c.account_id, r.provider_account_id),
                   provider_message_id = coalesce(r.provider_message_id, c.provider_message_id),
                   attempts = r.attempts + c.used,
                   last_error = CASE WHEN c.says_error THEN c.error ELSE r.last_error END
               FROM UNNEST($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[],
                           $7::uuid[], $8::uuid[], $9::text[], $10::int[], $11::bool[], $12::text[],
                           $13::timestamptz[], $14::timestamptz[], $15::bool[], $16::timestamptz[],
                           $17::timestamptz[], $18::timestamptz[])
                 AS c (organization_id, message_id, position, status, sent_at, delivered_at, implied, account_id,
                       provider_message_id, used, says_error, error, opened_at, clicked_at, is_shown, bounced_at,
                       complained_at, unsubscribed_at)
               WHERE r.message_id = c.message_id AND r.message_id = ANY($2) AND r.position = c.position
                 AND r.organization_id = c.organization_id
               RETURNING r.organization_id, r.message_id, r.status, r.sent_at, r.delivered_at,
                         r.provider_account_id, r.provider_message_id, c.is_shown
           )
           UPDATE messages m
           SET status = d.status, sent_at = d.sent_at, delivered_at = d.delivered_at,
               provider_message_id = d.provider_message_id,
               provider_account_id = coalesce(d.provider_account_id, m.provider_account_id),
               resolved_account_id = CASE WHEN d.provider_account_id <> m.provider_account_id
                                          THEN coalesce(m.resolved_account_id, m.provider_account_id)
                                          ELSE m.resolved_account_id END
           FROM moved d
           WHERE m.id = d.message_id AND m.organization_id = d.organization_id AND m.recipient_count = 1
             AND d.is_shown
           RETURNING m.id AS "id: MessageId", m.provider_account_id AS "account_id: ProviderAccountId",
                     waypost_metric_domain(m.from_address) AS "domain!", m.template_id AS "template_id: TemplateId",
                     m.tags, greatest(m.created_at, m.scheduled_at) AS "accepted_at!""#,
        &changes.iter().map(|c| c.organization_id.0).collect::<Vec<_>>(),
        &changes.iter().map(|c| c.key.0.0).collect::<Vec<_>>(),
        &changes.iter().map(|c| c.key.1).collect::<Vec<_>>(),
        &columns.statuses as &[&str],
        &columns.sent_at as &[Option<Timestamp>],
        &columns.delivered_at as &[Option<Timestamp>],
        &columns.implied as &[Option<Uuid>],
        &columns.accounts as &[Option<Uuid>],
        &columns.provider_message_ids as &[Option<&str>],
        &changes.iter().map(|c| c.attempts).collect::<Vec<_>>(),
        &columns.sets_error,
        &columns.errors as &[Option<&str>],
        &columns.opened_at as &[Option<Timestamp>],
        &columns.clicked_at as &[Option<Timestamp>],
        &changes.iter().map(|c| c.changes_message).collect::<Vec<_>>(),
        &columns.bounced_at as &[Option<Timestamp>],
        &columns.complained_at as &[Option<Timestamp>],
        &columns.unsubscribed_at as &[Option<Timestamp>],
    )
    .fetch_all(connection)
    .await
    .or_fault("update the recipients of provider events")?;
    let messages = rows.into_iter().map(|row| {
        let dimensions = Dimensions {
            account_id: row.account_id,
            domain: row.domain,
            template_id: row.template_id,
            tags: row.tags,
            recipient_domain: String::new(),
        };
        let message = CountedMessage {
            dimensions,
            accepted_at: row.accepted_at,
        };
        (row.id, message)
    });
    Ok(Updated::of(changes, messages.collect()))
}

/// Deletes the outbox rows of chunks without pending recipients, unless a worker holds
/// their lease. That worker deletes the row when it ends the lease. A row that two
/// concurrent transactions leave behind is deleted by the worker that gets the chunk from
/// the relay.
pub(super) async fn delete_finished_chunks(
    connection: &mut PgConnection,
    keys: &[(RecipientKey, OrganizationId)],
) -> Result<(), Fault> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut chunks: Vec<(Uuid, i32, Uuid)> = keys
        .iter()
        .map(|((message, position), of)| (message.0, position / CHUNK_RECIPIENTS, of.0))
        .collect();
    chunks.sort_unstable();
    chunks.dedup();
    query!(
        r#"WITH done AS (
               SELECT o.message_id, o.chunk
               FROM outbox o
               JOIN UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, chunk)
                 USING (organization_id, message_id, chunk)
               WHERE o.leased_by IS NULL
                 AND NOT EXISTS (
                     SELECT 1
                     FROM recipients r
                     WHERE r.message_id = o.message_id
                       AND r.position >= o.chunk * $4 AND r.position < (o.chunk + 1) * $4
                       AND r.status IN ('QUEUED', 'SENDING'))
               FOR UPDATE OF o SKIP LOCKED
           )
           DELETE FROM outbox o
           USING done d
           WHERE o.message_id = d.message_id AND o.chunk = d.chunk"#,
        &chunks.iter().map(|(_, _, of)| *of).collect::<Vec<_>>(),
        &chunks.iter().map(|(message, ..)| *message).collect::<Vec<_>>(),
        &chunks.iter().map(|(_, chunk, _)| *chunk).collect::<Vec<_>>(),
        CHUNK_RECIPIENTS,
    )
    .execute(connection)
    .await
    .or_fault("delete finished chunks")?;
    Ok(())
}

/// Corrects the time and data of DELIVERED events. A trigger corrects their counts.
pub(super) async fn correct_deliveries(
    connection: &mut PgConnection,
    corrections: &[(OrganizationId, MessageId, &Correction)],
) -> Result<(), Fault> {
    if corrections.is_empty() {
        return Ok(());
    }
    let data: Vec<Option<serde_json::Value>> = corrections
        .iter()
        .map(|(_, _, correction)| correction.data.clone())
        .collect();
    query!(
        r#"UPDATE events e
           SET occurred_at = c.occurred_at, data = coalesce(c.data, e.data)
           FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::timestamptz[], $5::jsonb[])
             AS c (organization_id, message_id, id, occurred_at, data)
           WHERE e.message_id = c.message_id AND e.message_id = ANY($2) AND e.id = c.id
             AND e.organization_id = c.organization_id"#,
        &corrections.iter().map(|(of, ..)| of.0).collect::<Vec<_>>(),
        &corrections
            .iter()
            .map(|(_, message, _)| message.0)
            .collect::<Vec<_>>(),
        &corrections
            .iter()
            .map(|(.., c)| c.event_id.0)
            .collect::<Vec<_>>(),
        &corrections
            .iter()
            .map(|(.., c)| c.occurred_at)
            .collect::<Vec<_>>(),
        &data as &[Option<serde_json::Value>],
    )
    .execute(connection)
    .await
    .or_fault("correct delivery events")?;
    Ok(())
}
