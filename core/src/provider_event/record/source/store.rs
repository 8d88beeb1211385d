//! What recording writes for the reporting account: used signatures, its first verified
//! request, and counts of events that were not recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sqlx::{PgConnection, query};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{OrganizationId, ProviderAccountId};
use crate::provider::inbound::ReplayGuard;

const DOING: &str = "record used signatures";
/// Expired signatures deleted per new signature, at most.
const FORGOTTEN_EACH: i64 = 10;

/// A signature of a request.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider_event::record) struct UsedSignature<'a> {
    pub(in crate::provider_event::record) organization_id: OrganizationId,
    pub(in crate::provider_event::record) account_id: ProviderAccountId,
    pub(in crate::provider_event::record) guard: &'a ReplayGuard,
}

impl<'a> UsedSignature<'a> {
    fn key(&self) -> (ProviderAccountId, &'a str) {
        (self.account_id, &self.guard.token)
    }
}

/// Records signatures as used. Returns for each whether it is accepted: `false` if it was
/// used before with other content. Also deletes a few expired signatures.
pub(in crate::provider_event::record) async fn use_signatures(
    connection: &mut PgConnection,
    used: &[UsedSignature<'_>],
    now: Timestamp,
) -> Result<Vec<bool>, Fault> {
    if used.is_empty() {
        return Ok(Vec::new());
    }
    // The first content of a signature counts, within this batch too. All transactions
    // insert in the same order, so that they cannot deadlock.
    let mut firsts = BTreeMap::new();
    for signature in used {
        firsts.entry(signature.key()).or_insert(*signature);
    }
    let firsts: Vec<UsedSignature<'_>> = firsts.into_values().collect();
    forget_signatures(&mut *connection, &firsts, now).await?;
    let inserted = insert_signatures(&mut *connection, &firsts).await?;
    let (new, known): (Vec<_>, Vec<_>) = firsts.into_iter().partition(|signature| {
        let (account_id, token) = signature.key();
        inserted.contains(&(account_id, token.to_owned()))
    });
    let before = find_signatures(connection, &known).await?;
    let new: HashMap<_, _> = new
        .iter()
        .map(|signature| (signature.key(), &signature.guard.content))
        .collect();
    let is_first = |signature: &UsedSignature<'_>| {
        let content = &signature.guard.content;
        let (account_id, token) = signature.key();
        match new.get(&(account_id, token)) {
            Some(first) => *first == content,
            None => before
                .get(&(account_id, token.to_owned()))
                .is_none_or(|first| first == content),
        }
    };
    Ok(used.iter().map(is_first).collect())
}

