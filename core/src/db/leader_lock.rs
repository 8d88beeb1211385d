//! The lock of a leader: an advisory lock that Postgres releases soon after its holder has died
//! or stopped, even if its connection is still open.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection, PgPool};

use super::OrFault;
use super::session::{SessionSettings, Setting};
use crate::fault::Fault;

/// How long Postgres may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Settings by which Postgres detects that the machine of the holder is gone, within 9 s:
/// keepalives, and a time-out for unacknowledged answers.
pub(super) const KEEPALIVES: [Setting; 4] = [
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "9000"),
];
/// The setting by which Postgres detects that the process of the holder has stopped and does
/// not call [`LeaderLock::hold`] any more, within 10 s.
const IDLE_TIMEOUT: Setting = ("idle_session_timeout", "10000");

/// An advisory lock with a connection of its own. Postgres releases the lock when that
/// connection ends.
pub struct LeaderLock {
    connection: PgConnection,
    key: i64,
    is_held: bool,
}

impl LeaderLock {
    /// Connects. Does not acquire the lock.
    pub async fn connect(pool: &PgPool, key: i64) -> Result<Self, Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let settings = SessionSettings::new(KEEPALIVES.into_iter().chain([IDLE_TIMEOUT]));
        let connection = with_timeout("connect for a lock", settings.connect(&options)).await?;
        Ok(Self {
            connection,
            key,
            is_held: false,
        })
    }

    /// Acquires the lock if it is free, and returns whether this process holds it. Call it
    /// every few seconds: a process that does not call it for 10 s loses the lock.
    ///
    /// # Errors
    /// A fault if the connection is lost, and with it the lock.
    pub async fn hold(&mut self) -> Result<bool, Fault> {
        let doing = "hold a lock";
        if self.is_held {
            let ping = sqlx::query("SELECT 1").execute(&mut self.connection);
            with_timeout(doing, ping).await?;
        } else {
            let take =
                sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "taken!""#, self.key);
            self.is_held = with_timeout(doing, take.fetch_one(&mut self.connection)).await?;
        }
        Ok(self.is_held)
    }

    /// Releases the lock.
    pub async fn release(self) {
        // The lock ends with the session. If the close fails, the session has ended.
        let _closed = with_timeout("release a lock", self.connection.close()).await;
    }
}

async fn with_timeout<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
        Ok(done) => done.or_fault(doing),
        Err(late) => Err(Fault::unavailable(doing, late)),
    }
}
