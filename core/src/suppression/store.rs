//! Suppressions and the state of their Bloom filters in Postgres.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::bloom_filter::FilterState;
use super::import::ImportEntry;
use super::{Suppression, SuppressionRefusal, SuppressionSource};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::db::{OrFault, broken_constraint};
use crate::fault::Fault;
use crate::ids::{self, MessageId, OrganizationId, SuppressionId, UnsubscribeGroupId};
use crate::page::{Page, PageRequest, Place};

/// The constraint that rejects a group that the organization does not have.
const GROUP_FKEY: &str = "suppressions_group_fkey";

/// Restricts a list of suppressions. `None` stands for no restriction.
#[derive(Debug, Clone, Copy, Default)]
pub struct SuppressionFilter {
    /// Only suppressions of this address.
    pub email_hash: Option<AddressHash>,
    pub source: Option<SuppressionSource>,
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// Only suppressions created at or after this time.
    pub since: Option<Timestamp>,
}

impl SuppressionFilter {
    /// The first id that a suppression of the period can have. A suppression gets its id when
    /// it is stored, which is not before its time: an import may bring an earlier one.
    fn first_id(&self) -> Option<Uuid> {
        self.since.map(ids::first_of)
    }
}

/// Lists a page of an organization's suppressions, newest first.
pub async fn list(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: SuppressionFilter,
    page: PageRequest,
) -> Result<Page<Suppression>, Fault> {
    let total = count(&mut *connection, organization_id, filter).await?;
    // What is before a page is walked over: not where nothing is behind it.
    if page.is_past_end(total) {
        return Ok(Page::empty(total));
    }
    let range = RowRange {
        below: page.place().map(|place| place.id),
        offset: page.offset(),
        limit: page.rows(),
    };
    let rows = list_rows(connection, organization_id, filter, range).await?;
    Ok(Page::of(rows, page, total, |last| Place::of_id(last.id.0)))
}

/// Rows of a list that is ordered from the newest to the oldest.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange {
    /// Only rows with smaller ids.
    pub(super) below: Option<Uuid>,
    pub(super) offset: i64,
    pub(super) limit: i64,
}

