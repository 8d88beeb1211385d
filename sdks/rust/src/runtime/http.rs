//! Does calls: with retries, timeouts and typed errors.

use std::collections::HashMap;
use std::error::Error as _;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, Url, redirect::Policy};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::generated::{errors::Error, types::ErrorReason};
use crate::runtime::errors::{ApiError, header};

const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(8);
/// A longer `Retry-After` is left to the caller.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
const TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES: u32 = 2;
const AGENT: &str = concat!("waypost-rust/", env!("CARGO_PKG_VERSION"));

/// Where Waypost is, and how to call it.
#[derive(Default)]
pub struct Options {
    /// The API key. The default is the environment variable `WAYPOST_API_KEY`.
    pub api_key: Option<String>,
    /// The address of Waypost, such as `https://mail.example.com`. The default is the environment variable
    /// `WAYPOST_URL`.
    pub base_url: Option<String>,
    /// How long to wait for the answer to an attempt. The default is 30 seconds.
    pub timeout: Option<Duration>,
    /// How often to repeat a call that failed and is safe to repeat. The default is 2.
    pub max_retries: Option<u32>,
    /// What makes the connections: for a proxy, or certificates of your own. It follows no redirects, whatever it says.
    pub http: reqwest::ClientBuilder,
}

/// The answer to an attempt, and its body as far as it was read.
type Answered = (Response, Vec<u8>);

/// A client, as all calls share it.
#[derive(Debug)]
pub struct Http {
    client: reqwest::Client,
    base: Url,
    authorization: HeaderValue,
    timeout: Duration,
    max_retries: u32,
}

/// An operation, and what to send.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) route: &'static str,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    /// The body, and its media type.
    pub(crate) content: Option<(&'static str, Vec<u8>)>,
    /// Whether the service takes an idempotency key.
    pub(crate) idempotent: bool,
    /// Whether a second POST changes nothing more.
    pub(crate) repeatable: bool,
    /// Whether what is meant is the `data` of the answer.
    pub(crate) data: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retries: Option<u32>,
    /// Further headers, with names in lower case.
    pub(crate) headers: HashMap<String, String>,
}

