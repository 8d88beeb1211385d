//! The statements of filtered lists. Each compares its candidates with the filter, in the
//! same words.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::message::MessageStatus;
use crate::message::list::MessageList;
use crate::message::list::filter::{IdBounds, Label, MessageFilter, Sender};

/// How far to read the list.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub(super) bounds: IdBounds,
    /// Messages to read.
    pub(super) rows: i64,
    /// Matches to return.
    pub(super) limit: i64,
}

/// The newest matching messages among those that were read.
pub(super) struct Walked {
    pub(super) ids: Vec<MessageId>,
    /// Messages that were read.
    rows: i64,
}

impl Walked {
    /// Whether these are all the matches, or as many as were asked for.
    pub(super) fn is_complete(&self, walk: Walk) -> bool {
        self.rows < walk.rows || i64::try_from(self.ids.len()).is_ok_and(|ids| ids >= walk.limit)
    }
}

/// Reads the newest messages of a range that have one of the filter's statuses, and returns
/// those that match.
pub(super) async fn walk(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &MessageFilter,
    text: Option<&str>,
    walk: Walk,
) -> Result<Walked, Fault> {
    // One of the two branches has rows. Each is written so that only its own index fits, as in
    // `list::store::scan_status`.
    let row = query!(
        r#"WITH near AS MATERIALIZED (
               (SELECT id, organization_id, is_test, status, subject, from_address, tags, template_id, provider_account_id, to_hash,
                       recipient_count
                FROM messages
                WHERE (organization_id, is_test, id) >= ($1, $14, $10) AND (organization_id, is_test, id) < ($1, $14, $11)
                  AND cardinality($2::message_status[]) = 0 AND id >= $10 AND id < $11
                ORDER BY organization_id DESC, is_test DESC, id DESC
                LIMIT $12)
               UNION ALL
               (SELECT m.*
                FROM unnest($2) AS given (status)
                CROSS JOIN LATERAL (
                    SELECT id, organization_id, is_test, status, subject, from_address, tags, template_id, provider_account_id, to_hash,
                           recipient_count
                    FROM messages
                    WHERE (organization_id, is_test, status, id) >= ($1, $14, given.status, $10)
                      AND (organization_id, is_test, status, id) < ($1, $14, given.status, $11)
                    ORDER BY organization_id DESC, is_test DESC, status DESC, id DESC
                    LIMIT $12
                ) m
                ORDER BY m.id DESC
                LIMIT $12)
           )
           SELECT (SELECT count(*) FROM near) AS "rows!",
                  ARRAY(SELECT m.id
                        FROM near m
                        WHERE (cardinality($2::message_status[]) = 0 OR m.status = ANY($2))
                          AND ($3::text IS NULL OR lower(m.subject) LIKE lower($3))
                          AND ($4::text IS NULL OR lower(m.from_address) = $4)
                          AND ($5::text IS NULL OR right(lower(m.from_address), length($5) + 1) = '@' || $5)
                          AND ($6::text IS NULL OR $6 = ANY(m.tags))
                          AND ($7::uuid IS NULL OR m.template_id = $7)
                          AND ($8::uuid IS NULL OR m.provider_account_id = $8)
                          AND ($9::bytea IS NULL OR m.to_hash = $9
                               -- LIMIT keeps Postgres from reading all recipients at once.
                               OR (m.recipient_count > 1
                                   AND coalesce((SELECT true
                                                 FROM recipients r
                                                 WHERE r.message_id = m.id AND r.address_hash = $9
                                                 LIMIT 1), false)))
                        ORDER BY m.id DESC
                        LIMIT $13) AS "ids!: Vec<MessageId>""#,
        organization_id.0,
        &filter.statuses as &[MessageStatus],
        text,
        filter.from.as_ref().and_then(Sender::address),
        filter.from.as_ref().and_then(Sender::domain),
        filter.tag,
        filter.template_id.map(|id| id.0),
        filter.provider_account_id.map(|id| id.0),
        filter.recipient as Option<AddressHash>,
        walk.bounds.from,
        walk.bounds.below,
        walk.rows,
        walk.limit,
        filter.is_test,
    )
    .fetch_one(connection)
    .await
    .or_fault("filter messages")?;
    Ok(Walked {
        ids: row.ids,
        rows: row.rows,
    })
}

