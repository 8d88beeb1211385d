//! What recording reads and writes, for any number of events of any organizations
//! with one statement each. Attempts are locked before recipients and those before
//! messages, each in the order of their ids, as everyone does who settles what
//! workers did.

use std::collections::{HashMap, HashSet};

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::progress::{Correction, Progress, Standing};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, ProviderAccountId, SendAttemptId, UnsubscribeGroupId,
};
use crate::message::{CHUNK_RECIPIENTS, MessageStatus};
use crate::provider::event::CopyIds;

/// A copy by its place: the message and the recipient's position.
pub(super) type Place = (MessageId, i32);

/// The copy that an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundCopy {
    pub(super) place: Place,
    /// The call that the event names; nothing where it was found by the provider's
    /// own id.
    pub(super) attempt_id: Option<SendAttemptId>,
    /// Whether that call is known to have been taken, which nothing changes any more.
    pub(super) is_proven: bool,
    /// When that call began.
    pub(super) started_at: Option<Timestamp>,
    /// The account that it went through.
    pub(super) account_id: ProviderAccountId,
}

/// The copies that ids of ours name, in the same order; nothing where they do not
/// belong together or not to the organization.
pub(super) async fn find_copies(
    connection: &mut PgConnection,
    named: &[(OrganizationId, CopyIds)],
) -> Result<Vec<Option<FoundCopy>>, Fault> {
    let mut found = vec![None; named.len()];
    if named.is_empty() {
        return Ok(found);
    }
    // An attempt is there as long as its message and its recipient are. The limit keeps
    // each look-up one by primary key, whatever the planner believes of tables that
    // have just grown.
    let rows = query!(
        r#"SELECT t.nth AS "nth!", a.provider_account_id, a.started_at, a.is_proven AS "is_proven!"
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[], $4::uuid[]) WITH ORDINALITY
             AS t (organization_id, message_id, position, attempt_id, nth)
           CROSS JOIN LATERAL (
               SELECT provider_account_id, started_at, outcome IS NOT DISTINCT FROM 'ACCEPTED' AS is_proven
               FROM send_attempts
               WHERE message_id = t.message_id AND id = t.attempt_id AND position = t.position
                 AND organization_id = t.organization_id
               LIMIT 1
           ) a"#,
        &named.iter().map(|(of, _)| of.0).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.message_id.0).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.position).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.attempt_id.0).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("find the copies of provider events")?;
    for row in rows {
        let nth = usize::try_from(row.nth - 1).unwrap_or(usize::MAX);
        if let Some((_, ids)) = named.get(nth) {
            found[nth] = Some(FoundCopy {
                place: (ids.message_id, ids.position),
                attempt_id: Some(ids.attempt_id),
                is_proven: row.is_proven,
                started_at: Some(row.started_at),
                account_id: ProviderAccountId(row.provider_account_id),
            });
        }
    }
    Ok(found)
}

/// What is known of a copy without our ids: the provider's id, and perhaps whose.
#[derive(Debug, Clone)]
pub(super) struct Clue {
    /// The event that it is from.
    pub(super) nth: usize,
    /// The account that tells, and whose it is.
    pub(super) organization_id: OrganizationId,
    pub(super) account_id: ProviderAccountId,
    pub(super) provider_message_id: String,
    pub(super) address_hash: Option<AddressHash>,
}

