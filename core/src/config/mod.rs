//! Configuration: read once, from environment variables, into types. Every
//! mistake is reported in one message. The list of settings is also where the
//! table in `docs/configuration.md` and `.env.example` come from.

mod links;
mod reader;
mod retention;
mod smtp;
mod webhooks;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use url::Url;

use crate::clock::Clock;
use crate::crypto::seal::{EXAMPLE_KEYS, Sealer};
use crate::crypto::sign::Signer;
use crate::db;
use crate::ids::Ids;
use crate::issue::Issue;
use crate::network::Networks;
use crate::provider::kind::ProviderType;
use crate::redis::Redis;
use crate::secret::Secret;
use crate::telemetry::{self, LogFormat};

pub use crate::provider::smtp::settings::SmtpSettings;
pub use links::{LinkSettings, PUBLIC_URL_BYTES_MAX};
use reader::Reader;
pub use reader::SettingDoc;
pub use retention::{RETENTION_DAYS_MAX, RetentionSettings};
pub use webhooks::WebhookSettings;

/// Time that a provider call may take beyond its own time-out before the lease
/// that covers it could end: the margin that the configuration insists on.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Development relaxes what production refuses.
    pub environment: Environment,
    pub database_url: Secret,
    /// How many connections one process holds to it at the most.
    pub database_connections: u32,
    pub redis_url: Secret,
    /// Put before every Redis key.
    pub redis_prefix: String,
    /// What seals credentials and addresses.
    pub sealer: Sealer,
    /// What signs links; by keys derived from those that seal.
    pub signer: Signer,
    /// Where and how to log.
    pub log: LogSettings,
    pub api: ApiSettings,
    /// The worker and scheduler processes' health listener, where wanted.
    pub health_listen: Option<SocketAddr>,
    pub links: LinkSettings,
    pub sending: SendingSettings,
    pub webhooks: WebhookSettings,
    pub smtp: SmtpSettings,
    /// How long messages are kept.
    pub retention: RetentionSettings,
    /// Base URLs that stand in for the providers' own: one for all, or per type.
    pub provider_base_urls: HashMap<ProviderType, Url>,
    /// Variables that are named like settings and are none: misspelt, most likely.
    pub unknown: Vec<String>,
}

/// Where the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    Development,
    Production,
}

/// Where and how to log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// A filter as `tracing_subscriber::EnvFilter` reads it.
    pub filter: String,
    pub format: LogFormat,
}

/// The API process.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// The address that it serves on.
    pub listen: SocketAddr,
    /// Connections that it serves at the same time; further ones wait.
    pub connections_max: usize,
    /// Messages in one batch at the most.
    pub batch_messages_max: usize,
    /// How long requests in flight may take to end when the process is told to.
    pub shutdown: Duration,
    /// How long it serves on as before when it is told to stop.
    pub shutdown_delay: Duration,
    /// Proxies in front of the API, whose word on the client's address counts.
    pub trusted_proxies: Networks,
    /// The most sends per second that an organization may give itself.
    pub rate_limit_send_max: u32,
    /// The most other requests per second that an organization may give itself.
    pub rate_limit_other_max: u32,
    /// Requests per minute that one address may make without a valid key.
    pub rate_limit_anonymous_per_minute: u32,
}

/// Sending: leases, retries, pace.
#[derive(Debug, Clone)]
pub struct SendingSettings {
    /// Jobs that one worker process runs at the same time.
    pub concurrency: usize,
    /// The longest a provider may take to answer.
    pub call_timeout: Duration,
    /// How long a worker's leases outlive its last heartbeat.
    pub lease: Duration,
    /// How long a worker that is told to stop waits for calls in flight.
    pub shutdown: Duration,
    /// The upper bound of the first retry's wait; it doubles from there.
    pub retry_first: Duration,
    /// The upper bound that the waits grow to.
    pub retry_longest: Duration,
    /// How long after acceptance a message is tried again.
    pub retry_horizon: Duration,
    /// How long evidence is awaited after an attempt of unknown outcome.
    pub unknown_wait: Duration,
    /// How long a job may take from its push before the relay asks whether Redis
    /// lost it.
    pub relay_grace: Duration,
    /// How often the scheduler's short tasks run.
    pub scheduler_tick: Duration,
}

