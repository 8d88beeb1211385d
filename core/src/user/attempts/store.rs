//! The count of wrong passwords in Postgres.

use sqlx::{PgConnection, query, query_as};

use super::{ATTEMPTS_MAX, WINDOW};
use crate::clock::Timestamp;
use crate::db::OrFault;
use crate::fault::Fault;

/// The attempts of an account.
pub(super) struct Taken {
    pub(super) window_started_at: Timestamp,
    /// One more than the maximum if there are too many.
    pub(super) failures: i32,
}

/// Counts an attempt of an account and returns all that count.
pub(super) async fn take(
    connection: &mut PgConnection,
    account: [u8; 32],
    now: Timestamp,
) -> Result<Taken, Fault> {
    query_as!(
        Taken,
        "INSERT INTO sign_in_attempts AS a (account_hash, window_started_at, failures)
         VALUES ($1, $2, 1)
         ON CONFLICT (account_hash) DO UPDATE
         SET failures = CASE
                 WHEN a.window_started_at <= $3 THEN 1
                 ELSE least(a.failures + 1, $4)
             END,
             window_started_at = CASE
                 WHEN a.window_started_at <= $3 THEN $2
                 ELSE a.window_started_at
             END
         RETURNING window_started_at, failures",
        account.as_slice(),
        now,
        now - WINDOW,
        ATTEMPTS_MAX + 1,
    )
    .fetch_one(connection)
    .await
    .or_fault("count an attempt")
}

/// Takes back one attempt.
pub(super) async fn give_back(
    connection: &mut PgConnection,
    account: [u8; 32],
) -> Result<(), Fault> {
    query!(
        "UPDATE sign_in_attempts
         SET failures = failures - 1
         WHERE account_hash = $1 AND failures > 0",
        account.as_slice(),
    )
    .execute(connection)
    .await
    .or_fault("take back an attempt")?;
    Ok(())
}

/// Deletes the attempts of an account.
pub(super) async fn delete(connection: &mut PgConnection, account: [u8; 32]) -> Result<(), Fault> {
    query!(
        "DELETE FROM sign_in_attempts
         WHERE account_hash = $1",
        account.as_slice(),
    )
    .execute(connection)
    .await
    .or_fault("forget attempts")?;
    Ok(())
}

/// Deletes attempts that do not count any more. Returns how many accounts they were of.
pub async fn delete_old(connection: &mut PgConnection, now: Timestamp) -> Result<u64, Fault> {
    let done = query!(
        "DELETE FROM sign_in_attempts
         WHERE window_started_at <= $1",
        now - WINDOW,
    )
    .execute(connection)
    .await
    .or_fault("forget attempts")?;
    Ok(done.rows_affected())
}
