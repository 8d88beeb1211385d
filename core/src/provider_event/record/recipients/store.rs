//! What recording reads of copies, for any number of them of any organizations with one
//! statement each.

use std::collections::HashMap;

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::{Addressee, FoundRecipient, LockedRecipient, MatchKey, RecipientKey};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, ProviderAccountId, TemplateId, UnsubscribeGroupId,
};
use crate::message::MessageStatus;
use crate::metrics::Dimensions;
use crate::provider::event::EventIds;
use crate::provider_event::record::recipient_state::RecipientState;

/// The copies that ids of ours name, in the same order; nothing where they do not
/// belong together or not to the organization.
pub(in crate::provider_event::record) async fn find_copies(
    connection: &mut PgConnection,
    named: &[(OrganizationId, EventIds)],
) -> Result<Vec<Option<FoundRecipient>>, Fault> {
    let mut found = vec![None; named.len()];
    if named.is_empty() {
        return Ok(found);
    }
    let messages: Vec<Uuid> = named.iter().map(|(_, ids)| ids.message_id.0).collect();
    let span = IdRange::of(&messages);
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
               WHERE message_id = t.message_id AND message_id BETWEEN $5 AND $6
                 AND id = t.attempt_id AND position = t.position AND organization_id = t.organization_id
               LIMIT 1
           ) a"#,
        &named.iter().map(|(of, _)| of.0).collect::<Vec<_>>(),
        &messages,
        &named.iter().map(|(_, ids)| ids.position).collect::<Vec<_>>(),
        &named.iter().map(|(_, ids)| ids.attempt_id.0).collect::<Vec<_>>(),
        span.first,
        span.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the copies of provider events")?;
    for row in rows {
        let nth = usize::try_from(row.nth - 1).unwrap_or(usize::MAX);
        if let Some((_, ids)) = named.get(nth) {
            found[nth] = Some(FoundRecipient {
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

/// The copies that went through the accounts and have these ids there, with the
/// events that they belong to. An id that more than one copy has names none.
pub(in crate::provider_event::record) async fn find_copies_by_clues(
    connection: &mut PgConnection,
    clues: &[MatchKey],
) -> Result<Vec<(usize, FoundRecipient)>, Fault> {
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
        let copy = FoundRecipient {
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

/// Whom copies went to.
pub(in crate::provider_event::record) async fn find_addressees(
    connection: &mut PgConnection,
    places: &[(RecipientKey, OrganizationId)],
) -> Result<HashMap<RecipientKey, Addressee>, Fault> {
    if places.is_empty() {
        return Ok(HashMap::new());
    }
    let messages = messages_of(places);
    let span = IdRange::of(&messages);
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!",
                  r.address_hash AS "address_hash: AddressHash", m.unsubscribe_group_id
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, position)
           CROSS JOIN LATERAL (
               SELECT address_hash
               FROM recipients
               WHERE message_id = t.message_id AND message_id BETWEEN $4 AND $5 AND position = t.position
                 AND organization_id = t.organization_id
               LIMIT 1
           ) r
           CROSS JOIN LATERAL (
               SELECT unsubscribe_group_id
               FROM messages
               WHERE id = t.message_id AND id BETWEEN $4 AND $5 AND organization_id = t.organization_id
               LIMIT 1
           ) m"#,
        &places.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &messages,
        &places.iter().map(|(place, _)| place.1).collect::<Vec<_>>(),
        span.first,
        span.last,
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

fn messages_of(places: &[(RecipientKey, OrganizationId)]) -> Vec<Uuid> {
    places.iter().map(|(place, _)| place.0.0).collect()
}

/// How copies are. They stay so until the transaction ends.
pub(in crate::provider_event::record) async fn lock_copies(
    connection: &mut PgConnection,
    places: &[(RecipientKey, OrganizationId)],
) -> Result<HashMap<RecipientKey, LockedRecipient>, Fault> {
    let mut places = places.to_vec();
    places.sort_unstable();
    places.dedup();
    let messages = messages_of(&places);
    let span = IdRange::of(&messages);
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!", r.status AS "status: MessageStatus",
                  r.sent_at, r.delivered_at, r.implied_event_id AS "implied: EventId", r.opened_at, r.clicked_at,
                  r.bounced_at, r.complained_at, r.unsubscribed_at, r.first_sent_at,
                  r.provider_account_id AS "account_id: ProviderAccountId"
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, position)
           CROSS JOIN LATERAL (
               SELECT status, sent_at, delivered_at, implied_event_id, opened_at, clicked_at, bounced_at,
                      complained_at, unsubscribed_at, first_sent_at, provider_account_id
               FROM recipients
               WHERE message_id = t.message_id AND message_id BETWEEN $4 AND $5 AND position = t.position
                 AND organization_id = t.organization_id
               FOR NO KEY UPDATE
           ) r"#,
        &places.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &messages,
        &places.iter().map(|(place, _)| place.1).collect::<Vec<_>>(),
        span.first,
        span.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("lock the copies of provider events")?;
    let copies = rows.into_iter().map(|row| {
        let copy = LockedRecipient {
            standing: RecipientState {
                status: row.status,
                sent_at: row.sent_at,
                delivered_at: row.delivered_at,
                implied: row.implied,
                opened_at: row.opened_at,
                clicked_at: row.clicked_at,
                bounced_at: row.bounced_at,
                complained_at: row.complained_at,
                unsubscribed_at: row.unsubscribed_at,
                first_sent_at: row.first_sent_at,
            },
            account_id: row.account_id,
        };
        ((MessageId(row.message_id), row.position), copy)
    });
    Ok(copies.collect())
}

/// What messages count under.
pub(in crate::provider_event::record) async fn find_dimensions(
    connection: &mut PgConnection,
    messages: &[(MessageId, OrganizationId)],
) -> Result<HashMap<MessageId, Dimensions>, Fault> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = messages.iter().map(|(id, _)| id.0).collect();
    let span = IdRange::of(&ids);
    let rows = query!(
        r#"SELECT m.id AS "id: MessageId", m.provider_account_id AS "account_id: ProviderAccountId",
                  waypost_metric_domain(m.from_address) AS "domain!", m.template_id AS "template_id: TemplateId"
           FROM UNNEST($1::uuid[], $2::uuid[]) AS t (organization_id, message_id)
           CROSS JOIN LATERAL (
               SELECT id, provider_account_id, from_address, template_id
               FROM messages
               WHERE id = t.message_id AND id BETWEEN $3 AND $4 AND organization_id = t.organization_id
               LIMIT 1
           ) m"#,
        &messages.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &ids,
        span.first,
        span.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("find what messages count under")?;
    let rows = rows.into_iter().map(|row| {
        let dimensions = Dimensions {
            account_id: row.account_id,
            domain: row.domain,
            template_id: row.template_id,
        };
        (row.id, dimensions)
    });
    Ok(rows.collect())
}
