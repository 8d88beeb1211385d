//! Detects a connection pooler between Waypost and Postgres, such as PgBouncer, that gives the
//! statements of one connection to different sessions. Waypost needs sessions: they hold its
//! settings, prepared statements, advisory locks and notifications.

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, PgConnection};

/// A setting that Postgres takes from anybody when a connection opens, and that poolers refuse
/// or drop.
const PROBE: (&str, &str) = ("waypost.is_direct", "on");
/// How often a pooler is asked whether it shares sessions. Once is enough unless other
/// clients use the same sessions at the same moment.
const TRIES: usize = 10;

/// Whether statements of one connection may reach different sessions.
///
/// # Errors
/// The error of a connection.
pub(super) async fn shares_sessions(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    if is_direct(options).await? {
        return Ok(false);
    }
    let one = options.connect().await?;
    let other = options.connect().await?;
    match is_moved(one, other).await {
        // PgBouncer refuses transactions in statement mode.
        Err(sqlx::Error::Database(_)) => Ok(true),
        moved => moved,
    }
}

/// Whether a connection changes its session while another is in use.
async fn is_moved(mut one: PgConnection, mut other: PgConnection) -> Result<bool, sqlx::Error> {
    for _ in 0..TRIES {
        let before = session(&mut one).await?;
        // It takes the session that `one` has just used, if the pooler has that back.
        sqlx::raw_sql("BEGIN").execute(&mut other).await?;
        session(&mut other).await?;
        let after = session(&mut one).await?;
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await?;
        if before != after {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether there is no pooler.
async fn is_direct(options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut connection = match options.clone().options([PROBE]).connect().await {
        Ok(connection) => connection,
        // A pooler refuses the setting. If Postgres refuses the connection, the next one
        // fails too.
        Err(sqlx::Error::Database(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    let ask = "SELECT current_setting('waypost.is_direct', true) = 'on'";
    let row = sqlx::raw_sql(ask).fetch_one(&mut connection).await?;
    let is_set: Option<bool> = sqlx::Row::try_get(&row, 0)?;
    Ok(is_set.unwrap_or_default())
}

async fn session(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let row = sqlx::raw_sql("SELECT pg_backend_pid()")
        .fetch_one(connection)
        .await?;
    sqlx::Row::try_get(&row, 0)
}
