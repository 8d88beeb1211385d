//! Calls to a provider and their replies, as values. An adapter builds a
//! [`ProviderCall`] and reads a [`ProviderReply`]; the transport is the only one
//! that turns the first into the second. A conversation of several calls is a
//! chain of [`CallStep`]s, so it needs no I/O either.
//!
//! Neither a call nor a reply shows its content in debug output: both may hold
//! credentials (Postmark's server record repeats its tokens) and addresses.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;
use url::Url;

use super::retry_after::{wait_until, wait_until_date};
use crate::clock::Timestamp;

/// The longest wait that we take from a provider. A longer one is a mistake or an
/// attack, and the circuit takes care of accounts that stay away.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// One HTTP request to a provider, ready to be sent.
pub struct ProviderCall {
    pub method: Method,
    /// Where to, with its query.
    pub url: Url,
    /// All headers but those that the transport owns (`Host`, `Content-Length`,
    /// `User-Agent`, the content type of a form).
    pub headers: HeaderMap,
    pub body: CallBody,
}

/// The content of a call.
pub enum CallBody {
    Empty,
    /// A JSON document, already serialized (and signed, where the provider wants
    /// that: it must be sent byte for byte).
    Json(Bytes),
    /// The text parts of a `multipart/form-data` body, in order; a name may
    /// repeat. The transport adds the boundary.
    Form(Vec<(String, String)>),
}

impl ProviderCall {
    /// A call without content.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: CallBody::Empty,
        }
    }

    /// A call that posts a JSON document.
    #[must_use]
    pub fn post_json(url: Url, document: &Value) -> Self {
        let json = HeaderValue::from_static("application/json");
        Self {
            method: Method::POST,
            url,
            headers: HeaderMap::from_iter([(header::CONTENT_TYPE, json)]),
            body: CallBody::Json(Bytes::from(document.to_string())),
        }
    }

    /// A call that posts a form.
    #[must_use]
    pub fn post_form(url: Url, fields: Vec<(String, String)>) -> Self {
        Self {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: CallBody::Form(fields),
        }
    }

    /// The same call with one more header.
    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

impl fmt::Debug for ProviderCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderCall")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body", &self.body)
            .finish()
    }
}

impl fmt::Debug for CallBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Json(bytes) => write!(f, "Json({} bytes)", bytes.len()),
            Self::Form(fields) => write!(f, "Form({} fields)", fields.len()),
        }
    }
}

/// What a provider, or something on the way to it, answered.
pub struct ProviderReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl fmt::Debug for ProviderReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderReply")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl ProviderReply {
    /// A header's text, where it is there and is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The content as JSON, where it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The content as text, for messages; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }

    /// Whether this is a web page. No provider's API answers with one: it comes
    /// from a network layer in front of it (a firewall, a proxy, a balancer).
    #[must_use]
    pub fn is_html(&self) -> bool {
        let declared = self.header("content-type").unwrap_or_default();
        let start = self.body.trim_ascii_start();
        let start = &start[..start.len().min(14)];
        declared.to_ascii_lowercase().contains("html")
            || start.starts_with(b"<")
                && (start.eq_ignore_ascii_case(b"<!doctype html")
                    || start.to_ascii_lowercase().starts_with(b"<html"))
    }

    /// How long the provider asks us to wait: `Retry-After`, in seconds or as a
    /// date (RFC 9110, 10.2.3). Bounded by [`RETRY_AFTER_MAX`]; none where it is zero or
    /// has passed.
    #[must_use]
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let asked = self.header("retry-after")?.trim();
        let seconds = asked.parse().map(Duration::from_secs).ok();
        let wait = seconds.or_else(|| wait_until_date(asked, now))?;
        (!wait.is_zero()).then(|| wait.min(RETRY_AFTER_MAX))
    }

    /// How long until a limit is lifted, for an answer that says that one was
    /// reached: `Retry-After`, else `X-RateLimit-Reset` in Unix seconds (SendGrid
    /// "Rate Limits"; Mailgun as its Go client reads it). Other answers carry the
    /// second header too, and mean nothing by it.
    #[must_use]
    pub fn limit_wait(&self, now: Timestamp) -> Option<Duration> {
        self.retry_after(now).or_else(|| {
            let reset = self.header("x-ratelimit-reset")?.trim().parse().ok()?;
            let wait = wait_until(DateTime::from_timestamp(reset, 0)?, now)?;
            Some(wait.min(RETRY_AFTER_MAX))
        })
    }
}

/// The next step of a conversation with a provider.
pub enum CallStep<T> {
    /// Make this call, then ask what follows from its reply.
    Call {
        call: Box<ProviderCall>,
        /// Reads the reply and says how to go on.
        then: Box<dyn FnOnce(ProviderReply) -> CallStep<T> + Send>,
    },
    /// The conversation is over, with this result.
    Done(T),
}

impl<T> CallStep<T> {
    /// A step that calls and goes on with `then`.
    pub fn call(
        call: ProviderCall,
        then: impl FnOnce(ProviderReply) -> Self + Send + 'static,
    ) -> Self {
        Self::Call {
            call: Box::new(call),
            then: Box::new(then),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for CallStep<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call, .. } => f.debug_tuple("Call").field(call).finish(),
            Self::Done(result) => f.debug_tuple("Done").field(result).finish(),
        }
    }
}
