//! Erasing, in Postgres.

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};

use super::DOING;

/// Those of some messages of which something of the person is stored.
pub(super) async fn list_unerased(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    address: AddressHash,
    ids: &[MessageId],
) -> Result<Vec<Uuid>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    query_scalar!(
        r#"SELECT DISTINCT r.message_id
           FROM recipients r
           WHERE r.message_id = ANY($3) AND r.organization_id = $1 AND r.address_hash = $2
             AND (r.erased_at IS NULL
                  -- Events that were reported later.
                  OR EXISTS (SELECT
                             FROM events e
                             WHERE e.message_id = r.message_id AND e.position = r.position
                               AND e.data IS DISTINCT FROM waypost_erased_event_data(e.data)))"#,
        organization_id.0,
        address as AddressHash,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)
}

/// Locks the person's attempts and recipients, and the messages. Of a mail to several who see
/// each other it locks all recipients, so that none of them is retried while the content goes.
pub(super) async fn lock(
    connection: &mut PgConnection,
    address: AddressHash,
    ids: &[Uuid],
) -> Result<(), Fault> {
    query!(
        "SELECT a.id
         FROM send_attempts a
         WHERE a.message_id = ANY($1)
           AND EXISTS (SELECT
                       FROM recipients r
                       WHERE r.message_id = a.message_id AND r.position = a.position AND r.address_hash = $2)
         ORDER BY a.message_id, a.id
         FOR UPDATE OF a",
        ids,
        address as AddressHash,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "SELECT position
         FROM recipients
         WHERE message_id = ANY($1)
           AND (address_hash = $2
                OR message_id = ANY(ARRAY(SELECT id FROM messages WHERE id = ANY($1) AND is_shared)))
         ORDER BY message_id, position
         FOR NO KEY UPDATE",
        ids,
        address as AddressHash,
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "SELECT id FROM messages WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE",
        ids,
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    Ok(())
}

/// Messages by what is to be erased of them.
#[derive(Debug, Default)]
pub(super) struct Classified {
    /// Those of which the recipient's part goes.
    pub(super) finished: Vec<Uuid>,
    /// Those of them whose content goes.
    pub(super) whole: Vec<Uuid>,
    /// The number of those that are not finished.
    pub(super) pending: u64,
}

pub(super) async fn classify(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    address: AddressHash,
    ids: &[Uuid],
) -> Result<Classified, Fault> {
    let rows = query!(
        r#"SELECT m.id,
                  (m.status IN ('QUEUED', 'SENDING')
                   OR EXISTS (SELECT FROM outbox o WHERE o.message_id = m.id)) AS "is_pending!",
                  (coalesce(m.is_shared, false)
                   OR NOT EXISTS (SELECT
                                  FROM recipients r
                                  WHERE r.message_id = m.id AND r.address_hash <> $2
                                    AND r.erased_at IS NULL)) AS "is_whole!"
           FROM messages m
           WHERE m.id = ANY($3) AND m.organization_id = $1"#,
        organization_id.0,
        address as AddressHash,
        ids,
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let mut classified = Classified::default();
    for row in rows {
        if row.is_pending {
            classified.pending += 1;
            continue;
        }
        classified.finished.push(row.id);
        if row.is_whole {
            classified.whole.push(row.id);
        }
    }
    Ok(classified)
}

/// The recipients of the person, as columns.
#[derive(Debug, Default)]
pub(super) struct ErasedRecipients {
    message_ids: Vec<Uuid>,
    positions: Vec<i32>,
}

/// Erases the addresses and returns their recipients.
pub(super) async fn erase_recipients(
    connection: &mut PgConnection,
    address: AddressHash,
    ids: &[Uuid],
    now: Timestamp,
) -> Result<ErasedRecipients, Fault> {
    let rows = query!(
        "UPDATE recipients
         SET address_sealed = '', domain = NULL, last_error = NULL, erased_at = coalesce(erased_at, $3)
         WHERE message_id = ANY($1) AND address_hash = $2
         RETURNING message_id, position",
        ids,
        address as AddressHash,
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let (message_ids, positions) = rows
        .into_iter()
        .map(|row| (row.message_id, row.position))
        .unzip();
    Ok(ErasedRecipients {
        message_ids,
        positions,
    })
}

/// Erases what is of these recipients alone, except their events: contents of their own, what
/// the providers said and reported, and what the customer's servers answered.
pub(super) async fn erase_of_recipients(
    connection: &mut PgConnection,
    recipients: &ErasedRecipients,
) -> Result<(), Fault> {
    let ErasedRecipients {
        message_ids,
        positions,
    } = recipients;
    query!(
        "DELETE FROM recipient_contents c
         USING UNNEST($1::uuid[], $2::integer[]) AS r (message_id, position)
         WHERE c.message_id = r.message_id AND c.position = r.position",
        message_ids,
        positions,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE send_attempts a
         SET reason = NULL
         FROM UNNEST($1::uuid[], $2::integer[]) AS r (message_id, position)
         WHERE a.message_id = r.message_id AND a.position = r.position AND a.reason IS NOT NULL",
        message_ids,
        positions,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE provider_events p
         SET payload_sealed = ''
         FROM UNNEST($1::uuid[], $2::integer[]) AS r (message_id, position)
         WHERE p.message_id = r.message_id AND p.position = r.position AND p.payload_sealed <> ''",
        message_ids,
        positions,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "WITH delivery AS (
             SELECT d.message_id, d.id
             FROM webhook_deliveries d
             JOIN UNNEST($1::uuid[], $2::integer[]) AS r (message_id, position)
               ON d.message_id = r.message_id AND d.position = r.position
         ), attempt AS (
             UPDATE webhook_attempts a
             SET answer = NULL
             FROM delivery d
             WHERE a.message_id = d.message_id AND a.webhook_delivery_id = d.id AND a.answer IS NOT NULL
         )
         UPDATE webhook_deliveries w
         SET first_answer = NULL
         FROM delivery d
         WHERE w.message_id = d.message_id AND w.id = d.id AND w.first_answer IS NOT NULL",
        message_ids,
        positions,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(())
}

/// Erases the contents of messages, and returns how many attachments they referred to.
pub(super) async fn erase_contents(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &[Uuid],
) -> Result<u64, Fault> {
    query!(
        "DELETE FROM recipient_contents WHERE message_id = ANY($1)",
        ids
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    let attachments = query_scalar!(
        r#"WITH gone AS (
               DELETE FROM message_bodies WHERE message_id = ANY($1) RETURNING attachments
           )
           SELECT coalesce(sum(jsonb_array_length(attachments)), 0) AS "attachments!"
           FROM gone
           WHERE jsonb_typeof(attachments) = 'array'"#,
        ids,
    )
    .fetch_one(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE messages
         SET subject = '', metadata = NULL
         WHERE id = ANY($1) AND (subject <> '' OR metadata IS NOT NULL)",
        ids,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    // new_messages before message_subjects: folding moves subjects from one to the other.
    query!(
        "UPDATE new_messages
         SET subject = ''
         WHERE organization_id = $1 AND is_test = ANY('{false,true}') AND message_id = ANY($2) AND subject <> ''",
        organization_id.0,
        ids,
    )
    .execute(&mut *connection)
    .await
    .or_fault(DOING)?;
    query!(
        "UPDATE message_subjects
         SET subject = ''
         WHERE organization_id = $1 AND is_test = ANY('{false,true}') AND message_id = ANY($2) AND subject <> ''",
        organization_id.0,
        ids,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(u64::try_from(attachments).unwrap_or_default())
}

/// Erases the details of the recipients' events, and of events about all recipients of the
/// messages whose content goes. Returns the number of events that had any.
pub(super) async fn erase_events(
    connection: &mut PgConnection,
    recipients: &ErasedRecipients,
    whole: &[Uuid],
) -> Result<u64, Fault> {
    // A message may have thousands of events of others. OFFSET 0 keeps Postgres from comparing
    // the data of all of them.
    let done = query!(
        "WITH detailed AS (
             SELECT own.message_id, own.id
             FROM UNNEST($1::uuid[], $2::integer[]) AS r (message_id, position)
             CROSS JOIN LATERAL (
                 SELECT message_id, id
                 FROM events
                 WHERE message_id = r.message_id AND position = r.position
                   AND data IS DISTINCT FROM waypost_erased_event_data(data)
                 OFFSET 0
             ) own
             UNION
             SELECT common.message_id, common.id
             FROM UNNEST($3::uuid[]) AS w (message_id)
             CROSS JOIN LATERAL (
                 SELECT message_id, id
                 FROM events
                 WHERE message_id = w.message_id AND position IS NULL
                   AND data IS DISTINCT FROM waypost_erased_event_data(data)
                 OFFSET 0
             ) common
         )
         UPDATE events e
         SET data = waypost_erased_event_data(e.data)
         FROM detailed d
         WHERE e.message_id = d.message_id AND e.id = d.id",
        &recipients.message_ids,
        &recipients.positions,
        whole,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(done.rows_affected())
}
