//! The messages of a past period.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::PastMessage;
use crate::address::EmailAddress;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::routing::conditions::MessageClass;

/// Which messages to read.
pub(super) struct PeriodPage {
    pub organization_id: OrganizationId,
    /// The last message that was read.
    pub after: Option<MessageId>,
    pub from: Timestamp,
    pub to: Timestamp,
    /// One of so many, evenly by the random part of their ids.
    pub one_in: u32,
    /// Messages of a page.
    pub size: u32,
    pub looks_at_recipients: bool,
    pub looks_at_size: bool,
}

/// A page of messages.
pub(super) struct Messages {
    pub found: Vec<PastMessage>,
    /// After which message the next page begins; `None` if there is none.
    pub next: Option<MessageId>,
}

/// Counts the live messages of a period.
pub(super) async fn count(connection: &mut PgConnection, page: &PeriodPage) -> Result<u64, Fault> {
    let count = query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM messages
           WHERE organization_id = $1 AND NOT is_test
             AND id >= waypost_uuid_floor($2) AND id < waypost_uuid_floor($3)"#,
        page.organization_id.0,
        page.from,
        page.to,
    )
    .fetch_one(connection)
    .await
    .or_fault("count the messages of a period")?;
    Ok(u64::try_from(count).unwrap_or_default())
}

/// Reads a page of live messages, in the order in which they were accepted.
pub(super) async fn messages(
    connection: &mut PgConnection,
    page: &PeriodPage,
) -> Result<Messages, Fault> {
    let rows = query!(
        r#"SELECT m.id, m.created_at, m.from_address, m.tags, m.recipient_count, m.provider_account_id,
                  m.message_class AS "class: MessageClass", coalesce(m.is_account_pinned, false) AS "is_pinned!",
                  CASE WHEN $7 THEN
                      (SELECT array_agg(d.domain ORDER BY d.first)
                       FROM (SELECT domain, min(position) AS first
                             FROM recipients
                             WHERE message_id = m.id
                             GROUP BY domain) d)
                  END AS "domains: Vec<Option<String>>",
                  CASE WHEN $8 THEN
                      (SELECT octet_length(m.subject) + coalesce(octet_length(b.html), 0)
                              + coalesce(octet_length(b.text), 0)
                              + coalesce((SELECT sum((file ->> 'size')::bigint)::bigint
                                          FROM jsonb_array_elements(b.attachments) file), 0)
                       FROM message_bodies b
                       WHERE b.message_id = m.id)
                  END AS size_bytes
           FROM (SELECT id
                 FROM messages
                 WHERE organization_id = $1 AND NOT is_test
                   AND id > coalesce($2, waypost_uuid_floor($3)) AND id < waypost_uuid_floor($4)
                   AND ('x' || right(id::text, 6))::bit(24)::int % $5 = 0
                 ORDER BY id
                 LIMIT $6) chosen
           JOIN messages m ON m.id = chosen.id
           ORDER BY m.id"#,
        page.organization_id.0,
        page.after.map(|id| id.0) as Option<Uuid>,
        page.from,
        page.to,
        i32::try_from(page.one_in).unwrap_or(i32::MAX),
        i64::from(page.size),
        page.looks_at_recipients,
        page.looks_at_size,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the messages of a period")?;
    let is_full = u32::try_from(rows.len()).is_ok_and(|count| count >= page.size);
    let next = rows.last().map(|row| MessageId(row.id)).filter(|_| is_full);
    let found = rows.into_iter().filter_map(|row| {
        Some(PastMessage {
            id: MessageId(row.id),
            accepted_at: row.created_at,
            // An erased sender is not routed.
            sender: EmailAddress::parse(&row.from_address).ok()?,
            tags: row.tags,
            recipients: u32::try_from(row.recipient_count).unwrap_or_default(),
            recipient_domains: row
                .domains
                .and_then(|domains| domains.into_iter().collect()),
            class: row.class.unwrap_or_default(),
            size_bytes: row.size_bytes.and_then(|size| u64::try_from(size).ok()),
            account_id: ProviderAccountId(row.provider_account_id),
            is_pinned: row.is_pinned,
        })
    });
    Ok(Messages {
        found: found.collect(),
        next,
    })
}
