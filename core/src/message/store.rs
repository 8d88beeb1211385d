//! Reads single messages from Postgres, and updates their aggregates; lists are in
//! `list`. Messages are inserted by `acceptance::insert` and sent by `delivery::lease`
//! and `delivery::outcome`.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{
    ATTEMPTS_SHOWN, AttemptItem, MessageItem, MessageRecord, MessageStatus, RecipientItem,
    RecipientKind,
};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::db::id_range::IdRange;
use crate::event;
use crate::fault::Fault;
use crate::ids::{
    MessageId, OrganizationId, ProviderAccountId, SendAttemptId, TemplateId, TemplateVersionId,
};
use crate::page::{Page, PageRequest, Place};

/// One message.
pub async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<MessageItem>, Fault> {
    query_as!(
        MessageItem,
        r#"SELECT id AS "id: MessageId", provider_account_id AS "provider_account_id: ProviderAccountId",
                  from_address, to_hash AS "to_hash: AddressHash", subject, status AS "status: MessageStatus", tags, is_test, recipient_count,
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

/// Whether a message is a test; `None` if it does not exist.
pub async fn is_test(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<bool>, Fault> {
    query_scalar!(
        "SELECT is_test FROM messages WHERE id = $2 AND organization_id = $1",
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a message")
}

/// One message with its details.
pub async fn find_detail(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
) -> Result<Option<MessageRecord>, Fault> {
    let Some(item) = find(&mut *connection, organization_id, id).await? else {
        return Ok(None);
    };
    let row = query!(
        r#"SELECT metadata, scheduled_at, template_id AS "template_id: TemplateId",
                  template_version_id AS "template_version_id: TemplateVersionId",
                  (SELECT version_number
                   FROM template_versions
                   WHERE id = m.template_version_id AND organization_id = $1) AS version_number,
                  ARRAY(SELECT address_hash
                        FROM recipients
                        WHERE message_id = $2 AND coalesce(kind, 'TO') = 'TO'
                        ORDER BY position) AS "to!: Vec<AddressHash>"
           FROM messages m
           WHERE id = $2 AND organization_id = $1"#,
        organization_id.0,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the details of a message")?;
    Ok(row.map(|row| MessageRecord {
        item,
        to: row.to,
        metadata: row.metadata,
        scheduled_at: row.scheduled_at,
        template_id: row.template_id,
        template_version_id: row.template_version_id,
        template_version_number: row.version_number,
    }))
}

/// A page of a message's recipients in the order of the request, each with its history;
/// `None` if the message does not exist.
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
                  provider_message_id, attempts, last_error, kind AS "kind: RecipientKind"
           FROM recipients
           WHERE message_id = $2 AND organization_id = $1 AND position > $5
           ORDER BY position
           LIMIT $3 OFFSET $4"#,
        organization_id.0,
        id.0,
        page.rows(),
        page.offset(),
        page.place().map_or(-1, position_of),
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
        kind: row.kind.unwrap_or_default(),
    });
    let total = u64::try_from(message.recipient_count).unwrap_or_default();
    let place = |last: &RecipientItem| place_of(last.position);
    Ok(Some(Page::of(rows.collect(), page, total, place)))
}

/// Recipients are listed by their positions, which never change.
fn place_of(position: i32) -> Place {
    Place::of_id(Uuid::from_u128(u128::from(position.unsigned_abs())))
}

fn position_of(place: Place) -> i32 {
    i32::try_from(place.id.as_u128()).unwrap_or(i32::MAX)
}

/// The newest attempts of a message, oldest first.
pub async fn list_attempts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
) -> Result<Vec<AttemptItem>, Fault> {
    query_as!(
        AttemptItem,
        r#"SELECT a.id AS "id: SendAttemptId", r.address_hash AS "address_hash: AddressHash",
                  a.provider_account_id AS "provider_account_id: ProviderAccountId",
                  coalesce(t.provider_type::text, 'UNKNOWN') AS "provider_type!",
                  a.started_at, a.finished_at, coalesce(a.outcome::text, 'PENDING') AS "outcome!",
                  a.status_code, a.reason
           FROM (
               SELECT *
               FROM send_attempts
               WHERE message_id = $2 AND organization_id = $1
               ORDER BY started_at DESC, id DESC
               LIMIT $3
           ) a
           JOIN recipients r ON r.message_id = $2 AND r.position = a.position
           LEFT JOIN provider_account_types t ON t.provider_account_id = a.provider_account_id
           ORDER BY a.started_at, a.id"#,
        organization_id.0,
        message_id.0,
        ATTEMPTS_SHOWN,
    )
    .fetch_all(connection)
    .await
    .or_fault("list send attempts")
}

/// Updates messages with the aggregate of their recipients' statuses. To be called last
/// in a transaction that changed the recipients: the messages are locked in the order of
/// their ids before the recipients are read, so that concurrent callers neither deadlock
/// nor miss each other's changes.
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
    let range = IdRange::of(&ids);
    update_single(connection, &ids).await?;
    let several = query_scalar!(
        "SELECT id
         FROM messages
         WHERE id = ANY($1) AND id BETWEEN $2 AND $3 AND recipient_count <> 1
         ORDER BY id
         FOR NO KEY UPDATE",
        &ids,
        range.first,
        range.last,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("lock messages")?;
    update_several(connection, &several).await
}

/// Updates messages whose recipients are being sent to SENDING: those in `single` have
/// one recipient, those in `several` more. To be called in a transaction. Returns those
/// of `single` that were updated: a recipient locked by another transaction is about to
/// change and is skipped.
pub async fn mark_sending(
    connection: &mut PgConnection,
    single: &[MessageId],
    several: &[MessageId],
) -> Result<Vec<MessageId>, Fault> {
    // Locks the recipients until the end, so that an outcome recorded meanwhile is not
    // overwritten. For `several`, the lock of the message does that.
    let ids: Vec<uuid::Uuid> = single.iter().map(|id| id.0).collect();
    let range = IdRange::of(&ids);
    let held = query_scalar!(
        r#"SELECT message_id AS "message_id: MessageId"
           FROM recipients
           WHERE message_id = ANY($1) AND message_id BETWEEN $2 AND $3
             AND position = 0 AND status = 'SENDING'
           ORDER BY message_id
           FOR SHARE SKIP LOCKED"#,
        &ids,
        range.first,
        range.last,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault("lock recipients that are being sent")?;
    refresh_aggregates(connection, &[&held, several].concat()).await?;
    Ok(held)
}

/// Copies the status of an only recipient to its message. The caller holds the lock of
/// the recipient, so no other transaction changes the message.
async fn update_single(connection: &mut PgConnection, ids: &[uuid::Uuid]) -> Result<(), Fault> {
    let range = IdRange::of(ids);
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
        range.first,
        range.last,
    )
    .execute(connection)
    .await
    .or_fault("update the status of messages")?;
    Ok(())
}

async fn update_several(connection: &mut PgConnection, ids: &[uuid::Uuid]) -> Result<(), Fault> {
    if ids.is_empty() {
        return Ok(());
    }
    let range = IdRange::of(ids);
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
        range.first,
        range.last,
    )
    .execute(connection)
    .await
    .or_fault("update the status of messages")?;
    Ok(())
}