/// The copies that went through the accounts and have these ids there, with the
/// events that they belong to. An id that more than one copy has names none.
pub(super) async fn find_copies_by_clues(
    connection: &mut PgConnection,
    clues: &[Clue],
) -> Result<Vec<(usize, FoundCopy)>, Fault> {
    if clues.is_empty() {
        return Ok(Vec::new());
    }
    let hashes: Vec<Option<&[u8]>> = clues
        .iter()
        .map(|clue| clue.address_hash.as_ref().map(|hash| hash.0.as_slice()))
        .collect();
    let rows = query!(
        r#"SELECT t.nth AS "nth!", r.message_id, r.position
           FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::bytea[]) WITH ORDINALITY
             AS t (organization_id, account_id, provider_message_id, address_hash, nth)
           CROSS JOIN LATERAL (
               SELECT message_id, position, count(*) OVER () AS alike
               FROM (
                   SELECT message_id, position
                   FROM recipients
                   WHERE provider_message_id = t.provider_message_id
                     AND organization_id = t.organization_id AND provider_account_id = t.account_id
                     AND (t.address_hash IS NULL OR address_hash = t.address_hash)
                   LIMIT 2
               ) few
           ) r
           WHERE r.alike = 1"#,
        &clues
            .iter()
            .map(|clue| clue.organization_id.0)
            .collect::<Vec<_>>(),
        &clues
            .iter()
            .map(|clue| clue.account_id.0)
            .collect::<Vec<_>>(),
        &clues
            .iter()
            .map(|clue| clue.provider_message_id.as_str())
            .collect::<Vec<_>>() as &[&str],
        &hashes as &[Option<&[u8]>],
    )
    .fetch_all(connection)
    .await
    .or_fault("find the copies of provider events")?;
    let found = rows.into_iter().filter_map(|row| {
        let clue = clues.get(usize::try_from(row.nth - 1).ok()?)?;
        let copy = FoundCopy {
            place: (MessageId(row.message_id), row.position),
            attempt_id: None,
            is_proven: false,
            started_at: None,
            account_id: clue.account_id,
        };
        Some((clue.nth, copy))
    });
    Ok(found.collect())
}

/// Whom a copy went to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressee {
    pub(super) address_hash: AddressHash,
    /// The group that the message was sent in.
    pub(super) group_id: Option<UnsubscribeGroupId>,
}

/// Whom copies went to.
pub(super) async fn find_addressees(
    connection: &mut PgConnection,
    places: &[(Place, OrganizationId)],
) -> Result<HashMap<Place, Addressee>, Fault> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!",
                  r.address_hash AS "address_hash: AddressHash", m.unsubscribe_group_id
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, position)
           CROSS JOIN LATERAL (
               SELECT address_hash
               FROM recipients
               WHERE message_id = t.message_id AND position = t.position
                 AND organization_id = t.organization_id
               LIMIT 1
           ) r
           CROSS JOIN LATERAL (
               SELECT unsubscribe_group_id
               FROM messages
               WHERE id = t.message_id AND organization_id = t.organization_id
               LIMIT 1
           ) m"#,
        &places.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &places.iter().map(|(place, _)| place.0.0).collect::<Vec<_>>(),
        &places.iter().map(|(place, _)| place.1).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("find whom copies went to")?;
    let rows = rows.into_iter().map(|row| {
        let addressee = Addressee {
            address_hash: row.address_hash,
            group_id: row.unsubscribe_group_id.map(UnsubscribeGroupId),
        };
        ((MessageId(row.message_id), row.position), addressee)
    });
    Ok(rows.collect())
}

/// The first half of the SHA-256 of a provider's id of an event.
pub(super) type EventHash = [u8; 16];

/// An event as it was told, about to be kept.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    pub(super) organization_id: OrganizationId,
    pub(super) place: Place,
    pub(super) account_id: ProviderAccountId,
    pub(super) hash: EventHash,
    pub(super) told_sealed: &'a [u8],
}