/// Rows of a list, newest first.
pub(super) async fn list_rows(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: SuppressionFilter,
    range: RowRange,
) -> Result<Vec<Suppression>, Fault> {
    if let Some(email_hash) = filter.email_hash {
        return list_of_address(connection, organization_id, (email_hash, filter), range).await;
    }
    // Only one of the three branches returns rows. Each branch uses its own index.
    query_as!(
        Suppression,
        r#"SELECT id AS "id!: SuppressionId", organization_id AS "organization_id!: OrganizationId",
                  email_hash AS "email_hash!: AddressHash",
                  unsubscribe_group_id AS "unsubscribe_group_id: UnsubscribeGroupId",
                  source AS "source!: SuppressionSource", message_id AS "message_id: MessageId",
                  created_at AS "created_at!"
           FROM (
               (SELECT *
                FROM suppressions
                WHERE organization_id = $1 AND $2::suppression_source IS NULL AND $3::uuid IS NULL
                  AND ($6::uuid IS NULL OR id < $6)
                  AND ($7::uuid IS NULL OR id >= $7 AND created_at >= $8::timestamptz)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
               UNION ALL
               (SELECT *
                FROM suppressions
                WHERE organization_id = $1 AND source = $2 AND $3 IS NULL AND ($6 IS NULL OR id < $6)
                  AND ($7 IS NULL OR id >= $7 AND created_at >= $8)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
               UNION ALL
               (SELECT *
                FROM suppressions
                WHERE organization_id = $1 AND unsubscribe_group_id = $3 AND ($2 IS NULL OR source = $2)
                  AND ($6 IS NULL OR id < $6)
                  AND ($7 IS NULL OR id >= $7 AND created_at >= $8)
                ORDER BY id DESC
                LIMIT $4::bigint + $5::bigint)
           ) s
           ORDER BY id DESC
           LIMIT $4 OFFSET $5"#,
        organization_id.0,
        filter.source as Option<SuppressionSource>,
        filter.unsubscribe_group_id.map(|id| id.0),
        range.limit,
        range.offset,
        range.below,
        filter.first_id(),
        filter.since,
    )
    .fetch_all(connection)
    .await
    .or_fault("list suppressions")
}

/// The same for the suppressions of an address: one for all mail, and one for each group.
async fn list_of_address(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    (email_hash, filter): (AddressHash, SuppressionFilter),
    range: RowRange,
) -> Result<Vec<Suppression>, Fault> {
    query_as!(
        Suppression,
        r#"SELECT id AS "id: SuppressionId", organization_id AS "organization_id: OrganizationId",
                  email_hash AS "email_hash: AddressHash",
                  unsubscribe_group_id AS "unsubscribe_group_id: UnsubscribeGroupId",
                  source AS "source: SuppressionSource", message_id AS "message_id: MessageId", created_at
           FROM suppressions
           WHERE organization_id = $1 AND email_hash = $2
             AND ($3::suppression_source IS NULL OR source = $3)
             AND ($4::uuid IS NULL OR unsubscribe_group_id = $4)
             AND ($5::uuid IS NULL OR id < $5)
             AND ($8::timestamptz IS NULL OR created_at >= $8)
           ORDER BY id DESC
           LIMIT $6 OFFSET $7"#,
        organization_id.0,
        email_hash as AddressHash,
        filter.source as Option<SuppressionSource>,
        filter.unsubscribe_group_id.map(|id| id.0),
        range.below,
        range.limit,
        range.offset,
        filter.since,
    )
    .fetch_all(connection)
    .await
    .or_fault("list suppressions")
}

async fn count(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    filter: SuppressionFilter,
) -> Result<u64, Fault> {
    if let Some(email_hash) = filter.email_hash {
        return count_of_address(connection, organization_id, (email_hash, filter)).await;
    }
    let is_whole = filter.source.is_none() && filter.unsubscribe_group_id.is_none();
    if is_whole && filter.since.is_none() {
        let state = find_state(connection, organization_id).await?;
        return Ok(state.entries);
    }
    let total = query_scalar!(
        r#"SELECT (SELECT count(*)
                   FROM suppressions
                   WHERE organization_id = $1 AND id >= $4::uuid AND created_at >= $5::timestamptz
                     AND $2::suppression_source IS NULL AND $3::uuid IS NULL)
                + (SELECT count(*)
                   FROM suppressions
                   WHERE organization_id = $1 AND source = $2 AND $3 IS NULL
                     AND ($4 IS NULL OR id >= $4 AND created_at >= $5))
                + (SELECT count(*)
                   FROM suppressions
                   WHERE organization_id = $1 AND unsubscribe_group_id = $3 AND ($2 IS NULL OR source = $2)
                     AND ($4 IS NULL OR id >= $4 AND created_at >= $5)) AS "count!""#,
        organization_id.0,
        filter.source as Option<SuppressionSource>,
        filter.unsubscribe_group_id.map(|id| id.0),
        filter.first_id(),
        filter.since,
    )
    .fetch_one(connection)
    .await
    .or_fault("count suppressions")?;
    Ok(u64::try_from(total).unwrap_or_default())
}

async fn count_of_address(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    (email_hash, filter): (AddressHash, SuppressionFilter),
) -> Result<u64, Fault> {
    let total = query_scalar!(
        r#"SELECT count(*) AS "count!"
           FROM suppressions
           WHERE organization_id = $1 AND email_hash = $2
             AND ($3::suppression_source IS NULL OR source = $3)
             AND ($4::uuid IS NULL OR unsubscribe_group_id = $4)
             AND ($5::timestamptz IS NULL OR created_at >= $5)"#,
        organization_id.0,
        email_hash as AddressHash,
        filter.source as Option<SuppressionSource>,
        filter.unsubscribe_group_id.map(|id| id.0),
        filter.since,
    )
    .fetch_one(connection)
    .await
    .or_fault("count suppressions")?;
    Ok(u64::try_from(total).unwrap_or_default())
}

/// Inserts a suppression. False if it already exists. Call [`count_added`] in the same
/// transaction.
///
/// # Errors
/// [`SuppressionRefusal::UnknownGroup`], or a fault.
pub async fn insert(
    connection: &mut PgConnection,
    suppression: &Suppression,
) -> Result<bool, SuppressionRefusal> {
    let done = query!(
        "INSERT INTO suppressions (id, organization_id, email_hash, unsubscribe_group_id, source, message_id, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT ON CONSTRAINT suppressions_address_key DO NOTHING",
        suppression.id.0,
        suppression.organization_id.0,
        suppression.email_hash as AddressHash,
        suppression.unsubscribe_group_id.map(|id| id.0),
        suppression.source as SuppressionSource,
        suppression.message_id.map(|id| id.0),
        suppression.created_at,
    )
    .execute(connection)
    .await
    .map_err(refusal)?;
    Ok(done.rows_affected() == 1)
}

/// Distinct addresses to be suppressed in one group or for all mail, with an id for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImportRows<'a> {
    pub(super) ids: &'a [Uuid],
    pub(super) entries: &'a [ImportEntry],
    pub(super) unsubscribe_group_id: Option<UnsubscribeGroupId>,
}

