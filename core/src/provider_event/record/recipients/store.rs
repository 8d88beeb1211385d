//! Reads the recipients of events, with one statement each for any number of recipients
//! and organizations.

use std::collections::HashMap;

use sqlx::{PgConnection, query, query_file};
use uuid::Uuid;

use super::{Addressee, FoundRecipient, LockedRecipient, MatchKey, NamedRecipient, RecipientKey};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{
    EventId, MessageId, OrganizationId, ProviderAccountId, SendAttemptId, TemplateId,
    UnsubscribeGroupId,
};
use crate::message::MessageStatus;
use crate::metrics::Dimensions;
use crate::provider_event::record::counts::CountedMessage;
use crate::provider_event::record::recipient_state::RecipientState;
use crate::telemetry::traces::TraceContext;

/// The recipients that Waypost's ids name, in the same order; `None` if the ids do not
/// belong together or not to the organization.
///
/// The ids of a shared mail name the attempt of its first recipient. The attempts of the others
/// have the same account and the same start. An event without an address is about the first.
pub(in crate::provider_event::record) async fn find_by_ids(
    connection: &mut PgConnection,
    named: &[NamedRecipient],
) -> Result<Vec<Option<FoundRecipient>>, Fault> {
    let mut found = vec![None; named.len()];
    if named.is_empty() {
        return Ok(found);
    }
    let messages: Vec<Uuid> = named.iter().map(|one| one.ids.message_id.0).collect();
    let range = IdRange::of(&messages);
    let hashes = named.iter().map(|one| {
        let hash = one.address_hash.filter(|_| one.ids.position.is_none());
        hash.map(|hash| hash.0.to_vec())
    });
    // An attempt exists as long as its message and its recipient. The LIMIT makes each
    // lookup one by primary key, even if the planner's statistics of a growing table are
    // out of date.
    let rows = query_file!(
        "src/provider_event/record/recipients/find_by_ids.sql",
        &named
            .iter()
            .map(|one| one.organization_id.0)
            .collect::<Vec<_>>(),
        &messages,
        &named.iter().map(|one| one.ids.position).collect::<Vec<_>>() as &[Option<i32>],
        &named
            .iter()
            .map(|one| one.ids.attempt_id.0)
            .collect::<Vec<_>>(),
        range.first,
        range.last,
        &hashes.collect::<Vec<_>>() as &[Option<Vec<u8>>],
    )
    .fetch_all(connection)
    .await
    .or_fault("find the recipients of provider events")?;
    for row in rows {
        let nth = usize::try_from(row.nth - 1).unwrap_or(usize::MAX);
        if let Some(one) = named.get(nth) {
            found[nth] = Some(FoundRecipient {
                key: (one.ids.message_id, row.position),
                attempt_id: Some(SendAttemptId(row.id)),
                is_proven: row.is_proven,
                started_at: Some(row.started_at),
                account_id: ProviderAccountId(row.provider_account_id),
            });
        }
    }
    Ok(found)
}

/// The recipients of an account with these provider message ids, each with the index of
/// its event. An id that several recipients share matches none.
pub(in crate::provider_event::record) async fn find_by_provider_message_id(
    connection: &mut PgConnection,
    match_keys: &[MatchKey],
) -> Result<Vec<(usize, FoundRecipient)>, Fault> {
    if match_keys.is_empty() {
        return Ok(Vec::new());
    }
    let hashes: Vec<Option<&[u8]>> = match_keys
        .iter()
        .map(|match_key| {
            match_key
                .address_hash
                .as_ref()
                .map(|hash| hash.0.as_slice())
        })
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
        &match_keys
            .iter()
            .map(|match_key| match_key.organization_id.0)
            .collect::<Vec<_>>(),
        &match_keys
            .iter()
            .map(|match_key| match_key.account_id.0)
            .collect::<Vec<_>>(),
        &match_keys
            .iter()
            .map(|match_key| match_key.provider_message_id.as_str())
            .collect::<Vec<_>>() as &[&str],
        &hashes as &[Option<&[u8]>],
    )
    .fetch_all(connection)
    .await
    .or_fault("find the recipients of provider events")?;
    let found = rows.into_iter().filter_map(|row| {
        let match_key = match_keys.get(usize::try_from(row.nth - 1).ok()?)?;
        let recipient = FoundRecipient {
            key: (MessageId(row.message_id), row.position),
            attempt_id: None,
            is_proven: false,
            started_at: None,
            account_id: match_key.account_id,
        };
        Some((match_key.event_index, recipient))
    });
    Ok(found.collect())
}

