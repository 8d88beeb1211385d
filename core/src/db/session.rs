//! How each session with Postgres begins: its settings, and the check that the server accepts
//! writes. A standby answers queries too, so after a failover, or behind an address that
//! names several servers, a process could keep a connection that no statement of ours can
//! use. A primary does not become a standby while a session lasts.
//!
//! The settings are sent by `SET` and not in the packet that opens the connection: connection
//! poolers refuse most settings there, or ignore them.

use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

/// A setting of Postgres and its value.
pub(super) type Setting = (&'static str, &'static str);

/// The settings of all sessions.
const COMMON: [Setting; 4] = [
    // In milliseconds.
    ("statement_timeout", "30000"),
    // How long a transaction may wait for its next statement, in milliseconds. Without this
    // limit, a stopped process would hold its locks indefinitely.
    ("idle_in_transaction_session_timeout", "60000"),
    // No statement runs long enough for JIT compilation to pay, but with `enable_seqscan` off
    // (`ROUTINE`) Postgres estimates that some do. Parallel workers do not pay either: they
    // take 5 ms to start.
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
];

/// The settings of a session, as one command that also asks whether the server accepts writes.
#[derive(Debug, Clone)]
pub(super) struct SessionSettings(Arc<str>);

impl SessionSettings {
    /// The common settings and these. The values must not come from outside.
    pub(super) fn new<'a>(own: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut command = String::new();
        for (name, value) in COMMON.into_iter().chain(own) {
            command.push_str(&format!("SET {name} = '{value}'; "));
        }
        command.push_str("SELECT current_setting('transaction_read_only')");
        Self(command.into())
    }

    /// Begins a session on a new connection: one round trip.
    ///
    /// # Errors
    /// The error of the connection, or that the server accepts no writes.
    pub(super) async fn begin(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let command = sqlx::raw_sql(AssertSqlSafe(self.0.to_string()));
        let row = command.fetch_one(connection).await?;
        let read_only: String = sqlx::Row::try_get(&row, 0)?;
        if read_only == "off" {
            return Ok(());
        }
        Err(sqlx::Error::Io(std::io::Error::new(
            std::io::ErrorKind::ReadOnlyFilesystem,
            ReadOnly,
        )))
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub(super) async fn connect(
        &self,
        options: &PgConnectOptions,
    ) -> Result<PgConnection, sqlx::Error> {
        let mut connection = options.connect().await?;
        self.begin(&mut connection).await?;
        Ok(connection)
    }

    /// Makes a pool begin each session so.
    pub(super) fn configure(self, pool: PgPoolOptions) -> PgPoolOptions {
        pool.after_connect(move |connection, _| {
            let settings = self.clone();
            Box::pin(async move { settings.begin(connection).await })
        })
    }
}

/// The server accepts no writes.
#[derive(Debug, thiserror::Error)]
#[error("it accepts no writes: it is a standby, or default_transaction_read_only is on")]
struct ReadOnly;

/// Whether the error is that the server accepts no writes.
pub(super) fn is_read_only(error: &sqlx::Error) -> bool {
    let sqlx::Error::Io(error) = error else {
        return false;
    };
    error.get_ref().is_some_and(|cause| cause.is::<ReadOnly>())
}
