//! Postmark: its pages "API overview" and "Error codes", the survey of its codes in
//! api-evangelist/postmark, and the issues named beside a row.

use super::{Row, row};

/// An error with a code and a message.
macro_rules! error {
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

pub(super) const ROWS: &[Row] = &[
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
    row(
        200,
        r#"{"MessageID":"b7bc","ErrorCode":0,"Message":"Message OK, but will not deliver to these inactive addresses: ada@example.org."}"#,
        "accepted b7bc",
    ),
    row(200, r#"{"Message":"OK"}"#, "unknown"),
    // The recipient: postmark-php 35 (406), django-anymail 239 (300), edenlabllc/ehealth.api
    // 151 (412).
    error!(
        422,
        "412",
        "While your account is pending approval, all recipient addresses must share the same domain as the 'From' address.",
        "rejected recipient"
    ),
    error!(
        422,
        "412",
        "While your account is pending approval, all recipient addresses must share the same domain as the 'From' address. The domain of your From address is 'example.com'.",
        "rejected recipient"
    ),
    error!(
        422,
        "300", "Invalid 'To' address: 'ada@@x'.", "rejected recipient"
    ),
    error!(
        422,
        "300",
        "Error parsing 'To': Illegal email domain 'x' in address 'ada@x'.",
        "rejected recipient"
    ),
    error!(
        422,
        "406",
        "You tried to send to a recipient that has been marked as inactive. Found inactive addresses: ada@example.org.",
        "rejected recipient"
    ),
    error!(
        200,
        "406", "Found inactive addresses: ada@example.org.", "rejected recipient"
    ),
    // The sender.
    error!(
        422,
        "300", "Invalid 'From' address: 'a'.", "rejected sender"
    ),
    error!(
        422,
        "400",
        "The 'From' address you supplied (zoe@example.com) is not a Sender Signature on your account.",
        "rejected sender"
    ),
    error!(
        422,
        "401", "The Sender Signature for 'From' is not confirmed.", "rejected sender"
    ),
    // The message.
    error!(
        422,
        "300", "Provide either email TextBody or HtmlBody or both.", "rejected message"
    ),
    error!(
        422,
        "300",
        "Metadata value of field 'a' exceeds the maximum of 80 characters.",
        "rejected message"
    ),
    error!(
        422,
        "300",
        "Too many recipients: 51. The maximum number of recipients is 50.",
        "rejected message"
    ),
    error!(
        422,
        "402", "Received invalid JSON input.", "rejected message"
    ),
    error!(
        422,
        "403", "The JSON does not fit this call.", "rejected message"
    ),
    error!(
        422,
        "409", "The 'Accept' header must be set to 'application/json'.", "rejected message"
    ),
    error!(
        422,
        "410", "Batches may contain at most 500 messages.", "rejected message"
    ),
    error!(422, "411", "Forbidden attachment type.", "rejected message"),
    error!(
        422,
        "1101", "The Template's 'TemplateId' is not valid.", "rejected message"
    ),
    error!(422, "9999", "Something new.", "rejected message"),
    row(413, "Payload too large", "rejected message"),
    row(413, "", "rejected message"),
    row(415, "", "rejected message"),
    // The account, until the customer acts.
    error!(
        401,
        "10", "Request does not contain a valid Server token.", "account permanent"
    ),
    error!(
        401,
        "10",
        "No Account or Server API tokens were supplied in the HTTP headers.",
        "account permanent"
    ),
    error!(422, "10", "Bad or missing API token.", "account permanent"),
    error!(422, "413", "Account may not send.", "account permanent"),
    error!(
        422,
        "1235",
        "The 'MessageStream' provided (x) does not exist on this server.",
        "account permanent"
    ),
    error!(
        422,
        "1236", "Sending is not supported on message stream 'inbound'.", "account permanent"
    ),
    error!(
        403,
        "500", "Something about the token.", "account permanent"
    ),
    // The account, for a while.
    error!(
        422,
        "405", "You have run out of credits.", "account temporary"
    ),
    error!(422, "405", "Not allowed to send.", "account temporary"),
    // A rate.
    error!(429, "429", "Rate limit exceeded.", "throttled"),
    error!(422, "429", "Rate limit exceeded.", "throttled"),
    (
        429,
        &[("retry-after", "3")],
        r#"{"ErrorCode":429,"Message":"Rate limit exceeded."}"#,
        "throttled 3s",
    ),
    // Postmark's own failures.
    error!(
        500,
        "100", "An internal server error occurred.", "unavailable"
    ),
    error!(
        503,
        "100", "The Postmark API is offline for maintenance.", "unavailable"
    ),
    error!(422, "100", "Maintenance.", "unavailable"),
    // Not Postmark's.
    row(401, "", "unknown"),
    row(403, r#"{"Message":"Forbidden"}"#, "unknown"),
    row(404, "", "unknown"),
    row(415, "unsupported", "unknown"),
    row(422, "", "unknown"),
    error!(502, "100", "Bad gateway.", "unknown"),
];
