//! Idempotency keys in Postgres. The statement that claims the keys of many sends at once is
//! in `acceptance::insert`.

use sqlx::{PgConnection, query};
use uuid::Uuid;

use super::fingerprint::BodyHash;
use super::{GRACE, IdempotencyKeyHash, KEY_LIFETIME, KeyClaim, WAIT_MAX};
use crate::clock::{Timestamp, delta};
use crate::db::{self, OrFault};
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// The result of an attempt to claim a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimOutcome {
    Claimed,
    /// An earlier request has the key.
    Taken,
    /// Another transaction held the key for longer than [`WAIT_MAX`].
    Busy,
}

#[derive(Debug)]
pub(crate) struct KeyRow {
    pub(crate) body_hash: BodyHash,
    pub(crate) answer: Option<Vec<u8>>,
    pub(crate) created_at: Timestamp,
}

/// Claims a key. Waits up to [`WAIT_MAX`] for a transaction that holds it. After
/// [`ClaimOutcome::Busy`] the transaction is aborted.
pub(super) async fn claim_or_wait(
    connection: &mut PgConnection,
    claim: &KeyClaim,
) -> Result<ClaimOutcome, Fault> {
    bound_waits(connection, WAIT_MAX.as_millis()).await?;
    let claiming = match self::claim(connection, &[claim], &[None]).await {
        Ok(1) => ClaimOutcome::Claimed,
        Ok(_) => ClaimOutcome::Taken,
        Err(fault) if db::is_lock_timeout(&fault) => return Ok(ClaimOutcome::Busy),
        Err(fault) => return Err(fault),
    };
    query!("SET LOCAL lock_timeout TO DEFAULT")
        .execute(connection)
        .await
        .or_fault("claim a key")?;
    Ok(claiming)
}

/// Limits how long each statement of the transaction waits for a lock.
pub(crate) async fn bound_waits(
    connection: &mut PgConnection,
    milliseconds: u128,
) -> Result<(), Fault> {
    query!(
        "SELECT set_config('lock_timeout', $1, true)",
        milliseconds.to_string()
    )
    .fetch_one(connection)
    .await
    .or_fault("limit the wait for a key")?;
    Ok(())
}

/// Claims keys, with their answers if they are known, and returns how many it claimed. The
/// claims must be distinct and sorted by [`order`]. Keys of earlier requests stay locked
/// until the transaction ends. An expired key is free.
pub(crate) async fn claim(
    connection: &mut PgConnection,
    claims: &[&KeyClaim],
    answers: &[Option<Vec<u8>>],
) -> Result<u64, Fault> {
    let columns = ClaimColumns::of(claims);
    let done = query!(
        r#"INSERT INTO idempotency_keys (organization_id, key_hash, body_hash, created_at, answer)
           SELECT *
           FROM UNNEST($1::uuid[], $2::bytea[], $3::bytea[], $4::timestamptz[], $6::bytea[])
           ON CONFLICT (organization_id, key_hash) DO UPDATE
           SET body_hash = EXCLUDED.body_hash, answer = EXCLUDED.answer, created_at = EXCLUDED.created_at
           WHERE idempotency_keys.created_at <= EXCLUDED.created_at - $5::interval"#,
        &columns.organization_ids,
        &columns.key_hashes as &[&[u8]],
        &columns.body_hashes as &[&[u8]],
        &columns.created_at,
        delta(KEY_LIFETIME) as _,
        answers as &[Option<Vec<u8>>],
    )
    .execute(connection)
    .await
    .or_fault("claim keys")?;
    Ok(done.rows_affected())
}

/// The sort key of claims. All transactions claim several keys in this order, so that they
/// cannot deadlock.
pub(crate) fn order(claim: &KeyClaim) -> (OrganizationId, IdempotencyKeyHash) {
    (claim.organization_id, claim.key_hash)
}

/// The row of a claim's key, unless it has expired.
pub(super) async fn find(
    connection: &mut PgConnection,
    claim: &KeyClaim,
) -> Result<Option<KeyRow>, Fault> {
    let mut found = list(connection, &[claim]).await?;
    Ok(found.pop().map(|(_, _, found)| found))
}

