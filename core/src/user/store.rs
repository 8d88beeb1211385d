//! Users in Postgres. They belong to no organization, so these statements name none.

use sqlx::{PgConnection, query, query_as, query_scalar};
use uuid::Uuid;

use super::{AccountEmail, User, UserWithPassword};
use crate::clock::Timestamp;
use crate::db::{OrFault, broken_constraint};
use crate::fault::Fault;
use crate::ids::{SessionId, UserId};
use crate::secret::{ExposeSecret, Secret};
use crate::text::Name;

/// The constraint that keeps addresses apart.
const EMAIL_KEY: &str = "users_email_key";

/// Adds a user. False if there is one with this address.
pub async fn insert(
    connection: &mut PgConnection,
    user: &User,
    password_hash: Option<&Secret>,
) -> Result<bool, Fault> {
    let done = query!(
        "INSERT INTO users (id, email, name, password_hash, is_operator, created_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
        user.id.0,
        user.email.as_str(),
        user.name,
        password_hash.map(ExposeSecret::expose_secret),
        user.is_operator,
        user.created_at,
    )
    .execute(connection)
    .await;
    match done {
        Ok(_) => Ok(true),
        Err(error) if broken_constraint(&error) == Some(EMAIL_KEY) => Ok(false),
        Err(error) => Err(error).or_fault("add a user"),
    }
}

/// One user.
pub async fn find(connection: &mut PgConnection, id: UserId) -> Result<Option<User>, Fault> {
    let row = query_as!(
        UserRow,
        r#"SELECT id, email, name, is_operator, created_at,
                  totp_enabled_at IS NOT NULL AS "has_second_factor!",
                  password_hash IS NOT NULL AS "has_password!"
           FROM users
           WHERE id = $1"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a user")?;
    Ok(row.map(User::from))
}

