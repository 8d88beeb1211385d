//! Failures on the wire. This is the one place where the domain's refusals and our
//! faults become HTTP: a row each of the contract's error table, always in the
//! form `{"error": {"code", "message", "details"?}}`.

mod reason;
mod refusals;

use std::time::Duration;

use poem::error::ResponseError as _;
use poem::http::{HeaderValue, StatusCode, header};
use poem::{IntoResponse, Response};
use poem_openapi::registry::{MetaMediaType, MetaResponse, MetaResponses, Registry};
use poem_openapi::types::{Any, Type};
use poem_openapi::{ApiResponse, Object};
use serde_json::{Value, json};
use tracing::error;
use waypost_core::auth::Permission;
use waypost_core::fault::{Fault, FaultKind};
use waypost_core::idempotency::StoredAnswer;
use waypost_core::issue::Issue;
use waypost_core::provider::kind::ProviderType;
use waypost_core::warn_seldom;

use crate::idempotency::respond_again;
use crate::middleware::rate_limits::whole_seconds;

pub(crate) use reason::Reason;
pub(crate) use refusals::{DELIVERY, MESSAGE, TEMPLATE, VERSION};

/// Seconds after which a caller may try again when a server of ours is away.
pub(crate) const RETRY_AFTER_SECONDS: u32 = 2;