/// A search in the index of labels.
pub(super) struct LabelSearch<'a> {
    /// From the one to the other, in days since 1970.
    pub(super) days: (i64, i64),
    /// A message must have both; they may be the same.
    pub(super) labels: [&'a Label; 2],
    pub(super) bounds: IdBounds,
    /// Matches to return.
    pub(super) limit: i64,
}

/// The newest matching messages of some days, by the index of labels, among the messages that
/// are not indexed, and among those that another account sent.
pub(super) async fn with_labels(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &MessageFilter,
    text: Option<&str>,
    search: LabelSearch<'_>,
) -> Result<Vec<MessageId>, Fault> {
    let [first, second] = search.labels;
    // MATERIALIZED as in `list::store::search_index`. The rows of messages are read one by
    // one, the newest first, until enough of them match.
    query_scalar!(
        r#"WITH found AS MATERIALIZED (
               SELECT message_id
               FROM message_subjects
               WHERE labels && (SELECT array_agg(waypost_label(waypost_label_seed($1, day, $19), $12, $13))
                                FROM generate_series($10::integer, $11::integer) AS day)
                 AND labels && (SELECT array_agg(waypost_label(waypost_label_seed($1, day, $19), $14, $15))
                                FROM generate_series($10, $11) AS day)
                 AND message_id >= $16 AND message_id < $17
               UNION
               SELECT message_id
               FROM new_messages
               WHERE organization_id = $1 AND is_test = $19 AND subject IS NOT NULL AND message_id >= $16 AND message_id < $17
               UNION
               SELECT id
               FROM messages
               WHERE organization_id = $1 AND provider_account_id = $8 AND resolved_account_id IS NOT NULL
                 AND id >= $16 AND id < $17
           )
           SELECT candidate.message_id AS "message_id!: MessageId"
           FROM (SELECT message_id FROM found ORDER BY message_id DESC) candidate
           CROSS JOIN LATERAL (
               SELECT m.id
               FROM messages m
               WHERE m.id = candidate.message_id AND m.id >= $16 AND m.id < $17 AND m.organization_id = $1 AND m.is_test = $19
                 AND (cardinality($2::message_status[]) = 0 OR m.status = ANY($2))
                 AND ($3::text IS NULL OR lower(m.subject) LIKE lower($3))
                 AND ($4::text IS NULL OR lower(m.from_address) = $4)
                 AND ($5::text IS NULL OR right(lower(m.from_address), length($5) + 1) = '@' || $5)
                 AND ($6::text IS NULL OR $6 = ANY(m.tags))
                 AND ($7::uuid IS NULL OR m.template_id = $7)
                 AND ($8::uuid IS NULL OR m.provider_account_id = $8)
                 AND ($9::bytea IS NULL OR m.to_hash = $9
                      -- LIMIT keeps Postgres from reading all recipients at once.
                      OR (m.recipient_count > 1
                          AND coalesce((SELECT true
                                        FROM recipients r
                                        WHERE r.message_id = m.id AND r.address_hash = $9
                                        LIMIT 1), false)))
               LIMIT 1
           ) matching
           ORDER BY candidate.message_id DESC
           LIMIT $18"#,
        organization_id.0,
        &filter.statuses as &[MessageStatus],
        text,
        filter.from.as_ref().and_then(Sender::address),
        filter.from.as_ref().and_then(Sender::domain),
        filter.tag,
        filter.template_id.map(|id| id.0),
        filter.provider_account_id.map(|id| id.0),
        filter.recipient as Option<AddressHash>,
        i32::try_from(search.days.0).unwrap_or_default(),
        i32::try_from(search.days.1).unwrap_or_default(),
        first.kind,
        first.value,
        second.kind,
        second.value,
        search.bounds.from,
        search.bounds.below,
        search.limit,
        filter.is_test,
    )
    .fetch_all(connection)
    .await
    .or_fault("filter messages by labels")
}

