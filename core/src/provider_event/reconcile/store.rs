//! Attempts of unknown outcome in Postgres. There are few of them, and concurrent
//! statements skip locked rows.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};
use crate::provider::kind::ProviderType;

/// An attempt whose lookup is due.
#[derive(Debug, Clone)]
pub struct DueLookup {
    pub message_id: MessageId,
    pub attempt_id: SendAttemptId,
    pub organization_id: OrganizationId,
    pub provider_account_id: ProviderAccountId,
    pub started_at: Timestamp,
    /// Whether this is the last lookup within the wait.
    pub is_last: bool,
}

/// Which lookups to lease.
#[derive(Debug)]
pub(super) struct LookupLease {
    pub(super) provider_type: ProviderType,
    pub(super) paused_accounts: Vec<ProviderAccountId>,
    pub(super) limit: i64,
    pub(super) limit_per_account: i64,
    pub(super) now: Timestamp,
    /// The times of lookups, in seconds after the outcome became unknown.
    pub(super) offsets: Vec<f64>,
    /// When a last lookup is due again if its process died.
    pub(super) retry_last_at: Timestamp,
}

/// Whether a lookup is due.
pub(super) async fn is_any_due(
    connection: &mut PgConnection,
    now: Timestamp,
) -> Result<bool, Fault> {
    query_scalar!(
        r#"SELECT EXISTS (SELECT FROM unknown_attempts WHERE next_lookup_at <= $1) AS "exists!""#,
        now,
    )
    .fetch_one(connection)
    .await
    .or_fault("find unknown attempts that are due")
}

/// Leases attempts of all organizations whose lookup is due: of the thousand longest
/// overdue, those with the fewest lookups first. They are due again at the next scheduled
/// time.
pub(super) async fn lease(
    connection: &mut PgConnection,
    lease: &LookupLease,
) -> Result<Vec<DueLookup>, Fault> {
    let paused_accounts = ids(&lease.paused_accounts);
    query_as!(
        DueLookup,
        r#"WITH due AS (
               SELECT u.message_id, u.attempt_id, u.provider_account_id, u.looks, u.next_lookup_at
               FROM unknown_attempts u
               JOIN provider_accounts a ON a.id = u.provider_account_id
               WHERE u.next_lookup_at <= $1
                 AND (u.looks > 0 OR u.next_lookup_at <= $1 - make_interval(secs => ($2::float8[])[1]))
                 AND a.provider_type = $3 AND u.provider_account_id <> ALL($4)
               ORDER BY u.next_lookup_at
               LIMIT 1000
           ), ranked AS (
               SELECT *, row_number() OVER (PARTITION BY provider_account_id ORDER BY looks, next_lookup_at) AS nth
               FROM due
           ), few AS (
               SELECT message_id, attempt_id
               FROM ranked
               WHERE nth <= $5
               ORDER BY looks, next_lookup_at
               LIMIT $6
           ), chosen AS (
               SELECT message_id, attempt_id
               FROM unknown_attempts
               WHERE (message_id, attempt_id) IN (SELECT message_id, attempt_id FROM few) AND next_lookup_at <= $1
               ORDER BY message_id, attempt_id
               FOR UPDATE SKIP LOCKED
           )
           UPDATE unknown_attempts u
           SET looks = u.looks + 1,
               next_lookup_at = coalesce(
                   (SELECT min(t.at)
                    FROM UNNEST($2) AS m (seconds)
                    CROSS JOIN LATERAL (SELECT u.unknown_at + make_interval(secs => m.seconds) AS at) t
                    WHERE t.at > $1),
                   $7)
           FROM chosen
           WHERE u.message_id = chosen.message_id AND u.attempt_id = chosen.attempt_id
           RETURNING u.message_id AS "message_id: MessageId", u.attempt_id AS "attempt_id: SendAttemptId",
                     u.organization_id AS "organization_id: OrganizationId",
                     u.provider_account_id AS "provider_account_id: ProviderAccountId", u.started_at,
                     NOT EXISTS (
                         SELECT
                         FROM UNNEST($2) AS m (seconds)
                         WHERE u.unknown_at + make_interval(secs => m.seconds) > $1) AS "is_last!""#,
        lease.now,
        &lease.offsets,
        lease.provider_type as ProviderType,
        &paused_accounts,
        lease.limit_per_account,
        lease.limit,
        lease.retry_last_at,
    )
    .fetch_all(connection)
    .await
    .or_fault("lease unknown attempts")
}