/// Keeps events, and says which of them were not told before.
pub(super) async fn insert(
    connection: &mut PgConnection,
    events: &[Kept<'_>],
    now: Timestamp,
) -> Result<HashSet<(MessageId, ProviderAccountId, EventHash)>, Fault> {
    // In one order in every transaction: two that share events then wait for each
    // other and never in a circle.
    let rows = query!(
        r#"INSERT INTO provider_events
               (message_id, provider_account_id, event_hash, organization_id, position, received_at, told_sealed)
           SELECT message_id, provider_account_id, event_hash, organization_id, position, $1, told_sealed
           FROM UNNEST($2::uuid[], $3::uuid[], $4::uuid[], $5::bytea[], $6::int[], $7::bytea[])
             AS e (organization_id, message_id, provider_account_id, event_hash, position, told_sealed)
           ORDER BY message_id, provider_account_id, event_hash
           ON CONFLICT (message_id, provider_account_id, event_hash) DO NOTHING
           RETURNING message_id, provider_account_id, event_hash"#,
        now,
        &events.iter().map(|e| e.organization_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.place.0.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.account_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.hash.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        &events.iter().map(|e| e.place.1).collect::<Vec<_>>(),
        &events.iter().map(|e| e.told_sealed).collect::<Vec<_>>() as &[&[u8]],
    )
    .fetch_all(connection)
    .await
    .or_fault("keep provider events")?;
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

/// Whatever an attempt's answer was, or if none came: the provider took it. Answers
/// the places of the attempts of which nobody had said yet what came of them.
pub(super) async fn prove_attempts(
    connection: &mut PgConnection,
    attempts: &[(MessageId, SendAttemptId, OrganizationId)],
    now: Timestamp,
) -> Result<Vec<Place>, Fault> {
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let mut attempts = attempts.to_vec();
    attempts.sort_unstable();
    attempts.dedup();
    let rows = query!(
        r#"WITH locked AS (
               SELECT t.message_id, t.id, a.outcome IS NULL AS was_open
               FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[]) AS t (organization_id, message_id, id)
               CROSS JOIN LATERAL (
                   SELECT outcome
                   FROM send_attempts
                   WHERE message_id = t.message_id AND id = t.id AND organization_id = t.organization_id
                     AND outcome IS DISTINCT FROM 'ACCEPTED'
                   FOR NO KEY UPDATE
               ) a
           )
           UPDATE send_attempts a
           SET outcome = 'ACCEPTED', finished_at = coalesce(a.finished_at, $4)
           FROM locked l
           WHERE a.message_id = l.message_id AND a.message_id = ANY($2) AND a.id = l.id
           RETURNING a.message_id, a.position, l.was_open AS "was_open!""#,
        &attempts.iter().map(|(_, _, of)| of.0).collect::<Vec<_>>(),
        &attempts
            .iter()
            .map(|(message, ..)| message.0)
            .collect::<Vec<_>>(),
        &attempts.iter().map(|(_, id, _)| id.0).collect::<Vec<_>>(),
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("prove send attempts")?;
    let open = rows.into_iter().filter(|row| row.was_open);
    Ok(open
        .map(|row| (MessageId(row.message_id), row.position))
        .collect())
}

/// Where copies stand. They stay so until the transaction ends.
pub(super) async fn lock_copies(
    connection: &mut PgConnection,
    places: &[(Place, OrganizationId)],
) -> Result<HashMap<Place, Standing>, Fault> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places.dedup();
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!", r.status AS "status: MessageStatus",
                  r.sent_at, r.delivered_at, r.implied_event_id AS "implied: EventId"
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, position)
           CROSS JOIN LATERAL (
               SELECT status, sent_at, delivered_at, implied_event_id
               FROM recipients
               WHERE message_id = t.message_id AND position = t.position
                 AND organization_id = t.organization_id
               FOR NO KEY UPDATE
           ) r"#,
        &places.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &places.iter().map(|(place, _)| place.0.0).collect::<Vec<_>>(),
        &places.iter().map(|(place, _)| place.1).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("lock the copies of provider events")?;
    let standings = rows.into_iter().map(|row| {
        let standing = Standing {
            status: row.status,
            sent_at: row.sent_at,
            delivered_at: row.delivered_at,
            implied: row.implied,
        };
        ((MessageId(row.message_id), row.position), standing)
    });
    Ok(standings.collect())
}

/// A copy that the news changes.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) organization_id: OrganizationId,
    pub(super) place: Place,
    pub(super) progress: &'a Progress,
    /// Where the news proved that it was sent: through which account.
    pub(super) account_id: Option<ProviderAccountId>,
    /// The provider's id of it, should it have none.
    pub(super) provider_message_id: Option<String>,
    /// Calls that count and that nobody had counted.
    pub(super) attempts: i32,
}

/// What [`update_copies`] is given, by column.
struct Columns<'a> {
    statuses: Vec<&'a str>,
    sent_at: Vec<Option<Timestamp>>,
    delivered_at: Vec<Option<Timestamp>>,
    implied: Vec<Option<Uuid>>,
    accounts: Vec<Option<Uuid>>,
    provider_message_ids: Vec<Option<&'a str>>,
    says_error: Vec<bool>,
    errors: Vec<Option<&'a str>>,
}