/// Inserts the suppressions that do not exist yet and returns their hashes.
pub(super) async fn import(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    rows: ImportRows<'_>,
    now: Timestamp,
) -> Result<Vec<AddressHash>, SuppressionRefusal> {
    let entries = || rows.entries.iter();
    let hashes: Vec<&[u8]> = entries().map(|entry| entry.hash.0.as_slice()).collect();
    let sources: Vec<SuppressionSource> = entries().map(|entry| entry.source).collect();
    let times: Vec<Timestamp> = entries()
        .map(|entry| entry.created_at.unwrap_or(now))
        .collect();
    query_scalar!(
        r#"INSERT INTO suppressions (id, organization_id, email_hash, unsubscribe_group_id, source, created_at)
           SELECT id, $1, email_hash, $4, source, created_at
           FROM UNNEST($2::uuid[], $3::bytea[], $5::suppression_source[], $6::timestamptz[])
             AS n (id, email_hash, source, created_at)
           ON CONFLICT ON CONSTRAINT suppressions_address_key DO NOTHING
           RETURNING email_hash AS "email_hash: AddressHash""#,
        organization_id.0,
        rows.ids,
        &hashes as &[&[u8]],
        rows.unsubscribe_group_id.map(|id| id.0),
        &sources as &[SuppressionSource],
        &times,
    )
    .fetch_all(connection)
    .await
    .map_err(refusal)
}

fn refusal(error: sqlx::Error) -> SuppressionRefusal {
    if broken_constraint(&error) == Some(GROUP_FKEY) {
        return SuppressionRefusal::UnknownGroup;
    }
    match Err::<(), _>(error).or_fault("add suppressions") {
        Err(fault) => SuppressionRefusal::Fault(fault),
        Ok(()) => SuppressionRefusal::Exists,
    }
}

/// Deletes a suppression. False if it does not exist.
pub async fn delete(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: SuppressionId,
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM suppressions WHERE organization_id = $1 AND id = $2",
        organization_id.0,
        id.0,
    )
    .execute(&mut *connection)
    .await
    .or_fault("delete a suppression")?;
    count_deleted(connection, organization_id, done.rows_affected()).await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes the suppression with this scope and source and returns its id. `None` if there
