//! Calls endpoints: one POST, with a time limit and a limit on the bytes read of the
//! answer, to addresses that the guard allows (`http::guarded`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::clock::{Clock, Timestamp};
use crate::config::WebhookSettings;
use crate::fault::Fault;
use crate::http::guarded::{GuardedClient, GuardedError, Resolver, SystemResolver};
use crate::http::{HttpBody, HttpReply, HttpRequest, HttpSettings};
use crate::network::guard::AddressGuard;

/// Bytes of an answer that are read and stored.
pub const ANSWER_BYTES_MAX: usize = 1024;
/// The time that an endpoint has to answer a probe.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections kept per host: as many as its concurrent calls.
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Concurrent DNS lookups of a process: four times the concurrent calls of one
/// organization in a worker.
const DNS_LOOKUPS_MAX: usize = 256;
/// The longest `Retry-After` that is honoured.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(48);
const USER_AGENT_VALUE: HeaderValue =
    HeaderValue::from_static(concat!("waypost-webhooks/", env!("CARGO_PKG_VERSION")));

/// Calls endpoints. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct WebhookClient {
    client: GuardedClient,
    clock: Clock,
}

/// The answer of an endpoint.
#[derive(Debug, Clone)]
pub struct WebhookReply {
    pub status: u16,
    /// The beginning of the body, as text without NUL.
    pub answer: String,
    /// The wait that it asks for (`Retry-After`, RFC 9110, 10.2.3).
    pub retry_after: Option<Duration>,
    /// From the call to the answer.
    pub duration: Duration,
}

impl WebhookReply {
    /// Whether the endpoint accepted the event.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why an endpoint did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct WebhookFailure {
    /// The reason, without the URL.
    pub reason: String,
    /// Whether no address of the host may be called.
    pub refused_address: bool,
    /// From the call to the failure.
    pub duration: Duration,
}

impl WebhookClient {
    /// A client that uses the system's DNS resolver.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn new(settings: &WebhookSettings, clock: Clock) -> Result<Self, Fault> {
        Self::with_resolver(
            settings,
            clock,
            Arc::new(SystemResolver::new(DNS_LOOKUPS_MAX)),
        )
    }

    /// A client with another DNS resolver.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn with_resolver(
        settings: &WebhookSettings,
        clock: Clock,
        resolver: Arc<dyn Resolver>,
    ) -> Result<Self, Fault> {
        let guard = AddressGuard::new(settings.allowed.clone());
        let http = HttpSettings {
            connect_timeout: settings.call_timeout,
            answer_timeout: settings.call_timeout,
            idle_connections_max: IDLE_CONNECTIONS_MAX,
            idle_timeout: Duration::from_secs(30),
            answer_bytes_max: ANSWER_BYTES_MAX,
        };
        let client = GuardedClient::new(&http, guard, resolver)?;
        Ok(Self { client, clock })
    }

    /// Posts `body` and reads the beginning of the answer.
    ///
    /// # Errors
    /// Why there was no answer.
    pub async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<WebhookReply, WebhookFailure> {
        let started = Instant::now();
        let request = request(Method::POST, url, headers, HttpBody::Bytes(body));
        let reply = self.client.call(request).await;
        let duration = started.elapsed();
        match reply {
            Ok(reply) => Ok(self.to_reply(reply, duration)),
            Err(error) => Err(WebhookFailure {
                reason: error.to_string(),
                refused_address: error == GuardedError::Refused,
                duration,
            }),
        }
    }

    /// Checks that a server answers HTTP at `url`, with any status. Uses HEAD, and an
    /// empty POST if the server cuts HEAD off.
    ///
    /// # Errors
    /// Why no server answered within [`PROBE_TIMEOUT`].
    pub async fn probe(&self, url: &Url) -> Result<(), WebhookFailure> {
        let started = Instant::now();
        let failure = match timeout(PROBE_TIMEOUT, self.probe_once(url)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => (error.to_string(), error == GuardedError::Refused),
            Err(_late) => ("no answer came within 5 s".to_owned(), false),
        };
        let (reason, refused_address) = failure;
        Err(WebhookFailure {
            reason,
            refused_address,
            duration: started.elapsed(),
        })
    }

    /// Whether the URL's host may be called without TLS: the operator must allow one of
    /// its addresses.
    pub async fn allows_plain(&self, url: &Url) -> bool {
        let allowed = self.client.allows_plain(url);
        timeout(PROBE_TIMEOUT, allowed).await.unwrap_or(false)
    }

    async fn probe_once(&self, url: &Url) -> Result<(), GuardedError> {
        let call = |method| {
            let request = request(method, url, HeaderMap::new(), HttpBody::Empty);
            self.client.call(request)
        };
        match call(Method::HEAD).await {
            Err(GuardedError::Unanswered { .. }) => call(Method::POST).await.map(|_| ()),
            answer => answer.map(|_| ()),
        }
    }

    fn to_reply(&self, reply: HttpReply, duration: Duration) -> WebhookReply {
        let retry_after = reply.headers.get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok());
        WebhookReply {
            status: reply.status,
            answer: String::from_utf8_lossy(&reply.body).replace('\0', "\u{fffd}"),
            retry_after: retry_after
                .and_then(|text| parse_retry_after(text.trim(), self.clock.now())),
            duration,
        }
    }
}

fn request(method: Method, url: &Url, mut headers: HeaderMap, body: HttpBody) -> HttpRequest {
    headers.insert(USER_AGENT, USER_AGENT_VALUE);
    HttpRequest {
        method,
        url: url.clone(),
        headers,
        body,
    }
}

/// Reads a `Retry-After` in seconds or as a date. A date in the past is no wait.
fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let until = || {
        let date = DateTime::parse_from_rfc2822(text).ok()?;
        Some((date.to_utc() - now).to_std().unwrap_or(Duration::ZERO))
    };
    Some(seconds.or_else(until)?.min(RETRY_AFTER_MAX))
}
