//! SendGrid: OpenAPI documents, its pages "Errors" and "4XX API Errors", and the issues
//! named beside a row.

use super::{Row, row};

/// An error with a message and a field.
macro_rules! error {
    ($status:literal, $message:literal, $field:literal, $class:literal) => {
        row(
            $status,
            concat!(
                r#"{"errors":[{"message":""#,
                $message,
                r#"","field":""#,
                $field,
                r#"","help":null}]}"#
            ),
            $class,
        )
    };
    ($status:literal, $message:literal, $class:literal) => {
        row(
            $status,
            concat!(
                r#"{"errors":[{"message":""#,
                $message,
                r#"","field":null,"help":null}]}"#
            ),
            $class,
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    (
        202,
        &[("x-message-id", "14c5d75ce93")],
        "",
        "accepted 14c5d75ce93",
    ),
    row(202, "", "accepted -"),
    // Sandbox mode, which Waypost never uses.
    row(200, "", "unknown"),
    // The recipient.
    error!(
        400,
        "No valid address: ada@example.org", "personalizations.0.to.0.email", "rejected recipient"
    ),
    error!(
        400,
        "Does not contain a valid address.", "personalizations.0.to.0.email", "rejected recipient"
    ),
    error!(
        400,
        "The to array is required for all personalization objects",
        "personalizations.0.to",
        "rejected recipient"
    ),
    // The sender.
    error!(
        400,
        "Does not contain a valid address.", "from.email", "rejected sender"
    ),
    error!(
        400,
        "The from object must be provided for every email send.", "from", "rejected sender"
    ),
    // sendgrid-ruby 489.
    error!(
        403,
        "The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved.",
        "from",
        "rejected sender"
    ),
    error!(
        403,
        "The from address does not match a verified Sender Identity.", "rejected sender"
    ),
    // The message.
    error!(
        400,
        "The content value must be a string at least one character in length.",
        "content.0.value",
        "rejected message"
    ),
    error!(
        400,
        "The subject is required.", "subject", "rejected message"
    ),
    error!(
        400,
        "Header 'subject' is reserved.", "headers", "rejected message"
    ),
    error!(
        400,
        "The custom_args are too long.", "personalizations.0.custom_args", "rejected message"
    ),
    error!(
        400,
        "Each email address in the personalization block should be unique between to, cc, and bcc.",
        "personalizations",
        "rejected message"
    ),
    error!(400, "Bad Request", "rejected message"),
    row(
        400,
        r#"{"errors":["Permission denied, wrong credentials"]}"#,
        "rejected message",
    ),
    error!(413, "content too large", "rejected message"),
    row(
        413,
        "<html><body>413 Request Entity Too Large</body></html>",
        "rejected message",
    ),
    error!(
        415,
        "Content-Type should be application/json.", "rejected message"
    ),
    // The account, until the customer acts: sendgrid-csharp 185, sendgrid-ruby 393.
    error!(
        401,
        "The provided authorization grant is invalid, expired, or revoked", "account permanent"
    ),
    error!(
        401,
        "Authenticated user is not authorized to send mail", "account permanent"
    ),
    error!(401, "authorization required", "account permanent"),
    error!(403, "access forbidden", "account permanent"),
    error!(
        403,
        "You are not authorized to send from that email address", "account permanent"
    ),
    error!(403, "Your account is suspended", "account permanent"),
    error!(404, "not found", "account permanent"),
    error!(405, "method not allowed", "account permanent"),
    // The account, for a while: sendgrid-nodejs 1032, sendgrid-php 931.
    error!(401, "Maximum credits exceeded", "account temporary"),
    error!(403, "Maximum credits exceeded", "account temporary"),
    error!(
        403,
        "You have exceeded your messaging limits", "account temporary"
    ),
    error!(
        403,
        "You've exceeded your messaging limits", "account temporary"
    ),
    error!(
        403,
        "Your account has reached its daily limit", "account temporary"
    ),
    (
        403,
        &[("retry-after", "600")],
        r#"{"errors":[{"message":"You have exceeded your messaging limits","field":null,"help":null}]}"#,
        "account temporary 600s",
    ),
    // A limit with a wait.
    (
        429,
        &[
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1795262460"),
        ],
        r#"{"errors":[{"message":"too many requests"}]}"#,
        "throttled 60s",
    ),
    error!(429, "too many requests", "throttled"),
    // SendGrid's own failures.
    error!(408, "request timeout", "unavailable"),
    error!(500, "internal server error", "unavailable"),
    error!(503, "service unavailable", "unavailable"),
    (
        503,
        &[("retry-after", "120")],
        r#"{"errors":[{"message":"service unavailable"}]}"#,
        "unavailable 120s",
    ),
    // Not SendGrid's.
    row(400, "not json", "unknown"),
    row(400, r#"{"errors":[]}"#, "unknown"),
    row(401, "", "unknown"),
    row(403, r#"{"error":"forbidden"}"#, "unknown"),
    row(502, r#"{"errors":[{"message":"bad gateway"}]}"#, "unknown"),
];
