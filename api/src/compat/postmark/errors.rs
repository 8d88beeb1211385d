//! Failures as errors of Postmark: `{"ErrorCode", "Message"}`, with the numbers of
//! <https://postmarkapp.com/developer/api/overview#error-codes>.

use poem::http::StatusCode;
use serde_json::{Value, json};
use waypost_core::issue::Issue;

use super::translate::UNKNOWN_STREAM;
use crate::compat::{VendorError, templates};
use crate::error::{Failure, Reason};

const BAD_TOKEN: u32 = 10;
const UNAVAILABLE: u32 = 100;
const INVALID_REQUEST: u32 = 300;
const SENDER_UNKNOWN: u32 = 400;
const INVALID_JSON: u32 = 402;
const WRONG_JSON: u32 = 403;
pub(super) const INACTIVE_RECIPIENTS: u32 = 406;
const JSON_REQUIRED: u32 = 409;
const TOO_MANY_MESSAGES: u32 = 410;
const RATE_LIMITED: u32 = 429;
const MESSAGE_UNKNOWN: u32 = 701;
const TEMPLATE_UNKNOWN: u32 = 1101;
const STREAM_UNKNOWN: u32 = 1235;

/// What a batch with too many messages is told.
pub(super) const BATCH_RULE: &str = "must have 1 to 500 messages";

/// The failure in Postmark's form. `has_key` is whether the request had a token, valid or not.
pub(in crate::compat) fn error(failure: &Failure, has_key: bool) -> VendorError {
    VendorError {
        status: status(failure),
        body: body(code(failure), &message(failure, has_key)),
    }
}

/// A failure of one message of a batch.
pub(super) fn entry(failure: &Failure) -> Value {
    body(code(failure), &failure.sentence())
}

pub(super) fn body(code: u32, message: &str) -> Value {
    json!({ "ErrorCode": code, "Message": message })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "Postmark has words of its own for some"
)]
fn message(failure: &Failure, has_key: bool) -> String {
    match failure {
        Failure::Unauthenticated if has_key => {
            "The token in the X-Postmark-Server-Token header is not a valid API key of Waypost; use a test key in place of POSTMARK_API_TEST"
                .to_owned()
        }
        Failure::Unauthenticated => {
            "There is no API key in the X-Postmark-Server-Token header".to_owned()
        }
        Failure::NoSuchPath => {
            "Waypost has no such endpoint of Postmark; docs/compatibility.md lists those it has"
                .to_owned()
        }
        _ => failure.sentence(),
    }
}

fn status(failure: &Failure) -> StatusCode {
    match failure {
        Failure::Invalid(_)
        | Failure::Unprocessable { .. }
        | Failure::UnprocessableFields(..)
        | Failure::Conflict(..)
        | Failure::NotFound(_)
        | Failure::Gone(..) => StatusCode::UNPROCESSABLE_ENTITY,
        // Postmark's tokens have no permissions: one that may not is no token for this.
        Failure::Forbidden(_) => StatusCode::UNAUTHORIZED,
        Failure::Interrupted { cause, .. } => status(cause),
        Failure::Unauthenticated
        | Failure::NoSuchPath
        | Failure::MethodNotAllowed
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

fn code(failure: &Failure) -> u32 {
    match failure {
        Failure::Invalid(issues) => issues.first().map_or(INVALID_REQUEST, of_issue),
        Failure::Unprocessable { reason, .. } | Failure::UnprocessableFields(reason, _) => {
            of_reason(*reason)
        }
        Failure::Unauthenticated | Failure::Forbidden(_) => BAD_TOKEN,
        Failure::NotFound(_) | Failure::Gone(..) => MESSAGE_UNKNOWN,
        Failure::NotJson => JSON_REQUIRED,
        Failure::RateLimited(_) => RATE_LIMITED,
        Failure::Fault(_) => UNAVAILABLE,
        Failure::Interrupted { cause, .. } => code(cause),
        // Postmark has no numbers for these.
        Failure::Conflict(..)
        | Failure::TooLarge(_)
        | Failure::NoSuchPath
        | Failure::MethodNotAllowed
        | Failure::SignInRefused(..)
        | Failure::Unverified
        | Failure::Denied(..)
        | Failure::InvalidCredentials { .. }
        | Failure::ProviderUnavailable { .. }
        | Failure::Repeated(_) => INVALID_REQUEST,
    }
}

fn of_issue(issue: &Issue) -> u32 {
    let Issue { path, message, .. } = issue;
    match path.as_str() {
        "" | "Messages" if message.starts_with(BATCH_RULE) => TOO_MANY_MESSAGES,
        "" if message.starts_with("body is not valid JSON") => INVALID_JSON,
        "" | "Messages" => WRONG_JSON,
        "TemplateId" | "TemplateAlias" if message == templates::UNKNOWN => TEMPLATE_UNKNOWN,
        "MessageStream" if message == UNKNOWN_STREAM => STREAM_UNKNOWN,
        _ => INVALID_REQUEST,
    }
}

fn of_reason(reason: Reason) -> u32 {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Postmark has a number for some of them"
    )]
    match reason {
        Reason::DomainNotVerified => SENDER_UNKNOWN,
        Reason::TemplateNotFound => TEMPLATE_UNKNOWN,
        Reason::UnknownUnsubscribeGroup => STREAM_UNKNOWN,
        _ => INVALID_REQUEST,
    }
}