/// is none.
pub(crate) async fn delete_of_source(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    scope: SuppressionScope,
    source: SuppressionSource,
) -> Result<Option<SuppressionId>, Fault> {
    let deleted = query_scalar!(
        r#"DELETE FROM suppressions
           WHERE organization_id = $1 AND email_hash = $2
             AND unsubscribe_group_id IS NOT DISTINCT FROM $3 AND source = $4
           RETURNING id AS "id: SuppressionId""#,
        organization_id.0,
        scope.email_hash as AddressHash,
        scope.unsubscribe_group_id.map(|id| id.0),
        source as SuppressionSource,
    )
    .fetch_optional(&mut *connection)
    .await
    .or_fault("delete a suppression")?;
    count_deleted(connection, organization_id, u64::from(deleted.is_some())).await?;
    Ok(deleted)
}

/// An address and the group in which it is suppressed. `None` stands for all mail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuppressionScope {
    pub(crate) email_hash: AddressHash,
    pub(crate) unsubscribe_group_id: Option<UnsubscribeGroupId>,
}

/// The group and source of each suppression that applies to mail in this scope: the one of
/// the group and the one for all mail.
pub(crate) async fn list_sources(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    scope: SuppressionScope,
) -> Result<Vec<(Option<UnsubscribeGroupId>, SuppressionSource)>, Fault> {
    let rows = query!(
        r#"SELECT unsubscribe_group_id AS "group_id: UnsubscribeGroupId", source AS "source: SuppressionSource"
           FROM suppressions
           WHERE organization_id = $1 AND email_hash = $2
             AND (unsubscribe_group_id IS NULL OR unsubscribe_group_id = $3)"#,
        organization_id.0,
        scope.email_hash as AddressHash,
        scope.unsubscribe_group_id.map(|id| id.0),
    )
    .fetch_all(connection)
    .await
    .or_fault("look for suppressions")?;
    Ok(rows
        .into_iter()
        .map(|row| (row.group_id, row.source))
        .collect())
}

/// Deletes the suppressions of a group and returns their number.
pub async fn delete_of_group(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    group_id: UnsubscribeGroupId,
) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM suppressions WHERE organization_id = $1 AND unsubscribe_group_id = $2",
        organization_id.0,
        group_id.0,
    )
    .execute(&mut *connection)
    .await
    .or_fault("delete the suppressions of a group")?;
    count_deleted(connection, organization_id, done.rows_affected()).await?;
    Ok(done.rows_affected())
}

/// Those of the addresses that are suppressed for all mail of an organization.
pub async fn find_all(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    hashes: &[AddressHash],
) -> Result<Vec<AddressHash>, Fault> {
    let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
    query_scalar!(
        r#"SELECT email_hash AS "hash: AddressHash"
           FROM suppressions
           WHERE organization_id = $1 AND unsubscribe_group_id IS NULL
             AND email_hash = ANY($2::bytea[])"#,
        organization_id.0,
        &hashes as &[&[u8]],
    )
    .fetch_all(connection)
    .await
    .or_fault("look for suppressions")
}

