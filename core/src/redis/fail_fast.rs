//! A line: one connection for scripts that somebody waits for. Whoever needs an
//! answer of Redis to go on gets it soon or does without.
//!
//! The *keeper* is a task that makes the connection and makes it again after it
//! failed. Until it has, nobody asks Redis: its absence costs those under way one
//! wait, and later callers nothing.

use std::fmt::Display;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, ErrorKind, FromRedisValue, Pipeline, RedisError, RedisResult, Script,
    ServerErrorKind,
};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::Redis;

/// How long a caller waits for Redis before it goes on without.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// How long the first callers of a process wait for its connection.
const FIRST_WAIT_MAX: Duration = Duration::from_millis(250);
/// How long the keeper waits for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// How long the keeper waits before it tries again.
const PAUSE: Duration = Duration::from_millis(100);

/// What a line is for.
pub(crate) struct FailFastSettings {
    /// What Redis keeps on it, for the log: "Redis does not keep …".
    pub(crate) subject: &'static str,
    /// The scripts that are run on it.
    pub(crate) scripts: &'static [&'static LazyLock<Script>],
}

/// The way to Redis.
pub(crate) struct FailFastConnection {
    pub(crate) redis: Redis,
    settings: FailFastSettings,
    state: watch::Sender<ConnectionState>,
}

#[derive(Clone)]
enum ConnectionState {
    /// The process has just started.
    Fresh,
    /// The connection of that number is good as far as we know.
    Connected(u64, MultiplexedConnection),
    /// Redis does not answer, or refuses.
    Away,
}

impl FailFastConnection {
    /// Starts the keeper. It ends when the line is dropped.
    pub(crate) fn start(redis: Redis, settings: FailFastSettings) -> Arc<Self> {
        let line = Arc::new(Self {
            redis,
            settings,
            state: watch::Sender::new(ConnectionState::Fresh),
        });
        tokio::spawn(keep(Arc::downgrade(&line), line.state.subscribe()));
        line
    }

    /// Whether Redis is known not to answer.
    pub(crate) fn is_away(&self) -> bool {
        matches!(*self.state.borrow(), ConnectionState::Away)
    }

    /// Runs commands; nothing where Redis does not answer in time.
    pub(crate) async fn run<T: FromRedisValue>(&self, commands: &Pipeline) -> Option<T> {
        let (nth, mut connection) = self.connection().await?;
        match timeout(WAIT_MAX, self.run_on(&mut connection, commands)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => self.lost(nth, &error),
            Err(_) => self.lost(nth, &"no answer in time"),
        }
    }

    /// Runs scripts by their hash; where Redis does not know them, because it was
    /// emptied of scripts, they are handed over first. A new connection hands all
    /// of them over, so Redis knows all or none, and nothing is run twice.
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
        let known = state.wait_for(|state| !matches!(state, ConnectionState::Fresh));
        match &*timeout(FIRST_WAIT_MAX, known).await.ok()?.ok()? {
            ConnectionState::Connected(nth, connection) => Some((*nth, connection.clone())),
            ConnectionState::Fresh | ConnectionState::Away => None,
        }
    }

    /// Gives a connection up, unless the keeper has made another one already.
    fn lost<T>(&self, nth: u64, cause: &dyn Display) -> Option<T> {
        self.state.send_if_modified(|state| {
            let is_this =
                matches!(state, ConnectionState::Connected(present, _) if *present == nth);
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
        warn!(%cause, "Redis does not keep the {subject}; each process keeps them alone");
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_MAX))
            .set_response_timeout(Some(WAIT_MAX));
        let opening = self
            .redis
            .client
            .get_multiplexed_async_connection_with_config(&config);
        let mut connection = opening.await?;
        self.load(&mut connection).await?;
        // A Redis that answers and refuses to write is no use.
        let probe = self.redis.probe(self.settings.subject);
        probe.query_async::<()>(&mut connection).await?;
        Ok(connection)
    }
}

/// Connects, and connects again whenever the connection is lost, until the line is
/// dropped.
async fn keep(line: Weak<FailFastConnection>, mut state: watch::Receiver<ConnectionState>) {
    let mut nth = 0;
    loop {
        let Some(line) = line.upgrade() else {
            return;
        };
        // The time-out of the client does not cover the probe.
        let connected = timeout(CONNECT_MAX, line.connect()).await;
        let connected = connected.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no connection in time")))
        });
        let was_fresh = matches!(*state.borrow(), ConnectionState::Fresh);
        match connected {
            Ok(connection) => {
                if !was_fresh {
                    info!("Redis keeps the {} again", line.settings.subject);
                }
                nth += 1;
                line.state
                    .send_replace(ConnectionState::Connected(nth, connection));
            }
            Err(error) if was_fresh => {
                line.warn(&error);
                line.state.send_replace(ConnectionState::Away);
            }
            Err(_) => {}
        }
        drop(line);
        let gone = state.wait_for(|state| matches!(state, ConnectionState::Away));
        if gone.await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
