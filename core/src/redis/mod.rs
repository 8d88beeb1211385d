//! Redis: the pool and the key prefix. Nothing in it is needed for correctness;
//! every user of it has a way without.

pub(crate) mod fail_fast;
pub(crate) mod gcra;

use std::time::Duration;

use deadpool_redis::{Config, Pool, PoolConfig, PoolError, Runtime, Timeouts};
pub use redis::ErrorKind;
use redis::{Cmd, RedisError, RedisResult};
use secrecy::ExposeSecret;

use crate::fault::Fault;
use crate::secret::Secret;

/// How long anything waits for a connection to Redis before it goes on without.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Connections of one process for short commands. Commands are pipelined, so a
/// few carry much.
const CONNECTIONS_MAX: usize = 8;
/// How long a probe's key is kept.
const PROBE_KEPT_MS: u64 = 1_000;

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

    /// Whether Redis takes writes. A full one, a replica or one that cannot save goes on
    /// answering reads, and everything that we want of it begins with a write.
    ///
    /// # Errors
    /// What it answers, or that it is away, within a second or two. An error with a
    /// [code](redis::RedisError::code) is an answer.
    pub async fn check_writes(&self) -> RedisResult<()> {
        let mut connection = self.pool.get().await.map_err(away)?;
        let probe = self.probe("health");
        let answer = tokio::time::timeout(WAIT_MAX, probe.query_async::<()>(&mut connection));
        answer.await.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no answer in time")))
        })
    }

    /// What an error means, in one sentence for people: where Redis should be, what is the
    /// matter, what to look at.
    #[must_use]
    pub fn explain(&self, error: &RedisError) -> String {
        let address = self.client.get_connection_info().addr();
        let detail = error.detail().unwrap_or_default();
        let is_stranger = error.kind() == ErrorKind::AuthenticationFailed
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"));
        if is_stranger {
            return format!(
                "Redis at {address} does not let us in ({error}): look at the user and the password in REDIS_URL"
            );
        }
        match error.code() {
            Some("ERR") if detail.contains("DB index") => format!(
                "Redis at {address} cannot be used ({detail}): look at the number of the database in REDIS_URL"
            ),
            Some(code) => format!("Redis at {address} refuses writes: {code} {detail}"),
            None => format!(
                "Redis at {address} cannot be reached ({error}): is it running there, and is REDIS_URL right?"
            ),
        }
    }

    /// A write that proves that `purpose` can be served.
    pub(crate) fn probe(&self, purpose: &str) -> Cmd {
        let mut probe = redis::cmd("SET");
        let key = format!("{}:probe:{purpose}", self.prefix);
        probe.arg(key).arg("").arg("PX").arg(PROBE_KEPT_MS);
        probe
    }
}

/// Why the pool has no connection, as Redis' client says it.
pub(crate) fn away(error: PoolError) -> RedisError {
    if let PoolError::Backend(error) = error {
        return error;
    }
    RedisError::from((ErrorKind::Io, "no connection to Redis", error.to_string()))
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redis(prefix {})", self.prefix)
    }
}
