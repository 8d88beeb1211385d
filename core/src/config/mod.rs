//! Configuration: environment variables, read once into types. One error reports every
//! mistake. The table in `docs/configuration.md` and `.env.example` are generated from the
//! descriptions in this module.

mod attachments;
mod base_urls;
mod dns;
mod examined;
mod links;
mod monitoring;
mod people;
mod reader;
mod retention;
mod smtp;
mod submission;
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
pub use attachments::AttachmentSettings;
use base_urls::BaseUrls;
pub use dns::DnsSettings;
pub use examined::ExaminedSettings;
pub use links::{LinkSettings, PUBLIC_URL_BYTES_MAX};
pub use monitoring::MonitoringSettings;
pub use people::{OidcSettings, PeopleSettings};
use reader::Reader;
pub use reader::SettingDoc;
pub use retention::{RETENTION_DAYS_MAX, RetentionSettings};
pub use submission::{CertificateFiles, SubmissionSettings};
pub use webhooks::WebhookSettings;

/// How much longer than the provider time-out a worker lease must remain valid at any
/// moment.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

/// All settings of an installation.
#[derive(Debug, Clone)]
pub struct Settings {
    pub environment: Environment,
    pub database_url: Secret,
    /// Maximum size of a process's main connection pools together.
    pub database_connections: u32,
    pub redis_url: Secret,
    /// Prefix of every Redis key.
    pub redis_prefix: String,
    /// Encrypts credentials and addresses.
    pub sealer: Sealer,
    /// Signs links. Its keys are derived from the encryption keys.
    pub signer: Signer,
    pub log: LogSettings,
    pub api: ApiSettings,
    pub attachments: AttachmentSettings,
    pub dns: DnsSettings,
    pub links: LinkSettings,
    pub monitoring: MonitoringSettings,
    pub sending: SendingSettings,
    pub webhooks: WebhookSettings,
    pub smtp: SmtpSettings,
    pub submission: SubmissionSettings,
    pub people: PeopleSettings,
    pub retention: RetentionSettings,
    /// Base URLs that replace the providers' own.
    pub provider_base_urls: HashMap<ProviderType, Url>,
    /// Base URL that replaces Resend's own, which imports read.
    pub resend_base_url: Option<Url>,
    /// Variables that begin with `WAYPOST_` but are not settings, probably misspelt.
    pub unknown: Vec<String>,
}

/// Production refuses insecure values that development accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    Development,
    Production,
}

/// The settings of the log.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// A filter in the syntax of `tracing_subscriber::EnvFilter`.
    pub filter: String,
    pub format: LogFormat,
}

/// The settings of the API process.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    pub listen: SocketAddr,
    /// Connections served at the same time. More wait to be accepted.
    pub connections_max: usize,
    /// Messages in one batch request.
    pub batch_messages_max: usize,
    /// How long requests in flight may take to finish at shutdown.
    pub shutdown: Duration,
    /// How long the API continues to serve between the signal to stop and the shutdown.
    pub shutdown_delay: Duration,
    /// Proxies whose `X-Forwarded-For` header is believed.
    pub trusted_proxies: Networks,
    /// Highest limit on sends that an organization may set for itself.
    pub rate_limit_send_max: u32,
    /// Highest limit on other requests that an organization may set for itself.
    pub rate_limit_other_max: u32,
    /// Requests per minute from one address without a valid API key.
    pub rate_limit_anonymous_per_minute: u32,
}