/// Those of some messages that match, in their order, at most so many.
pub(super) async fn check(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: &MessageFilter,
    text: Option<&str>,
    (ids, limit): (&[MessageId], i64),
) -> Result<Vec<MessageId>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let range = IdRange::of(&ids);
    query_scalar!(
        r#"SELECT candidate.id AS "id!: MessageId"
           FROM UNNEST($10::uuid[]) WITH ORDINALITY AS candidate (id, place)
           CROSS JOIN LATERAL (
               SELECT m.id
               FROM messages m
               WHERE m.id = candidate.id AND m.id BETWEEN $11 AND $12 AND m.organization_id = $1
                 AND m.is_test = $14
                 AND (cardinality($2::message_status[]) = 0 OR m.status = ANY($2))
                 AND ($3::text IS NULL OR lower(m.subject) LIKE lower($3))
                 AND ($4::text IS NULL OR lower(m.from_address) = $4)
                 AND ($5::text IS NULL OR right(lower(m.from_address), length($5) + 1) = '@' || $5)
                 AND ($6::text IS NULL OR $6 = ANY(m.tags))
                 AND ($7::uuid IS NULL OR m.template_id = $7)
                 AND ($8::uuid IS NULL OR m.provider_account_id = $8)
                 AND ($9::bytea IS NULL OR m.to_hash = $9
                      -- LIMIT keeps Postgres from reading all recipients at once.
                      OR (m.recipient_count > 1
                          AND coalesce((SELECT true
                                        FROM recipients r
                                        WHERE r.message_id = m.id AND r.address_hash = $9
                                        LIMIT 1), false)))
               LIMIT 1
           ) matching
           ORDER BY candidate.place
           LIMIT $13"#,
        organization_id.0,
        &filter.statuses as &[MessageStatus],
        text,
        filter.from.as_ref().and_then(Sender::address),
        filter.from.as_ref().and_then(Sender::domain),
        filter.tag,
        filter.template_id.map(|id| id.0),
        filter.provider_account_id.map(|id| id.0),
        filter.recipient as Option<AddressHash>,
        &ids,
        range.first,
        range.last,
        limit,
        filter.is_test,
    )
    .fetch_all(connection)
    .await
    .or_fault("filter messages")
}

/// The messages of a range for which a provider gave this id, newest first.
pub(super) async fn with_provider_message_id(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    provider_message_id: &str,
    bounds: IdBounds,
    limit: i64,
) -> Result<Vec<MessageId>, Fault> {
    query_scalar!(
        r#"SELECT DISTINCT message_id AS "message_id!: MessageId"
           FROM recipients
           WHERE provider_message_id = $2 AND organization_id = $1 AND message_id >= $3 AND message_id < $4
           ORDER BY 1 DESC
           LIMIT $5"#,
        organization_id.0,
        provider_message_id,
        bounds.from,
        bounds.below,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("find messages by the provider's id")
}

/// The oldest and the newest message; `None` if there are none.
pub(super) async fn days(
    connection: &mut PgConnection,
    list: MessageList,
) -> Result<Option<(Uuid, Uuid)>, Fault> {
    let row = query!(
        "SELECT (SELECT id
                 FROM messages
                 WHERE (organization_id, is_test, id) >= ($1, $2, $3) AND (organization_id, is_test, id) <= ($1, $2, $4)
                 ORDER BY organization_id, is_test, id
                 LIMIT 1) AS oldest,
                (SELECT id
                 FROM messages
                 WHERE (organization_id, is_test, id) >= ($1, $2, $3) AND (organization_id, is_test, id) <= ($1, $2, $4)
                 ORDER BY organization_id DESC, is_test DESC, id DESC
                 LIMIT 1) AS newest",
        list.organization_id.0,
        list.is_test,
        Uuid::nil(),
        Uuid::max(),
    )
    .fetch_one(connection)
    .await
    .or_fault("find the days of messages")?;
    Ok(row.oldest.zip(row.newest))
}
