//! Suppressions that providers' news adds, any number with one statement each.

use std::collections::HashSet;

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::SOFT_BOUNCES_MAX;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, SuppressionId, UnsubscribeGroupId};
use crate::suppression::SuppressionSource;

/// An address about to be suppressed.
#[derive(Debug)]
pub(super) struct NewSuppression {
    pub(super) id: SuppressionId,
    pub(super) email_hash: AddressHash,
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub(super) source: SuppressionSource,
    pub(super) message_id: MessageId,
}

/// Adds those that are not there yet, in the given order, and says which they were.
pub(super) async fn insert(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    new: &[NewSuppression],
    now: Timestamp,
) -> Result<HashSet<SuppressionId>, Fault> {
    let groups: Vec<Option<Uuid>> = new
        .iter()
        .map(|new| new.unsubscribe_group_id.map(|id| id.0))
        .collect();
    let added = query_scalar!(
        r#"INSERT INTO suppressions (id, organization_id, email_hash, unsubscribe_group_id, source, created_at)
           SELECT id, $1, email_hash, group_id, source::suppression_source, $2
           FROM UNNEST($3::uuid[], $4::bytea[], $5::uuid[], $6::text[]) AS n (id, email_hash, group_id, source)
           ON CONFLICT ON CONSTRAINT suppressions_address_key DO NOTHING
           RETURNING id AS "id: SuppressionId""#,
        organization_id.0,
        now,
        &new.iter().map(|new| new.id.0).collect::<Vec<_>>(),
        &new.iter().map(|new| new.email_hash.0.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        &groups as &[Option<Uuid>],
        &new.iter().map(|new| new.source.as_str()).collect::<Vec<_>>() as &[&str],
    )
    .fetch_all(connection)
    .await
    .or_fault("add suppressions")?;
    Ok(added.into_iter().collect())
}

/// Those of the groups that an organization has; they stay until the transaction
/// ends.
pub(super) async fn hold_groups(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    ids: &HashSet<UnsubscribeGroupId>,
) -> Result<HashSet<UnsubscribeGroupId>, Fault> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
    let held = query_scalar!(
        r#"SELECT id AS "id: UnsubscribeGroupId"
           FROM unsubscribe_groups
           WHERE organization_id = $1 AND id = ANY($2)
           ORDER BY id
           FOR KEY SHARE"#,
        organization_id.0,
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("hold unsubscribe groups")?;
    Ok(held.into_iter().collect())
}

/// Counts soft bounces, and answers the addresses that have had as many as the
/// settings allow; those begin anew. Who counts for the same address waits, so that
/// none is overlooked.
pub(super) async fn count_soft_bounces(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    bounces: &[(AddressHash, Timestamp)],
    now: Timestamp,
) -> Result<HashSet<AddressHash>, Fault> {
    const DOING: &str = "count soft bounces";
    let hashes: Vec<&[u8]> = bounces.iter().map(|(hash, _)| hash.0.as_slice()).collect();
    let times: Vec<Timestamp> = bounces.iter().map(|(_, at)| *at).collect();
    let worn_out = query_scalar!(
        r#"WITH settings AS (
               SELECT soft_bounce_limit AS bound, $2::timestamptz - make_interval(days => soft_bounce_window_days) AS since
               FROM organizations
               WHERE id = $1 AND soft_bounce_limit > 0
           ), counted AS (
               INSERT INTO soft_bounces AS s (organization_id, email_hash, bounced_at)
               SELECT $1, email_hash, bounced_at
               FROM (SELECT email_hash, array_agg(bounced_at) AS bounced_at
                     FROM UNNEST($3::bytea[], $4::timestamptz[]) AS b (email_hash, bounced_at)
                     GROUP BY email_hash) b
               WHERE EXISTS (SELECT FROM settings)
               ORDER BY email_hash
               ON CONFLICT (organization_id, email_hash)
               DO UPDATE SET bounced_at = ARRAY(SELECT at
                                                FROM unnest(s.bounced_at || excluded.bounced_at) AS at
                                                ORDER BY at DESC
                                                LIMIT $5)
               RETURNING email_hash, bounced_at
           )
           SELECT c.email_hash AS "email_hash: AddressHash"
           FROM counted c
           CROSS JOIN settings s
           WHERE (SELECT count(*) FROM unnest(c.bounced_at) AS at WHERE at > s.since) >= s.bound"#,
        organization_id.0,
        now,
        &hashes as &[&[u8]],
        &times,
        i64::from(SOFT_BOUNCES_MAX),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    if worn_out.is_empty() {
        return Ok(HashSet::new());
    }
    let hashes: Vec<&[u8]> = worn_out.iter().map(|hash| hash.0.as_slice()).collect();
    query!(
        "UPDATE soft_bounces
         SET bounced_at = '{}'
         WHERE organization_id = $1 AND email_hash = ANY($2)",
        organization_id.0,
        &hashes as &[&[u8]],
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(worn_out.into_iter().collect())
}