/// All mistakes of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration is not usable:{}", list(.issues))]
pub struct ConfigError {
    /// One per setting that is wrong or missing; the path is the variable's name.
    pub issues: Vec<Issue>,
}

fn list(issues: &[Issue]) -> String {
    issues
        .iter()
        .map(|issue| format!("\n  {} {}", issue.path, issue.message))
        .collect()
}

impl Settings {
    /// Reads the process's environment.
    ///
    /// # Errors
    /// Every mistake in one error.
    pub fn from_env() -> Result<Self, ConfigError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that reads the environment"
        )]
        let variables = std::env::vars_os();
        // What is not ours may be written in whatever way.
        let variables = variables.filter_map(|(name, value)| {
            let value = value.to_string_lossy().into_owned();
            Some((name.into_string().ok()?, value))
        });
        Self::from_map(&variables.collect())
    }

    /// Reads the settings from a map of variables.
    ///
    /// # Errors
    /// Every mistake in one error.
    pub fn from_map(variables: &HashMap<String, String>) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(variables);
        let settings = Self::read(&mut reader);
        let issues = reader.into_issues();
        match settings {
            Some(settings) if issues.is_empty() => Ok(settings),
            _ => Err(ConfigError { issues }),
        }
    }

    /// Every setting with its default and meaning, in the order of the code.
    #[must_use]
    pub fn reference() -> Vec<SettingDoc> {
        let variables = HashMap::new();
        let mut reader = Reader::new(&variables);
        let _settings = Self::read(&mut reader);
        reader.into_docs()
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let environment = reader.choice(
            "WAYPOST_ENV",
            "production",
            &[
                ("production", Environment::Production),
                ("development", Environment::Development),
            ],
            "`development` relaxes what production refuses: the example encryption key.",
        );
        let database_url = reader.server(
            "DATABASE_URL",
            None,
            "Postgres, `postgres://user:password@host:port/database`. Required.",
            "postgres://user:password@host:port/database",
            db::is_url,
        );
        let database_connections = reader.parse(
            "WAYPOST_DATABASE_CONNECTIONS",
            "16",
            "Connections to Postgres that one process works with at the most, an API with seven at the least. Up to six more listen, keep watch or send webhooks.",
            1..=1000,
        );
        let redis_url = reader.server(
            "REDIS_URL",
            Some("redis://127.0.0.1:6379"),
            "Redis, `redis://host:port/number`.",
            "redis://user:password@host:port/number",
            Redis::is_url,
        );
        let redis_prefix = reader.text(
            "WAYPOST_REDIS_PREFIX",
            "waypost",
            "Put before every Redis key, so that installations may share a server.",
        );
        let (sealer, signer) = read_keys(reader, environment).unzip();
        let log = read_log(reader);
        let api = read_api(reader);
        let links = links::read(reader, environment, api.as_ref());
        let health_listen = reader.optional(
            "WAYPOST_HEALTH_LISTEN",
            "Address on which a worker or scheduler serves `/healthz` and `/readyz`.",
            |text| text.parse().ok(),
        );
        let sending = read_sending(reader);
        let webhooks = webhooks::read(reader, environment);
        let smtp = smtp::read(reader, environment, links.as_ref());
        let retention = retention::read(reader);
        let provider_base_urls = read_base_urls(reader);
        Some(Self {
            environment: environment?,
            database_url: database_url?,
            database_connections: database_connections?,
            redis_url: redis_url?,
            redis_prefix,
            sealer: sealer?,
            signer: signer?,
            log: log?,
            api: api?,
            health_listen,
            links: links?,
            sending: sending?,
            webhooks: webhooks?,
            smtp,
            retention,
            provider_base_urls,
            unknown: reader.unknown(),
        })
    }

    /// Logs which variables are named like settings and are none.
    pub fn warn_of_unknown(&self) {
        for name in &self.unknown {
            tracing::warn!(name, "There is no such setting");
        }
    }
}

