//! Outgoing HTTP: the only module that uses the HTTP client library. A client follows no
//! redirects, ignores proxy variables in the environment, sets a `User-Agent`, and limits time
//! and size of every response. The error of a failed call says what is certain about the
//! request: see [`HttpError`].

pub mod guarded;
mod pieces;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};
use reqwest::multipart::{Form, Part};
use reqwest::redirect::Policy;
use url::Url;

use crate::fault::{Fault, error_chain};

pub use pieces::{BodyPiece, encoded};

const USER_AGENT: &str = concat!("waypost/", env!("CARGO_PKG_VERSION"));

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// Time-out for a connection, including TLS.
    pub connect_timeout: Duration,
    /// Time-out for a complete response, including the connection.
    pub answer_timeout: Duration,
    /// Idle connections per host in the pool.
    pub idle_connections_max: usize,
    /// How long an idle connection stays in the pool.
    pub idle_timeout: Duration,
    /// Size limit of a response body.
    pub answer_bytes_max: usize,
}

/// A client with a connection pool. Cheap to clone; clones share the pool.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    answer_bytes_max: usize,
}

/// A request.
#[derive(Debug)]
pub struct HttpRequest {
    pub method: Method,
    pub url: Url,
    /// All headers except `Host`, `Content-Length`, `User-Agent` and the content type of a
    /// form.
    pub headers: HeaderMap,
    pub body: HttpBody,
}

/// The body of a request.
pub enum HttpBody {
    Empty,
    Bytes(Bytes),
    /// A body that is encoded while it is sent.
    Pieces(Vec<BodyPiece>),
    /// A `multipart/form-data` body.
    Form(HttpForm),
}

/// The parts of a form: texts in order, then files.
#[derive(Default)]
pub struct HttpForm {
    /// A name may repeat.
    pub fields: Vec<(String, String)>,
    pub files: Vec<FormFile>,
}

/// A file of a form.
pub struct FormFile {
    pub name: &'static str,
    pub filename: String,
    pub content_type: String,
    pub content: Bytes,
}

/// Logs must not contain bodies.
impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Pieces(pieces) => write!(f, "Pieces({})", pieces.len()),
            Self::Form(form) => write!(f, "Form({} fields)", form.fields.len()),
        }
    }
}

/// A response.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no complete response. The variants say what is certain about the request. The
/// reasons never contain the URL.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The request was not written: the name did not resolve, the connection or TLS failed,
    /// or the request could not be built.
    #[error("the request was not sent: {reason}")]
    NotSent { reason: String },
    /// The request may have been written, and there was no response.
    #[error("no answer came: {reason}")]
    Unanswered { reason: String },
    /// There was a response, but its body broke off or is too long.
    #[error("the answer was cut off: {reason}")]
    CutOff {
        /// Status and headers; the body is empty.
        head: HttpReply,
        reason: String,
    },
}

impl HttpClient {
    /// A client with a connection pool of its own. It uses HTTP/1.1 only, with one request at
    /// a time per connection: a broken connection loses one response and not a hundred.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn new(settings: &HttpSettings) -> Result<Self, Fault> {
        let client = builder(settings)
            .build()
            .map_err(|error| Fault::internal("set up the HTTP client", error))?;
        Ok(Self {
            client,
            answer_bytes_max: settings.answer_bytes_max,
        })
    }

    /// The same client with another size limit of a response body.
    #[must_use]
    pub fn with_answer_max(&self, answer_bytes_max: usize) -> Self {
        Self {
            client: self.client.clone(),
            answer_bytes_max,
        }
    }

    /// Sends a request and reads the whole response.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub async fn call(&self, request: HttpRequest) -> Result<HttpReply, HttpError> {
        let builder = self
            .client
            .request(request.method, request.url)
            .headers(request.headers);
        let builder = with_body(builder, request.body);
        let response = builder.send().await.map_err(no_answer)?;
        self.read(response).await
    }

    async fn read(&self, mut response: reqwest::Response) -> Result<HttpReply, HttpError> {
        let mut head = HttpReply {
            status: response.status().as_u16(),
            headers: std::mem::take(response.headers_mut()),
            body: Bytes::new(),
        };
        let mut body = BytesMut::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > self.answer_bytes_max => {
                    let reason = format!("it is longer than {} bytes", self.answer_bytes_max);
                    return Err(HttpError::CutOff { head, reason });
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(error) => {
                    let reason = describe(error);
                    return Err(HttpError::CutOff { head, reason });
                }
            }
        }
        head.body = body.freeze();
        Ok(head)
    }
}

fn with_body(builder: reqwest::RequestBuilder, body: HttpBody) -> reqwest::RequestBuilder {
    match body {
        HttpBody::Empty => builder,
        HttpBody::Bytes(bytes) => builder.body(bytes),
        HttpBody::Pieces(pieces) => builder.body(pieces::body(pieces)),
        HttpBody::Form(parts) => builder.multipart(form(parts)),
    }
}

/// The configuration that all clients share.
fn builder(settings: &HttpSettings) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .http1_only()
        .connect_timeout(settings.connect_timeout)
        .timeout(settings.answer_timeout)
        .pool_max_idle_per_host(settings.idle_connections_max)
        .pool_idle_timeout(settings.idle_timeout)
}

/// A form. The names of the fields are ASCII and need no encoding; those of files are
/// written as UTF-8 (RFC 7578, 4.2). The contents of files are not copied.
fn form(parts: HttpForm) -> Form {
    let form = Form::new().percent_encode_noop();
    let fields = parts.fields.into_iter();
    let form = fields.fold(form, |form, (name, value)| form.text(name, value));
    parts.files.into_iter().fold(form, |form, file| {
        let plain = || Part::stream(file.content.clone());
        let typed = plain().mime_str(&file.content_type);
        let part = typed.unwrap_or_else(|_| plain());
        form.part(file.name, part.file_name(file.filename))
    })
}

/// Classifies an error. The library reports failures before the connection was established,
/// and only those, as connect errors. It retries a request that was not written to a pooled
/// connection on a new one.
fn no_answer(error: reqwest::Error) -> HttpError {
    let not_sent = error.is_connect() || error.is_builder();
    let reason = describe(error);
    if not_sent {
        HttpError::NotSent { reason }
    } else {
        HttpError::Unanswered { reason }
    }
}

/// The error and its causes, without the URL, which may contain an address or a token.
fn describe(error: reqwest::Error) -> String {
    if error.is_timeout() {
        let ended = match error.is_connect() {
            true => "the time limit for the connection ended",
            false => "the time limit for the answer ended",
        };
        return ended.to_owned();
    }
    let error = error.without_url();
    let error: &(dyn StdError + 'static) = &error;
    error_chain(error)
}
