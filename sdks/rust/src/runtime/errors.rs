//! What an error knows.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Utc};
use reqwest::Response;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::Value;

use crate::generated::types::{ErrorCode, ErrorDetails, ErrorIssue, ErrorReason};

/// An error that the service answered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The kind of the error, for programs. `UNEXPECTED_ANSWER` if the answer is not one of Waypost's.
    pub code: ErrorCode,
    /// What is wrong, for people.
    pub message: String,
    /// Why the service did not do a valid request.
    pub reason: Option<ErrorReason>,
    /// Every mistake of the request, with its path.
    pub issues: Vec<ErrorIssue>,
    /// All details of the answer.
    pub details: Option<ErrorDetails>,
    /// The id of the request, by which the operator of Waypost finds it in the log.
    pub request_id: Option<String>,
    /// The service's limit for requests.
    pub rate_limit: Option<RateLimit>,
    /// How long to wait before another try, if the answer told it.
    pub retry_after: Option<Duration>,
}

/// The service's limit for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// How many the service allows in a second.
    pub limit: u64,
    /// How many are left.
    pub remaining: u64,
    /// In which time all are again.
    pub reset: Duration,
}

impl ApiError {
    /// The error that an answer is; `misfit` says why its body is not what was expected.
    pub(crate) fn of(response: &Response, body: &[u8], misfit: &str) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers());
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let (error, details) = (&body["error"], &body["error"]["details"]);
        let hint = match header(headers, "Location") {
            Some(location) => format!("It leads to {location}: set base_url to that."),
            None => format!("Is base_url right? Is a proxy in between?{misfit}"),
        };
        let unexpected = format!("The answer (status {status}) is not one of Waypost's. {hint}");
        let [limit, remaining, reset] = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]
            .map(|name| header(headers, name).and_then(|value| value.parse().ok()));
        let reset = Duration::from_secs(reset.unwrap_or_default());
        Self {
            status,
            code: error["code"].as_str().unwrap_or("UNEXPECTED_ANSWER").into(),
            message: error["message"].as_str().unwrap_or(&unexpected).to_owned(),
            reason: details["reason"].as_str().map(Into::into),
            issues: Vec::deserialize(&details["issues"]).unwrap_or_default(),
            details: ErrorDetails::deserialize(details).ok(),
            request_id: header(headers, "X-Request-Id").map(str::to_owned),
            rate_limit: limit.map(|limit| RateLimit { limit, remaining: remaining.unwrap_or_default(), reset }),
            retry_after: header(headers, "Retry-After").and_then(retry_after),
        }
    }
}

/// `Retry-After`, which is in seconds or a date.
fn retry_after(value: &str) -> Option<Duration> {
    let until = |date: DateTime<FixedOffset>| (date.to_utc() - Utc::now()).to_std().unwrap_or_default();
    let date = || DateTime::parse_from_rfc2822(value).ok().map(until);
    value.parse().map(Duration::from_secs).ok().or_else(date)
}

pub(crate) fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