/// The addresses and unsubscribe groups of recipients.
pub(in crate::provider_event::record) async fn find_addressees(
    connection: &mut PgConnection,
    keys: &[(RecipientKey, OrganizationId)],
) -> Result<HashMap<RecipientKey, Addressee>, Fault> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let messages = messages_of(keys);
    let range = IdRange::of(&messages);
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
        &keys.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &messages,
        &keys.iter().map(|(key, _)| key.1).collect::<Vec<_>>(),
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the addresses of recipients")?;
    let rows = rows.into_iter().map(|row| {
        let addressee = Addressee {
            address_hash: row.address_hash,
            group_id: row.unsubscribe_group_id.map(UnsubscribeGroupId),
        };
        ((MessageId(row.message_id), row.position), addressee)
    });
    Ok(rows.collect())
}

fn messages_of(keys: &[(RecipientKey, OrganizationId)]) -> Vec<Uuid> {
    keys.iter().map(|(key, _)| key.0.0).collect()
}

/// Locks recipients until the transaction ends and returns their states.
pub(in crate::provider_event::record) async fn lock(
    connection: &mut PgConnection,
    keys: &[(RecipientKey, OrganizationId)],
) -> Result<HashMap<RecipientKey, LockedRecipient>, Fault> {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let messages = messages_of(&keys);
    let range = IdRange::of(&messages);
    let rows = query!(
        r#"SELECT t.message_id AS "message_id!", t.position AS "position!", r.status AS "status: MessageStatus",
                  r.sent_at, r.delivered_at, r.implied_event_id AS "implied: EventId", r.opened_at, r.clicked_at,
                  r.bounced_at, r.complained_at, r.unsubscribed_at, r.first_sent_at,
                  r.provider_account_id AS "account_id: ProviderAccountId", coalesce(r.domain, '') AS "domain!"
           FROM UNNEST($1::uuid[], $2::uuid[], $3::int[]) AS t (organization_id, message_id, position)
           CROSS JOIN LATERAL (
               SELECT status, sent_at, delivered_at, implied_event_id, opened_at, clicked_at, bounced_at,
                      complained_at, unsubscribed_at, first_sent_at, provider_account_id, domain
               FROM recipients
               WHERE message_id = t.message_id AND message_id BETWEEN $4 AND $5 AND position = t.position
                 AND organization_id = t.organization_id
               FOR NO KEY UPDATE
           ) r"#,
        &keys.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &messages,
        &keys.iter().map(|(key, _)| key.1).collect::<Vec<_>>(),
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("lock the recipients of provider events")?;
    let recipients = rows.into_iter().map(|row| {
        let recipient = LockedRecipient {
            state: RecipientState {
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
            domain: row.domain,
        };
        ((MessageId(row.message_id), row.position), recipient)
    });
    Ok(recipients.collect())
}

/// What the metrics need of messages.
pub(in crate::provider_event::record) async fn find_counted(
    connection: &mut PgConnection,
    messages: &[(MessageId, OrganizationId)],
) -> Result<HashMap<MessageId, CountedMessage>, Fault> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<Uuid> = messages.iter().map(|(id, _)| id.0).collect();
    let range = IdRange::of(&ids);
    let rows = query!(
        r#"SELECT m.id AS "id: MessageId", m.provider_account_id AS "account_id: ProviderAccountId",
                  waypost_metric_domain(m.from_address) AS "domain!", m.template_id AS "template_id: TemplateId",
                  m.tags, greatest(m.created_at, m.scheduled_at) AS "accepted_at!"
           FROM UNNEST($1::uuid[], $2::uuid[]) AS t (organization_id, message_id)
           CROSS JOIN LATERAL (
               SELECT id, provider_account_id, from_address, template_id, tags, created_at, scheduled_at
               FROM messages
               WHERE id = t.message_id AND id BETWEEN $3 AND $4 AND organization_id = t.organization_id
               LIMIT 1
           ) m"#,
        &messages.iter().map(|(_, of)| of.0).collect::<Vec<_>>(),
        &ids,
        range.first,
        range.last,
    )
    .fetch_all(connection)
    .await
    .or_fault("find the metric dimensions of messages")?;
    let rows = rows.into_iter().map(|row| {
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
    Ok(rows.collect())
}

/// Where the requests that sent these messages stand in their traces.
pub(in crate::provider_event::record) async fn list_traces(
    connection: &mut PgConnection,
    ids: &[MessageId],
) -> Result<Vec<(MessageId, TraceContext)>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let rows = query!(
        r#"SELECT id, traceparent AS "traceparent!"
           FROM messages
           WHERE id = ANY($1) AND traceparent IS NOT NULL"#,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the traces of messages")?;
    let traces = rows.into_iter();
    let traces = traces.filter_map(|row| Some((MessageId(row.id), row.traceparent.parse().ok()?)));
    Ok(traces.collect())
}