/// The settings of sending: leases, retries and time-outs.
#[derive(Debug, Clone)]
pub struct SendingSettings {
    /// Jobs that one worker process runs at the same time.
    pub concurrency: usize,
    /// How long a provider may take to answer.
    pub call_timeout: Duration,
    /// How long a worker's leases remain valid after its last heartbeat.
    pub lease: Duration,
    /// How long a worker waits for calls in flight at shutdown.
    pub shutdown: Duration,
    /// Upper bound of the first retry's delay.
    pub retry_first: Duration,
    /// Upper bound of every retry's delay.
    pub retry_longest: Duration,
    /// How long after acceptance a message is retried.
    pub retry_horizon: Duration,
    /// How long a worker waits for a provider event or a look-up result after an attempt
    /// of unknown outcome.
    pub unknown_wait: Duration,
    /// How long after its push a job counts as present in Redis without proof.
    pub relay_grace: Duration,
    /// Interval of the scheduler's short tasks.
    pub scheduler_tick: Duration,
}

/// All mistakes in a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration is invalid:{}", list(.issues))]
pub struct ConfigError {
    /// One per missing or invalid setting. The path is the name of the variable.
    pub issues: Vec<Issue>,
}

fn list(issues: &[Issue]) -> String {
    issues
        .iter()
        .map(|issue| format!("\n  {} {}", issue.path, issue.message))
        .collect()
}

impl Settings {
    /// Reads the settings from the environment of the process.
    ///
    /// # Errors
    /// All mistakes.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_map(&environment())
    }

    /// Reads the settings from a map of variables.
    ///
    /// # Errors
    /// All mistakes.
    pub fn from_map(variables: &HashMap<String, String>) -> Result<Self, ConfigError> {
        let mut reader = Reader::new(variables);
        let settings = Self::read(&mut reader);
        let issues = reader.into_issues();
        match settings {
            Some(settings) if issues.is_empty() => Ok(settings),
            _ => Err(ConfigError { issues }),
        }
    }

    /// Every setting with its default and description, in the order of the code.
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
            "`production` or `development`. Development accepts the published example encryption key, derives `WAYPOST_PUBLIC_URL` from `WAYPOST_LISTEN`, and lets webhooks and SMTP accounts connect to this machine.",
        );
        let database_url = reader.server(
            "DATABASE_URL",
            None,
            "URL of the Postgres database: `postgres://user:password@host:port/database`. Parameters such as `?sslmode=verify-full&sslrootcert=/etc/waypost/ca.pem` may follow: see \"PostgreSQL\" in `docs/operations.md`. Required.",
            "postgres://user:password@host:port/database",
            db::check_url,
        );
        let database_connections = reader.parse(
            "WAYPOST_DATABASE_CONNECTIONS",
            "16",
            "Maximum number of Postgres connections in the main pools of one process. An API process uses at least 7, whatever the value. Each process opens up to 6 more, for notifications, liveness checks and webhook delivery.",
            1..=1000,
        );
        let (redis_url, redis_prefix) = read_redis(reader);
        let (sealer, signer) = read_keys(reader, environment).unzip();
        let log = read_log(reader);
        let api = read_api(reader);
        let attachments = attachments::read(reader);
        let dns = dns::read(reader);
        let links = links::read(reader, environment, api.as_ref());
        let monitoring = monitoring::read(reader);
        let sending = read_sending(reader);
        let webhooks = webhooks::read(reader, environment);
        let smtp = smtp::read(reader, environment, links.as_ref());
        let submission = submission::read(reader, environment, links.as_ref());
        let people = people::read(reader, environment);
        let retention = retention::read(reader);
        let base_urls = BaseUrls::read(reader);
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
            attachments: attachments?,
            dns: dns?,
            links: links?,
            monitoring,
            sending: sending?,
            webhooks: webhooks?,
            smtp,
            submission: submission?,
            people,
            retention,
            provider_base_urls: base_urls.providers,
            resend_base_url: base_urls.resend,
            unknown: reader.unknown(),
        })
    }

    /// Logs a warning for every unknown variable that begins with `WAYPOST_`.
    pub fn warn_of_unknown(&self) {
        for name in &self.unknown {
            tracing::warn!(name, "Ignored an unknown setting");
        }
    }
}

