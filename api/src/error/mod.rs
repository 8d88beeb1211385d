//! HTTP errors. This module alone turns the domain's refusals and our faults into HTTP:
//! each is one row of the contract's error table, in the form `{"error": {"code",
//! "message", "details"?}}`.

mod people;
mod reason;
mod refusals;

use std::sync::Arc;
use std::time::Duration;

use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use poem_openapi::registry::{MetaMediaType, MetaResponse, MetaResponses, Registry};
use poem_openapi::types::{Any, Type};
use poem_openapi::{ApiResponse, Object};
use serde_json::{Map, Value, json};
use tracing::error;
use waypost_core::auth::Permission;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::idempotency::StoredAnswer;
use waypost_core::issue::Issue;
use waypost_core::provider::kind::ProviderType;
use waypost_core::warn_seldom;

use crate::middleware::rate_limits::whole_seconds;
use crate::request::idempotency_key::replay;

pub(crate) use people::change_refused;
pub(crate) use reason::Reason;
pub(crate) use refusals::{ATTACHMENT, DELIVERY, MESSAGE, TEMPLATE, VERSION};

/// The value of `Retry-After` while Postgres or Redis is away, in seconds.
pub(crate) const RETRY_AFTER_SECONDS: u32 = 2;

/// Why a request was not served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 400: the request is not valid.
    Invalid(Vec<Issue>),
    /// 401: no valid API key and no session.
    Unauthenticated,
    /// 401: the password, or the second factor, is not right.
    SignInRefused(Option<Reason>, &'static str),
    /// 401: a provider event that is not verified as the provider's.
    Unverified,
    /// 403: the caller lacks a permission.
    Forbidden(Permission),
    /// 403: for another reason than a permission.
    Denied(Reason, &'static str),
    /// 404: the record does not exist, or belongs to another organization.
    NotFound(&'static str),
    /// 404: the record exists, but not what was asked for.
    Gone(Reason, &'static str),
    /// 404: the path does not exist.
    NoSuchPath,
    /// 405: the path does not support the method.
    MethodNotAllowed,
    /// 409: the current state does not allow the request.
    Conflict(Reason, &'static str),
    /// 413: the body is larger than the limit, in bytes.
    TooLarge(usize),
    /// 415: the content type of the body is not JSON.
    NotJson,
    /// 422: the request is valid but cannot be done.
    Unprocessable {
        /// The error message; with a `path`, it continues the sentence that the path
        /// begins.
        message: String,
        /// The field that causes the error, if one does.
        path: Option<&'static str>,
        reason: Reason,
    },
    /// 422: as `Unprocessable`, for these fields.
    UnprocessableFields(Reason, Vec<Issue>),
    /// 422: the provider rejected the credentials.
    InvalidCredentials {
        provider_type: ProviderType,
        /// The provider's error message.
        reason: String,
    },
    /// 503: the provider gave no usable answer.
    ProviderUnavailable {
        provider_type: ProviderType,
        /// The error of the call.
        reason: String,
    },
    /// A failure after a part of the work was done.
    Interrupted {
        cause: Box<Self>,
        /// What was done, as more members of `details`.
        done: Map<String, Value>,
    },
    /// 429: over the rate limit; the next request is admitted after this time.
    RateLimited(Duration),
    /// The request was done before: the stored response of its idempotency key is sent
    /// again.
    Repeated(StoredAnswer),
    /// 500 or 503: a fault of ours.
    Fault(Fault),
}

/// The failure that a response shows: data of the response, for a layer that writes it in
/// another form.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredFailure(pub(crate) Arc<Failure>);

/// An error response.
#[derive(Debug, Object)]
#[oai(rename = "ErrorResponse")]
pub(crate) struct ErrorBody {
    error: ErrorContent,
}

#[derive(Debug, Object)]
#[oai(rename = "Error")]
struct ErrorContent {
    /// The error code, for programs, such as `VALIDATION_ERROR`.
    code: String,
    /// The error message, for people. Programs should not parse it.
    message: String,
    /// Details of the error. A 400 has `issues`: the first 100 mistakes, each with `path`
    /// and `message`. A 409 and a 422 have a `reason`, for programs.
    details: Option<Any<Value>>,
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated | Self::Unverified | Self::SignInRefused(..) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Forbidden(_) | Self::Denied(..) => StatusCode::FORBIDDEN,
            Self::NotFound(_) | Self::Gone(..) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict(..) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unprocessable { .. }
            | Self::UnprocessableFields(..)
            | Self::InvalidCredentials { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::ProviderUnavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Interrupted { cause, .. } => cause.status(),
            Self::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Repeated(answer) => StatusCode::from_u16(answer.status).unwrap_or_default(),
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                FaultKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Unprocessable { .. } | Self::UnprocessableFields(..) => {
                "VALIDATION_ERROR"
            }
            Self::Unauthenticated | Self::Unverified | Self::SignInRefused(..) => {
                "AUTHENTICATION_ERROR"
            }
            Self::Forbidden(_) | Self::Denied(..) => "FORBIDDEN",
            Self::NotFound(_) | Self::Gone(..) | Self::NoSuchPath => "NOT_FOUND",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::Conflict(..) => "CONFLICT",
            Self::TooLarge(_) => "PAYLOAD_TOO_LARGE",
            Self::NotJson => "UNSUPPORTED_MEDIA_TYPE",
            Self::InvalidCredentials { .. } => "PROVIDER_INVALID_CREDENTIALS",
            Self::ProviderUnavailable { .. } => "SERVICE_UNAVAILABLE",
            Self::Interrupted { cause, .. } => cause.code(),
            Self::RateLimited(_) => "RATE_LIMIT_EXCEEDED",
            // Never sent: the stored response is.
            Self::Repeated(_) => "REPEATED",
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => "SERVICE_UNAVAILABLE",
                FaultKind::Internal => "INTERNAL_ERROR",
            },
        }
    }

    /// The error message, for people. A fault shows no details.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Invalid(issues) | Self::UnprocessableFields(_, issues) => invalid_message(issues),
            Self::Unauthenticated => "The API key or the session is missing or invalid".to_owned(),
            Self::Unverified => {
                "The request is not verified as coming from the account's provider".to_owned()
            }
            Self::Forbidden(permission) => {
                format!("The API key or the session lacks the permission {permission}")
            }
            Self::NotFound(what) => format!("This {what} does not exist"),
            Self::NoSuchPath => "This path does not exist".to_owned(),
            Self::MethodNotAllowed => "This path does not support the method".to_owned(),
            Self::Conflict(_, message)
            | Self::Gone(_, message)
            | Self::Denied(_, message)
            | Self::SignInRefused(_, message) => (*message).to_owned(),
            Self::TooLarge(max) => format!("The body is larger than {max} bytes"),
            Self::NotJson => {
                "The body must be sent as application/json, without a Content-Encoding".to_owned()
            }
            Self::Unprocessable {
                message,
                path: Some(path),
                ..
            } => format!("{path} {message}"),
            Self::Unprocessable { message, .. } => message.clone(),
            Self::InvalidCredentials {
                provider_type,
                reason,
            } => {
                format!("{provider_type} rejected the credentials: {reason}")
            }
            Self::ProviderUnavailable {
                provider_type,
                reason,
            } => {
                format!("{provider_type} could not be reached; try again later: {reason}")
            }
            Self::Interrupted { cause, .. } => cause.message(),
            Self::RateLimited(wait) => {
                format!(
                    "Too many requests; try again after {} s",
                    at_least_a_second(*wait)
                )
            }
            Self::Repeated(_) => "The request was done before".to_owned(),
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => {
                    "The service is not available at the moment; try again later".to_owned()
                }
                FaultKind::Internal => "An unexpected error occurred".to_owned(),
            },
        }
    }

    /// The response body.
    pub(crate) fn body(&self) -> Value {
        let mut content = json!({ "code": self.code(), "message": self.message() });
        if let Some(details) = self.details() {
            content["details"] = details;
        }
        json!({ "error": content })
    }

    /// The error on one line, for a message of a batch.
    pub(crate) fn sentence(&self) -> String {
        let Self::Invalid(issues) = self else {
            return self.message();
        };
        let shown = issues.iter().take(Issue::SHOWN_MAX);
        let mut findings: Vec<String> = shown.map(|issue| sentence("message", issue)).collect();
        if issues.len() > Issue::SHOWN_MAX {
            findings.push("and more".to_owned());
        }
        findings.join("; ")
    }

    /// The error as sentences: one for each mistake.
    pub(crate) fn sentences(&self) -> Vec<String> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the other failures have no issues"
        )]
        match self {
            Self::Invalid(issues) | Self::UnprocessableFields(_, issues) => {
                let issues = issues.iter();
                issues.map(|issue| sentence("message", issue)).collect()
            }
            other => vec![other.message()],
        }
    }

    /// The same failure, with the issues found before it.
    pub(crate) fn after(self, issues: &mut Vec<Issue>) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the other failures have no issues"
        )]
        match self {
            Self::Invalid(found) => {
                issues.extend(found);
                Self::Invalid(std::mem::take(issues))
            }
            other => other,
        }
    }

    fn details(&self) -> Option<Value> {
        match self {
            Self::Invalid(issues) => {
                let shown = &issues[..issues.len().min(Issue::SHOWN_MAX)];
                Some(json!({ "issues": shown }))
            }
            Self::UnprocessableFields(reason, issues) => {
                Some(json!({ "reason": reason, "issues": issues }))
            }
            Self::Conflict(reason, _)
            | Self::Gone(reason, _)
            | Self::Denied(reason, _)
            | Self::SignInRefused(Some(reason), _) => Some(json!({ "reason": reason })),
            Self::Forbidden(permission) => {
                Some(json!({ "requiredPermission": permission.as_str() }))
            }
            Self::Unprocessable {
                message,
                path,
                reason,
            } => {
                let issue = path.map(|path| json!({ "path": path, "message": message }));
                Some(json!({ "reason": reason, "issues": Vec::from_iter(issue) }))
            }
            Self::InvalidCredentials { provider_type, .. } => {
                let reason = Reason::InvalidCredentials;
                Some(json!({ "reason": reason, "providerType": provider_type }))
            }
            Self::ProviderUnavailable { provider_type, .. } => {
                Some(json!({ "providerType": provider_type }))
            }
            Self::Interrupted { cause, done } => {
                let mut details = cause.details().unwrap_or_else(|| json!({}));
                let members = done.iter();
                members.for_each(|(name, value)| details[name] = value.clone());
                Some(details)
            }
            Self::Unauthenticated
            | Self::Unverified
            | Self::SignInRefused(None, _)
            | Self::NotFound(_)
            | Self::NoSuchPath
            | Self::MethodNotAllowed
            | Self::TooLarge(_)
            | Self::NotJson
            | Self::RateLimited(_)
            | Self::Repeated(_)
            | Self::Fault(_) => None,
        }
    }

    /// Logs a fault, once. The log span carries the request id.
    pub(crate) fn log(&self) {
        match self {
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => warn_seldom!(cause = fault.chain(), "Answering 503"),
                FaultKind::Internal => error!(cause = fault.chain(), "Answering 500"),
            },
            Self::Interrupted { cause, .. } => cause.log(),
            // The response shows the reason. The log does not: it is the provider's text,
            // which may repeat the request.
            Self::ProviderUnavailable { provider_type, .. } => {
                warn_seldom!(%provider_type, "Answering 503: the provider gave no usable answer");
            }
            Self::Invalid(_)
            | Self::Unauthenticated
            | Self::Unverified
            | Self::SignInRefused(..)
            | Self::Forbidden(_)
            | Self::Denied(..)
            | Self::NotFound(_)
            | Self::Gone(..)
            | Self::NoSuchPath
            | Self::MethodNotAllowed
            | Self::Conflict(..)
            | Self::TooLarge(_)
            | Self::NotJson
            | Self::Unprocessable { .. }
            | Self::UnprocessableFields(..)
            | Self::RateLimited(_)
            | Self::InvalidCredentials { .. }
            | Self::Repeated(_) => {}
        }
    }

    /// An API key calls an operation that requires a session.
    pub(crate) fn session_required() -> Self {
        Self::Denied(
            Reason::SessionRequired,
            "This operation requires the session of a user; an API key has none",
        )
    }

    /// All recipients are suppressed, and the sender wants to be told so by a refusal.
    pub(crate) fn suppressed() -> Self {
        let message = "must have an address that is not suppressed; nothing was sent";
        Self::Invalid(vec![Issue::new("to", message)])
    }

    /// The failure for an error that poem itself returned.
    pub(crate) fn from_poem(error: &poem::Error) -> Self {
        match error.status() {
            StatusCode::UNAUTHORIZED => Self::Unauthenticated,
            StatusCode::NOT_FOUND => Self::NoSuchPath,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::NotJson,
            status if status.is_client_error() => {
                Self::Invalid(vec![Issue::new("", error.to_string())])
            }
            _ => Self::Fault(Fault::internal("serve a request", error.to_string())),
        }
    }
}

