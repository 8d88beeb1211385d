//! Events in Postgres.

use serde_json::json;
use sqlx::{PgConnection, query, query_as};
use uuid::Uuid;

use super::{Event, EventType, NewEvent};
use crate::address::AddressHash;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};
use crate::metrics::{Delta, TimeStep};

/// Inserts events of any number of messages. In the same statement, a trigger counts them
/// for the metrics, once per recipient, without opens and clicks whose `data` says
/// `"isBot": true`. Another trigger inserts the webhook deliveries of subscribed
/// endpoints.
pub async fn insert(connection: &mut PgConnection, events: &[NewEvent]) -> Result<(), Fault> {
    if events.is_empty() {
        return Ok(());
    }
    write(connection, events, &[], false).await
}

/// Inserts events like [`insert`], with their changes of metrics; the counting trigger
/// skips these events.
pub async fn insert_counted(
    connection: &mut PgConnection,
    events: &[NewEvent],
    deltas: &[Delta],
) -> Result<(), Fault> {
    if events.is_empty() && deltas.is_empty() {
        return Ok(());
    }
    write(connection, events, deltas, true).await
}

async fn write(
    connection: &mut PgConnection,
    events: &[NewEvent],
    deltas: &[Delta],
    is_counted: bool,
) -> Result<(), Fault> {
    let column = |pick: fn(&NewEvent) -> Uuid| events.iter().map(pick).collect::<Vec<_>>();
    let count = |pick: fn(&Delta) -> i64| deltas.iter().map(pick).collect::<Vec<_>>();
    let types = events.iter().map(|event| event.event_type.as_str());
    let data = events.iter().map(|event| event.data.as_ref());
    let dimensions = || deltas.iter().map(|delta| &delta.dimensions);
    let templates = dimensions().map(|of| of.template_id.map(|id| id.0));
    let recipient_domains = dimensions().map(|of| of.recipient_domain.as_str());
    let time = |pick: fn(&Delta) -> Option<TimeStep>| {
        let steps = deltas.iter().map(|delta| pick(delta).map(|step| step.0));
        steps.collect::<Vec<_>>()
    };
    query!(
        r#"WITH metric AS (
               INSERT INTO metric_deltas (organization_id, quarter, account, domain, template, tags,
                                          recipient_domain, sent_in, delivered_in,
                                          sent, delivered, opened, clicked, bounced, complained, unsubscribed)
               SELECT organization_id, quarter, account_id::text, domain, coalesce(template_id::text, ''),
                      ARRAY(SELECT jsonb_array_elements_text(tags)), recipient_domain, sent_in, delivered_in,
                      sent, delivered, opened, clicked, bounced, complained, unsubscribed
               FROM UNNEST($8::uuid[], $9::timestamptz[], $10::uuid[], $11::text[], $12::uuid[], $13::bigint[],
                           $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
                           $21::jsonb[], $22::text[], $23::smallint[], $24::smallint[])
                 AS d (organization_id, quarter, account_id, domain, template_id, sent, delivered, opened, clicked,
                       bounced, complained, unsubscribed, tags, recipient_domain, sent_in, delivered_in)
           )
           INSERT INTO events (message_id, id, organization_id, position, event_type, occurred_at, data, is_counted)
           SELECT message_id, id, organization_id, position, event_type::event_type, occurred_at, data, $20
           FROM UNNEST($1::uuid[], $2::uuid[], $3::uuid[], $4::int[], $5::text[], $6::timestamptz[], $7::jsonb[])
             AS e (message_id, id, organization_id, position, event_type, occurred_at, data)"#,
        &column(|event| event.message_id.0),
        &column(|event| event.id.0),
        &column(|event| event.organization_id.0),
        &events.iter().map(|event| event.position).collect::<Vec<_>>(),
        &types.collect::<Vec<_>>() as &[&str],
        &events.iter().map(|event| event.occurred_at).collect::<Vec<_>>(),
        &data.collect::<Vec<_>>() as &[Option<&serde_json::Value>],
        &deltas.iter().map(|delta| delta.organization_id.0).collect::<Vec<_>>(),
        &deltas.iter().map(|delta| delta.quarter).collect::<Vec<_>>(),
        &dimensions().map(|of| of.account_id.0).collect::<Vec<_>>(),
        &dimensions().map(|of| of.domain.as_str()).collect::<Vec<_>>() as &[&str],
        &templates.collect::<Vec<_>>() as &[Option<Uuid>],
        &count(|delta| delta.counts.sent),
        &count(|delta| delta.counts.delivered),
        &count(|delta| delta.counts.opened),
        &count(|delta| delta.counts.clicked),
        &count(|delta| delta.counts.bounced),
        &count(|delta| delta.counts.complained),
        &count(|delta| delta.counts.unsubscribed),
        is_counted,
        &dimensions().map(|of| json!(of.tags)).collect::<Vec<_>>(),
        &recipient_domains.collect::<Vec<_>>() as &[&str],
        &time(|delta| delta.sent_in) as &[Option<i16>],
        &time(|delta| delta.delivered_in) as &[Option<i16>],
    )
    .execute(connection)
    .await
    .or_fault("record events")?;
    Ok(())
}