/// The user with this address, and the hash of the password.
pub async fn find_by_email(
    connection: &mut PgConnection,
    email: &AccountEmail,
) -> Result<Option<UserWithPassword>, Fault> {
    let row = query!(
        r#"SELECT id, email, name, is_operator, created_at, password_hash,
                  totp_enabled_at IS NOT NULL AS "has_second_factor!"
           FROM users
           WHERE email = $1"#,
        email.as_str(),
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a user")?;
    Ok(row.map(|row| UserWithPassword {
        user: User {
            id: UserId(row.id),
            email: AccountEmail::from_stored(row.email),
            name: row.name,
            has_second_factor: row.has_second_factor,
            has_password: row.password_hash.is_some(),
            is_operator: row.is_operator,
            created_at: row.created_at,
        },
        password_hash: row.password_hash.map(Secret::from),
    }))
}

/// A user with the organizations and roles, for the operator.
#[derive(Debug)]
pub struct ListedUser {
    pub id: UserId,
    pub email: String,
    pub name: String,
    pub is_operator: bool,
    pub has_second_factor: bool,
    /// `organization:ROLE`, in no order.
    pub memberships: Vec<String>,
}

/// All users, by their addresses.
pub async fn list(connection: &mut PgConnection) -> Result<Vec<ListedUser>, Fault> {
    query_as!(
        ListedUser,
        r#"SELECT u.id AS "id: UserId", u.email, u.name, u.is_operator,
                  u.totp_enabled_at IS NOT NULL AS "has_second_factor!",
                  array_remove(array_agg(m.organization_id || ':' || m.role), NULL) AS "memberships!"
           FROM users u
           LEFT JOIN memberships m ON m.user_id = u.id
           GROUP BY u.id
           ORDER BY u.email"#,
    )
    .fetch_all(connection)
    .await
    .or_fault("list users")
}

/// Deletes a user with all memberships and sessions. True if there was one.
pub async fn delete(connection: &mut PgConnection, id: UserId) -> Result<bool, Fault> {
    let done = query!("DELETE FROM users WHERE id = $1", id.0)
        .execute(connection)
        .await
        .or_fault("delete a user")?;
    Ok(done.rows_affected() > 0)
}

/// Makes a user an operator.
pub async fn set_operator(connection: &mut PgConnection, id: UserId) -> Result<(), Fault> {
    query!("UPDATE users SET is_operator = true WHERE id = $1", id.0)
        .execute(connection)
        .await
        .or_fault("make a user an operator")?;
    Ok(())
}

/// Renames a user.
pub(super) async fn set_name(
    connection: &mut PgConnection,
    id: UserId,
    name: &Name,
) -> Result<(), Fault> {
    query!(
        "UPDATE users SET name = $2 WHERE id = $1",
        id.0,
        name.as_str(),
    )
    .execute(connection)
    .await
    .or_fault("rename a user")?;
    Ok(())
}

/// Replaces the password of a user.
pub(super) async fn set_password(
    connection: &mut PgConnection,
    id: UserId,
    hash: &Secret,
) -> Result<(), Fault> {
    query!(
        "UPDATE users SET password_hash = $2 WHERE id = $1",
        id.0,
        hash.expose_secret(),
    )
    .execute(connection)
    .await
    .or_fault("set a password")?;
    Ok(())
}

/// Deletes all sessions of a user and returns them.
pub async fn end_sessions(
    connection: &mut PgConnection,
    id: UserId,
) -> Result<Vec<SessionId>, Fault> {
    query_scalar!(
        r#"DELETE FROM sessions
           WHERE user_id = $1
           RETURNING id AS "id: SessionId""#,
        id.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("end the sessions of a user")
}

/// Deletes all sessions of a user but one and returns them.
pub(super) async fn end_other_sessions(
    connection: &mut PgConnection,
    id: UserId,
    kept: SessionId,
) -> Result<Vec<SessionId>, Fault> {
    query_scalar!(
        r#"DELETE FROM sessions
           WHERE user_id = $1 AND id <> $2
           RETURNING id AS "id: SessionId""#,
        id.0,
        kept.0,
    )
    .fetch_all(connection)
    .await
    .or_fault("end the sessions of a user")
}

/// The second factor of a user, pending or enabled.
pub(super) struct StoredFactor {
    pub(super) sealed: Vec<u8>,
    pub(super) is_enabled: bool,
    pub(super) last_step: Option<i64>,
}

/// The second factor of a user, who is locked until the transaction ends.
pub(super) async fn lock_factor(
    connection: &mut PgConnection,
    id: UserId,
) -> Result<Option<StoredFactor>, Fault> {
    query_as!(
        StoredFactor,
        r#"SELECT totp_secret_sealed AS "sealed!", totp_enabled_at IS NOT NULL AS "is_enabled!",
                  totp_last_step AS last_step
           FROM users
           WHERE id = $1 AND totp_secret_sealed IS NOT NULL
           FOR NO KEY UPDATE"#,
        id.0,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a second factor")
}

/// Stores a second factor to be confirmed. False if there is an enabled one.
pub(super) async fn set_pending_factor(
    connection: &mut PgConnection,
    id: UserId,
    sealed: &[u8],
) -> Result<bool, Fault> {
    let done = query!(
        "UPDATE users
         SET totp_secret_sealed = $2, totp_last_step = NULL
         WHERE id = $1 AND totp_enabled_at IS NULL",
        id.0,
        sealed,
    )
    .execute(connection)
    .await
    .or_fault("store a second factor")?;
    Ok(done.rows_affected() > 0)
}

/// Enables the pending second factor.
pub(super) async fn enable_factor(
    connection: &mut PgConnection,
    id: UserId,
    step: i64,
    now: Timestamp,
) -> Result<(), Fault> {
    query!(
        "UPDATE users
         SET totp_enabled_at = $2, totp_last_step = $3
         WHERE id = $1",
        id.0,
        now,
        step,
    )
    .execute(connection)
    .await
    .or_fault("enable a second factor")?;
    Ok(())
}

/// Stores the time step of the last accepted code.
pub(super) async fn set_last_step(
    connection: &mut PgConnection,
    id: UserId,
    step: i64,
) -> Result<(), Fault> {
    query!(
        "UPDATE users SET totp_last_step = $2 WHERE id = $1",
        id.0,
        step,
    )
    .execute(connection)
    .await
    .or_fault("record a code")?;
    Ok(())
}

/// Removes the second factor and its recovery codes.
pub async fn remove_factor(connection: &mut PgConnection, id: UserId) -> Result<(), Fault> {
    query!(
        "UPDATE users
         SET totp_secret_sealed = NULL, totp_enabled_at = NULL, totp_last_step = NULL
         WHERE id = $1",
        id.0,
    )
    .execute(&mut *connection)
    .await
    .or_fault("remove a second factor")?;
    replace_recovery_codes(connection, id, &[]).await
}

/// Replaces the recovery codes.
pub(super) async fn replace_recovery_codes(
    connection: &mut PgConnection,
    id: UserId,
    hashes: &[[u8; 32]],
) -> Result<(), Fault> {
    query!("DELETE FROM user_recovery_codes WHERE user_id = $1", id.0)
        .execute(&mut *connection)
        .await
        .or_fault("delete recovery codes")?;
    let hashes: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.to_vec()).collect();
    query!(
        "INSERT INTO user_recovery_codes (user_id, code_hash)
         SELECT $1, code_hash
         FROM UNNEST($2::bytea[]) AS c (code_hash)",
        id.0,
        &hashes,
    )
    .execute(connection)
    .await
    .or_fault("add recovery codes")?;
    Ok(())
}

/// Uses a recovery code up. False if there is no such code.
pub(super) async fn delete_recovery_code(
    connection: &mut PgConnection,
    id: UserId,
    hash: [u8; 32],
) -> Result<bool, Fault> {
    let done = query!(
        "DELETE FROM user_recovery_codes
         WHERE user_id = $1 AND code_hash = $2",
        id.0,
        hash.as_slice(),
    )
    .execute(connection)
    .await
    .or_fault("use a recovery code")?;
    Ok(done.rows_affected() > 0)
}

/// Adds a link that sets a password. The user's earlier links end.
pub(super) async fn insert_reset(
    connection: &mut PgConnection,
    hash: [u8; 32],
    user_id: UserId,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), Fault> {
    query!("DELETE FROM password_resets WHERE user_id = $1", user_id.0)
        .execute(&mut *connection)
        .await
        .or_fault("end the links that set a password")?;
    query!(
        "INSERT INTO password_resets (token_hash, user_id, created_at, expires_at)
         VALUES ($1, $2, $3, $4)",
        hash.as_slice(),
        user_id.0,
        now,
        expires_at,
    )
    .execute(connection)
    .await
    .or_fault("add a link that sets a password")?;
    Ok(())
}

/// The address of the user of a link that has not expired.
pub(super) async fn find_reset(
    connection: &mut PgConnection,
    hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<AccountEmail>, Fault> {
    let email = query_scalar!(
        "SELECT u.email
         FROM password_resets r
         JOIN users u ON u.id = r.user_id
         WHERE r.token_hash = $1 AND r.expires_at > $2",
        hash.as_slice(),
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find a link that sets a password")?;
    Ok(email.map(AccountEmail::from_stored))
}

/// Uses a link up and returns its user.
pub(super) async fn use_reset(
    connection: &mut PgConnection,
    hash: [u8; 32],
    now: Timestamp,
) -> Result<Option<UserId>, Fault> {
    query_scalar!(
        r#"DELETE FROM password_resets
           WHERE token_hash = $1 AND expires_at > $2
           RETURNING user_id AS "user_id: UserId""#,
        hash.as_slice(),
        now,
    )
    .fetch_optional(connection)
    .await
    .or_fault("use a link that sets a password")
}

/// Deletes expired links. Returns how many.
pub async fn delete_expired_resets(
    connection: &mut PgConnection,
    now: Timestamp,
) -> Result<u64, Fault> {
    let done = query!("DELETE FROM password_resets WHERE expires_at <= $1", now)
        .execute(connection)
        .await
        .or_fault("delete expired links")?;
    Ok(done.rows_affected())
}

struct UserRow {
    id: Uuid,
    email: String,
    name: String,
    is_operator: bool,
    created_at: Timestamp,
    has_second_factor: bool,
    has_password: bool,
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> Self {
        Self {
            id: UserId(row.id),
            email: AccountEmail::from_stored(row.email),
            name: row.name,
            has_second_factor: row.has_second_factor,
            has_password: row.has_password,
            is_operator: row.is_operator,
            created_at: row.created_at,
        }
    }
}
