//! Redis: the connection pool and the key prefix. Correctness never depends on Redis; every
//! module that uses it works without it.

pub(crate) mod connector;
pub mod diagnosis;
pub(crate) mod fail_fast;
pub(crate) mod gcra;
pub(crate) mod pool;
mod url;

use std::time::Duration;

pub use redis::ErrorKind;
use redis::{Cmd, RedisError, RedisResult};
use secrecy::ExposeSecret;

use crate::fault::{Fault, error_chain};
use crate::secret::Secret;
use connector::Connector;
pub(crate) use pool::away;
pub use pool::{Pool, PooledConnection};

/// How long Redis may take to answer a check.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// The lifetime of a probe's key in milliseconds.
const PROBE_TTL_MS: u64 = 1_000;

/// Access to Redis.
#[derive(Clone)]
pub struct Redis {
    /// For short commands.
    pub pool: Pool,
    /// For separate connections, such as for blocking reads.
    pub(crate) connector: Connector,
    /// The prefix of every key, so that several installations can share a server.
    pub prefix: String,
}

impl Redis {
    /// Does not connect: connections are made when they are first used, so a process can
    /// start while Redis is away.
    ///
    /// # Errors
    /// A fault if the URL cannot be parsed, or a file that it names cannot be used.
    pub fn new(url: &Secret, prefix: &str) -> Result<Self, Fault> {
        const DOING: &str = "use REDIS_URL";
        let url = url::parse(url.expose_secret()).map_err(|problem| {
            let problem = problem.unwrap_or_else(|| format!("must have the form {}", url::FORM));
            Fault::internal(DOING, format!("it {problem}"))
        })?;
        let connector = Connector::new(url).map_err(|error| Fault::internal(DOING, error))?;
        let pool = pool::new(connector.clone(), probe(prefix, "pool"))
            .map_err(|error| Fault::internal("set up the Redis pool", error))?;
        Ok(Self {
            pool,
            connector,
            prefix: prefix.to_owned(),
        })
    }

    /// What is wrong with the URL of a server, without the password.
    ///
    /// # Errors
    /// What is wrong, as it completes "REDIS_URL …"; `None` if it is no URL of Redis at all.
    pub fn check_url(text: &str) -> Result<(), Option<String>> {
        url::parse(text).map(drop)
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
        let answer = tokio::time::timeout(WAIT_MAX, probe.query_async::<()>(&mut *connection));
        answer.await.unwrap_or_else(|_| {
            let kind = ErrorKind::Io;
            Err(RedisError::from((kind, "no answer in time")))
        })
    }

    /// Explains an error in one sentence for the operator: the address, the cause, and what
    /// to check.
    #[must_use]
    pub fn explain(&self, error: &RedisError) -> String {
        let at = self.connector.address();
        let detail = error.detail().unwrap_or_default();
        let is_login = error.kind() == ErrorKind::AuthenticationFailed
            || matches!(error.code(), Some("NOAUTH" | "WRONGPASS"));
        if is_login {
            let further = if self.connector.has_sentinels() {
                ", and sentinel_user and sentinel_password"
            } else {
                ""
            };
            return format!(
                "Redis at {at} denies access ({error}): check the user and the password in REDIS_URL{further}"
            );
        }
        match error.code() {
            Some("ERR") if detail.contains("DB index") => format!(
                "Redis at {at} cannot be used ({detail}): check the number of the database in REDIS_URL"
            ),
            Some("NOPERM") => format!(
                "Redis at {at} denies the user of REDIS_URL a command or a key (NOPERM {detail}): docs/operations.md, \"Redis\", has the rights that Waypost needs"
            ),
            Some(code) => format!("Redis at {at} refuses writes: {code} {detail}"),
            None => self.explain_connection(error, &at),
        }
    }

    /// Explains why there is no connection.
    fn explain_connection(&self, error: &RedisError, at: &str) -> String {
        if error.kind() == ErrorKind::MasterNameNotFoundBySentinel {
            return format!(
                "Redis at {at} cannot be reached: they know no such master, or it is down; check its name in REDIS_URL"
            );
        }
        let cause = error_chain(error);
        // The library passes on errors of TLS as text only.
        let is_tls = [
            "certificate",
            "received fatal alert",
            "corrupt message",
            "TLS",
        ];
        if is_tls.iter().any(|part| cause.contains(part)) {
            return format!(
                "Redis at {at} cannot be reached over TLS ({cause}): check sslrootcert, sslcert and sslkey in REDIS_URL, and that the server's certificate is for that host"
            );
        }
        let is_closed = ["reset by peer", "roken pipe", "end of file", "closed"];
        if is_closed.iter().any(|part| cause.contains(part)) {
            return format!(
                "Redis at {at} closes the connection ({cause}): does REDIS_URL begin with rediss:// if it uses TLS, and with redis:// if not?"
            );
        }
        format!(
            "Redis at {at} cannot be reached ({cause}): is it running there, and is REDIS_URL right?"
        )
    }

    /// A write that shows whether Redis accepts writes.
    pub(crate) fn probe(&self, purpose: &str) -> Cmd {
        probe(&self.prefix, purpose)
    }
}

fn probe(prefix: &str, purpose: &str) -> Cmd {
    let mut probe = redis::cmd("SET");
    let key = format!("{prefix}:probe:{purpose}");
    probe.arg(key).arg("").arg("PX").arg(PROBE_TTL_MS);
    probe
}

impl std::fmt::Debug for Redis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redis(prefix {})", self.prefix)
    }
}
