//! What each documented answer to a send means: one row per row of the fact
//! sheets' error tables, and the answers that are none of the API's.

use waypost_core::provider::adapter;
use waypost_core::provider::kind::ProviderType;
use waypost_core::provider::outcome::{AccountTrouble, SendOutcome};
use waypost_tests::HTTP_PROVIDERS;

use super::{now, reply};

/// Status, headers, body, class of the outcome.
type Row = (
    u16,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

const HTML: &str = "<!DOCTYPE html><html><body>403 Forbidden</body></html>";

fn class(outcome: &SendOutcome) -> String {
    let wait = |wait: &Option<std::time::Duration>| {
        wait.map_or_else(String::new, |wait| format!(" {}s", wait.as_secs()))
    };
    match outcome {
        SendOutcome::Accepted {
            provider_message_id,
        } => {
            format!("accepted {}", provider_message_id.as_deref().unwrap_or("-"))
        }
        SendOutcome::Rejected { blame, .. } => format!("rejected {blame:?}").to_lowercase(),
        SendOutcome::Deferred { retry_after, .. } => format!("deferred{}", wait(retry_after)),
        SendOutcome::AccountUnusable {
            trouble,
            retry_after,
            ..
        } => match trouble {
            AccountTrouble::Temporary => format!("account temporary{}", wait(retry_after)),
            AccountTrouble::UntilMended => format!("account until mended{}", wait(retry_after)),
        },
        SendOutcome::Throttled { retry_after, .. } => format!("throttled{}", wait(retry_after)),
        SendOutcome::Unavailable { retry_after, .. } => format!("unavailable{}", wait(retry_after)),
        SendOutcome::Unknown { .. } => "unknown".to_owned(),
    }
}

fn reason(outcome: &SendOutcome) -> &str {
    match outcome {
        SendOutcome::Accepted { .. } => "",
        SendOutcome::Rejected { reason, .. }
        | SendOutcome::Deferred { reason, .. }
        | SendOutcome::AccountUnusable { reason, .. }
        | SendOutcome::Throttled { reason, .. }
        | SendOutcome::Unavailable { reason, .. }
        | SendOutcome::Unknown { reason } => reason,
    }
}

fn assert_rows(kind: ProviderType, rows: &[Row]) {
    for (status, headers, body, expected) in rows {
        let outcome = adapter(kind).read_send(&reply(*status, headers, body), now());
        assert_eq!(class(&outcome), *expected, "{kind} {status} {body}");
        let reason = reason(&outcome);
        assert!(!reason.contains('@') && !reason.contains('\n'), "{reason}");
        assert!(reason.chars().count() <= 300);
    }
}

#[test]
fn no_provider_mistakes_a_network_layer_for_itself() {
    let html = &[("content-type", "text/html; charset=utf-8")][..];
    for kind in HTTP_PROVIDERS {
        assert_rows(
            kind,
            &[
                (200, html, HTML, "unknown"),
                (200, &[], "", "unknown"),
                (200, &[], "{}", "unknown"),
                (
                    301,
                    &[("location", "https://example.com")],
                    "",
                    "unavailable",
                ),
                (401, html, HTML, "unavailable"),
                (403, html, HTML, "unavailable"),
                (403, &[], "  <html>Blocked</html>", "unavailable"),
                (404, html, "nothing here", "unavailable"),
                (408, &[], "", "unavailable"),
                (413, html, HTML, "rejected message"),
                (429, html, HTML, "throttled"),
                (500, html, HTML, "unavailable"),
                (502, &[], "Bad Gateway", "unavailable"),
                (503, &[("retry-after", "120")], "", "unavailable 120s"),
                (
                    500,
                    &[("x-ratelimit-reset", "1795262460")],
                    "{}",
                    "unavailable",
                ),
                (504, &[], "", "unavailable"),
            ],
        );
    }
}

#[test]
fn the_wait_is_read_from_each_form_of_it_and_bounded() {
    for (name, value, expected) in [
        ("retry-after", "30", "throttled 30s"),
        (
            "retry-after",
            "Sat, 21 Nov 2026 12:02:00 GMT",
            "throttled 120s",
        ),
        (
            "retry-after",
            "Sat, 21 Nov 2026 11:00:00 GMT",
            "throttled 0s",
        ),
        ("retry-after", "soon", "throttled"),
        ("retry-after", "999999999999", "throttled 3600s"),
        ("x-ratelimit-reset", "1795262407", "throttled 7s"),
        ("x-ratelimit-reset", "1795262000", "throttled 0s"),
        ("x-ratelimit-reset", "9795262400", "throttled 3600s"),
    ] {
        let outcome =
            adapter(ProviderType::Sendgrid).read_send(&reply(429, &[(name, value)], "{}"), now());
        assert_eq!(class(&outcome), expected, "{name}: {value}");
    }
}

/// A row with a body and no headers that matter.
const fn row(status: u16, body: &'static str, class: &'static str) -> Row {
    (status, &[], body, class)
}

/// A row with a SendGrid error: message, field, class.
macro_rules! sendgrid {
    ($status:literal, $message:literal, $field:literal, $class:literal) => {
        row(
            $status,
            concat!(
                r#"{"errors":[{"message":""#,
                $message,
                r#"","field":""#,
                $field,
                r#""}]}"#
            ),
            $class,
        )
    };
}

const SENDGRID: &[Row] = &[
    (
        202,
        &[("x-message-id", "14c5d75ce93")],
        "",
        "accepted 14c5d75ce93",
    ),
    row(202, "", "accepted -"),
    sendgrid!(
        400,
        "No valid address: ada@example.org",
        "personalizations.0.to.0.email",
        "rejected recipient"
    ),
    sendgrid!(
        400,
        "Does not contain a valid address.",
        "from.email",
        "rejected sender"
    ),
    sendgrid!(
        400,
        "The content value must be a string.",
        "content.0.value",
        "rejected message"
    ),
    row(400, "not json", "rejected message"),
    sendgrid!(
        401,
        "The provided authorization grant is invalid, expired, or revoked",
        "",
        "account until mended"
    ),
    sendgrid!(
        401,
        "Authenticated user is not authorized to send mail",
        "",
        "account until mended"
    ),
    sendgrid!(401, "Maximum credits exceeded", "", "unavailable"),
    sendgrid!(
        403,
        "The from address does not match a verified Sender Identity.",
        "from",
        "rejected sender"
    ),
    sendgrid!(403, "access forbidden", "", "account until mended"),
    sendgrid!(404, "not found", "", "account until mended"),
    sendgrid!(405, "method not allowed", "", "account until mended"),
    sendgrid!(413, "too large", "", "rejected message"),
    (
        429,
        &[
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1795262460"),
        ],
        r#"{"errors":[{"message":"too many requests"}]}"#,
        "throttled 60s",
    ),
    sendgrid!(500, "internal", "", "unavailable"),
];

/// A row with a Postmark error: code, message, class.
macro_rules! postmark {
    ($status:literal, $code:literal, $message:literal, $class:literal) => {
        row(
            $status,
            concat!(
                r#"{"ErrorCode":"#,
                $code,
                r#","Message":""#,
                $message,
                r#""}"#
            ),
            $class,
        )
    };
}

const POSTMARK: &[Row] = &[
    row(
        200,
        r#"{"To":"ada@example.org","MessageID":"b7bc2f4a","ErrorCode":0,"Message":"OK"}"#,
        "accepted b7bc2f4a",
    ),
    row(
        200,
        r#"{"MessageID":"b7bc","Message":"Message accepted, but delivery may be delayed."}"#,
        "accepted b7bc",
    ),
    postmark!(
        401,
        "10",
        "The Server Token you provided is not valid.",
        "account until mended"
    ),
    postmark!(
        422,
        "300",
        "Invalid 'To' address: 'ada@@x'.",
        "rejected recipient"
    ),
    postmark!(
        422,
        "300",
        "Invalid 'From' address: 'a'.",
        "rejected sender"
    ),
    postmark!(
        422,
        "300",
        "Provide either email TextBody or HtmlBody.",
        "rejected message"
    ),
    postmark!(422, "400", "Sender signature not found.", "rejected sender"),
    postmark!(
        422,
        "401",
        "Sender signature not confirmed.",
        "rejected sender"
    ),
    postmark!(422, "402", "Invalid JSON.", "rejected message"),
    postmark!(422, "403", "Invalid field.", "rejected message"),
    postmark!(422, "409", "JSON required.", "rejected message"),
    postmark!(422, "405", "You ran out of credits.", "unavailable"),
    postmark!(
        422,
        "406",
        "Found inactive addresses: ada@example.org.",
        "rejected recipient"
    ),
    postmark!(
        200,
        "406",
        "Found inactive addresses: ada@example.org.",
        "rejected recipient"
    ),
    postmark!(422, "410", "Too many batch messages.", "rejected message"),
    postmark!(422, "411", "Forbidden attachment type.", "rejected message"),
    postmark!(422, "412", "Account is pending.", "account until mended"),
    postmark!(422, "413", "Account may not send.", "account until mended"),
    postmark!(
        422,
        "1235",
        "The stream is unknown.",
        "account until mended"
    ),
    postmark!(
        422,
        "1236",
        "Not a sendable stream.",
        "account until mended"
    ),
    postmark!(422, "9999", "Something new.", "rejected message"),
    row(413, "Payload too large", "rejected message"),
    row(415, "", "rejected message"),
    postmark!(429, "429", "Slow down.", "throttled"),
    postmark!(500, "100", "Server error.", "unavailable"),
    postmark!(503, "100", "Maintenance.", "unavailable"),
];

/// A row with a Mailgun error: message, class.
macro_rules! mailgun {
    ($status:literal, $message:literal, $class:literal) => {
        row(
            $status,
            concat!(r#"{"message":""#, $message, r#""}"#),
            $class,
        )
    };
}

const MAILGUN: &[Row] = &[
    row(
        200,
        r#"{"id":"<20261121.1@mg.example.com>","message":"Queued. Thank you."}"#,
        "accepted 20261121.1@mg.example.com",
    ),
    row(200, "Mailgun Magnificent API", "account until mended"),
    (
        200,
        &[("content-type", "text/html")],
        "Mailgun Magnificent API",
        "account until mended",
    ),
    mailgun!(200, "Queued", "unknown"),
    mailgun!(
        400,
        "'to' parameter is not a valid address.",
        "rejected recipient"
    ),
    mailgun!(
        400,
        "'from' parameter is not a valid address.",
        "rejected sender"
    ),
    mailgun!(
        400,
        "Send options are limited to 16 kB total",
        "rejected message"
    ),
    mailgun!(
        400,
        "Domain x is not allowed to send: The domain is unverified",
        "account until mended"
    ),
    row(401, "Forbidden", "account until mended"),
    row(401, r#""Forbidden""#, "account until mended"),
    mailgun!(401, "Invalid private key", "account until mended"),
    mailgun!(402, "Request Failed", "rejected message"),
    mailgun!(
        403,
        "not allowed to send large batches",
        "account until mended"
    ),
    mailgun!(
        404,
        "Domain not found: mg.example.com",
        "account until mended"
    ),
    mailgun!(413, "too large", "rejected message"),
    (
        429,
        &[("x-ratelimit-reset", "1795262430")],
        "{}",
        "throttled 30s",
    ),
    mailgun!(
        429,
        "limit exceeded, try again after 120 seconds",
        "throttled 120s"
    ),
    mailgun!(
        429,
        "try again after Sat, 21 Nov 2026 12:01:00 +0000",
        "throttled 60s"
    ),
    mailgun!(429, "Too many requests", "throttled"),
    mailgun!(500, "Internal Server Error", "unavailable"),
];

/// A row with an SES error: name, message, class.
macro_rules! ses {
    ($status:literal, $name:literal, $message:literal, $class:literal) => {
        (
            $status,
            &[("x-amzn-errortype", $name)],
            concat!(r#"{"message":""#, $message, r#""}"#),
            $class,
        )
    };
}

const SES: &[Row] = &[
    row(
        200,
        r#"{"MessageId":"0100018-abc"}"#,
        "accepted 0100018-abc",
    ),
    ses!(400, "BadRequestException", "bad", "rejected message"),
    ses!(
        400,
        "MessageRejected",
        "Email address is not verified. zoe@example.com",
        "rejected sender"
    ),
    ses!(400, "MessageRejected", "no", "rejected message"),
    ses!(
        400,
        "MailFromDomainNotVerifiedException",
        "",
        "rejected sender"
    ),
    ses!(400, "AccountSuspendedException", "", "account until mended"),
    ses!(400, "SendingPausedException", "", "unavailable 600s"),
    ses!(400, "LimitExceededException", "", "throttled 600s"),
    ses!(
        404,
        "NotFoundException:http://x/y#z",
        "",
        "account until mended"
    ),
    ses!(429, "TooManyRequestsException", "", "throttled 1s"),
    ses!(
        400,
        "ThrottlingException",
        "Maximum sending rate exceeded.",
        "throttled 1s"
    ),
    ses!(
        400,
        "Throttling",
        "Daily message quota exceeded.",
        "throttled 600s"
    ),
    (
        429,
        &[
            ("x-amzn-errortype", "TooManyRequestsException"),
            ("retry-after", "2"),
        ],
        "{}",
        "throttled 2s",
    ),
    ses!(
        403,
        "AccessDeniedException",
        "User: arn is not authorized",
        "account until mended"
    ),
    ses!(
        403,
        "UnrecognizedClientException",
        "",
        "account until mended"
    ),
    ses!(
        403,
        "InvalidSignatureException",
        "The canonical string",
        "account until mended"
    ),
    ses!(
        403,
        "InvalidSignatureException",
        "Signature expired: 2026",
        "unavailable"
    ),
    ses!(403, "RequestExpired", "", "unavailable"),
    row(
        403,
        r#"{"__type":"com.amazon#SignatureDoesNotMatch"}"#,
        "account until mended",
    ),
    row(
        400,
        r#"{"code":"MessageRejected:","Message":"m"}"#,
        "rejected message",
    ),
    row(403, "", "unavailable"),
    ses!(500, "InternalServiceErrorException", "", "unavailable"),
    ses!(500, "ConcurrentModificationException", "", "unavailable"),
    ses!(403, "SomethingNew", "", "account until mended"),
    ses!(400, "SomethingNew", "", "rejected message"),
];

#[test]
fn every_documented_answer_has_its_outcome() {
    for (kind, rows) in [
        (ProviderType::Sendgrid, SENDGRID),
        (ProviderType::Postmark, POSTMARK),
        (ProviderType::Mailgun, MAILGUN),
        (ProviderType::Ses, SES),
    ] {
        assert_rows(kind, rows);
    }
}

#[test]
fn only_a_202_of_sendgrid_proves_acceptance_by_its_status() {
    for kind in HTTP_PROVIDERS {
        for status in [200, 201, 202, 204, 400, 500] {
            let proof = kind == ProviderType::Sendgrid && status == 202;
            assert_eq!(
                adapter(kind).status_is_proof(status),
                proof,
                "{kind} {status}"
            );
        }
    }
}
