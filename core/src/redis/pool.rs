//! The pool of connections for short commands.

use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, PoolConfig, RecycleResult, Timeouts};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisResult};

use super::connector::Connector;

/// How long a caller waits for a connection, and a connection for a reply.
const WAIT_MAX: Duration = Duration::from_secs(1);
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Connections of one process for short commands. A few suffice, since commands are
/// pipelined.
const CONNECTIONS_MAX: usize = 8;

/// The pool.
pub type Pool = managed::Pool<PoolManager>;
/// A connection that returns to the pool when it is dropped.
pub type PooledConnection = managed::Object<PoolManager>;

/// Opens connections for the pool, and checks those that it hands out again.
pub struct PoolManager {
    connector: Connector,
    /// A write. A server that became a replica answers a PING too.
    probe: Cmd,
}

impl std::fmt::Debug for PoolManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PoolManager")
    }
}

impl managed::Manager for PoolManager {
    type Type = MultiplexedConnection;
    type Error = RedisError;

    async fn create(&self) -> RedisResult<MultiplexedConnection> {
        self.connector.connect(WAIT_MAX, Some(ANSWER_MAX)).await
    }

    async fn recycle(
        &self,
        connection: &mut MultiplexedConnection,
        _: &Metrics,
    ) -> RecycleResult<RedisError> {
        Ok(self.probe.query_async(connection).await?)
    }
}

/// Makes the pool. Connections are opened when they are first used.
pub(super) fn new(connector: Connector, probe: Cmd) -> Result<Pool, managed::BuildError> {
    let mut config = PoolConfig::new(CONNECTIONS_MAX);
    config.timeouts = Timeouts {
        wait: Some(WAIT_MAX),
        create: Some(WAIT_MAX),
        recycle: Some(WAIT_MAX),
    };
    Pool::builder(PoolManager { connector, probe })
        .config(config)
        .runtime(Runtime::Tokio1)
        .build()
}

/// The error of the pool as an error of the client library.
pub(crate) fn away(error: managed::PoolError<RedisError>) -> RedisError {
    if let managed::PoolError::Backend(error) = error {
        return error;
    }
    RedisError::from((ErrorKind::Io, "no connection to Redis", error.to_string()))
}
