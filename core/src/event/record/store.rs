//! What recording reads and writes, for any number of events with one statement
//! each. Attempts are locked before recipients and those before messages, each in
//! the order of their ids, as everyone does who settles what workers did.

use std::collections::{HashMap, HashSet};

use sqlx::{PgConnection, query};
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
    /// When that call began.
    pub(super) started_at: Option<Timestamp>,
    /// The account that it went through.
    pub(super) account_id: ProviderAccountId,
    pub(super) address_hash: AddressHash,
    /// The group that the message was sent in.
    pub(super) group_id: Option<UnsubscribeGroupId>,
}

/// The copies that ids of ours name, in the same order; nothing where they do not
/// belong together or not to the organization.
pub(super) async fn find_copies(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[Option<CopyIds>],
) -> Result<Vec<Option<FoundCopy>>, Fault> {
    let mut found = vec![None; ids.len()];
    let named: Vec<(usize, CopyIds)> = ids
        .iter()
        .enumerate()
        .filter_map(|(place, ids)| Some((place, (*ids)?)))
        .collect();
    if named.is_empty() {
        return Ok(found);
    }
    // Limits keep each look-up one by primary key, whatever the planner believes of
    // tables that have just grown.
    let rows = query!(
        r#"SELECT t.nth AS "nth!", a.provider_account_id, a.started_at, r.address_hash AS "address_hash: AddressHash",
                  m.unsubscribe_group_id
           FROM UNNEST($2::uuid[], $3::int[], $4::uuid[]) WITH ORDINALITY AS t (message_id, position, attempt_id, nth)
           CROSS JOIN LATERAL (
               SELECT provider_account_id, started_at
               FROM send_attempts
               WHERE message_id = t.message_id AND id = t.attempt_id AND position = t.position
                 AND organization_id = $1
               LIMIT 1
           ) a
           CROSS JOIN LATERAL (
               SELECT address_hash
               FROM recipients
               WHERE message_id = t.message_id AND position = t.position AND organization_id = $1
               LIMIT 1
           ) r
           CROSS JOIN LATERAL (
               SELECT unsubscribe_group_id
               FROM messages
               WHERE id = t.message_id AND organization_id = $1
               LIMIT 1
           ) m"#,
        organization_id.0,
        &named.iter().map(|(_, ids)| ids.message_id.0).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.position).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.attempt_id.0).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("find the copies of provider events")?;
    for row in rows {
        let nth = usize::try_from(row.nth - 1).unwrap_or(usize::MAX);
        if let Some((place, ids)) = named.get(nth) {
            found[*place] = Some(FoundCopy {
                place: (ids.message_id, ids.position),
                attempt_id: Some(ids.attempt_id),
                started_at: Some(row.started_at),
                account_id: ProviderAccountId(row.provider_account_id),
                address_hash: row.address_hash,
                group_id: row.unsubscribe_group_id.map(UnsubscribeGroupId),
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
    pub(super) provider_message_id: String,
    pub(super) address_hash: Option<AddressHash>,
}

/// The copies that went through an account and have these ids there, with the
/// events that they belong to. An id that more than one copy has names none.
pub(super) async fn find_copies_by_clues(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
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
        r#"SELECT t.nth AS "nth!", r.message_id, r.position, r.address_hash AS "address_hash: AddressHash",
                  m.unsubscribe_group_id
           FROM UNNEST($3::text[], $4::bytea[]) WITH ORDINALITY AS t (provider_message_id, address_hash, nth)
           CROSS JOIN LATERAL (
               SELECT message_id, position, address_hash, count(*) OVER () AS alike
               FROM (
                   SELECT message_id, position, address_hash
                   FROM recipients
                   WHERE provider_message_id = t.provider_message_id
                     AND organization_id = $1 AND provider_account_id = $2
                     AND (t.address_hash IS NULL OR address_hash = t.address_hash)
                   LIMIT 2
               ) few
           ) r
           CROSS JOIN LATERAL (
               SELECT unsubscribe_group_id
               FROM messages
               WHERE id = r.message_id AND organization_id = $1
               LIMIT 1
           ) m
           WHERE r.alike = 1"#,
        organization_id.0,
        account_id.0,
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
            started_at: None,
            account_id,
            address_hash: row.address_hash,
            group_id: row.unsubscribe_group_id.map(UnsubscribeGroupId),
        };
        Some((clue.nth, copy))
    });
    Ok(found.collect())
}

/// The first half of the SHA-256 of a provider's id of an event.
pub(super) type EventHash = [u8; 16];

