//! Facts about the Redis server, for `waypost-api doctor`. Only facts: the command judges them.

use std::collections::HashMap;

use redis::{ErrorKind, RedisError, RedisResult, cmd};
use tokio::time::timeout;

use super::{Redis, WAIT_MAX, away};

/// A server and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisFacts {
    /// Such as `7.0.15`. Valkey states the version of Redis that it is compatible with.
    pub version: String,
    /// What happens when its memory is full, such as `noeviction`.
    pub eviction_policy: String,
}

impl RedisFacts {
    /// Whether the version is at least this one.
    #[must_use]
    pub fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut numbers = self.version.split('.').map(|part| part.parse().ok());
        let mut next = || numbers.next().flatten().unwrap_or(0_u32);
        (next(), next()) >= (major, minor)
    }
}

impl Redis {
    /// Reads the facts; `None` if Redis does not tell them, for example because the user may not
    /// run INFO.
    ///
    /// # Errors
    /// The error of the connection.
    pub async fn facts(&self) -> RedisResult<Option<RedisFacts>> {
        let mut connection = self.pool.get().await.map_err(away)?;
        let info = cmd("INFO");
        let answer = timeout(WAIT_MAX, info.query_async::<String>(&mut *connection)).await;
        let text = match answer {
            Ok(Ok(text)) => text,
            Ok(Err(error)) if error.code().is_some() => return Ok(None),
            Ok(Err(error)) => return Err(error),
            Err(_late) => return Err(RedisError::from((ErrorKind::Io, "no answer in time"))),
        };
        Ok(parse(&text))
    }
}

fn parse(text: &str) -> Option<RedisFacts> {
    let fields: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .collect();
    Some(RedisFacts {
        version: (*fields.get("redis_version")?).to_owned(),
        eviction_policy: (*fields.get("maxmemory_policy")?).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_are_read_from_the_answer_to_info() {
        let text = "# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n";
        let facts = parse(text).unwrap();
        assert_eq!(facts.eviction_policy, "allkeys-lru");
        for (version, is_enough) in [
            ("7.0.15", true),
            ("6.2.0", true),
            ("6.0.16", false),
            ("5.0.14", false),
            ("10.0.0", true),
        ] {
            let version = version.to_owned();
            let facts = RedisFacts {
                version,
                ..facts.clone()
            };
            assert_eq!(facts.is_at_least(6, 2), is_enough, "{}", facts.version);
        }
        assert_eq!(parse("role:master\r\n"), None);
    }
}