impl Http {
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let given = |option: Option<String>, name| option.or_else(|| std::env::var(name).ok()).unwrap_or_default();
        let (key, base) = (given(options.api_key, "WAYPOST_API_KEY"), given(options.base_url, "WAYPOST_URL"));
        let bearer = HeaderValue::from_str(&format!("Bearer {key}")).ok();
        let bearer = bearer.filter(|_| key.bytes().all(|byte| byte.is_ascii_graphic()));
        let url = Url::parse(base.trim_end_matches('/')).ok();
        let url = url.filter(|url| ["http", "https"].contains(&url.scheme()) && !base.contains(['?', '#', '@']));
        let (mut authorization, base) = match (bearer, url) {
            _ if key.is_empty() => usage("Waypost needs an API key: give it as api_key, or set WAYPOST_API_KEY.")?,
            (None, _) => usage("The API key (WAYPOST_API_KEY) has characters that no key has.")?,
            _ if base.is_empty() => usage("Waypost needs an address: give it as base_url, or set WAYPOST_URL.")?,
            (_, None) => usage("The address (base_url, WAYPOST_URL) must look like https://mail.example.com.")?,
            (Some(authorization), Some(url)) => (authorization, url),
        };
        authorization.set_sensitive(true);
        let client = options.http.redirect(Policy::none()).build();
        let client = client.or_else(|error| usage(&format!("No HTTP client can be made: {error:?}")))?;
        let (timeout, max_retries) = (options.timeout.unwrap_or(TIMEOUT), options.max_retries.unwrap_or(RETRIES));
        Ok(Self { client, base, authorization, timeout, max_retries })
    }

    /// The answer's JSON.
    pub(crate) async fn json<T: DeserializeOwned>(&self, request: &Request) -> Result<T, Error> {
        let (response, body) = self.send(request, false).await?;
        serde_json::from_slice(&body).map_err(|error| ApiError::of(&response, &body, &format!(" {error}.")).into())
    }

    /// The answer and its body. With `raw` the body is left to be read, and the timeout ends when it begins.
    pub(crate) async fn send(&self, request: &Request, raw: bool) -> Result<Answered, Error> {
        let prepared = self.prepare(request)?;
        let (retries, mut attempt) = (request.max_retries.unwrap_or(self.max_retries), 0);
        loop {
            let begun = Instant::now();
            let outcome = self.attempt(&prepared, request.timeout.unwrap_or(self.timeout), raw).await;
            let error = outcome.as_ref().err();
            let wait = error.filter(|_| attempt < retries).and_then(|error| delay(error, request, attempt));
            let (status, code, id) = match (&outcome, error.and_then(Error::answer)) {
                (_, Some(answer)) => (Some(answer.status), Some(answer.code.as_str()), answer.request_id.as_deref()),
                (Ok((it, _)), _) => (Some(it.status().as_u16()), None, header(it.headers(), "X-Request-Id")),
                (Err(_), _) => (None, None, None),
            };
            attempt += 1;
            tracing::debug!(
                attempt, duration = ?begun.elapsed(), status, code, request_id = id, retry_in = wait.map(tracing::field::debug),
                "waypost: {} {}", request.method, request.route,
            );
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return outcome,
            }
        }
    }

    async fn attempt(&self, prepared: &reqwest::Request, timeout: Duration, raw: bool) -> Result<Answered, Error> {
        let request = prepared.try_clone().expect("the body is in memory");
        let answer = async {
            let mut response = self.client.execute(request).await?;
            let mut body = Vec::new();
            if !raw || !response.status().is_success() {
                while let Some(chunk) = response.chunk().await? {
                    body.extend_from_slice(&chunk);
                }
            }
            Ok((response, body))
        };
        let late = |_| Error::Timeout(format!("Waypost did not answer within {timeout:?}. See the option timeout."));
        let answered = tokio::time::timeout(timeout, answer).await.map_err(late)?;
        let (response, body) = answered.map_err(|error| self.broken(&error))?;
        let error = (!response.status().is_success()).then(|| ApiError::of(&response, &body, ""));
        error.map_or(Ok((response, body)), |error| Err(error.into()))
    }

    /// What is the same in all attempts: so is the idempotency key.
    fn prepare(&self, request: &Request) -> Result<reqwest::Request, Error> {
        let mut prepared = reqwest::Request::new(request.method.clone(), self.url(request)?);
        let mut headers = request.headers.clone();
        headers.entry("user-agent".to_owned()).or_insert_with(|| AGENT.to_owned());
        if request.idempotent {
            headers.entry("idempotency-key".to_owned()).or_insert_with(|| Uuid::new_v4().to_string());
        }
        if let Some((media_type, body)) = &request.content {
            headers.insert("content-type".to_owned(), (*media_type).to_owned());
            *prepared.body_mut() = Some(body.clone().into());
        }
        *prepared.headers_mut() = HeaderMap::try_from(&headers)
            .or_else(|_| usage("A header, or the idempotency key, has characters that none may have."))?;
        prepared.headers_mut().insert(AUTHORIZATION, self.authorization.clone());
        Ok(prepared)
    }

    fn url(&self, request: &Request) -> Result<Url, Error> {
        let (mut url, mut ids) = (self.base.clone(), request.path.iter());
        let mut segments = url.path_segments_mut().expect("an address of HTTP has a path");
        segments.pop_if_empty();
        for name in request.route.split('/').skip(1) {
            let segment = if name.starts_with('{') { ids.next().map_or("", String::as_str) } else { name };
            // An empty id would make it the path of another operation.
            if ["", ".", ".."].contains(&segment) {
                return usage(&format!("{name} must be an id, not \"{segment}\"."));
            }
            segments.push(segment);
        }
        drop(segments);
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        Ok(url)
    }

    /// A connection that broke, with the innermost reason, and without the query, which may have addresses.
    pub(crate) fn broken(&self, error: &reqwest::Error) -> Error {
        let causes = std::iter::successors(error.source(), |cause| (*cause).source());
        let reason = causes.last().map(ToString::to_string).unwrap_or_default();
        Error::Connection(format!("Waypost at {} cannot be reached, or broke off: {reason}", self.base))
    }
}

/// How long to wait before the next attempt; nothing if there is to be none. What was surely not done is repeated always.
/// After a lost answer, or a fault of the service, nobody knows whether it was done: then only what may be done twice is
/// repeated. These are GET, PUT, DELETE and PATCH, which here lead to the same state however often they are done (a
/// repeated DELETE may answer 404), a POST with an idempotency key that the service knows, and one that changes nothing more
/// the second time.
fn delay(error: &Error, request: &Request, attempt: u32) -> Option<Duration> {
    let safe = request.method != Method::POST || request.idempotent || request.repeatable;
    let repeat = match error.answer().map(|answer| (answer.status, &answer.reason)) {
        Some((408 | 429, _) | (409, Some(ErrorReason::IdempotencyInProgress))) => true,
        Some((status, _)) => status >= 500 && safe,
        None => error.is_connection() && safe,
    };
    let chance = RandomState::new().hash_one(attempt) as f64 / u64::MAX as f64;
    let jitter = BACKOFF_MAX.min(BACKOFF * 2_u32.pow(attempt.min(8))).mul_f64(chance);
    let told = error.answer().and_then(|answer| answer.retry_after);
    let soon = repeat && told.is_none_or(|wait| wait <= RETRY_AFTER_MAX);
    soon.then(|| told.map_or(jitter, |wait| wait + jitter / 4))
}

pub(crate) fn usage<T>(text: &str) -> Result<T, Error> {
    Err(Error::Usage(text.to_owned()))
}