/// The rows of the keys of claims, without those that have expired.
pub(crate) async fn list(
    connection: &mut PgConnection,
    claims: &[&KeyClaim],
) -> Result<Vec<(OrganizationId, IdempotencyKeyHash, KeyRow)>, Fault> {
    let columns = ClaimColumns::of(claims);
    let rows = query!(
        r#"SELECT k.organization_id, k.key_hash, k.body_hash, k.answer, k.created_at
           FROM UNNEST($1::uuid[], $2::bytea[], $3::timestamptz[]) AS c (organization_id, key_hash, at)
           JOIN idempotency_keys k USING (organization_id, key_hash)
           WHERE k.created_at > c.at - $4::interval"#,
        &columns.organization_ids,
        &columns.key_hashes as &[&[u8]],
        &columns.created_at,
        delta(KEY_LIFETIME) as _,
    )
    .fetch_all(connection)
    .await
    .or_fault("find keys")?;
    rows.into_iter()
        .map(|row| {
            let found = KeyRow {
                body_hash: BodyHash(hash(&row.body_hash)?),
                answer: row.answer,
                created_at: row.created_at,
            };
            let organization_id = OrganizationId(row.organization_id);
            Ok((
                organization_id,
                IdempotencyKeyHash(hash(&row.key_hash)?),
                found,
            ))
        })
        .collect()
}

/// Stores the answer to a claim without one. False if it has an answer or was deleted.
pub(super) async fn update_answer(
    connection: &mut PgConnection,
    claim: &KeyClaim,
    answer: &[u8],
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE idempotency_keys
         SET answer = $4
         WHERE organization_id = $1 AND key_hash = $2 AND created_at = $3 AND answer IS NULL",
        claim.organization_id.0,
        &claim.key_hash.0[..],
        claim.at,
        answer,
    )
    .execute(connection)
    .await
    .or_fault("store an answer")?;
    Ok(done.rows_affected() == 1)
}

/// Replaces a stored answer.
pub(super) async fn amend_answer(
    connection: &mut PgConnection,
    claim: &KeyClaim,
    answer: &[u8],
) -> Result<(), Fault> {
    query!(
        "UPDATE idempotency_keys
         SET answer = $4
         WHERE organization_id = $1 AND key_hash = $2 AND created_at = $3 AND answer IS NOT NULL",
        claim.organization_id.0,
        &claim.key_hash.0[..],
        claim.at,
        answer,
    )
    .execute(connection)
    .await
    .or_fault("amend an answer")?;
    Ok(())
}

/// Deletes up to `limit` expired keys of all organizations and returns how many it deleted.
pub async fn delete_old(
    connection: &mut PgConnection,
    now: Timestamp,
    limit: i64,
) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM idempotency_keys
         WHERE ctid = ANY (ARRAY(
             SELECT ctid
             FROM idempotency_keys
             WHERE created_at <= $1
             ORDER BY created_at
             LIMIT $2
             FOR UPDATE SKIP LOCKED))",
        now - delta(KEY_LIFETIME) - delta(GRACE),
        limit,
    )
    .execute(connection)
    .await
    .or_fault("delete old keys")?;
    Ok(done.rows_affected())
}

fn hash(bytes: &[u8]) -> Result<[u8; 32], Fault> {
    bytes
        .try_into()
        .map_err(|error: std::array::TryFromSliceError| Fault::internal("read a hash", error))
}

/// Claims as arrays for `UNNEST`.
#[derive(Default)]
pub(crate) struct ClaimColumns<'a> {
    pub(crate) organization_ids: Vec<Uuid>,
    pub(crate) key_hashes: Vec<&'a [u8]>,
    pub(crate) body_hashes: Vec<&'a [u8]>,
    pub(crate) created_at: Vec<Timestamp>,
}

impl<'a> ClaimColumns<'a> {
    pub(crate) fn of(claims: &[&'a KeyClaim]) -> Self {
        let mut columns = Self::default();
        for claim in claims {
            columns.organization_ids.push(claim.organization_id.0);
            columns.key_hashes.push(&claim.key_hash.0);
            columns.body_hashes.push(&claim.body_hash.0);
            columns.created_at.push(claim.at);
        }
        columns
    }
}
