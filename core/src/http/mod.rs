//! HTTP, outgoing: the one home of the HTTP client library. A client follows no
//! redirection, uses no proxy of the environment, names itself, and bounds the
//! time and the size of every answer. What a broken call proves is part of its
//! error: see [`HttpError`].

pub mod guarded;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};
use reqwest::multipart::Form;
use reqwest::redirect::Policy;
use url::Url;

use crate::fault::{Fault, error_chain};

/// The name that we give ourselves.
const USER_AGENT: &str = concat!("waypost/", env!("CARGO_PKG_VERSION"));

/// How a client behaves.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The longest wait for a connection, TLS included.
    pub connect_timeout: Duration,
    /// The longest wait for a complete answer, connecting included.
    pub answer_timeout: Duration,
    /// The most idle connections that are kept to one host.
    pub idle_connections_max: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// The longest answer that is read.
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
    /// All headers but `Host`, `Content-Length`, `User-Agent` and the content
    /// type of a form.
    pub headers: HeaderMap,
    pub body: HttpBody,
}

/// The content of a request.
pub enum HttpBody {
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// The text parts of a `multipart/form-data` body, in order.
    Form(Vec<(String, String)>),
}

/// Contents do not belong into logs.
impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Form(fields) => write!(f, "Form({} fields)", fields.len()),
        }
    }
}

/// An answer.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no complete answer, by what is certain about the request.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It was not written: the name did not resolve, the connection or its TLS
    /// failed, the request could not be built.
    #[error("the request was not sent: {reason}")]
    NotSent {
        /// What happened; without the URL.
        reason: String,
    },
    /// It may have been written, and no answer came.
    #[error("no answer came: {reason}")]
    Unanswered {
        /// What happened; without the URL.
        reason: String,
    },
    /// It was answered, and the answer's content was lost or is too long.
    #[error("the answer was cut off: {reason}")]
    CutOff {
        /// Status and headers; the content is empty.
        head: HttpReply,
        /// What happened; without the URL.
        reason: String,
    },
}

impl HttpClient {
    /// A client with a pool of its own.
    ///
    /// Only HTTP/1.1 is spoken: a connection then carries one request at a time,
    /// and when it breaks, one answer is lost and not a hundred.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up (no root certificates).
    pub fn new(settings: &HttpSettings) -> Result<Self, Fault> {
        let client = builder(settings)
            .build()
            .map_err(|error| Fault::internal("set up the HTTP client", error))?;
        Ok(Self {
            client,
            answer_bytes_max: settings.answer_bytes_max,
        })
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// See [`HttpError`].
    pub async fn call(&self, request: HttpRequest) -> Result<HttpReply, HttpError> {
        let builder = self
            .client
            .request(request.method, request.url)
            .headers(request.headers);
        let builder = match request.body {
            HttpBody::Empty => builder,
            HttpBody::Bytes(bytes) => builder.body(bytes),
            HttpBody::Form(fields) => builder.multipart(form(fields)),
        };
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

/// A client library set up as all of ours are.
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

/// A form of text parts. Our names are plain ASCII, so they stand as they are.
fn form(fields: Vec<(String, String)>) -> Form {
    let form = Form::new().percent_encode_noop();
    fields
        .into_iter()
        .fold(form, |form, (name, value)| form.text(name, value))
}

/// The library marks what failed before a connection stood, and nothing else, as
/// a connect error; a request that a pooled connection gave back unwritten is
/// tried on a new one by itself.
fn no_answer(error: reqwest::Error) -> HttpError {
    let not_sent = error.is_connect() || error.is_builder();
    let reason = describe(error);
    if not_sent {
        HttpError::NotSent { reason }
    } else {
        HttpError::Unanswered { reason }
    }
}

/// The chain of causes without the URL: it may hold an address or a token.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let error: &(dyn StdError + 'static) = &error;
    error_chain(error)
}