fn read_keys(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
) -> Option<(Sealer, Signer)> {
    const NAME: &str = "WAYPOST_ENCRYPTION_KEYS";
    let default = (environment == Some(Environment::Development)).then_some(EXAMPLE_KEYS);
    let text = reader.given(NAME, "", "Keys that seal credentials and addresses and sign links, `id:base64 of 32 bytes`, separated by commas; the first seals and signs, all open and verify. Required in production. Make one with `openssl rand -base64 32`.");
    let Some(text) = text.as_deref().or(default) else {
        reader.fault(NAME, "is required: set id:base64 of 32 random bytes");
        return None;
    };
    let is_example = text.contains(
        EXAMPLE_KEYS
            .split_once(':')
            .map_or(EXAMPLE_KEYS, |(_, key)| key),
    );
    if is_example && environment != Some(Environment::Development) {
        reader.fault(
            NAME,
            "must not be the published example key outside development",
        );
        return None;
    }
    let sealer = Sealer::parse(text, Ids::new(Clock::system()));
    match sealer.and_then(|sealer| Ok((sealer, Signer::parse(text)?))) {
        Ok(keys) => Some(keys),
        Err(message) => {
            reader.fault(NAME, &format!("is not usable: {message}"));
            None
        }
    }
}

fn read_log(reader: &mut Reader<'_>) -> Option<LogSettings> {
    let filter = reader.parse_any("WAYPOST_LOG", "info", "What to log: `error`, `warn`, `info`, `debug`, `trace`, or per module as `info,waypost_core=debug`. Libraries are heard from `info` on, whatever is set: below that they log headers and addresses.", |text| {
        telemetry::is_filter(text).then(|| text.to_owned())
    });
    let format = reader.choice(
        "WAYPOST_LOG_FORMAT",
        "text",
        &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        "`text` for people, `json` for collectors.",
    );
    Some(LogSettings {
        filter: filter?,
        format: format?,
    })
}

fn read_api(reader: &mut Reader<'_>) -> Option<ApiSettings> {
    let listen = reader.parse_any(
        "WAYPOST_LISTEN",
        "0.0.0.0:8080",
        "Address that the API serves on.",
        |text| text.parse().ok(),
    );
    let connections_max = reader.parse(
        "WAYPOST_API_CONNECTIONS_MAX",
        "4096",
        "Connections that one API process serves at the same time; further ones wait to be accepted. Keep it some hundreds below the process's limit of open files.",
        1..=1_000_000,
    );
    let batch_messages_max = reader.parse(
        "WAYPOST_BATCH_MESSAGES_MAX",
        "1000",
        "Messages in one batch at the most.",
        1..=10_000,
    );
    let shutdown = reader.duration(
        "WAYPOST_API_SHUTDOWN",
        "10s",
        "How long requests in flight may take to end when the API is told to stop.",
    );
    let shutdown_delay = reader.optional(
        "WAYPOST_API_SHUTDOWN_DELAY",
        "How long an API that is told to stop serves on as before, while its `/readyz` is 503, such as 5s. For proxies that go by that; not at all where nothing is said.",
        |text| humantime::parse_duration(text).ok(),
    );
    let trusted_proxies = reader.optional(
        "WAYPOST_TRUSTED_PROXIES",
        "Proxies in front of the API, addresses and networks (CIDR) separated by commas. What these say in `X-Forwarded-For` is believed, and nobody else.",
        |text| text.parse().ok(),
    );
    let rate_limit_send_max = reader.parse(
        "WAYPOST_RATE_LIMIT_SEND_MAX",
        "100",
        "The most sends per second that an organization may set for itself.",
        1..=1_000_000,
    );
    let rate_limit_other_max = reader.parse(
        "WAYPOST_RATE_LIMIT_OTHER_MAX",
        "1000",
        "The most other requests per second that an organization may set for itself.",
        1..=1_000_000,
    );
    let rate_limit_anonymous_per_minute = reader.parse(
        "WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE",
        "20",
        "Requests per minute that one address may make without a valid API key; the largest, 1000000, lifts the bound.",
        1..=1_000_000,
    );
    Some(ApiSettings {
        listen: listen?,
        connections_max: connections_max?,
        batch_messages_max: batch_messages_max?,
        shutdown: shutdown?,
        shutdown_delay: shutdown_delay.unwrap_or_default(),
        trusted_proxies: trusted_proxies.unwrap_or_default(),
        rate_limit_send_max: rate_limit_send_max?,
        rate_limit_other_max: rate_limit_other_max?,
        rate_limit_anonymous_per_minute: rate_limit_anonymous_per_minute?,
    })
}

