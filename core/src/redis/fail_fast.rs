//! A Redis connection for scripts in the path of a request. A caller gets an answer within
//! 100 ms or continues without Redis.
//!
//! A task connects, and connects again after a failure. Until it has, no caller sends a
//! command: an outage of Redis costs the calls in flight one time-out and later calls
//! nothing.

use std::fmt::Display;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Script, ServerErrorKind,
};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::Redis;

/// How long a caller waits for an answer before it continues without Redis.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the first callers of a process wait for the first connection.
const FIRST_WAIT_MAX: Duration = Duration::from_millis(250);
/// How long a connection attempt may take.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// The pause between connection attempts.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The settings of a connection.
pub(crate) struct FailFastSettings {
    /// The data that the connection is for, in the log: "Redis is unavailable for …".
    pub(crate) subject: &'static str,
    /// The scripts that the callers run.
    pub(crate) scripts: &'static [&'static LazyLock<Script>],
}

/// A Redis connection that never makes its callers wait long.
pub(crate) struct FailFastConnection {
    pub(crate) redis: Redis,
    settings: FailFastSettings,
    state: watch::Sender<ConnectionState>,
}

#[derive(Clone)]
enum ConnectionState {
    /// The first connection attempt runs.
    Connecting,
    /// A connection and its number.
    Connected(u64, MultiplexedConnection),
    /// Redis does not answer, or rejects commands.
    Away,
}

impl FailFastConnection {
    /// Starts the task that connects. It ends when the result is dropped.
    pub(crate) fn start(redis: Redis, settings: FailFastSettings) -> Arc<Self> {
        let this = Arc::new(Self {
            redis,
            settings,
            state: watch::Sender::new(ConnectionState::Connecting),
        });
        tokio::spawn(connect_forever(
            Arc::downgrade(&this),
            this.state.subscribe(),
        ));
        this
    }

    /// Whether Redis was away at the last attempt.
    pub(crate) fn is_away(&self) -> bool {
        matches!(*self.state.borrow(), ConnectionState::Away)
    }

    /// Runs commands; `None` if Redis does not answer in time.
    pub(crate) async fn run<T: FromRedisValue>(&self, commands: &Pipeline) -> Option<T> {
        let (number, mut connection) = self.connection().await?;
        match timeout(WAIT_MAX, self.run_on(&mut connection, commands)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => self.mark_away(number, &error),
            Err(_) => self.mark_away(number, &"no answer in time"),
        }
    }

    /// Runs scripts by their hash. If Redis does not know them, because its scripts were
    /// flushed, loads them and runs the commands again. Every new connection loads all
    /// scripts, so Redis knows all or none of them, and no command runs twice.
    async fn run_on<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
        commands: &Pipeline,
    ) -> RedisResult<T> {
        match commands.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.load(connection).await?;
                commands.query_async(connection).await
            }
            answer => answer,
        }
    }

    async fn load(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        for script in self.settings.scripts {
            script.prepare_invoke().load_async(connection).await?;
        }
        Ok(())
    }

    async fn connection(&self) -> Option<(u64, MultiplexedConnection)> {
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, ConnectionState::Connecting));
        match &*timeout(FIRST_WAIT_MAX, known).await.ok()?.ok()? {
            ConnectionState::Connected(number, connection) => Some((*number, connection.clone())),
            ConnectionState::Connecting | ConnectionState::Away => None,
        }
    }

    /// Drops a failed connection, unless it has been replaced already.
    fn mark_away<T>(&self, number: u64, cause: &dyn Display) -> Option<T> {
        self.state.send_if_modified(|state| {
            let is_this =
                matches!(state, ConnectionState::Connected(present, _) if *present == number);
            if is_this {
                self.warn(cause);
                *state = ConnectionState::Away;
            }
            is_this
        });
        None
    }

    fn warn(&self, cause: &dyn Display) {
        let subject = self.settings.subject;
        warn!(%cause, "Redis is unavailable for {subject}; each process uses its own state");
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let opening = self.redis.connector.connect(CONNECT_MAX, Some(WAIT_MAX));
        let mut connection = opening.await?;
        self.load(&mut connection).await?;
        // A Redis that answers but rejects writes counts as away.
        let probe = self.redis.probe(self.settings.subject);
        probe.query_async::<()>(&mut connection).await?;
        Ok(connection)
    }
}

/// Connects, and connects again whenever the connection is lost, until the
/// [`FailFastConnection`] is dropped.
async fn connect_forever(
    connection: Weak<FailFastConnection>,
    mut state: watch::Receiver<ConnectionState>,
) {
    let mut number = 0;
    loop {
        let Some(this) = connection.upgrade() else {
            return;
        };
        // The time-out of the client does not include the probe.
        let connected = timeout(CONNECT_MAX, this.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no connection in time")))
        });
        let is_first = matches!(*state.borrow(), ConnectionState::Connecting);
        match connected {
            Ok(connection) => {
                if !is_first {
                    info!("Redis is available again for {}", this.settings.subject);
                }
                number += 1;
                this.state
                    .send_replace(ConnectionState::Connected(number, connection));
            }
            Err(error) if is_first => {
                this.warn(&error);
                this.state.send_replace(ConnectionState::Away);
            }
            Err(_) => {}
        }
        drop(this);
        let away = state.wait_for(|state| matches!(state, ConnectionState::Away));
        if away.await.is_err() {
            return;
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}