/// The state of an organization's filter.
pub async fn find_state(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<FilterState, Fault> {
    let states = list_states(connection, &[organization_id]).await?;
    let state = states.into_iter().next();
    Ok(state.map(|(_, state)| state).unwrap_or_default())
}

/// The filter states of several organizations. An organization that never had suppressions
/// has no row.
pub(super) async fn list_states(
    connection: &mut PgConnection,
    organization_ids: &[OrganizationId],
) -> Result<Vec<(OrganizationId, FilterState)>, Fault> {
    let ids: Vec<Uuid> = organization_ids.iter().map(|id| id.0).collect();
    let rows = query!(
        "SELECT organization_id, entries, generation, words, additions
         FROM suppression_filters
         WHERE organization_id = ANY($1)",
        &ids,
    )
    .fetch_all(connection)
    .await
    .or_fault("read the state of suppression filters")?;
    let states = rows.into_iter().map(|row| {
        let state = FilterState::of(row.entries, row.generation, row.words, row.additions);
        (OrganizationId(row.organization_id), state)
    });
    Ok(states.collect())
}

/// Counts suppressions that this transaction added. Call it last: it locks the
/// organization's filter state until the transaction ends.
pub async fn count_added(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    added: usize,
) -> Result<FilterState, Fault> {
    let row = query!(
        "INSERT INTO suppression_filters AS f (organization_id, entries)
         VALUES ($1, $2)
         ON CONFLICT (organization_id)
         DO UPDATE SET entries = f.entries + excluded.entries, additions = f.additions + excluded.entries
         RETURNING entries, generation, words, additions",
        organization_id.0,
        i64::try_from(added).unwrap_or(i64::MAX),
    )
    .fetch_one(connection)
    .await
    .or_fault("count suppressions")?;
    Ok(FilterState::of(
        row.entries,
        row.generation,
        row.words,
        row.additions,
    ))
}

/// A deleted suppression stays in the filter. The only cost is a needless query to
/// Postgres.
pub(super) async fn count_deleted(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    deleted: u64,
) -> Result<(), Fault> {
    if deleted == 0 {
        return Ok(());
    }
    query!(
        "UPDATE suppression_filters SET entries = entries - $2 WHERE organization_id = $1",
        organization_id.0,
        i64::try_from(deleted).unwrap_or(i64::MAX),
    )
    .execute(connection)
    .await
    .or_fault("count suppressions")?;
    Ok(())
}

/// Starts a new generation of an organization's filter and resets its additions to zero.
pub(super) async fn begin_generation(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    generation: i64,
    words: i32,
) -> Result<(), Fault> {
    query!(
        "UPDATE suppression_filters SET generation = $2, words = $3, additions = 0 WHERE organization_id = $1",
        organization_id.0,
        generation,
        words,
    )
    .execute(connection)
    .await
    .or_fault("begin a suppression filter")?;
    Ok(())
}

/// Lists up to `limit` hashes after `after`, in order. An address with several suppressions
/// may appear several times.
pub(super) async fn list_hashes(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    after: &[u8],
    limit: i64,
) -> Result<Vec<AddressHash>, Fault> {
    query_scalar!(
        r#"SELECT email_hash AS "email_hash: AddressHash"
         FROM suppressions
         WHERE organization_id = $1 AND email_hash > $2
         ORDER BY email_hash
         LIMIT $3"#,
        organization_id.0,
        after,
        limit,
    )
    .fetch_all(connection)
    .await
    .or_fault("read suppressions for the filter")
}

/// The addresses to be checked, as columns.
#[derive(Debug, Default)]
pub(super) struct CheckColumns {
    pub(super) organization_ids: Vec<Uuid>,
    pub(super) hashes: Vec<Vec<u8>>,
    pub(super) group_ids: Vec<Option<Uuid>>,
}

/// The indexes of the addresses that are suppressed in their group or for all mail.
pub(super) async fn list_suppressed(
    connection: &mut PgConnection,
    columns: &CheckColumns,
) -> Result<Vec<usize>, Fault> {
    let ordinals = query_scalar!(
        r#"SELECT a.place AS "place!"
           FROM UNNEST($1::uuid[], $2::bytea[], $3::uuid[])
             WITH ORDINALITY AS a (organization_id, email_hash, group_id, place)
           WHERE EXISTS (
               SELECT 1
               FROM suppressions s
               WHERE s.organization_id = a.organization_id AND s.email_hash = a.email_hash
                 AND (s.unsubscribe_group_id IS NULL OR s.unsubscribe_group_id = a.group_id))"#,
        &columns.organization_ids,
        &columns.hashes,
        &columns.group_ids as &[Option<Uuid>],
    )
    .fetch_all(connection)
    .await
    .or_fault("look for suppressions")?;
    let indexes = ordinals
        .into_iter()
        .filter_map(|ordinal| usize::try_from(ordinal - 1).ok());
    Ok(indexes.collect())
}