/// The history of one message, oldest first. At the same time, events that can only
/// follow a send come after those that may precede it: a provider's event in whole
/// seconds may fall back to the time of the send, and ids of two processes are not
/// ordered within a millisecond.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
) -> Result<Vec<Event>, Fault> {
    query_as!(
        Event,
        r#"SELECT position, event_type AS "event_type!: EventType",
                  occurred_at AS "occurred_at!",
                  (data ->> 'attemptId')::uuid AS "attempt_id: SendAttemptId",
                  data ->> 'providerMessageId' AS provider_message_id,
                  (SELECT r.address_hash
                   FROM recipients r
                   WHERE r.message_id = $2 AND r.position = e.position) AS "address_hash: AddressHash",
                  (SELECT a.provider_account_id
                   FROM send_attempts a
                   WHERE a.message_id = $2 AND a.id = (e.data ->> 'attemptId')::uuid)
                      AS "provider_account_id: ProviderAccountId",
                  data ->> 'reason' AS reason, data ->> 'bounceType' AS bounce_type, data ->> 'url' AS url,
                  (data ->> 'isBot')::boolean AS is_bot
           FROM message_events e
           WHERE message_id = $2 AND organization_id = $1
           ORDER BY occurred_at, position NULLS FIRST,
                    event_type NOT IN ('QUEUED', 'DROPPED', 'DEFERRED', 'SENT'), id"#,
        organization_id.0,
        message_id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("list events")
}

/// The events of some recipients of a message and those about all of them, ordered like
/// [`list`].
pub async fn list_of_recipients(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    message_id: MessageId,
    positions: &[i32],
) -> Result<Vec<Event>, Fault> {
    query_as!(
        Event,
        r#"SELECT position, event_type AS "event_type!: EventType",
                  occurred_at AS "occurred_at!",
                  (data ->> 'attemptId')::uuid AS "attempt_id: SendAttemptId",
                  data ->> 'providerMessageId' AS provider_message_id,
                  (SELECT r.address_hash
                   FROM recipients r
                   WHERE r.message_id = $2 AND r.position = e.position) AS "address_hash: AddressHash",
                  (SELECT a.provider_account_id
                   FROM send_attempts a
                   WHERE a.message_id = $2 AND a.id = (e.data ->> 'attemptId')::uuid)
                      AS "provider_account_id: ProviderAccountId",
                  data ->> 'reason' AS reason, data ->> 'bounceType' AS bounce_type, data ->> 'url' AS url,
                  (data ->> 'isBot')::boolean AS is_bot
           FROM message_events e
           WHERE message_id = $2 AND organization_id = $1
             AND (position IS NULL OR position = ANY($3))
           ORDER BY occurred_at, position NULLS FIRST,
                    event_type NOT IN ('QUEUED', 'DROPPED', 'DEFERRED', 'SENT'), id"#,
        organization_id.0,
        message_id.0,
        positions,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the events of recipients")
}