/// Why a request was not served.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 400: the request's form is wrong.
    Invalid(Vec<Issue>),
    /// 401: no valid API key.
    Unauthenticated,
    /// 401: nothing shows that the provider sent it.
    Unverified,
    /// 403: the key lacks a permission.
    Forbidden(Permission),
    /// 404: there is no such thing, or it is another organization's.
    NotFound(&'static str),
    /// 404: there is no such path.
    NoSuchPath,
    /// 405: the path does not know the method.
    MethodNotAllowed,
    /// 409: what there is stands in the way.
    Conflict(Reason, &'static str),
    /// 413: the body is larger than the bound, in bytes.
    TooLarge(usize),
    /// 415: the body is not JSON by its content type.
    NotJson,
    /// 422: the request is well formed and cannot be done.
    Unprocessable {
        /// What stands in the way.
        message: String,
        /// The field that it is about, if one.
        path: Option<&'static str>,
        /// A word for programs.
        reason: Reason,
    },
    /// 422: the request names records that are not there.
    UnknownIds(Vec<Issue>),
    /// 422: the provider refused the credentials.
    InvalidCredentials {
        /// Which provider.
        provider_type: ProviderType,
        /// What it said.
        reason: String,
    },
    /// 503: a provider that must be asked gave no verdict.
    ProviderUndecided {
        /// Which provider.
        provider_type: ProviderType,
        /// What happened.
        reason: String,
    },
    /// 429: one request too many; the next one passes after so long.
    RateLimited(Duration),
    /// It was served before: its key gets the answer of then.
    Repeated(StoredAnswer),
    /// 500 or 503: we failed.
    Fault(Fault),
}

/// The error envelope.
#[derive(Debug, Object)]
#[oai(rename = "ErrorResponse")]
pub(crate) struct ErrorBody {
    error: ErrorContent,
}

#[derive(Debug, Object)]
#[oai(rename = "Error")]
struct ErrorContent {
    /// A word for programs, such as `VALIDATION_ERROR`.
    code: String,
    /// A sentence for people.
    message: String,
    /// Particulars: for a failed validation `issues`, each with `path` and `message`,
    /// the first 100 of them; for 409 and 422 a `reason`.
    details: Option<Any<Value>>,
}

impl Failure {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated | Self::Unverified => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict(..) => StatusCode::CONFLICT,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Unprocessable { .. } | Self::UnknownIds(_) | Self::InvalidCredentials { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::ProviderUndecided { .. } => StatusCode::SERVICE_UNAVAILABLE,
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
            Self::Invalid(_) | Self::Unprocessable { .. } | Self::UnknownIds(_) => {
                "VALIDATION_ERROR"
            }
            Self::Unauthenticated | Self::Unverified => "AUTHENTICATION_ERROR",
            Self::Forbidden(_) => "FORBIDDEN",
            Self::NotFound(_) | Self::NoSuchPath => "NOT_FOUND",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::Conflict(..) => "CONFLICT",
            Self::TooLarge(_) => "PAYLOAD_TOO_LARGE",
            Self::NotJson => "UNSUPPORTED_MEDIA_TYPE",
            Self::InvalidCredentials { .. } => "PROVIDER_INVALID_CREDENTIALS",
            Self::ProviderUndecided { .. } => "SERVICE_UNAVAILABLE",
            Self::RateLimited(_) => "RATE_LIMIT_EXCEEDED",
            // Never written: the answer of then is.
            Self::Repeated(_) => "REPEATED",
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => "SERVICE_UNAVAILABLE",
                FaultKind::Internal => "INTERNAL_ERROR",
            },
        }
    }

    /// A sentence for people. Faults show nothing of what went wrong.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Invalid(issues) | Self::UnknownIds(issues) => invalid_message(issues),
            Self::Unauthenticated => "The API key is missing or invalid".to_owned(),
            Self::Unverified => "Nothing shows that the account's provider sent this".to_owned(),
            Self::Forbidden(permission) => format!("The API key lacks the permission {permission}"),
            Self::NotFound(what) => format!("There is no such {what}"),
            Self::NoSuchPath => "There is no such path".to_owned(),
            Self::MethodNotAllowed => "The path does not know this method".to_owned(),
            Self::Conflict(_, message) => (*message).to_owned(),
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
                format!("{provider_type} refused the credentials: {reason}")
            }
            Self::ProviderUndecided {
                provider_type,
                reason,
            } => {
                format!("{provider_type} could not be asked; try again later: {reason}")
            }
            Self::RateLimited(wait) => {
                format!(
                    "Too many requests; try again after {} s",
                    at_least_a_second(*wait)
                )
            }
            Self::Repeated(_) => "The request was served before".to_owned(),
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => {
                    "The service is not available at the moment; try again".to_owned()
                }
                FaultKind::Internal => "An unexpected error occurred".to_owned(),
            },
        }
    }

    /// The answer's body.
    pub(crate) fn body(&self) -> Value {
        let mut content = json!({ "code": self.code(), "message": self.message() });
        if let Some(details) = self.details() {
            content["details"] = details;
        }
        json!({ "error": content })
    }

    /// All that is wrong on one line, for a message of a batch.
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

    /// The same failure, with the issues that were found before it.
    pub(crate) fn after(self, issues: &mut Vec<Issue>) -> Self {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "no other is about the request's form"
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
            Self::UnknownIds(issues) => {
                Some(json!({ "reason": Reason::UnknownId, "issues": issues }))
            }
            Self::Conflict(reason, _) => Some(json!({ "reason": reason })),
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
            Self::ProviderUndecided { provider_type, .. } => {
                Some(json!({ "providerType": provider_type }))
            }
            Self::Unauthenticated
            | Self::Unverified
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

    /// Faults are logged here, once; the request's span carries its id.
    pub(crate) fn log(&self) {
        match self {
            Self::Fault(fault) => match fault.kind() {
                FaultKind::Unavailable => warn_seldom!(cause = fault.chain(), "Answering 503"),
                FaultKind::Internal => error!(cause = fault.chain(), "Answering 500"),
            },
            // The caller is told the reason. It is the provider's text, which may
            // repeat what was sent to it.
            Self::ProviderUndecided { provider_type, .. } => {
                warn_seldom!(%provider_type, "Answering 503: the provider gave no answer");
            }
            Self::Invalid(_)
            | Self::Unauthenticated
            | Self::Unverified
            | Self::Forbidden(_)
            | Self::NotFound(_)
            | Self::NoSuchPath
            | Self::MethodNotAllowed
            | Self::Conflict(..)
            | Self::TooLarge(_)
            | Self::NotJson
            | Self::Unprocessable { .. }
            | Self::UnknownIds(_)
            | Self::RateLimited(_)
            | Self::InvalidCredentials { .. }
            | Self::Repeated(_) => {}
        }
    }

    /// The failure behind an error that poem raised itself.
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

fn invalid_message(issues: &[Issue]) -> String {
    match issues {
        [issue] => sentence("request", issue),
        issues if issues.len() > Issue::SHOWN_MAX => {
            let max = Issue::SHOWN_MAX;
            format!(
                "The request has more than {max} mistakes; details.issues names the first {max}"
            )
        }
        _ => format!("The request has {} mistakes", issues.len()),
    }
}

/// An issue as a whole sentence; one without a path is about all of `what`.
fn sentence(what: &str, issue: &Issue) -> String {
    let Issue { path, message } = issue;
    if path.is_empty() {
        format!("The {what} {message}")
    } else {
        format!("{path} {message}")
    }
}

/// A wait as `Retry-After` tells it: in whole seconds, and never none.
fn at_least_a_second(wait: Duration) -> u64 {
    whole_seconds(wait).max(1)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if let Self::Repeated(answer) = self {
            return respond_again(answer);
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
        response
    }
}

impl From<Failure> for poem::Error {
    fn from(failure: Failure) -> Self {
        Self::from_response(failure.into_response())
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
                "`VALIDATION_ERROR`: the request's form is wrong; `details.issues` names every mistake.",
            ),
            (
                401,
                "`AUTHENTICATION_ERROR`: the API key is missing or invalid.",
            ),
            (
                403,
                "`FORBIDDEN`: the API key lacks `details.requiredPermission`.",
            ),
            (404, "`NOT_FOUND`: there is no such record."),
            (
                409,
                "`CONFLICT`: the state of what there is does not permit it, or an idempotency key was used for another request or by one that still runs; `details.reason` says which.",
            ),
            (413, "`PAYLOAD_TOO_LARGE`: the body is too large."),
            (
                415,
                "`UNSUPPORTED_MEDIA_TYPE`: the body is not `application/json`.",
            ),
            (
                422,
                "`VALIDATION_ERROR` or `PROVIDER_INVALID_CREDENTIALS`: well formed, and cannot be done; `details.reason` says why.",
            ),
            (
                429,
                "`RATE_LIMIT_EXCEEDED`: try again after `Retry-After` seconds.",
            ),
            (500, "`INTERNAL_ERROR`: an unexpected error."),
            (
                503,
                "`SERVICE_UNAVAILABLE`: try again after `Retry-After` seconds.",
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

/// The answer to an error of poem's own, in the contract's form; what already is
/// an answer passes through.
pub(crate) fn respond(error: poem::Error) -> Response {
    if error.is_from_response() {
        error.into_response()
    } else {
        Failure::from_poem(&error).into_response()
    }
}

/// Whether reading a body failed because it is too large.
pub(crate) fn is_too_large(error: &poem::error::ReadBodyError) -> bool {
    error.status() == StatusCode::PAYLOAD_TOO_LARGE
}