/// Mistakes that the message itself names; the details have the first hundred.
const NAMED_MAX: usize = 3;

fn invalid_message(issues: &[Issue]) -> String {
    if let [issue] = issues {
        return sentence("request", issue);
    }
    let count = match issues.len() {
        count if count > Issue::SHOWN_MAX => format!("more than {}", Issue::SHOWN_MAX),
        count => count.to_string(),
    };
    let named = issues.iter().take(NAMED_MAX);
    let named: Vec<String> = named.map(|issue| sentence("request", issue)).collect();
    let more = match issues.len() > NAMED_MAX {
        true => "; …",
        false => "",
    };
    format!(
        "The request has {count} mistakes: {}{more}",
        named.join("; ")
    )
}

/// An issue as a sentence. An issue without a path is about `what` as a whole.
fn sentence(what: &str, issue: &Issue) -> String {
    let Issue { path, message, .. } = issue;
    if path.is_empty() {
        format!("The {what} {message}")
    } else {
        format!("{path} {message}")
    }
}

/// A wait as the value of `Retry-After`: whole seconds, at least one.
fn at_least_a_second(wait: Duration) -> u64 {
    whole_seconds(wait).max(1)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::Repeated(answer) = self {
            return replay(answer);
        }
        self.log();
        let mut response = poem::web::Json(self.body()).into_response();
        response.set_status(self.status());
        let headers = response.headers_mut();
        if self.status() == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        if let Self::RateLimited(wait) = &self {
            let seconds = HeaderValue::from(at_least_a_second(*wait));
            headers.insert(header::RETRY_AFTER, seconds);
        }
        if let Self::Conflict(reason, _) = &self
            && let Some(seconds) = reason.retry_after_seconds()
        {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status() == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.set_data(AnsweredFailure(Arc::new(self)));
        response
    }
}

