//! Messages in Postgres, as their owners read them one by one; their list is in
//! `list`. How they get there is in `rows`; how they are worked off is in
//! `queue::lease` and `queue::outcome`.

use sqlx::{PgConnection, query, query_as, query_scalar};

use super::{MessageItem, MessageStatus, RecipientItem};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::event;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId};
use crate::page::{Page, PageRequest};

/// One message.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<MessageItem>, Fault> {
    query_as!(
        MessageItem,
        r#"SELECT id AS "id: MessageId", provider_account_id AS "provider_account_id: ProviderAccountId",
                  from_address, to_hash AS "to_hash: AddressHash", subject, status AS "status: MessageStatus", tags, recipient_count,
                  provider_message_id, created_at, sent_at, delivered_at
           FROM messages
           WHERE id = $2 AND organization_id = $1"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a message")
}

/// A page of a message's recipients in the order of the request, each with its
/// history; nothing where the message is not there.
pub async fn list_recipients(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    page: PageRequest,
) -> Result<Option<Page<RecipientItem>>, Fault> {
    let Some(message) = find(&mut *connection, organization_id, id).await? else {
        return Ok(None);
    };
    let rows = query!(
        r#"SELECT position, address_hash AS "address_hash: AddressHash", status AS "status: MessageStatus",
                  provider_account_id AS "provider_account_id: ProviderAccountId",
                  provider_message_id, attempts, last_error
           FROM recipients
           WHERE message_id = $2 AND organization_id = $1
           ORDER BY position
           LIMIT $3 OFFSET $4"#,
        organization_id.0,
        id.0,
        i64::from(page.limit()),
        page.offset(),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("list recipients")?;
    let positions: Vec<i32> = rows.iter().map(|row| row.position).collect();
    let events =
        event::store::list_of_recipients(connection, organization_id, id, &positions).await?;
    let rows = rows.into_iter().map(|row| RecipientItem {
        events: events
            .iter()
            .filter(|event| {
                event
                    .position
                    .is_none_or(|position| position == row.position)
            })
            .cloned()
            .collect(),
        position: row.position,
        address_hash: row.address_hash,
        status: row.status,
        provider_account_id: row.provider_account_id,
        provider_message_id: row.provider_message_id,
        attempts: row.attempts,
        last_error: row.last_error,
    });
    Ok(Some(Page {
        rows: rows.collect(),
        total: u64::try_from(message.recipient_count).unwrap_or_default(),
    }))
}

/// Writes the aggregate of their recipients' statuses into messages. Called last
/// in a transaction that changed these messages' recipients: the rows are locked in
/// the order of their ids before the recipients are read, so concurrent callers
/// neither deadlock nor overlook each other.
pub async fn refresh_aggregates(
    connection: &mut PgConnection,
    ids: &[MessageId],
) -> Result<(), Fault> {
    let mut ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(());
    }
    let span = IdRange::of(&ids);
    copy_only_recipients(connection, &ids).await?;
    let several = query_scalar!(
        "SELECT id
         FROM messages
         WHERE id = ANY($1) AND id BETWEEN $2 AND $3 AND recipient_count <> 1
         ORDER BY id
         FOR NO KEY UPDATE",
        &ids,
        span.first,
        span.last,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("lock messages")?;
    aggregate_recipients(connection, &several).await
}

/// Lets messages show that they are being sent, as far as they are: those in `single`
/// have one recipient, those in `several` more. To be run in a transaction. Answers the
/// ones of `single` that need not be looked at again: a recipient that somebody else
/// holds is about to change, and is not waited for.
pub async fn show_sending(
    connection: &mut PgConnection,
    single: &[MessageId],
    several: &[MessageId],
) -> Result<Vec<MessageId>, Fault> {
    // Held until the end, so that nothing that is decided meanwhile is written over. Of
    // several, their message's own row sees to that.
    let ids: Vec<uuid::Uuid> = single.iter().map(|id| id.0).collect();
    let span = IdRange::of(&ids);
    let held = query_scalar!(
        r#"SELECT message_id AS "message_id: MessageId"
           FROM recipients
           WHERE message_id = ANY($1) AND message_id BETWEEN $2 AND $3
             AND position = 0 AND status = 'SENDING'
           ORDER BY message_id
           FOR SHARE SKIP LOCKED"#,
        &ids,
        span.first,
        span.last,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("look for what is being sent")?;
    refresh_aggregates(connection, &[&held, several].concat()).await?;
    Ok(held)
}

/// A message with one recipient is as that is: nothing to aggregate. Whoever calls this
/// holds the recipient's row, so nobody else is about to change the message.
async fn copy_only_recipients(
    connection: &mut PgConnection,
    ids: &[uuid::Uuid],
) -> Result<(), Fault> {
    let span = IdRange::of(ids);
    query!(
        r#"UPDATE messages m
           SET status = r.status, sent_at = r.sent_at, delivered_at = r.delivered_at,
               provider_message_id = r.provider_message_id,
               provider_account_id = coalesce(r.provider_account_id, m.provider_account_id),
               resolved_account_id = CASE WHEN r.provider_account_id <> m.provider_account_id
                                          THEN coalesce(m.resolved_account_id, m.provider_account_id)
                                          ELSE m.resolved_account_id END
           FROM UNNEST($1::uuid[]) AS single (id)
           CROSS JOIN LATERAL (
               SELECT status, sent_at, delivered_at, provider_account_id, provider_message_id
               FROM recipients
               WHERE message_id = single.id AND message_id BETWEEN $2 AND $3 AND position = 0
               LIMIT 1
           ) r
           WHERE m.id = single.id AND m.recipient_count = 1
             AND ((m.status, m.sent_at, m.delivered_at, m.provider_message_id)
                      IS DISTINCT FROM (r.status, r.sent_at, r.delivered_at, r.provider_message_id)
                  OR r.provider_account_id <> m.provider_account_id)"#,
        ids,
        span.first,
        span.last,
    )
    .execute(connection)
    .await
    .or_fault("update the status of messages")?;
    Ok(())
}

async fn aggregate_recipients(
    connection: &mut PgConnection,
    ids: &[uuid::Uuid],
) -> Result<(), Fault> {
    if ids.is_empty() {
        return Ok(());
    }
    let span = IdRange::of(ids);
    query!(
        r#"UPDATE messages m
           SET status = a.status, sent_at = a.sent_at, delivered_at = a.delivered_at,
               provider_message_id = a.provider_message_id,
               provider_account_id = coalesce(a.provider_account_id, m.provider_account_id),
               resolved_account_id = CASE WHEN a.provider_account_id <> m.provider_account_id
                                          THEN coalesce(m.resolved_account_id, m.provider_account_id)
                                          ELSE m.resolved_account_id END
           FROM (
               SELECT message_id,
                      CASE WHEN bool_or(status = 'QUEUED') THEN 'QUEUED'
                           WHEN bool_or(status = 'SENDING') THEN 'SENDING'
                           WHEN bool_or(status = 'DELIVERED') THEN 'DELIVERED'
                           WHEN bool_or(status = 'SENT') THEN 'SENT'
                           WHEN bool_or(status = 'BOUNCED') THEN 'BOUNCED'
                           ELSE 'FAILED' END::message_status AS status,
                      min(sent_at) AS sent_at,
                      min(delivered_at) AS delivered_at,
                      (array_agg(provider_account_id ORDER BY position)
                          FILTER (WHERE provider_account_id IS NOT NULL))[1] AS provider_account_id,
                      (array_agg(provider_message_id ORDER BY position)
                          FILTER (WHERE provider_message_id IS NOT NULL))[1] AS provider_message_id
               FROM recipients
               WHERE message_id = ANY($1) AND message_id BETWEEN $2 AND $3
               GROUP BY message_id
           ) a
           WHERE m.id = a.message_id AND m.id = ANY($1)"#,
        ids,
        span.first,
        span.last,
    )
    .execute(connection)
    .await
    .or_fault("update the status of messages")?;
    Ok(())
}
