//! Attempts of unknown outcome in Postgres. They are few, and none waits for another.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId};
use crate::provider::kind::ProviderType;

/// An attempt that is to be looked for now.
#[derive(Debug, Clone)]
pub struct DueLookup {
    pub message_id: MessageId,
    pub attempt_id: SendAttemptId,
    pub organization_id: OrganizationId,
    pub position: i32,
    /// The account that it went through.
    pub provider_account_id: ProviderAccountId,
    pub started_at: Timestamp,
    /// Whether no further look comes within the wait.
    pub is_last: bool,
}

/// What is taken.
#[derive(Debug)]
pub(super) struct Taking {
    /// Through accounts of this provider.
    pub(super) provider_type: ProviderType,
    pub(super) passed_over: Vec<ProviderAccountId>,
    pub(super) most: i64,
    /// Not more of an account.
    pub(super) most_of_account: i64,
    pub(super) now: Timestamp,
    /// The moments of looks, in seconds from when the outcome became unknown.
    pub(super) moments: Vec<f64>,
    /// When the last look is due again, where whoever took it died.
    pub(super) taken_until: Timestamp,
}

/// Takes attempts of any organization whose look is due, first those that were looked
/// for least, found among the thousand longest overdue. They are due again at the next
/// of the moments that has not passed.
pub(super) async fn lease(
    connection: &mut PgConnection,
    taking: &Taking,
) -> Result<Vec<DueLookup>, Fault> {
    let passed_over = ids(&taking.passed_over);
    query_as!(
        DueLookup,
        r#"WITH due AS (
               SELECT u.message_id, u.attempt_id, u.provider_account_id, u.looks, u.next_look_at
               FROM unknown_attempts u
               JOIN provider_accounts a ON a.id = u.provider_account_id
               WHERE u.next_look_at <= $1
                 AND (u.looks > 0 OR u.next_look_at <= $1 - make_interval(secs => ($2::float8[])[1]))
                 AND a.provider_type = $3 AND u.provider_account_id <> ALL($4)
               ORDER BY u.next_look_at
               LIMIT 1000
           ), ranked AS (
               SELECT *, row_number() OVER (PARTITION BY provider_account_id ORDER BY looks, next_look_at) AS nth
               FROM due
           ), few AS (
               SELECT message_id, attempt_id
               FROM ranked
               WHERE nth <= $5
               ORDER BY looks, next_look_at
               LIMIT $6
           ), chosen AS (
               SELECT message_id, attempt_id
               FROM unknown_attempts
               WHERE (message_id, attempt_id) IN (SELECT message_id, attempt_id FROM few) AND next_look_at <= $1
               ORDER BY message_id, attempt_id
               FOR UPDATE SKIP LOCKED
           )
           UPDATE unknown_attempts u
           SET looks = u.looks + 1,
               next_look_at = coalesce(
                   (SELECT min(t.at)
                    FROM UNNEST($2) AS m (seconds)
                    CROSS JOIN LATERAL (SELECT u.unknown_at + make_interval(secs => m.seconds) AS at) t
                    WHERE t.at > $1),
                   $7)
           FROM chosen
           WHERE u.message_id = chosen.message_id AND u.attempt_id = chosen.attempt_id
           RETURNING u.message_id AS "message_id: MessageId", u.attempt_id AS "attempt_id: SendAttemptId",
                     u.organization_id AS "organization_id: OrganizationId", u.position,
                     u.provider_account_id AS "provider_account_id: ProviderAccountId", u.started_at,
                     NOT EXISTS (
                         SELECT
                         FROM UNNEST($2) AS m (seconds)
                         WHERE u.unknown_at + make_interval(secs => m.seconds) > $1) AS "is_last!""#,
        taking.now,
        &taking.moments,
        taking.provider_type as ProviderType,
        &passed_over,
        taking.most_of_account,
        taking.most,
        taking.taken_until,
    )
    .fetch_all(connection)
    .await
    .or_fault("take unknown attempts")
}

/// Forgets attempts that are due and that nothing waits for: of copies that are settled
/// or gone, of accounts that are gone or among `without_search`, or from before `oldest`.
/// How many they were.
pub(super) async fn delete_settled(
    connection: &mut PgConnection,
    without_search: &[ProviderAccountId],
    now: Timestamp,
    oldest: Timestamp,
    most: i64,
) -> Result<u64, Fault> {
    let without_search = ids(without_search);
    // Limits keep each look-up one by primary key, whatever the planner believes of
    // tables that have just grown.
    let done = query!(
        r#"WITH settled AS (
               SELECT message_id, attempt_id
               FROM (
                   SELECT *
                   FROM unknown_attempts
                   WHERE next_look_at <= $1
                   ORDER BY next_look_at
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
        most,
    )
    .execute(connection)
    .await
    .or_fault("forget unknown attempts")?;
    Ok(done.rows_affected())
}

/// The sealed mailbox that an attempt's copy goes to.
pub(super) async fn find_recipient(
    connection: &mut PgConnection,
    due: &DueLookup,
) -> Result<Option<Vec<u8>>, Fault> {
    query_scalar!(
        "SELECT address_sealed
         FROM recipients
         WHERE organization_id = $1 AND message_id = $2 AND position = $3",
        due.organization_id.0,
        due.message_id.0,
        due.position,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a recipient")
}

/// Forgets one.
pub(super) async fn delete(connection: &mut PgConnection, due: &DueLookup) -> Result<(), Fault> {
    query!(
        "DELETE FROM unknown_attempts
         WHERE organization_id = $1 AND message_id = $2 AND attempt_id = $3",
        due.organization_id.0,
        due.message_id.0,
        due.attempt_id.0,
    )
    .execute(connection)
    .await
    .or_fault("forget an unknown attempt")?;
    Ok(())
}

/// Makes the next look at `next`.
pub(super) async fn postpone(
    connection: &mut PgConnection,
    due: &DueLookup,
    next: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE unknown_attempts
         SET next_look_at = $4
         WHERE organization_id = $1 AND message_id = $2 AND attempt_id = $3",
        due.organization_id.0,
        due.message_id.0,
        due.attempt_id.0,
        next,
    )
    .execute(connection)
    .await
    .or_fault("postpone a look")?;
    Ok(())
}

fn ids(accounts: &[ProviderAccountId]) -> Vec<Uuid> {
    accounts.iter().map(|account| account.0).collect()
}
