//! What Postgres knows of the health of accounts.

use std::collections::HashMap;

use sqlx::{PgConnection, query, query_as};
use uuid::Uuid;

use super::{AccountFailure, CALLS_MAX, FailedCall, RecentCalls};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{self, OrganizationId, ProviderAccountId};

/// The revisions of accounts.
pub(super) async fn list_revisions(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    accounts: &[ProviderAccountId],
) -> Result<Vec<(ProviderAccountId, u32)>, Fault> {
    let rows = query!(
        r#"SELECT id AS "id: ProviderAccountId", revision
           FROM provider_accounts
           WHERE organization_id = $1 AND id = ANY($2)"#,
        organization_id.0,
        &uuids(accounts),
    )
    .fetch_all(connection)
    .await
    .or_fault("list the revisions of accounts")?;
    let revisions = rows.into_iter().map(|row| {
        let revision = u32::try_from(row.revision).unwrap_or_default();
        (row.id, revision)
    });
    Ok(revisions.collect())
}

/// The failures that have not ended, but for pauses, which the accounts have themselves. An open
/// circuit that was not reported for an hour counts as closed, as in `waypost_record_failing`.
pub(super) async fn list_failures(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    accounts: &[ProviderAccountId],
    now: Timestamp,
) -> Result<HashMap<ProviderAccountId, Vec<AccountFailure>>, Fault> {
    let rows = query!(
        r#"SELECT f.provider_account_id AS "id: ProviderAccountId", f.cause, f.failing_since
           FROM provider_account_failures f
           JOIN provider_accounts a ON a.id = f.provider_account_id AND a.organization_id = $1
           WHERE f.provider_account_id = ANY($2) AND f.is_failing
             AND (f.cause <> 'CALLS_FAILED' OR f.changed_at > $3::timestamptz - interval '1 hour')
           ORDER BY f.failing_since, f.cause"#,
        organization_id.0,
        &uuids(accounts),
        now,
    )
    .fetch_all(connection)
    .await
    .or_fault("list the failures of accounts")?;
    let mut failures: HashMap<_, Vec<_>> = HashMap::new();
    for row in rows {
        failures.entry(row.id).or_default().push(AccountFailure {
            cause: row.cause,
            since: row.failing_since,
        });
    }
    Ok(failures)
}

/// The newest calls of accounts since a time, up to [`CALLS_MAX`] of each. To be called last in a
/// transaction, whose later statements would be planned by its settings.
pub(super) async fn count_calls(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    accounts: &[ProviderAccountId],
    since: Timestamp,
) -> Result<HashMap<ProviderAccountId, RecentCalls>, Fault> {
    const DOING: &str = "count the latest calls of accounts";
    // Otherwise Postgres reads all calls of the time and sorts them, instead of the newest ones
    // in the order of the index: 35 ms instead of 2 for an account with 14,000.
    query!(
        "SELECT set_config(name, 'off', true) FROM UNNEST(ARRAY['enable_bitmapscan', 'enable_seqscan']) AS name",
    )
    .fetch_all(&mut *connection)
    .await
    .or_fault(DOING)?;
    let rows = query_as!(
        CallRow,
        r#"SELECT a.id AS "id!: ProviderAccountId", c."read!", c.since, c."accepted!", c."rejected!", c."throttled!",
                  c."unavailable!", c."unknown!", c."pending!", c.median, c.p95,
                  f.started_at AS "failed_at?", f.outcome::text AS "failed_outcome?", f.status_code AS "failed_status?",
                  f.reason AS "failed_reason?"
           FROM UNNEST($2::uuid[]) AS a (id)
           CROSS JOIN LATERAL (
               SELECT count(*) AS "read!", min(s.started_at) AS since,
                      count(*) FILTER (WHERE outcome = 'ACCEPTED' AND is_live) AS "accepted!",
                      count(*) FILTER (WHERE outcome = 'REJECTED' AND is_live) AS "rejected!",
                      count(*) FILTER (WHERE outcome = 'THROTTLED' AND is_live) AS "throttled!",
                      count(*) FILTER (WHERE outcome = 'UNAVAILABLE' AND is_live) AS "unavailable!",
                      count(*) FILTER (WHERE outcome = 'UNKNOWN' AND is_live) AS "unknown!",
                      count(*) FILTER (WHERE outcome IS NULL AND is_live) AS "pending!",
                      percentile_disc(0.5) WITHIN GROUP (ORDER BY ms) FILTER (WHERE is_live) AS median,
                      percentile_disc(0.95) WITHIN GROUP (ORDER BY ms) FILTER (WHERE is_live) AS p95,
                      max(s.id::text) FILTER (WHERE outcome <> 'ACCEPTED' AND is_live)::uuid AS last_failed
               FROM (
                   SELECT n.id, n.started_at, n.outcome, m.is_test IS NOT TRUE AS is_live,
                          (extract(epoch FROM n.finished_at - n.started_at) * 1000)::int AS ms
                   FROM (
                       SELECT id, message_id, started_at, finished_at, outcome
                       FROM send_attempts
                       WHERE provider_account_id = a.id AND organization_id = $1 AND id >= $3 AND started_at >= $4
                       ORDER BY id DESC
                       LIMIT $5
                   ) n
                   LEFT JOIN LATERAL (
                       SELECT is_test FROM messages WHERE id = n.message_id LIMIT 1
                   ) m ON true
               ) s
           ) c
           LEFT JOIN LATERAL (
               SELECT started_at, outcome, status_code, reason
               FROM send_attempts
               WHERE provider_account_id = a.id AND id = c.last_failed
               LIMIT 1
           ) f ON true"#,
        organization_id.0,
        &uuids(accounts),
        ids::first_of(since),
        since,
        i64::from(CALLS_MAX),
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let calls = rows.into_iter().map(|row| (row.id, row.calls(since)));
    Ok(calls.collect())
}

/// The counted calls of an account.
struct CallRow {
    id: ProviderAccountId,
    read: i64,
    /// When the first of them began.
    since: Option<Timestamp>,
    accepted: i64,
    rejected: i64,
    throttled: i64,
    unavailable: i64,
    unknown: i64,
    pending: i64,
    median: Option<i32>,
    p95: Option<i32>,
    failed_at: Option<Timestamp>,
    failed_outcome: Option<String>,
    failed_status: Option<i32>,
    failed_reason: Option<String>,
}

impl CallRow {
    /// What they say, if all calls from `since` on were read up to the maximum.
    fn calls(self, since: Timestamp) -> RecentCalls {
        let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        let millis = |number: Option<i32>| number.and_then(|number| u32::try_from(number).ok());
        let is_full = self.read >= i64::from(CALLS_MAX);
        let failed = self.failed_at.zip(self.failed_outcome);
        RecentCalls {
            since: self.since.filter(|_| is_full).unwrap_or(since),
            accepted: count(self.accepted),
            rejected: count(self.rejected),
            throttled: count(self.throttled),
            unavailable: count(self.unavailable),
            unknown: count(self.unknown),
            pending: count(self.pending),
            median_ms: millis(self.median),
            p95_ms: millis(self.p95),
            last_failure: failed.map(|(at, outcome)| FailedCall {
                at,
                outcome,
                status_code: self.failed_status,
                reason: self.failed_reason,
            }),
        }
    }
}

fn uuids(accounts: &[ProviderAccountId]) -> Vec<Uuid> {
    accounts.iter().map(|id| id.0).collect()
}