/// An event as it was told, about to be kept.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) message_id: MessageId,
    pub(super) position: i32,
    pub(super) account_id: ProviderAccountId,
    pub(super) hash: EventHash,
    pub(super) told_sealed: Vec<u8>,
}

/// Keeps events, and says which of them were not told before.
pub(super) async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    events: &[Kept],
    now: Timestamp,
) -> Result<HashSet<(MessageId, ProviderAccountId, EventHash)>, Fault> {
    // In one order in every transaction: two that share events then wait for each
    // other and never in a circle.
    let rows = query!(
        r#"INSERT INTO provider_events
               (message_id, provider_account_id, event_hash, organization_id, position, received_at, told_sealed)
           SELECT message_id, provider_account_id, event_hash, $1, position, $2, told_sealed
           FROM UNNEST($3::uuid[], $4::uuid[], $5::bytea[], $6::int[], $7::bytea[])
             AS e (message_id, provider_account_id, event_hash, position, told_sealed)
           ORDER BY message_id, provider_account_id, event_hash
           ON CONFLICT (message_id, provider_account_id, event_hash) DO NOTHING
           RETURNING message_id, provider_account_id, event_hash"#,
        organization_id.0,
        now,
        &events.iter().map(|e| e.message_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.account_id.0).collect::<Vec<_>>(),
        &events.iter().map(|e| e.hash.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        &events.iter().map(|e| e.position).collect::<Vec<_>>(),
        &events.iter().map(|e| e.told_sealed.as_slice()).collect::<Vec<_>>() as &[&[u8]],
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
    organization_id: OrganizationId,
    attempts: &[(MessageId, SendAttemptId)],
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
               FROM UNNEST($2::uuid[], $3::uuid[]) AS t (message_id, id)
               CROSS JOIN LATERAL (
                   SELECT outcome
                   FROM send_attempts
                   WHERE message_id = t.message_id AND id = t.id AND organization_id = $1
                     AND outcome IS DISTINCT FROM 'ACCEPTED'
                   FOR NO KEY UPDATE
               ) a
           )
           UPDATE send_attempts a
           SET outcome = 'ACCEPTED', finished_at = coalesce(a.finished_at, $4)
           FROM locked l
           WHERE a.message_id = l.message_id AND a.message_id = ANY($2) AND a.id = l.id
           RETURNING a.message_id, a.position, l.was_open AS "was_open!""#,
        organization_id.0,
        &attempts
            .iter()
            .map(|(message, _)| message.0)
            .collect::<Vec<_>>(),
        &attempts.iter().map(|(_, id)| id.0).collect::<Vec<_>>(),
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
    organization_id: OrganizationId,
    places: &[Place],
) -> Result<HashMap<Place, Standing>, Fault> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places.dedup();
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!", r.status AS "status: MessageStatus",
                  r.sent_at, r.delivered_at, r.implied_event_id AS "implied: EventId"
           FROM UNNEST($2::uuid[], $3::int[]) AS t (message_id, position)
           CROSS JOIN LATERAL (
               SELECT status, sent_at, delivered_at, implied_event_id
               FROM recipients
               WHERE message_id = t.message_id AND position = t.position AND organization_id = $1
               FOR NO KEY UPDATE
           ) r"#,
        organization_id.0,
        &places.iter().map(|(message, _)| message.0).collect::<Vec<_>>(),
        &places.iter().map(|(_, position)| *position).collect::<Vec<_>>(),
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
    pub(super) place: Place,
    pub(super) progress: &'a Progress,
    /// Where the news proved that it was sent: through which account.
    pub(super) account_id: Option<ProviderAccountId>,
    /// The provider's id of it, should it have none.
    pub(super) provider_message_id: Option<String>,
    /// Calls that count and that nobody had counted.
    pub(super) attempts: i32,
}