/// The variables of the process.
fn environment() -> HashMap<String, String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the environment"
    )]
    let variables = std::env::vars_os();
    // Variables of other programs need not be valid UTF-8.
    let variables = variables.filter_map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        Some((name.into_string().ok()?, value))
    });
    variables.collect()
}

/// The URL of the Redis server, and the prefix of every key.
fn read_redis(reader: &mut Reader<'_>) -> (Option<Secret>, String) {
    let redis_url = reader.server(
        "REDIS_URL",
        Some("redis://127.0.0.1:6379"),
        "URL of the Redis server: `redis://user:password@host:port/number`, `rediss://…` for TLS, or `redis+sentinel://user:password@host:port,host:port/master/number`. Parameters such as `?sslrootcert=/etc/waypost/ca.pem` may follow: see \"Redis\" in `docs/operations.md`.",
        "redis://user:password@host:port/number",
        Redis::check_url,
    );
    let redis_prefix = reader.text(
        "WAYPOST_REDIS_PREFIX",
        "waypost",
        "Prefix of every Redis key. Installations that share a Redis server need different prefixes.",
    );
    (redis_url, redis_prefix)
}

fn read_keys(
    reader: &mut Reader<'_>,
    environment: Option<Environment>,
) -> Option<(Sealer, Signer)> {
    const NAME: &str = "WAYPOST_ENCRYPTION_KEYS";
    let default = (environment == Some(Environment::Development)).then_some(EXAMPLE_KEYS);
    let text = reader.given(NAME, "", "Keys that encrypt provider credentials and addresses and sign links: `id:base64 of 32 bytes`, separated by commas. The first key encrypts and signs; all keys decrypt and verify. Generate one with `openssl rand -base64 32`. Required in production.");
    let Some(text) = text.as_deref().or(default) else {
        reader.reject(NAME, "is required: set id:base64 of 32 random bytes");
        return None;
    };
    let is_example = text.contains(
        EXAMPLE_KEYS
            .split_once(':')
            .map_or(EXAMPLE_KEYS, |(_, key)| key),
    );
    if is_example && environment != Some(Environment::Development) {
        reader.reject(
            NAME,
            "must not be the published example key outside development",
        );
        return None;
    }
    let sealer = Sealer::parse(text, Ids::new(Clock::system()));
    match sealer.and_then(|sealer| Ok((sealer, Signer::parse(text)?))) {
        Ok(keys) => Some(keys),
        Err(message) => {
            reader.reject(NAME, &format!("is invalid: {message}"));
            None
        }
    }
}

