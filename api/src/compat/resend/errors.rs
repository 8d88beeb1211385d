//! Failures as errors of Resend: `{"statusCode", "message", "name"}`, with the names of
//! <https://resend.com/docs/api-reference/errors>.

use poem::http::StatusCode;
use serde_json::json;
use waypost_core::fault::FaultKind;
use waypost_core::issue::Issue;

use crate::compat::VendorError;
use crate::error::{Failure, Reason};

const VALIDATION: &str = "validation_error";

/// The failure in Resend's form. `has_key` is whether the request had an API key, valid or not.
pub(in crate::compat) fn error(failure: &Failure, has_key: bool) -> VendorError {
    let (status, name) = kind(failure, has_key);
    let message = match (failure, has_key) {
        (Failure::Unauthenticated, true) => "API key is invalid".to_owned(),
        (Failure::Unauthenticated, false) => {
            "Missing API key in the authorization header".to_owned()
        }
        (Failure::NoSuchPath, _) => {
            "Waypost has no such endpoint of Resend; docs/compatibility.md lists those it has"
                .to_owned()
        }
        _ => failure.sentence(),
    };
    VendorError {
        status,
        body: json!({ "statusCode": status.as_u16(), "message": message, "name": name }),
    }
}

/// The status and the name of the error.
fn kind(failure: &Failure, has_key: bool) -> (StatusCode, &'static str) {
    match failure {
        Failure::Invalid(issues) => match invalid(issues) {
            name @ "invalid_idempotency_key" => (StatusCode::BAD_REQUEST, name),
            name => (StatusCode::UNPROCESSABLE_ENTITY, name),
        },
        Failure::Unauthenticated if has_key => (StatusCode::FORBIDDEN, "invalid_api_key"),
        Failure::Unauthenticated => (StatusCode::UNAUTHORIZED, "missing_api_key"),
        Failure::Forbidden(_) => (StatusCode::UNAUTHORIZED, "restricted_api_key"),
        Failure::NotFound(_) | Failure::Gone(..) | Failure::NoSuchPath => {
            (StatusCode::NOT_FOUND, "not_found")
        }
        Failure::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
        Failure::Conflict(Reason::IdempotencyKeyReused, _) => {
            (StatusCode::CONFLICT, "invalid_idempotent_request")
        }
        Failure::Conflict(Reason::IdempotencyInProgress, _) => {
            (StatusCode::CONFLICT, "concurrent_idempotent_requests")
        }
        Failure::Unprocessable { reason, .. } | Failure::UnprocessableFields(reason, _) => {
            unprocessable(*reason)
        }
        Failure::Conflict(..) => (StatusCode::UNPROCESSABLE_ENTITY, VALIDATION),
        Failure::TooLarge(_) | Failure::NotJson => (failure.status(), VALIDATION),
        Failure::RateLimited(_) => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        Failure::Fault(fault) => match fault.kind() {
            FaultKind::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "application_error"),
            FaultKind::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "application_error"),
        },
        Failure::Interrupted { cause, .. } => kind(cause, has_key),
        // No operation of Resend answers with these.
        Failure::SignInRefused(..)
        | Failure::Unverified
        | Failure::Denied(..)
        | Failure::InvalidCredentials { .. }
        | Failure::ProviderUnavailable { .. }
        | Failure::Repeated(_) => (failure.status(), "application_error"),
    }
}

/// The name of the error for mistakes in a request: that of the first one.
fn invalid(issues: &[Issue]) -> &'static str {
    let Some(first) = issues.first() else {
        return VALIDATION;
    };
    if first.message.starts_with("is required") {
        return "missing_required_field";
    }
    // In a batch, the first part is the index of the message.
    let mut parts = first.path.split('.');
    let field = parts.find(|part| part.parse::<usize>().is_err());
    match field.unwrap_or_default() {
        "Idempotency-Key" => "invalid_idempotency_key",
        "attachments" => "invalid_attachment",
        "from" => "invalid_from_address",
        "limit" | "after" | "before" | "x-batch-validation" => "invalid_parameter",
        _ => VALIDATION,
    }
}

fn unprocessable(reason: Reason) -> (StatusCode, &'static str) {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Resend has a name for two of them"
    )]
    match reason {
        Reason::DomainNotVerified => (StatusCode::FORBIDDEN, VALIDATION),
        Reason::AttachmentNotFetched => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_attachment"),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, VALIDATION),
    }
}