/// Writes where copies stand now.
pub(super) async fn update_copies(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    changes: &[Change<'_>],
) -> Result<(), Fault> {
    if changes.is_empty() {
        return Ok(());
    }
    let standing = |pick: fn(&Standing) -> Option<Timestamp>| -> Vec<Option<Timestamp>> {
        changes
            .iter()
            .map(|change| pick(&change.progress.standing))
            .collect()
    };
    let accounts: Vec<Option<Uuid>> = changes
        .iter()
        .map(|change| change.account_id.map(|id| id.0))
        .collect();
    let implied: Vec<Option<Uuid>> = changes
        .iter()
        .map(|change| change.progress.standing.implied.map(|id| id.0))
        .collect();
    let errors: Vec<Option<&str>> = changes
        .iter()
        .map(|change| change.progress.error.as_ref()?.as_deref())
        .collect();
    query!(
        r#"UPDATE recipients r
           SET status = c.status::message_status,
               sent_at = c.sent_at,
               delivered_at = c.delivered_at,
               implied_event_id = c.implied,
               provider_account_id = coalesce(c.account_id, r.provider_account_id),
               provider_message_id = coalesce(r.provider_message_id, c.provider_message_id),
               attempts = r.attempts + c.used,
               last_error = CASE WHEN c.says_error THEN c.error ELSE r.last_error END
           FROM UNNEST($2::uuid[], $3::int[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::uuid[],
                       $8::uuid[], $9::text[], $10::int[], $11::bool[], $12::text[])
             AS c (message_id, position, status, sent_at, delivered_at, implied, account_id,
                   provider_message_id, used, says_error, error)
           WHERE r.message_id = c.message_id AND r.message_id = ANY($2) AND r.position = c.position
             AND r.organization_id = $1"#,
        organization_id.0,
        &changes.iter().map(|c| c.place.0.0).collect::<Vec<_>>(),
        &changes.iter().map(|c| c.place.1).collect::<Vec<_>>(),
        &changes
            .iter()
            .map(|c| c.progress.standing.status.as_str())
            .collect::<Vec<_>>() as &[&str],
        &standing(|standing| standing.sent_at) as &[Option<Timestamp>],
        &standing(|standing| standing.delivered_at) as &[Option<Timestamp>],
        &implied as &[Option<Uuid>],
        &accounts as &[Option<Uuid>],
        &changes
            .iter()
            .map(|c| c.provider_message_id.as_deref())
            .collect::<Vec<_>>() as &[Option<&str>],
        &changes
            .iter()
            .map(|c| c.attempts)
            .collect::<Vec<_>>(),
        &changes
            .iter()
            .map(|c| c.progress.error.is_some())
            .collect::<Vec<_>>(),
        &errors as &[Option<&str>],
    )
    .execute(connection)
    .await
    .or_fault("move the copies of provider events")?;
    Ok(())
}

/// Deletes the outbox rows of chunks of which nothing is left to do, if nobody holds
/// them. Whoever holds one finds that out when it ends its lease, and what two of us
/// overlook here is found by the worker that the relay wakes for it.
pub(super) async fn finish_chunks(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    places: &[Place],
) -> Result<(), Fault> {
    if places.is_empty() {
        return Ok(());
    }
    let mut chunks: Vec<(Uuid, i32)> = places
        .iter()
        .map(|(message, position)| (message.0, position / CHUNK_RECIPIENTS))
        .collect();
    chunks.sort_unstable();
    chunks.dedup();
    let (messages, chunks): (Vec<Uuid>, Vec<i32>) = chunks.into_iter().unzip();
    query!(
        r#"WITH done AS (
               SELECT o.message_id, o.chunk
               FROM outbox o
               JOIN UNNEST($2::uuid[], $3::int[]) AS t (message_id, chunk) USING (message_id, chunk)
               WHERE o.organization_id = $1 AND o.leased_by IS NULL
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
        organization_id.0,
        &messages,
        &chunks,
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
    organization_id: OrganizationId,
    corrections: &[(MessageId, &Correction)],
) -> Result<(), Fault> {
    if corrections.is_empty() {
        return Ok(());
    }
    let data: Vec<Option<serde_json::Value>> = corrections
        .iter()
        .map(|(_, correction)| correction.data.clone())
        .collect();
    query!(
        r#"UPDATE events e
           SET occurred_at = c.occurred_at, data = coalesce(c.data, e.data)
           FROM UNNEST($2::uuid[], $3::uuid[], $4::timestamptz[], $5::jsonb[]) AS c (message_id, id, occurred_at, data)
           WHERE e.message_id = c.message_id AND e.message_id = ANY($2) AND e.id = c.id
             AND e.organization_id = $1"#,
        organization_id.0,
        &corrections.iter().map(|(message, _)| message.0).collect::<Vec<_>>(),
        &corrections.iter().map(|(_, c)| c.event_id.0).collect::<Vec<_>>(),
        &corrections.iter().map(|(_, c)| c.occurred_at).collect::<Vec<_>>(),
        &data as &[Option<serde_json::Value>],
    )
    .execute(connection)
    .await
    .or_fault("correct delivery events")?;
    Ok(())
}