impl From<Failure> for poem::Error {
    fn from(failure: Failure) -> Self {
        let response = failure.into_response();
        let answered = response.data::<AnsweredFailure>().cloned();
        let mut error = Self::from_response(response);
        // The data of an error take the place of those of its response.
        if let Some(answered) = answered {
            error.set_data(answered);
        }
        error
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl ApiResponse for Failure {
    fn meta() -> MetaResponses {
        let rows = [
            (
                400,
                "`VALIDATION_ERROR`: the request is not valid. `details.issues` lists the mistakes.",
            ),
            (
                401,
                "`AUTHENTICATION_ERROR`: the API key or the session is missing or invalid.",
            ),
            (
                403,
                "`FORBIDDEN`: the caller lacks the permission in `details.requiredPermission`, or may not do this for the reason in `details.reason`.",
            ),
            (404, "`NOT_FOUND`: the record does not exist."),
            (
                409,
                "`CONFLICT`: the current state does not allow the request, or the idempotency key belongs to another request or to one that still runs. `details.reason` says which.",
            ),
            (413, "`PAYLOAD_TOO_LARGE`: the body is too large."),
            (
                415,
                "`UNSUPPORTED_MEDIA_TYPE`: the content type of the body is not `application/json`.",
            ),
            (
                422,
                "`VALIDATION_ERROR` or `PROVIDER_INVALID_CREDENTIALS`: the request is valid but cannot be done. `details.reason` says why.",
            ),
            (
                429,
                "`RATE_LIMIT_EXCEEDED`: too many requests. Try again after `Retry-After` seconds.",
            ),
            (500, "`INTERNAL_ERROR`: an unexpected error occurred."),
            (
                503,
                "`SERVICE_UNAVAILABLE`: the service, or the provider, is not available. Try again after `Retry-After` seconds.",
            ),
        ];
        let responses = rows.map(|(status, description)| MetaResponse {
            description,
            status: Some(status),
            status_range: None,
            content: vec![MetaMediaType {
                content_type: "application/json",
                schema: ErrorBody::schema_ref(),
            }],
            headers: vec![],
        });
        MetaResponses {
            responses: responses.into(),
        }
    }

    fn register(registry: &mut Registry) {
        ErrorBody::register(registry);
    }
}

/// The response to an error of a handler. An error of poem's own gets the JSON error
/// form; one that already is a response is passed through.
pub(crate) fn respond(error: poem::Error) -> Response {
    if error.is_from_response() {
        error.into_response()
    } else {
        Failure::from_poem(&error).into_response()
    }
}