impl<'a> Columns<'a> {
    fn of(changes: &'a [Change<'a>]) -> Self {
        let standings = || changes.iter().map(|change| &change.progress.standing);
        let errors = || changes.iter().map(|change| &change.progress.error);
        Self {
            statuses: standings()
                .map(|standing| standing.status.as_str())
                .collect(),
            sent_at: standings().map(|standing| standing.sent_at).collect(),
            delivered_at: standings().map(|standing| standing.delivered_at).collect(),
            implied: standings()
                .map(|standing| standing.implied.map(|id| id.0))
                .collect(),
            accounts: changes
                .iter()
                .map(|change| change.account_id.map(|id| id.0))
                .collect(),
            provider_message_ids: changes
                .iter()
                .map(|change| change.provider_message_id.as_deref())
                .collect(),
            says_error: errors().map(Option::is_some).collect(),
            errors: errors().map(|error| error.as_ref()?.as_deref()).collect(),
        }
    }
}

/// Writes where copies stand now, and where a copy is its message's only one the same
/// of the message: whoever changes the status of such a message holds its copy, so it
/// needs no lock and no look of its own. Answers the other messages, which are to be
/// brought up to date by [`crate::message::store::refresh_aggregates`].
pub(super) async fn update_copies(
    connection: &mut PgConnection,
    changes: &[Change<'_>],
) -> Result<Vec<MessageId>, Fault> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::of(changes);
    let done = query_scalar!(
        r#"WITH moved AS (
               UPDATE recipients r
               SET status = c.status::message_status,
                   sent_at = c.sent_at,
                   delivered_at = c.delivered_at,
                   implied_event_id = c.implied,
                   provider_account_id = coalesce(c.account_id, r.provider_account_id),
                   provider_message_id = coalesce(r.provider_message_id, c.provider_message_id),
                   attempts = r.attempts + c.used,
                   last_error = CASE WHEN c.says_error THEN c.error ELSE r.last_error END
               FROM UNNEST($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[],
                           $7::uuid[], $8::uuid[], $9::text[], $10::int[], $11::bool[], $12::text[])
                 AS c (organization_id, message_id, position, status, sent_at, delivered_at, implied, account_id,
                       provider_message_id, used, says_error, error)
               WHERE r.message_id = c.message_id AND r.message_id = ANY($2) AND r.position = c.position
                 AND r.organization_id = c.organization_id
               RETURNING r.organization_id, r.message_id, r.status, r.sent_at, r.delivered_at,
                         r.provider_account_id, r.provider_message_id
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
           RETURNING m.id AS "id: MessageId""#,
        &changes.iter().map(|c| c.organization_id.0).collect::<Vec<_>>(),
        &changes.iter().map(|c| c.place.0.0).collect::<Vec<_>>(),
        &changes.iter().map(|c| c.place.1).collect::<Vec<_>>(),
        &columns.statuses as &[&str],
        &columns.sent_at as &[Option<Timestamp>],
        &columns.delivered_at as &[Option<Timestamp>],
        &columns.implied as &[Option<Uuid>],
        &columns.accounts as &[Option<Uuid>],
        &columns.provider_message_ids as &[Option<&str>],
        &changes.iter().map(|c| c.attempts).collect::<Vec<_>>(),
        &columns.says_error,
        &columns.errors as &[Option<&str>],
    )
    .fetch_all(connection)
    .await
    .or_fault("move the copies of provider events")?;
    let done: HashSet<MessageId> = done.into_iter().collect();
    let messages = changes.iter().map(|change| change.place.0);
    Ok(messages.filter(|id| !done.contains(id)).collect())
}

/// Deletes the outbox rows of chunks of which nothing is left to do, if nobody holds
/// them. Whoever holds one finds that out when it ends its lease, and what two of us
/// overlook here is found by the worker that the relay wakes for it.
pub(super) async fn finish_chunks(
    connection: &mut PgConnection,
    places: &[(Place, OrganizationId)],
) -> Result<(), Fault> {
    if places.is_empty() {
        return Ok(());
    }
    let mut chunks: Vec<(Uuid, i32, Uuid)> = places
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
    .or_fault("finish chunks")?;
    Ok(())
}

/// Writes what is known better of DELIVERED events; their counts follow by trigger.
pub(super) async fn correct(
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