fn read_sending(reader: &mut Reader<'_>) -> Option<SendingSettings> {
    let concurrency = reader.parse(
        "WAYPOST_WORKER_CONCURRENCY",
        "64",
        "Jobs that one worker runs at the same time.",
        1..=10_000,
    );
    let call_timeout = reader.duration(
        "WAYPOST_PROVIDER_TIMEOUT",
        "30s",
        "The longest a provider may take to answer.",
    );
    let lease = reader.duration("WAYPOST_WORKER_LEASE", "60s", "How long a worker's leases outlive its last heartbeat. At least one and a half times as long as the provider time-out and 2 s together.");
    let shutdown = reader.duration(
        "WAYPOST_WORKER_SHUTDOWN",
        "35s",
        "How long a worker that is told to stop waits for calls in flight. Longer than the provider time-out.",
    );
    let retry_first = reader.duration(
        "WAYPOST_RETRY_FIRST",
        "5s",
        "Upper bound of the first retry's wait; it doubles from there, with full jitter.",
    );
    let retry_longest = reader.duration(
        "WAYPOST_RETRY_LONGEST",
        "30min",
        "Upper bound that the waits grow to.",
    );
    let retry_horizon = reader.duration(
        "WAYPOST_RETRY_HORIZON",
        "24h",
        "How long after acceptance a message is tried again.",
    );
    let unknown_wait = reader.duration("WAYPOST_UNKNOWN_WAIT", "15min", "How long evidence is awaited when a provider's answer was lost, before the message is sent once more. For rules with `onUnknown: wait`, and for messages without a rule.");
    let relay_grace = reader.duration(
        "WAYPOST_RELAY_GRACE",
        "15s",
        "How long after its push a job may be missing before it is pushed to Redis again.",
    );
    let scheduler_tick = reader.duration(
        "WAYPOST_SCHEDULER_TICK",
        "1s",
        "How often the scheduler looks for work that Redis lost and for leases that ended.",
    );
    let settings = SendingSettings {
        concurrency: concurrency?,
        call_timeout: call_timeout?,
        lease: lease?,
        shutdown: shutdown?,
        retry_first: retry_first?,
        retry_longest: retry_longest?,
        retry_horizon: retry_horizon?,
        unknown_wait: unknown_wait?,
        relay_grace: relay_grace?,
        scheduler_tick: scheduler_tick?,
    };
    // Heartbeats come at a third of the lease, so two thirds of it are always left.
    if settings.lease * 2 / 3 < settings.call_timeout + LEASE_MARGIN {
        reader.fault(
            "WAYPOST_WORKER_LEASE",
            "must be at least one and a half times as long as WAYPOST_PROVIDER_TIMEOUT and 2s together",
        );
    }
    if settings.shutdown <= settings.call_timeout {
        reader.fault(
            "WAYPOST_WORKER_SHUTDOWN",
            "must be longer than WAYPOST_PROVIDER_TIMEOUT",
        );
    }
    Some(settings)
}

