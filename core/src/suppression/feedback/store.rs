//! Writes suppressions from provider feedback. Each function runs a constant number of
//! statements for any number of organizations.

use std::collections::{BTreeMap, HashSet};

use sqlx::{PgConnection, query, query_scalar};
use uuid::Uuid;

use super::SOFT_BOUNCES_MAX;
use crate::address::AddressHash;
use crate::audit::Origin;
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, SuppressionId, UnsubscribeGroupId};
use crate::suppression::SuppressionSource;
use crate::suppression::bloom_filter::FilterState;

/// A suppression to be inserted.
#[derive(Debug)]
pub(super) struct SuppressionRow<'a> {
    pub(super) id: SuppressionId,
    pub(super) organization_id: OrganizationId,
    pub(super) origin: &'a Origin,
    pub(super) email_hash: AddressHash,
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub(super) source: SuppressionSource,
    pub(super) message_id: MessageId,
}

/// Inserts the suppressions that do not exist yet, in the given order, and returns their ids.
pub(super) async fn insert(
    connection: &mut PgConnection,
    rows: &[SuppressionRow<'_>],
    now: Timestamp,
) -> Result<HashSet<SuppressionId>, Fault> {
    let groups: Vec<Option<Uuid>> = rows
        .iter()
        .map(|row| row.unsubscribe_group_id.map(|id| id.0))
        .collect();
    let added = query_scalar!(
        r#"INSERT INTO suppressions (id, organization_id, email_hash, unsubscribe_group_id, source, message_id, created_at)
           SELECT id, organization_id, email_hash, group_id, source::suppression_source, message_id, $1
           FROM UNNEST($2::uuid[], $3::uuid[], $4::bytea[], $5::uuid[], $6::text[], $7::uuid[])
             AS n (organization_id, id, email_hash, group_id, source, message_id)
           ON CONFLICT ON CONSTRAINT suppressions_address_key DO NOTHING
           RETURNING id AS "id: SuppressionId""#,
        now,
        &rows.iter().map(|row| row.organization_id.0).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.id.0).collect::<Vec<_>>(),
        &rows.iter().map(|row| row.email_hash.0.as_slice()).collect::<Vec<_>>() as &[&[u8]],
        &groups as &[Option<Uuid>],
        &rows.iter().map(|row| row.source.as_str()).collect::<Vec<_>>() as &[&str],
        &rows.iter().map(|row| row.message_id.0).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("add suppressions")?;
    Ok(added.into_iter().collect())
}

/// [`crate::suppression::store::count_added`] for several organizations. Returns their
/// filter states.
pub(super) async fn count_added(
    connection: &mut PgConnection,
    added: &BTreeMap<OrganizationId, Vec<AddressHash>>,
) -> Result<Vec<(OrganizationId, FilterState)>, Fault> {
    let counts = added.values().map(|hashes| hashes.len());
    let counts = counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    let rows = query!(
        "INSERT INTO suppression_filters AS f (organization_id, entries)
         SELECT organization_id, added
         FROM UNNEST($1::uuid[], $2::bigint[]) AS a (organization_id, added)
         ORDER BY organization_id
         ON CONFLICT (organization_id)
         DO UPDATE SET entries = f.entries + excluded.entries, additions = f.additions + excluded.entries
         RETURNING organization_id, entries, generation, words, additions",
        &added.keys().map(|id| id.0).collect::<Vec<_>>(),
        &counts.collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("count suppressions")?;
    let states = rows.into_iter().map(|row| {
        let state = FilterState::of(row.entries, row.generation, row.words, row.additions);
        (OrganizationId(row.organization_id), state)
    });
    Ok(states.collect())
}

/// Locks the groups that exist until the transaction ends, and returns them.
pub(super) async fn lock_groups(
    connection: &mut PgConnection,
    groups: &HashSet<(OrganizationId, UnsubscribeGroupId)>,
) -> Result<HashSet<(OrganizationId, UnsubscribeGroupId)>, Fault> {
    let locked = query!(
        r#"SELECT g.organization_id, g.id
           FROM unsubscribe_groups g
           JOIN UNNEST($1::uuid[], $2::uuid[]) AS t (organization_id, id)
             ON t.id = g.id AND t.organization_id = g.organization_id
           ORDER BY g.id
           FOR KEY SHARE OF g"#,
        &groups
            .iter()
            .map(|(organization_id, _)| organization_id.0)
            .collect::<Vec<_>>(),
        &groups.iter().map(|(_, id)| id.0).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault("lock unsubscribe groups")?;
    let locked = locked.into_iter().map(|row| {
        let organization_id = OrganizationId(row.organization_id);
        (organization_id, UnsubscribeGroupId(row.id))
    });
    Ok(locked.collect())
}

/// A soft bounce to be counted.
#[derive(Debug)]
pub(super) struct SoftBounce {
    pub(super) organization_id: OrganizationId,
    pub(super) email_hash: AddressHash,
    pub(super) at: Timestamp,
}

/// Counts soft bounces and returns the addresses that reached their organization's limit.
/// Their count restarts at zero. Concurrent counts of one address wait for each other, so
/// that no bounce is lost.
pub(super) async fn count_soft_bounces(
    connection: &mut PgConnection,
    bounces: &[SoftBounce],
    now: Timestamp,
) -> Result<HashSet<(OrganizationId, AddressHash)>, Fault> {
    const DOING: &str = "count soft bounces";
    let hashes = bounces.iter().map(|bounce| bounce.email_hash.0.as_slice());
    let over_limit = query!(
        r#"WITH settings AS (
               SELECT id, soft_bounce_limit AS bound, $1::timestamptz - make_interval(days => soft_bounce_window_days) AS since
               FROM organizations
               WHERE id = ANY($2) AND soft_bounce_limit > 0
           ), counted AS (
               INSERT INTO soft_bounces AS s (organization_id, email_hash, bounced_at)
               SELECT b.organization_id, b.email_hash, b.bounced_at
               FROM (SELECT organization_id, email_hash, array_agg(bounced_at) AS bounced_at
                     FROM UNNEST($2::uuid[], $3::bytea[], $4::timestamptz[]) AS b (organization_id, email_hash, bounced_at)
                     GROUP BY organization_id, email_hash) b
               JOIN settings ON settings.id = b.organization_id
               ORDER BY b.organization_id, b.email_hash
               ON CONFLICT (organization_id, email_hash)
               DO UPDATE SET bounced_at = ARRAY(SELECT at
                                                FROM unnest(s.bounced_at || excluded.bounced_at) AS at
                                                ORDER BY at DESC
                                                LIMIT $5)
               RETURNING organization_id, email_hash, bounced_at
           )
           SELECT c.organization_id, c.email_hash AS "email_hash: AddressHash"
           FROM counted c
           JOIN settings s ON s.id = c.organization_id
           WHERE (SELECT count(*) FROM unnest(c.bounced_at) AS at WHERE at > s.since) >= s.bound"#,
        now,
        &bounces.iter().map(|bounce| bounce.organization_id.0).collect::<Vec<_>>(),
        &hashes.collect::<Vec<_>>() as &[&[u8]],
        &bounces.iter().map(|bounce| bounce.at).collect::<Vec<_>>(),
        i64::from(SOFT_BOUNCES_MAX),
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    if over_limit.is_empty() {
        return Ok(HashSet::new());
    }
    let hashes = over_limit.iter().map(|row| row.email_hash.0.as_slice());
    query!(
        "UPDATE soft_bounces s
         SET bounced_at = '{}'
         FROM UNNEST($1::uuid[], $2::bytea[]) AS t (organization_id, email_hash)
         WHERE s.organization_id = t.organization_id AND s.email_hash = t.email_hash",
        &over_limit
            .iter()
            .map(|row| row.organization_id)
            .collect::<Vec<_>>(),
        &hashes.collect::<Vec<_>>() as &[&[u8]],
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    let over_limit = over_limit.into_iter();
    Ok(over_limit
        .map(|row| (OrganizationId(row.organization_id), row.email_hash))
        .collect())
}
