//! An HTTP client of the API. It checks in every response what callers rely on: a request
//! id, the rate limit headers, and the common form of errors.

use http::{HeaderMap, Method};
use serde_json::Value;

use crate::document;

/// A caller of the API, with or without a key. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    http: reqwest::Client,
    base_url: String,
    key: Option<String>,
    /// Whether the headers of our own page are sent.
    is_page: bool,
    cookie: Option<String>,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    request: String,
}

impl Caller {
    pub(crate) fn new(http: reqwest::Client, base_url: String, key: Option<String>) -> Self {
        Self {
            http,
            base_url,
            key,
            is_page: false,
            cookie: None,
        }
    }

    /// The same caller with the headers that our own page sends.
    #[must_use]
    pub fn from_page(&self) -> Self {
        Self {
            is_page: true,
            ..self.clone()
        }
    }

    /// The same caller with this cookie in place of a key, from our own page.
    #[must_use]
    pub fn with_session(&self, cookie: &str) -> Self {
        Self {
            key: None,
            is_page: true,
            cookie: Some(cookie.to_owned()),
            ..self.clone()
        }
    }

    /// The cookie of the caller.
    #[must_use]
    pub fn cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
    }

    /// The same caller with its cookie and without the headers of our own page.
    #[must_use]
    pub fn from_elsewhere(&self) -> Self {
        Self {
            is_page: false,
            ..self.clone()
        }
    }

    /// The URL of the API, without a path.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The same caller with another key.
    #[must_use]
    pub fn with_key(&self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            cookie: None,
            ..self.clone()
        }
    }

    /// Its API key.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.as_deref().expect("the caller has a key")
    }

    /// The same caller at another API.
    #[must_use]
    pub fn at(&self, base_url: &str) -> Self {
        Self {
            base_url: base_url.to_owned(),
            ..self.clone()
        }
    }

    /// The same caller without a key.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self {
            key: None,
            cookie: None,
            ..self.clone()
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path, |request| request).await
    }

    /// GET with query parameters, encoded here.
    pub async fn query(&self, path: &str, parameters: &[(&str, &str)]) -> Reply {
        let mut url = url::Url::parse("http://any").expect("a constant URL");
        url.query_pairs_mut().extend_pairs(parameters);
        let query = url.query().unwrap_or_default();
        self.get(&format!("{path}?{query}")).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.call(Method::POST, path, |request| request.json(body))
            .await
    }

    /// POST without a body.
    pub async fn post_empty(&self, path: &str) -> Reply {
        self.call(Method::POST, path, |request| request).await
    }

    /// POST of any bytes, under any content type or none.
    pub async fn post_raw(
        &self,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<Vec<u8>>,
    ) -> Reply {
        let body = body.into();
        self.call(Method::POST, path, |request| match content_type {
            Some(name) => request.header("content-type", name).body(body),
            None => request.body(body),
        })
        .await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.call(Method::PATCH, path, |request| request.json(body))
            .await
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Reply {
        self.call(Method::DELETE, path, |request| request).await
    }

    /// Sends any request; `shape` adds to it.
    ///
    /// # Panics
    /// If the API does not respond, or responds without a request id or rate limit
    /// headers.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        shape: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Reply {
        let request = format!("{method} {path}");
        let reply = self.try_call(method, path, shape).await;
        let reply = reply.unwrap_or_else(|error| panic!("{request} was not answered: {error:?}"));
        let id = reply
            .headers
            .get("x-request-id")
            .and_then(|id| id.to_str().ok());
        assert!(
            id.is_some_and(|id| !id.is_empty()),
            "{request} was answered without X-Request-Id: {reply:?}"
        );
        assert!(
            reply.rate().is_some_and(|(limit, left, _)| left <= limit),
            "{request} was answered without its rate limit: {reply:?}"
        );
        reply
    }

    /// Sends any request that may remain without a response.
    ///
    /// # Errors
    /// Why there was no response.
    ///
    /// # Panics
    /// If the OpenAPI document does not list the response.
    pub async fn try_call(
        &self,
        method: Method,
        path: &str,
        shape: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> reqwest::Result<Reply> {
        let request = format!("{method} {path}");
        let mut builder = self
            .http
            .request(method.clone(), format!("{}{path}", self.base_url));
        if let Some(key) = &self.key {
            builder = builder.bearer_auth(key);
        }
        if let Some(cookie) = &self.cookie {
            builder = builder.header("cookie", cookie);
        }
        if self.is_page {
            builder = builder
                .header("x-waypost-csrf", "1")
                .header("origin", &self.base_url);
        }
        let mut response = shape(builder).send().await?;
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let body = response.bytes().await?;
        let text = String::from_utf8_lossy(&body).into_owned();
        let reply = Reply {
            status,
            headers,
            text,
            request,
        };
        document::check(&method, path, &reply);
        Ok(reply)
    }
}