fn read_log(reader: &mut Reader<'_>) -> Option<LogSettings> {
    let filter = reader.parse_any("WAYPOST_LOG", "info", "Log level: `error`, `warn`, `info`, `debug` or `trace`, or levels per module such as `info,waypost_core=debug`. Libraries never log below `info`, because their debug output contains headers and addresses.", |text| {
        telemetry::is_filter(text).then(|| text.to_owned())
    });
    let format = reader.choice(
        "WAYPOST_LOG_FORMAT",
        "text",
        &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        "Format of log lines: `text` for people, `json` for log collectors.",
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
        "Address and port on which the API listens.",
        |text| text.parse().ok(),
    );
    let connections_max = reader.parse(
        "WAYPOST_API_CONNECTIONS_MAX",
        "4096",
        "Maximum number of client connections that one API process serves at the same time. Further connections wait to be accepted. Keep it a few hundred below the process's limit on open files.",
        1..=1_000_000,
    );
    let batch_messages_max = reader.parse(
        "WAYPOST_BATCH_MESSAGES_MAX",
        "1000",
        "Maximum number of messages in one batch request.",
        1..=10_000,
    );
    let shutdown = reader.duration(
        "WAYPOST_API_SHUTDOWN",
        "10s",
        "How long requests in flight may take to finish when the API stops.",
    );
    let shutdown_delay = reader.optional(
        "WAYPOST_API_SHUTDOWN_DELAY",
        "How long the API continues to serve requests after the signal to stop, such as `5s`. Meanwhile `/readyz` answers 503, so that load balancers stop routing to it. Unset: no delay.",
        |text| humantime::parse_duration(text).ok(),
    );
    let trusted_proxies = reader.optional(
        "WAYPOST_TRUSTED_PROXIES",
        "Proxies in front of the API: addresses and networks (CIDR), separated by commas. The API believes the `X-Forwarded-For` header of these proxies only.",
        |text| text.parse().ok(),
    );
    let rate_limit_send_max = reader.parse(
        "WAYPOST_RATE_LIMIT_SEND_MAX",
        "100",
        "Highest rate limit on sends, per second, that an organization may set for itself.",
        1..=1_000_000,
    );
    let rate_limit_other_max = reader.parse(
        "WAYPOST_RATE_LIMIT_OTHER_MAX",
        "1000",
        "Highest rate limit on other requests, per second, that an organization may set for itself.",
        1..=1_000_000,
    );
    let rate_limit_anonymous_per_minute = reader.parse(
        "WAYPOST_RATE_LIMIT_ANONYMOUS_PER_MINUTE",
        "20",
        "Maximum number of requests per minute from one IP address without a valid API key. 1000000 removes the limit.",
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
        "256",
        "Maximum number of jobs that one worker process runs at the same time.",
        1..=10_000,
    );
    let call_timeout = reader.duration(
        "WAYPOST_PROVIDER_TIMEOUT",
        "30s",
        "How long a provider may take to answer a call.",
    );
    let lease = reader.duration("WAYPOST_WORKER_LEASE", "60s", "How long a worker's leases remain valid after its last heartbeat. If a worker dies, its jobs wait this long. At least 1.5 × (`WAYPOST_PROVIDER_TIMEOUT` + 2s).");
    let shutdown = reader.duration(
        "WAYPOST_WORKER_SHUTDOWN",
        "35s",
        "How long a worker waits for calls in flight when it stops. Must be longer than `WAYPOST_PROVIDER_TIMEOUT`.",
    );
    let retry_first = reader.duration(
        "WAYPOST_RETRY_FIRST",
        "5s",
        "Upper bound of the delay before the first retry. It doubles with every retry. The delay is chosen at random below the bound (full jitter).",
    );
    let retry_longest = reader.duration(
        "WAYPOST_RETRY_LONGEST",
        "30min",
        "Largest upper bound of the delay before a retry.",
    );
    let retry_horizon = reader.duration(
        "WAYPOST_RETRY_HORIZON",
        "24h",
        "How long after acceptance a message is retried. After that it fails.",
    );
    let unknown_wait = reader.duration("WAYPOST_UNKNOWN_WAIT", "15min", "How long a worker waits for a provider event or a look-up result after the provider's answer was lost, before it sends the message once more. Applies to routing rules with `onUnknown: wait` and to messages without a rule.");
    let relay_grace = reader.duration(
        "WAYPOST_RELAY_GRACE",
        "15s",
        "How long after its push a job may be missing from Redis before the scheduler pushes it again.",
    );
    let scheduler_tick = reader.duration(
        "WAYPOST_SCHEDULER_TICK",
        "1s",
        "How often the scheduler looks for jobs that Redis lost and for expired leases.",
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
    // A worker sends a heartbeat every third of the lease, so two thirds always remain.
    if settings.lease * 2 / 3 < settings.call_timeout + LEASE_MARGIN {
        reader.reject(
            "WAYPOST_WORKER_LEASE",
            "must be at least 1.5 × (WAYPOST_PROVIDER_TIMEOUT + 2s)",
        );
    }
    if settings.shutdown <= settings.call_timeout {
        reader.reject(
            "WAYPOST_WORKER_SHUTDOWN",
            "must be longer than WAYPOST_PROVIDER_TIMEOUT",
        );
    }
    Some(settings)
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
    fn unknown_variables_with_our_prefix_are_listed() {
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
