//! Redis: the connection pool and the key prefix. Correctness never depends on Redis; every
//! module that uses it works without it.

pub mod diagnosis;
pub(crate) mod fail_fast;
pub(crate) mod gcra;

use std::time::Duration;

use deadpool_redis::{Config, Pool, PoolConfig, PoolError, Runtime, Timeouts};
pub use redis::ErrorKind;
use redis::{Cmd, RedisError, RedisResult};
use secrecy::ExposeSecret;

use crate::fault::Fault;
use crate::secret::Secret;

/// How long a caller waits for a connection before it continues without Redis.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Connections of one process for short commands. A few suffice, since commands are
/// pipelined.
const CONNECTIONS_MAX: usize = 8;
/// The lifetime of a probe's key in milliseconds.
const PROBE_TTL_MS: u64 = 1_000;

/// Access to Redis.
#[derive(Clone)]
pub struct Redis {
    /// For short commands.
    pub pool: Pool,
    /// For separate connections, such as for blocking reads.
    pub client: redis::Client,
    /// The prefix of every key, so that several installations can share a server.
    pub prefix: String,
}

impl Redis {
    /// Does not connect: connections are made when they are first used, so a process can
    /// start while Redis is away.
    ///
    /// # Errors
    /// A fault if the URL cannot be parsed.
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

    /// Whether a text is the URL of a Redis server.
    #[must_use]
    pub fn is_url(text: &str) -> bool {
        redis::Client::open(text).is_ok()
    }

    /// Checks that Redis accepts writes, within two seconds. A Redis that is full, a replica
    /// or unable to save still answers reads, but everything here needs writes.
    ///
    /// # Errors
    /// The error that Redis answered, with a [code](redis::RedisError::code), or that Redis
    /// is away, without one.
    pub async fn check_writes(&self) -> RedisResult<()> {
        let mut connection = self.pool.get().await.map_err(away)?;
        let probe = self.probe("health");
        let answer = tokio::time::timeout(WAIT_MAX, probe.query_async::<()>(&mut connection));
        answer.await.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no answer in time")))
        })
    }

    /// Explains an error in one sentence for the operator: the address, the cause, and what
    /// to check.
    #[must_use]
    pub fn explain(&self, error: &RedisError) -> String {
        let address = self.client.get_connection_info().addr();
        let detail = error.detail().unwrap_or_default();
        let is_login = error.kind() == ErrorKind::AuthenticationFailed
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"));
        if is_login {
            return format!(
                "Redis at {address} denies access ({error}): check the user and the password in REDIS_URL"
            );
        }
        match error.code() {
            Some("ERR") if detail.contains("DB index") => format!(
                "Redis at {address} cannot be used ({detail}): check the number of the database in REDIS_URL"
            ),
            Some(code) => format!("Redis at {address} refuses writes: {code} {detail}"),
            None => format!(
                "Redis at {address} cannot be reached ({error}): is it running there, and is REDIS_URL right?"
            ),
        }
    }

    /// A write that shows whether Redis accepts writes.
    pub(crate) fn probe(&self, purpose: &str) -> Cmd {
        let mut probe = redis::cmd("SET");
        let key = format!("{}:probe:{purpose}", self.prefix);
        probe.arg(key).arg("").arg("PX").arg(PROBE_TTL_MS);
        probe
    }
}

/// The error of the pool as an error of the client library.
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