impl Reply {
    /// The body as JSON.
    ///
    /// # Panics
    /// If it is no JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The body as JSON of a response with this status.
    ///
    /// # Panics
    /// If the status is another.
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(
            self.status, status,
            "{} answered {}",
            self.request, self.text
        );
        self.json()
    }

    /// The field `data` of a response with this status.
    ///
    /// # Panics
    /// If the status is another or the field is missing.
    pub fn data(&self, status: u16) -> Value {
        let mut body = self.expect(status);
        body.get_mut("data")
            .unwrap_or_else(|| panic!("no data in {}", self.text))
            .take()
    }

    /// The error of a response with this status and this code, after a check of the
    /// common form of errors.
    ///
    /// # Panics
    /// If any part of it is different.
    pub fn expect_error(&self, status: u16, code: &str) -> Value {
        let what = format!("{} answered {} {}", self.request, self.status, self.text);
        assert_eq!(self.status, status, "{what}");
        let kind = self
            .headers
            .get("content-type")
            .and_then(|kind| kind.to_str().ok());
        assert!(
            kind.is_some_and(|kind| kind.starts_with("application/json")),
            "{what}: {kind:?}"
        );
        let mut body = self.json();
        assert_eq!(keys(&body), ["error"], "{what}");
        let error = body["error"].take();
        let known = ["code", "details", "message"];
        assert!(
            keys(&error).iter().all(|key| known.contains(&key.as_str())),
            "{what}"
        );
        assert_eq!(error["code"], code, "{what}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{what}"
        );
        assert!(error.get("details").is_none_or(Value::is_object), "{what}");
        for issue in issues_of(&error) {
            for name in keys(issue) {
                let is_place = ["line", "column"].contains(&name.as_str());
                let is_valid = is_place && issue[&name].as_u64().is_some_and(|number| number > 0);
                let is_known = ["message", "path"].contains(&name.as_str());
                assert!(is_valid || is_known, "{what}");
            }
            assert!(issue["path"].is_string(), "{what}");
            assert!(
                issue["message"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{what}"
            );
        }
        error
    }

    /// Asserts that the response rejects the request as invalid and names exactly these
    /// paths, each once, in any order.
    ///
    /// # Panics
    /// If it does not.
    pub fn expect_issues(&self, status: u16, paths: &[&str]) -> Value {
        let error = self.expect_error(status, "VALIDATION_ERROR");
        let mut found: Vec<&str> = issues_of(&error)
            .iter()
            .filter_map(|issue| issue["path"].as_str())
            .collect();
        found.sort_unstable();
        let mut wanted = paths.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{} answered {}", self.request, self.text);
        error
    }

    /// The rate limit headers: requests per period, the remaining ones, and the seconds
    /// until all are available again. Resend's have no `X-`.
    #[must_use]
    pub fn rate(&self) -> Option<(u32, u32, u32)> {
        let number = |name: &str| {
            let given = self.header(name);
            let given = given.or_else(|| self.header(name.trim_start_matches("x-")));
            given?.parse().ok()
        };
        Some((
            number("x-ratelimit-limit")?,
            number("x-ratelimit-remaining")?,
            number("x-ratelimit-reset")?,
        ))
    }

    /// A header's text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

fn keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value
        .as_object()
        .into_iter()
        .flat_map(|object| object.keys().cloned())
        .collect();
    keys.sort();
    keys
}

fn issues_of(error: &Value) -> &[Value] {
    match error.pointer("/details/issues") {
        None => &[],
        Some(issues) => issues.as_array().expect("details.issues is a list"),
    }
}
