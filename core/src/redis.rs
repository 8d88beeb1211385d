//! Redis: the pool and the key prefix. Nothing in it is needed for correctness;
//! every user of it has a way without.

pub(crate) mod gcra;
pub(crate) mod line;

use std::time::Duration;

use deadpool_redis::{Config, Pool, PoolConfig, Runtime, Timeouts};
use secrecy::ExposeSecret;

use crate::fault::Fault;
use crate::secret::Secret;

/// How long anything waits for a connection to Redis before it goes on without.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Connections of one process for short commands. Commands are pipelined, so a
/// few carry much.
const CONNECTIONS_MAX: usize = 8;

/// A way to Redis: a pool for short commands, a client for connections that
/// block, and the prefix of every key.
#[derive(Clone)]
pub struct Redis {
    /// For commands that answer at once.
    pub pool: Pool,
    /// For connections of one's own, such as blocking reads.
    pub client: redis::Client,
    /// Put before every key, so that several installations may share a server.
    pub prefix: String,
}

impl Redis {
    /// Connections are made when first used: a process starts while Redis is away.
    ///
    /// # Errors
    /// A fault when the URL cannot be read.
    pub fn new(url: &Secret, prefix: &str) -> Result<Self, Fault> {
        let unreadable = |error| Fault::internal("read REDIS_URL", error);
        let client = redis::Client::open(url.expose_secret()).map_err(unreadable)?;
        let mut config = Config::from_url(url.expose_secret());
        let mut pool = PoolConfig::new(CONNECTIONS_MAX);
        pool.timeouts = Timeouts {
            wait: Some(WAIT_MAX),
            create: Some(WAIT_MAX),
            recycle: Some(WAIT_MAX),
        };
        config.pool = Some(pool);
        let pool = config
            .create_pool(Some(Runtime::Tokio1))
            .map_err(|error| Fault::internal("set up the Redis pool", error))?;
        Ok(Self {
            pool,
            client,
            prefix: prefix.to_owned(),
        })
    }

    /// Whether a text has the form of a URL of Redis.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        redis::Client::open(text).is_ok()
    }

    /// Whether Redis answers.
    ///
    /// # Errors
    /// A fault when it does not, within a second or two.
    pub async fn ping(&self) -> Result<(), Fault> {
        let away = |error: redis::RedisError| Fault::unavailable("reach Redis", error);
        let mut connection = self
            .pool
            .get()
            .await
            .map_err(|error| Fault::unavailable("reach Redis", error))?;
        let ping = redis::cmd("PING");
        let answer = tokio::time::timeout(WAIT_MAX, ping.query_async::<String>(&mut connection));
        answer
            .await
            .map_err(|error| Fault::unavailable("reach Redis", error))?
            .map_err(away)
            .map(|_| ())
    }
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redis(prefix {})", self.prefix)
    }
}
