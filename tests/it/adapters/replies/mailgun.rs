//! Mailgun: its OpenAPI document, mailgun/documentation, its page "API Response Codes",
//! and the issues named beside a row.

use super::{Row, row};

/// An error with a message.
macro_rules! error {
    ($status:literal, $message:literal, $class:literal) => {
        row(
            $status,
            concat!(r#"{"message":""#, $message, r#""}"#),
            $class,
        )
    };
}

pub(super) const ROWS: &[Row] = &[
    row(
        200,
        r#"{"id":"<20261121.1@mg.example.com>","message":"Queued. Thank you."}"#,
        "accepted 20261121.1@mg.example.com",
    ),
    error!(200, "Queued", "unknown"),
    row(
        200,
        r#"{"id":"","message":"Queued. Thank you."}"#,
        "unknown",
    ),
    // The recipient.
    error!(
        400,
        "'to' parameter is not a valid address. please check documentation", "rejected recipient"
    ),
    error!(
        400,
        "to parameter is not a valid address. please check documentation", "rejected recipient"
    ),
    error!(400, "to parameter is missing", "rejected recipient"),
    // The recipient of an account or a sandbox that may write to few.
    error!(
        400,
        "Free accounts are for test purposes only. Please upgrade or add the address to authorized recipients.",
        "rejected recipient"
    ),
    error!(
        403,
        "Free accounts are for test purposes only. Please upgrade or add the address to authorized recipients in Account Settings.",
        "rejected recipient"
    ),
    error!(
        401,
        "Please add the address to authorized recipients", "rejected recipient"
    ),
    error!(
        400,
        "Domain x is not allowed to send: Sandbox subdomains are for test purposes only.",
        "rejected recipient"
    ),
    error!(
        403,
        "Domain sandbox1.mailgun.org is not allowed to send: Free accounts are for test purposes only. Please upgrade or add the address to authorized recipients in Account Settings.",
        "rejected recipient"
    ),
    // The sender.
    error!(
        400,
        "'from' parameter is not a valid address. please check documentation", "rejected sender"
    ),
    error!(400, "from parameter is missing", "rejected sender"),
    // The message.
    error!(
        400,
        "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified",
        "rejected message"
    ),
    error!(
        400,
        "Send options (parameters starting with o:, h:, v:, or t:) are limited to 16 kB total",
        "rejected message"
    ),
    error!(400, "Too many recipients, max is 1000", "rejected message"),
    error!(
        400,
        "recipient-variables parameter is not valid JSON", "rejected message"
    ),
    error!(402, "Request Failed", "rejected message"),
    error!(413, "Request Entity Too Large", "rejected message"),
    row(413, "<html><h1>413</h1></html>", "rejected message"),
    // The account, until the customer acts.
    row(200, "Mailgun Magnificent API", "account permanent"),
    (
        200,
        &[("content-type", "text/html")],
        "Mailgun Magnificent API",
        "account permanent",
    ),
    error!(
        400,
        "Domain x is not allowed to send: The domain is unverified and requires DNS configuration.",
        "account permanent"
    ),
    error!(
        400,
        "Domain x is not allowed to send: The domain is disabled.", "account permanent"
    ),
    error!(
        400,
        "Please activate your Mailgun account.", "account permanent"
    ),
    error!(
        403,
        "Domain x is not allowed to send: Account is disabled", "account permanent"
    ),
    error!(403, "Your account is suspended.", "account permanent"),
    row(401, "Forbidden", "account permanent"),
    row(401, r#""Forbidden""#, "account permanent"),
    row(403, "Forbidden", "account permanent"),
    error!(401, "Invalid private key", "account permanent"),
    error!(402, "Payment required", "account permanent"),
    error!(
        403,
        "The account is not allowed to send large batches yet", "account permanent"
    ),
    error!(404, "Domain not found: mg.example.com", "account permanent"),
    // The account, for a while: glotcode/glot 59 and 65.
    error!(
        403,
        "Domain x is not allowed to send: You've reached the message limit you set on account.",
        "account temporary"
    ),
    error!(
        400,
        "Domain x is not allowed to send: recipient limit exceeded", "account temporary"
    ),
    error!(403, "Domain x is temporarily disabled", "account temporary"),
    error!(402, "Monthly quota reached", "account temporary"),
    // Limits with a wait: mailgun-java 50, TryGhost/Ghost 15725 and 24494.
    error!(
        420,
        "Domain x is not allowed to send: recipient limit exceeded, try again after Sat, 21 Nov 2026 12:10:00 UTC",
        "throttled 600s"
    ),
    error!(
        429,
        "Domain x is not allowed to send: recipient limit exceeded, try again after Sat, 21 Nov 2026 12:10:00 UTC",
        "throttled 600s"
    ),
    error!(
        400,
        "Domain x is not allowed to send: recipient limit exceeded, try again after Sat, 21 Nov 2026 12:10:00 UTC",
        "throttled 600s"
    ),
    error!(
        403,
        "Domain x is not allowed to send: bytes limit exceeded, try again after 30 seconds",
        "throttled 30s"
    ),
    error!(
        420,
        "request limit exceeded, try again after Sat, 21 Nov 2026 12:10:00 GMT", "throttled 600s"
    ),
    error!(
        420,
        "limit exceeded, try again after Sat, 21 Nov 2026 13:10:00 +0100", "throttled 600s"
    ),
    error!(
        420,
        "limit exceeded, try again after 2 minutes", "throttled 120s"
    ),
    error!(420, "limit exceeded", "throttled"),
    row(420, "", "throttled"),
    (
        420,
        &[("content-type", "text/html")],
        "<html>420</html>",
        "throttled",
    ),
    (
        429,
        &[("x-ratelimit-reset", "1795262430")],
        "{}",
        "throttled 30s",
    ),
    // A header takes precedence.
    (
        420,
        &[("retry-after", "5")],
        r#"{"message":"limit exceeded, try again after 120 seconds"}"#,
        "throttled 5s",
    ),
    error!(
        429,
        "limit exceeded, try again after 120 seconds", "throttled 120s"
    ),
    error!(
        429,
        "try again after Sat, 21 Nov 2026 12:01:00 +0000", "throttled 60s"
    ),
    error!(429, "Too many requests", "throttled"),
    // Mailgun's own failures.
    error!(500, "Internal Server Error", "unavailable"),
    error!(503, "Service Unavailable", "unavailable"),
    error!(503, "Try again after 60 seconds", "unavailable 60s"),
    // Not Mailgun's.
    row(400, "Bad Request", "unknown"),
    row(401, "", "unknown"),
    row(403, r#"{"error":"blocked"}"#, "unknown"),
    row(404, "Forbidden", "unknown"),
    error!(504, "Gateway Timeout", "unknown"),
];