async fn forget_signatures(
    connection: &mut PgConnection,
    signatures: &[UsedSignature<'_>],
    now: Timestamp,
) -> Result<(), Fault> {
    let accounts: BTreeSet<_> = signatures
        .iter()
        .map(|signature| (signature.account_id.0, signature.organization_id.0))
        .collect();
    let (accounts, organizations): (Vec<Uuid>, Vec<Uuid>) = accounts.into_iter().unzip();
    let forgotten_max = i64::try_from(signatures.len())
        .unwrap_or(i64::MAX)
        .saturating_mul(FORGOTTEN_EACH);
    query!(
        "DELETE FROM provider_signatures
         WHERE ctid = ANY(ARRAY(
             SELECT s.ctid
             FROM UNNEST($1::uuid[], $2::uuid[]) AS a (organization_id, account_id)
             CROSS JOIN LATERAL (
                 SELECT ctid
                 FROM provider_signatures
                 WHERE organization_id = a.organization_id AND provider_account_id = a.account_id
                   AND expires_at < $3
                 ORDER BY expires_at
                 LIMIT $4
                 FOR UPDATE SKIP LOCKED
             ) s))",
        &organizations,
        &accounts,
        now,
        forgotten_max,
    )
    .execute(connection)
    .await
    .or_fault(DOING)?;
    Ok(())
}

/// Inserts the new signatures. Signatures of an account that was removed meanwhile are
/// skipped.
async fn insert_signatures(
    connection: &mut PgConnection,
    signatures: &[UsedSignature<'_>],
) -> Result<HashSet<(ProviderAccountId, String)>, Fault> {
    let tokens: Vec<&str> = signatures.iter().map(|s| s.guard.token.as_str()).collect();
    let contents: Vec<&[u8]> = signatures
        .iter()
        .map(|signature| signature.guard.content.as_slice())
        .collect();
    let inserted = query!(
        "INSERT INTO provider_signatures (provider_account_id, organization_id, token, content_hash, expires_at)
         SELECT p.id, p.organization_id, s.token, s.content_hash, s.expires_at
         FROM UNNEST($1::uuid[], $2::uuid[], $3::text[], $4::bytea[], $5::timestamptz[])
           AS s (organization_id, account_id, token, content_hash, expires_at)
         JOIN provider_accounts p ON p.id = s.account_id AND p.organization_id = s.organization_id
         ORDER BY p.id, s.token
         ON CONFLICT (provider_account_id, token) DO NOTHING
         RETURNING provider_account_id, token",
        &signatures.iter().map(|s| s.organization_id.0).collect::<Vec<_>>(),
        &signatures.iter().map(|s| s.account_id.0).collect::<Vec<_>>(),
        &tokens as &[&str],
        &contents as &[&[u8]],
        &signatures.iter().map(|s| s.guard.until).collect::<Vec<_>>(),
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let inserted = inserted.into_iter();
    Ok(inserted
        .map(|row| (ProviderAccountId(row.provider_account_id), row.token))
        .collect())
}

/// The contents that the signatures were first used with.
async fn find_signatures(
    connection: &mut PgConnection,
    signatures: &[UsedSignature<'_>],
) -> Result<HashMap<(ProviderAccountId, String), Vec<u8>>, Fault> {
    if signatures.is_empty() {
        return Ok(HashMap::new());
    }
    let tokens: Vec<&str> = signatures.iter().map(|s| s.guard.token.as_str()).collect();
    let rows = query!(
        "SELECT s.provider_account_id, s.token, s.content_hash
         FROM UNNEST($1::uuid[], $2::uuid[], $3::text[]) AS t (organization_id, account_id, token)
         JOIN provider_signatures s
           ON s.provider_account_id = t.account_id AND s.token = t.token AND s.organization_id = t.organization_id",
        &signatures.iter().map(|s| s.organization_id.0).collect::<Vec<_>>(),
        &signatures.iter().map(|s| s.account_id.0).collect::<Vec<_>>(),
        &tokens as &[&str],
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let rows = rows.into_iter().map(|row| {
        let key = (ProviderAccountId(row.provider_account_id), row.token);
        (key, row.content_hash)
    });
    Ok(rows.collect())
}

/// Events that were acknowledged and not recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::provider_event::record) struct Unrecorded {
    pub(in crate::provider_event::record) unmatched: usize,
    pub(in crate::provider_event::record) unreadable: usize,
}

/// Counts events that were acknowledged and not recorded. To be called last in a
/// transaction: further transactions of the same account wait from here on.
pub(in crate::provider_event::record) async fn count_unrecorded(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    unrecorded: Unrecorded,
    now: Timestamp,
) -> Result<(), Fault> {
    let Unrecorded {
        unmatched,
        unreadable,
    } = unrecorded;
    if unmatched == 0 && unreadable == 0 {
        return Ok(());
    }
    let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
    // Events of an account that was removed meanwhile are not counted.
    query!(
        "INSERT INTO unrecorded_event_counts AS c (provider_account_id, organization_id, unmatched, unreadable, updated_at)
         SELECT id, organization_id, $3, $4, $5
         FROM provider_accounts
         WHERE organization_id = $1 AND id = $2
         ON CONFLICT (provider_account_id)
         DO UPDATE SET unmatched = c.unmatched + excluded.unmatched,
                       unreadable = c.unreadable + excluded.unreadable,
                       updated_at = excluded.updated_at",
        organization_id.0,
        account_id.0,
        number(unmatched),
        number(unreadable),
        now,
    )
    .execute(connection)
    .await
    .or_fault("count unrecorded provider events")?;
    Ok(())
}

/// Marks an account as verified: a request was verified with these secrets.
pub(in crate::provider_event::record) async fn mark_verified(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    account_id: ProviderAccountId,
    secrets_sealed: &[u8],
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE provider_accounts
         SET events_verified_at = $4
         WHERE organization_id = $1 AND id = $2 AND event_secrets_sealed = $3
           AND events_verified_at IS NULL",
        organization_id.0,
        account_id.0,
        secrets_sealed,
        now,
    )
    .execute(connection)
    .await
    .or_fault("mark an account's events as verified")?;
    Ok(())
}
