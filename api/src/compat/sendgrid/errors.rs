//! Failures as errors of SendGrid: `{"errors": [{"message", "field", "help"}]}`.

use poem::http::StatusCode;
use serde_json::{Value, json};
use waypost_core::issue::Issue;

use crate::compat::VendorError;
use crate::error::{Failure, Reason};

/// The failure in SendGrid's form. `has_key` is whether the request had an API key, valid or not.
pub(in crate::compat) fn error(failure: &Failure, has_key: bool) -> VendorError {
    let errors: Vec<Value> =
        if let Failure::Invalid(issues) | Failure::UnprocessableFields(_, issues) = failure {
            let shown = issues.iter().take(Issue::SHOWN_MAX);
            shown.map(of_issue).collect()
        } else {
            vec![one(message(failure, has_key), None)]
        };
    VendorError {
        status: status(failure),
        body: json!({ "errors": errors }),
    }
}

fn of_issue(issue: &Issue) -> Value {
    let Issue { path, message, .. } = issue;
    match path.as_str() {
        "" => one(format!("The request {message}"), None),
        path => one(format!("{path} {message}"), Some(path)),
    }
}

fn one(message: String, field: Option<&str>) -> Value {
    json!({ "message": message, "field": field, "help": null })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "SendGrid has words of its own for some"
)]
fn message(failure: &Failure, has_key: bool) -> String {
    match failure {
        Failure::Unauthenticated if has_key => {
            "The provided authorization grant is invalid, expired, or revoked".to_owned()
        }
        Failure::Unauthenticated => "authorization required".to_owned(),
        Failure::Forbidden(_) => format!("access forbidden: {}", failure.sentence()),
        Failure::NoSuchPath => {
            "not found: Waypost has no such endpoint of SendGrid; docs/compatibility.md lists those it has"
                .to_owned()
        }
        Failure::MethodNotAllowed => "method not allowed".to_owned(),
        Failure::RateLimited(_) => "too many requests".to_owned(),
        _ => failure.sentence(),
    }
}

fn status(failure: &Failure) -> StatusCode {
    match failure {
        Failure::Unprocessable { reason, .. } | Failure::UnprocessableFields(reason, _) => {
            match reason == &Reason::DomainNotVerified {
                true => StatusCode::FORBIDDEN,
                false => StatusCode::BAD_REQUEST,
            }
        }
        Failure::Interrupted { cause, .. } => status(cause),
        Failure::Invalid(_)
        | Failure::Unauthenticated
        | Failure::Forbidden(_)
        | Failure::NotFound(_)
        | Failure::Gone(..)
        | Failure::NoSuchPath
        | Failure::MethodNotAllowed
        | Failure::Conflict(..)
        | Failure::TooLarge(_)
        | Failure::NotJson
        | Failure::RateLimited(_)
        | Failure::SignInRefused(..)
        | Failure::Unverified
        | Failure::Denied(..)
        | Failure::InvalidCredentials { .. }
        | Failure::ProviderUnavailable { .. }
        | Failure::Repeated(_)
        | Failure::Fault(_) => failure.status(),
    }
}