/// Deletes due attempts that need no lookup any more: the recipient has an outcome or is
/// gone, the account is gone or among `without_search`, or the attempt became unknown
/// before `oldest`. Returns their number.
pub(super) async fn delete_finished(
    connection: &mut PgConnection,
    without_search: &[ProviderAccountId],
    now: Timestamp,
    oldest: Timestamp,
    limit: i64,
) -> Result<u64, Fault> {
    let without_search = ids(without_search);
    // The LIMITs make each lookup one by primary key, even if the planner's statistics of
    // a growing table are out of date.
    let done = query!(
        r#"WITH settled AS (
               SELECT message_id, attempt_id
               FROM (
                   SELECT *
                   FROM unknown_attempts
                   WHERE next_lookup_at <= $1
                   ORDER BY next_lookup_at
                   LIMIT $4
               ) u
               WHERE u.unknown_at < $2
                  OR u.provider_account_id = ANY($3)
                  OR NOT EXISTS (SELECT FROM provider_accounts a WHERE a.id = u.provider_account_id)
                  OR NOT coalesce(
                      (SELECT r.status IN ('QUEUED', 'SENDING')
                       FROM recipients r
                       WHERE r.message_id = u.message_id AND r.position = u.position
                       LIMIT 1), false)
           ), chosen AS (
               SELECT message_id, attempt_id
               FROM unknown_attempts
               WHERE (message_id, attempt_id) IN (SELECT message_id, attempt_id FROM settled)
               ORDER BY message_id, attempt_id
               FOR UPDATE SKIP LOCKED
           )
           DELETE FROM unknown_attempts u
           USING chosen
           WHERE u.message_id = chosen.message_id AND u.attempt_id = chosen.attempt_id"#,
        now,
        oldest,
        &without_search,
        limit,
    )
    .execute(connection)
    .await
    .or_fault("delete finished unknown attempts")?;
    Ok(done.rows_affected())
}

/// The attempts of one mail: one, or those of all recipients of a shared mail.
pub(super) struct MailedAttempts {
    /// By position. The id of the first travelled with the mail.
    pub(super) ids: Vec<SendAttemptId>,
    /// The positions of their recipients.
    pub(super) positions: Vec<i32>,
    /// The sealed mailbox of the first recipient.
    pub(super) address_sealed: Vec<u8>,
}

/// The attempts of the mail of an attempt. `None` if the first recipient is gone.
pub(super) async fn find_mailed(
    connection: &mut PgConnection,
    due: &DueLookup,
) -> Result<Option<MailedAttempts>, Fault> {
    query_as!(
        MailedAttempts,
        r#"WITH mailed AS (
               SELECT s.id, s.position
               FROM send_attempts own
               JOIN messages m ON m.id = own.message_id
               JOIN send_attempts s ON s.message_id = own.message_id
                   AND (s.id = own.id OR m.is_shared AND s.started_at = own.started_at)
               WHERE own.organization_id = $1 AND own.message_id = $2 AND own.id = $3
           )
           SELECT ARRAY(SELECT id FROM mailed ORDER BY position) AS "ids!: Vec<SendAttemptId>",
                  ARRAY(SELECT position FROM mailed ORDER BY position) AS "positions!",
                  r.address_sealed
           FROM recipients r
           WHERE r.message_id = $2 AND r.position = (SELECT min(position) FROM mailed)
             AND r.erased_at IS NULL"#,
        due.organization_id.0,
        due.message_id.0,
        due.attempt_id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a recipient")
}

/// Deletes attempts of a message.
pub(super) async fn delete(
    connection: &mut PgConnection,
    due: &DueLookup,
    attempts: &[SendAttemptId],
) -> Result<(), Fault> {
    query!(
        "DELETE FROM unknown_attempts
         WHERE organization_id = $1 AND message_id = $2 AND attempt_id = ANY($3)",
        due.organization_id.0,
        due.message_id.0,
        &attempts.iter().map(|id| id.0).collect::<Vec<_>>(),
    )
    .execute(connection)
    .await
    .or_fault("delete an unknown attempt")?;
    Ok(())
}

/// Postpones the next lookup until `next`.
pub(super) async fn postpone(
    connection: &mut PgConnection,
    due: &DueLookup,
    next: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE unknown_attempts
         SET next_lookup_at = $4
         WHERE organization_id = $1 AND message_id = $2 AND attempt_id = $3",
        due.organization_id.0,
        due.message_id.0,
        due.attempt_id.0,
        next,
    )
    .execute(connection)
    .await
    .or_fault("postpone a lookup")?;
    Ok(())
}

fn ids(accounts: &[ProviderAccountId]) -> Vec<Uuid> {
    accounts.iter().map(|account| account.0).collect()
}