fn read_base_urls(reader: &mut Reader<'_>) -> HashMap<ProviderType, Url> {
    let parse = |text: &str| {
        Url::parse(text)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    let all = reader.optional(
        "WAYPOST_PROVIDER_BASE_URL",
        "Stands in for every provider's own base URL: for development, with the simulator.",
        parse,
    );
    let mut urls = HashMap::new();
    for (kind, name) in [
        (ProviderType::Sendgrid, "WAYPOST_SENDGRID_BASE_URL"),
        (ProviderType::Postmark, "WAYPOST_POSTMARK_BASE_URL"),
        (ProviderType::Mailgun, "WAYPOST_MAILGUN_BASE_URL"),
        (ProviderType::Ses, "WAYPOST_SES_BASE_URL"),
    ] {
        let own = reader.optional(name, "The same for one provider alone.", parse);
        if let Some(url) = own.or_else(|| all.clone()) {
            urls.insert(kind, url);
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
        let variables = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::from_map(&variables.collect())
    }

    #[test]
    fn every_mistake_is_reported_at_once() {
        let error = read(&[
            ("WAYPOST_ENV", "staging"),
            ("REDIS_URL", "localhost:6379"),
            ("WAYPOST_LOG", "warning"),
            ("WAYPOST_LISTEN", "nowhere"),
            ("WAYPOST_PROVIDER_TIMEOUT", "soon"),
            ("WAYPOST_WORKER_CONCURRENCY", "0"),
        ])
        .unwrap_err();
        let names: Vec<&str> = error
            .issues
            .iter()
            .map(|issue| issue.path.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "WAYPOST_ENV",
                "DATABASE_URL",
                "REDIS_URL",
                "WAYPOST_ENCRYPTION_KEYS",
                "WAYPOST_LOG",
                "WAYPOST_LISTEN",
                "WAYPOST_PUBLIC_URL",
                "WAYPOST_WORKER_CONCURRENCY",
                "WAYPOST_PROVIDER_TIMEOUT",
            ]
        );
    }

    #[test]
    fn what_is_named_like_a_setting_and_is_none_is_known() {
        let settings = read(&[
            ("WAYPOST_ENV", "development"),
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_RETENTION_DAY", "30"),
            ("WAYPOST_WORKER_CONCURENCY", "256"),
            ("WAYPOST_LOG", "info"),
            ("WAYPOST_IMAGE", "waypost:local"),
            ("WAYPOST_TEST_LOG", "debug"),
            ("PATH", "/usr/bin"),
        ])
        .unwrap();
        assert_eq!(
            settings.unknown,
            ["WAYPOST_RETENTION_DAY", "WAYPOST_WORKER_CONCURENCY"]
        );
    }

    #[test]
    fn the_example_key_is_refused_outside_development() {
        let database = ("DATABASE_URL", "postgres://localhost/waypost");
        let key = ("WAYPOST_ENCRYPTION_KEYS", EXAMPLE_KEYS);
        assert!(read(&[database, key]).is_err());
        assert!(read(&[database, key, ("WAYPOST_ENV", "development")]).is_ok());
        assert!(read(&[database, ("WAYPOST_ENV", "development")]).is_ok());
    }

    #[test]
    fn a_lease_shorter_than_the_longest_call_is_refused() {
        let error = read(&[
            ("DATABASE_URL", "postgres://localhost/waypost"),
            ("WAYPOST_ENV", "development"),
            ("WAYPOST_WORKER_LEASE", "47s"),
            ("WAYPOST_WORKER_SHUTDOWN", "30s"),
        ])
        .unwrap_err();
        assert_eq!(error.issues.len(), 2);
        assert_eq!(error.issues[0].path, "WAYPOST_WORKER_LEASE");
        assert_eq!(error.issues[1].path, "WAYPOST_WORKER_SHUTDOWN");
    }
}
