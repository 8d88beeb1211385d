//! The lock of a leader: an advisory lock whose holder is to be found out when it is
//! gone or stands still, whatever became of its connection.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection, PgPool};

use super::OrFault;
use crate::fault::Fault;

/// How long Postgres may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How Postgres finds out that the machine of a lock's holder went without a word:
/// keepalives, and answers that nobody acknowledges (9 s).
pub(super) const KEEPALIVES: [(&str, &str); 4] = [
    ("tcp_keepalives_idle", "3"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "9000"),
];
/// How it finds out that the holder's process stands still, so that nobody asks for the
/// lock any more (10 s).
const PRESENCE: [(&str, &str); 1] = [("idle_session_timeout", "10000")];

/// An advisory lock that belongs to a connection of its own: Postgres frees it when
/// that connection ends, however it ends.
pub struct LeaderLock {
    connection: PgConnection,
    key: i64,
    is_held: bool,
}

impl LeaderLock {
    /// Connects, and takes nothing yet.
    pub async fn connect(pool: &PgPool, key: i64) -> Result<Self, Fault> {
        let options = PgConnectOptions::clone(&pool.connect_options());
        let options = options.options(KEEPALIVES).options(PRESENCE);
        let connection = promptly("connect for a lock", options.connect()).await?;
        Ok(Self {
            connection,
            key,
            is_held: false,
        })
    }

    /// Whether the lock is held, after taking it where it was free. To be asked every
    /// few seconds: whoever does not is taken for dead and loses it.
    ///
    /// # Errors
    /// A fault when the connection is lost, and with it the lock.
    pub async fn hold(&mut self) -> Result<bool, Fault> {
        let doing = "hold a lock";
        if self.is_held {
            let ping = sqlx::query("SELECT 1").execute(&mut self.connection);
            promptly(doing, ping).await?;
        } else {
            let take =
                sqlx::query_scalar!(r#"SELECT pg_try_advisory_lock($1) AS "taken!""#, self.key);
            self.is_held = promptly(doing, take.fetch_one(&mut self.connection)).await?;
        }
        Ok(self.is_held)
    }

    /// Frees the lock.
    pub async fn release(self) {
        // Postgres frees it with the session. Where this fails the connection is
        // broken, and with it the lock.
        let _closed = promptly("free a lock", self.connection.close()).await;
    }
}

async fn promptly<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, Fault> {
    match tokio::time::timeout(ANSWER_TIMEOUT, work).await {
        Ok(done) => done.or_fault(doing),
        Err(late) => Err(Fault::unavailable(doing, late)),
    }
}
