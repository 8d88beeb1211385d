//! Calls to a provider and their replies, as values. An adapter builds a [`ProviderCall`]
//! and reads a [`ProviderReply`]; only the transport does I/O. A conversation of several
//! calls is a chain of [`CallStep`]s, so it needs no I/O either.
//!
//! The debug output of a call or a reply hides its content: both may hold credentials
//! (Postmark's server record repeats its tokens) and addresses.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use serde_json::Value;
use url::Url;

use super::files::json_with_files;
use super::mail::OutgoingMail;
use super::retry_after::{wait_until, wait_until_date};
use crate::clock::Timestamp;
use crate::http::{BodyPiece, FormFile, HttpForm};

/// The longest wait that a provider can ask for. A longer one is a mistake or an attack;
/// the circuit breaker handles accounts that stay unavailable.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(1);

/// One HTTP request to a provider, ready to be sent.
pub struct ProviderCall {
    pub method: Method,
    /// The URL with its query.
    pub url: Url,
    /// All headers except those that the transport sets (`Host`, `Content-Length`,
    /// `User-Agent`, the content type of a form).
    pub headers: HeaderMap,
    pub body: CallBody,
}

/// The content of a call.
pub enum CallBody {
    Empty,
    /// A serialized JSON document. It is sent byte for byte, since it may be signed.
    Json(Bytes),
    /// A JSON document with files, which are encoded while it is sent.
    Pieces(Vec<BodyPiece>),
    /// A `multipart/form-data` body. The transport adds the boundary.
    Form(HttpForm),
}

impl ProviderCall {
    /// A GET call without a body.
    #[must_use]
    pub fn get(url: Url) -> Self {
        Self {
            method: Method::GET,
            url,
            headers: HeaderMap::new(),
            body: CallBody::Empty,
        }
    }

    /// A POST call with a JSON document.
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

    /// The same for the document of a mail with files: `{FILE: nth}` in it becomes the nth
    /// of them, in base64. The contents are not copied.
    #[must_use]
    pub fn post_mail(url: Url, document: &Value, mail: &OutgoingMail) -> Self {
        let mut call = Self::post_json(url, &Value::Null);
        call.body = CallBody::Pieces(json_with_files(document, mail));
        call
    }

    /// A POST call with a form of texts.
    #[must_use]
    pub fn post_form(url: Url, fields: Vec<(String, String)>) -> Self {
        Self::post_files(url, fields, Vec::new())
    }

    /// A POST call with a form of texts and files.
    #[must_use]
    pub fn post_files(url: Url, fields: Vec<(String, String)>, files: Vec<FormFile>) -> Self {
        Self {
            method: Method::POST,
            url,
            headers: HeaderMap::new(),
            body: CallBody::Form(HttpForm { fields, files }),
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
            Self::Pieces(pieces) => write!(f, "Pieces({})", pieces.len()),
            Self::Form(form) => write!(f, "Form({} fields)", form.fields.len()),
        }
    }
}

/// The reply of a provider, or of a network device in front of it.
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
    /// The value of a header, if it is present and text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON, if it is JSON.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The body as text, for messages; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).trim().to_owned()
    }

    /// Whether the body is a web page. No provider's API returns one: it comes from a
    /// network device in front of it (a firewall, a proxy, a load balancer).
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

    /// How long the provider asks to wait: `Retry-After`, in seconds or as a date (RFC
    /// 9110, 10.2.3), at most [`RETRY_AFTER_MAX`]. `None` if it is zero or in the past.
    #[must_use]
    pub fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let asked = self.header("retry-after")?.trim();
        let seconds = asked.parse().map(Duration::from_secs).ok();
        let wait = seconds.or_else(|| wait_until_date(asked, now))?;
        (!wait.is_zero()).then(|| wait.min(RETRY_AFTER_MAX))
    }

    /// How long until a rate limit resets: `Retry-After`, else `X-RateLimit-Reset` in Unix
    /// seconds (SendGrid "Rate Limits"; Mailgun's Go client reads it so). Only for a reply
    /// that says that a limit was reached: other replies carry the second header too.
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
    /// Make this call, then pass its reply to `then`.
    Call {
        call: Box<ProviderCall>,
        /// Reads the reply and returns the next step.
        then: Box<dyn FnOnce(ProviderReply) -> CallStep<T> + Send>,
    },
    /// The conversation is over, with this result.
    Done(T),
}

impl<T> CallStep<T> {
    /// The first step of a conversation with an account, or its end if the account cannot be
    /// used.
    pub fn with<A, E: Into<T>>(account: Result<A, E>, begin: impl FnOnce(A) -> Self) -> Self {
        match account {
            Ok(account) => begin(account),
            Err(unusable) => Self::Done(unusable.into()),
        }
    }

    /// A step that makes a call and continues with `then`.
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
