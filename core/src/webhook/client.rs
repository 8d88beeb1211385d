//! Calls to endpoints: one POST, bounded in time and in what is read of the answer,
//! to addresses that the guard permits (`http::guarded`).

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

/// How much of an answer is read and kept.
pub const ANSWER_BYTES_MAX: usize = 1024;
/// How long an endpoint may take to show that it is there.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Idle connections kept to one host: those of the calls at once that it gets.
const IDLE_CONNECTIONS_MAX: usize = 16;
/// Names that a process looks up at once: four times what a worker's calls of one
/// organization may hold.
const LOOK_UPS_MAX: usize = 256;
/// The longest wait that is taken from an endpoint.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(48);
/// The name that we give ourselves to endpoints.
const OWN_NAME: HeaderValue =
    HeaderValue::from_static(concat!("waypost-webhooks/", env!("CARGO_PKG_VERSION")));

/// Calls endpoints. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct WebhookClient {
    client: GuardedClient,
    clock: Clock,
}

/// What an endpoint answered.
#[derive(Debug, Clone)]
pub struct WebhookReply {
    pub status: u16,
    /// The beginning of the content, as text without NUL.
    pub answer: String,
    /// How long it asks us to wait (`Retry-After`, RFC 9110, 10.2.3).
    pub retry_after: Option<Duration>,
    /// From the call to the answer.
    pub duration: Duration,
}

impl WebhookReply {
    /// Whether the endpoint took the event.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Why an endpoint did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct WebhookFailure {
    /// What happened; without the URL.
    pub reason: String,
    /// No address of its host may be called.
    pub refused_address: bool,
    /// From the call to the failure.
    pub duration: Duration,
}

impl WebhookClient {
    /// A client that resolves names as the machine does.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up (no root certificates).
    pub fn new(settings: &WebhookSettings, clock: Clock) -> Result<Self, Fault> {
        Self::with_resolver(settings, clock, Arc::new(SystemResolver::new(LOOK_UPS_MAX)))
    }

    /// A client that resolves names in another way.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up (no root certificates).
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
    /// Why there was none.
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
            Ok(reply) => Ok(self.read(reply, duration)),
            Err(error) => Err(WebhookFailure {
                reason: error.to_string(),
                refused_address: error == GuardedError::Refused,
                duration,
            }),
        }
    }

    /// Asks whether somebody answers HTTP at `url`, whatever the answer: with HEAD,
    /// and with an empty POST where HEAD is cut off.
    ///
    /// # Errors
    /// Why nobody does, within [`PROBE_TIMEOUT`].
    pub async fn probe(&self, url: &Url) -> Result<(), WebhookFailure> {
        let started = Instant::now();
        let failure = match timeout(PROBE_TIMEOUT, self.knock(url)).await {
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

    /// Whether plain HTTP may be spoken with the URL's host: whether the operator
    /// allows an address of it.
    pub async fn allows_plain(&self, url: &Url) -> bool {
        let asked = self.client.allows_plain(url);
        timeout(PROBE_TIMEOUT, asked).await.unwrap_or(false)
    }

    async fn knock(&self, url: &Url) -> Result<(), GuardedError> {
        let call = |method| {
            let request = request(method, url, HeaderMap::new(), HttpBody::Empty);
            self.client.call(request)
        };
        match call(Method::HEAD).await {
            Err(GuardedError::Unanswered { .. }) => call(Method::POST).await.map(|_| ()),
            answer => answer.map(|_| ()),
        }
    }

    fn read(&self, reply: HttpReply, duration: Duration) -> WebhookReply {
        let asked = reply.headers.get(RETRY_AFTER);
        let asked = asked.and_then(|value| value.to_str().ok());
        WebhookReply {
            status: reply.status,
            answer: String::from_utf8_lossy(&reply.body).replace('\0', "\u{fffd}"),
            retry_after: asked.and_then(|text| wait(text.trim(), self.clock.now())),
            duration,
        }
    }
}

fn request(method: Method, url: &Url, mut headers: HeaderMap, body: HttpBody) -> HttpRequest {
    headers.insert(USER_AGENT, OWN_NAME);
    HttpRequest {
        method,
        url: url.clone(),
        headers,
        body,
    }
}

/// A wait given in seconds or as a date; none where it has passed.
fn wait(text: &str, now: Timestamp) -> Option<Duration> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let until = || {
        let date = DateTime::parse_from_rfc2822(text).ok()?;
        Some((date.to_utc() - now).to_std().unwrap_or(Duration::ZERO))
    };
    Some(seconds.or_else(until)?.min(RETRY_AFTER_MAX))
}
