//! The errors of SES by name, and their meaning for a send. Sources: the service model
//! (MODEL), the developer guide (DG), AWS' page "Common error types", and botocore's tables
//! of the errors that are retried for every service (`botocore/retries/standard.py`,
//! `botocore/data/_retry.json`).
//!
//! Some sources end an error's name with `Exception`, others do not, so names are compared
//! without it.

use std::time::Duration;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::provider::call::ProviderReply;
use crate::provider::outcome::{AccountTrouble, Blame, SendOutcome, reason};

/// The wait after a daily limit is reached or sending is paused. DG advises up to ten
/// minutes between tries.
const WAIT_QUOTA: Duration = Duration::from_mins(10);
/// The wait after the limit per second is exceeded.
const WAIT_RATE: Duration = Duration::from_secs(1);

/// The meaning of an error's name.
enum SesErrorMeaning {
    Blamed(Blame),
    /// The customer must fix the account.
    Account,
    /// A limit of the account is reached, or its sending is paused.
    Limit,
    Throttled,
    /// SES failed and took nothing.
    Unavailable,
    /// SES aborted the request at an unknown point.
    Unknown,
    Unrecognised,
}

/// The outcome of a send with a named error.
pub(super) fn read(name: &str, reply: &ProviderReply, now: Timestamp) -> SendOutcome {
    let document = reply.json().unwrap_or_default();
    let message = error_text(reply, &document);
    let text = format!("{name}: {message}");
    if is_clock_error(name, &message) {
        return SendOutcome::unavailable(reply, now, &clock_text(name));
    }
    // An identity of SES is a sender.
    if is_access_denied(name) && message.contains(":identity/") {
        let text = format!("{name}: the key may not send as this sender");
        return SendOutcome::rejected(Blame::Sender, reply, &text);
    }
    if is_identity_refused(name) {
        return SendOutcome::refused(None, reply, now, &identity_text(name));
    }
    let wait = |of_name| Some(reply.retry_after(now).unwrap_or(of_name));
    match meaning(name, &message) {
        SesErrorMeaning::Blamed(blame) => SendOutcome::rejected(blame, reply, &text),
        SesErrorMeaning::Account => SendOutcome::refused(None, reply, now, &text),
        SesErrorMeaning::Limit => SendOutcome::AccountUnusable {
            trouble: AccountTrouble::Temporary,
            retry_after: wait(WAIT_QUOTA),
            reason: reason(reply.status, &text),
        },
        SesErrorMeaning::Throttled => SendOutcome::Throttled {
            retry_after: wait(WAIT_RATE),
            reason: reason(reply.status, &text),
        },
        SesErrorMeaning::Unavailable => match SendOutcome::common(reply, now, &text, true) {
            Some(unknown @ SendOutcome::Unknown { .. }) => unknown,
            _ => SendOutcome::unavailable(reply, now, &text),
        },
        SesErrorMeaning::Unknown => SendOutcome::unknown(reply, &text),
        SesErrorMeaning::Unrecognised => SendOutcome::common(reply, now, &text, true)
            .unwrap_or_else(|| {
                let blames_account = matches!(reply.status, 401 | 403 | 404 | 405);
                let blame = (!blames_account).then_some(Blame::Message);
                SendOutcome::refused(blame, reply, now, &text)
            }),
    }
}

fn meaning(name: &str, message: &str) -> SesErrorMeaning {
    let message = message.to_ascii_lowercase();
    let mentions = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match without_suffix(name) {
        "MessageRejected" if mentions(&["not verified"]) => SesErrorMeaning::Blamed(Blame::Sender),
        // "Sending paused for this account. For more information, …".
        "MessageRejected" if mentions(&["paused", "quota", "rate exceeded"]) => {
            SesErrorMeaning::Limit
        }
        "MessageRejected" if mentions(&["suspended", "sending disabled"]) => {
            SesErrorMeaning::Account
        }
        "MailFromDomainNotVerified" => SesErrorMeaning::Blamed(Blame::Sender),
        "BadRequest"
        | "MessageRejected"
        | "Validation"
        | "ValidationError"
        | "Serialization"
        | "InvalidParameterValue"
        | "InvalidParameterCombination"
        | "MissingParameter"
        | "MalformedHttpRequest"
        | "RequestEntityTooLarge" => SesErrorMeaning::Blamed(Blame::Message),
        "AccountSuspended" | "NotFound" | "UnknownOperation" | "ConfigurationSetDoesNotExist" => {
            SesErrorMeaning::Account
        }
        "LimitExceeded"
        | "SendingPaused"
        | "AccountSendingPaused"
        | "ConfigurationSetSendingPaused" => SesErrorMeaning::Limit,
        _ if is_throttle(name) && mentions(&["daily", "quota"]) => SesErrorMeaning::Limit,
        _ if is_throttle(name) => SesErrorMeaning::Throttled,
        "RequestTimeout"
        | "IDPCommunicationError"
        | "ConcurrentModification"
        | "InternalFailure"
        | "InternalServiceError"
        | "InternalServerError"
        | "InternalServer"
        | "InternalError"
        | "ServiceUnavailable" => SesErrorMeaning::Unavailable,
        "RequestAborted" => SesErrorMeaning::Unknown,
        _ => SesErrorMeaning::Unrecognised,
    }
}

/// Whether an error is a throttle, of any AWS service (botocore).
fn is_throttle(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "Throttling",
        "Throttled",
        "RequestThrottled",
        "TooManyRequests",
        "ProvisionedThroughputExceeded",
        "TransactionInProgress",
        "RequestLimitExceeded",
        "BandwidthLimitExceeded",
        "SlowDown",
        "PriorRequestNotComplete",
        "EC2Throttled",
        "RateExceeded",
    ];
    NAMES.contains(&without_suffix(name))
}

fn without_suffix(name: &str) -> &str {
    name.strip_suffix("Exception").unwrap_or(name)
}

/// The key is valid but may not make this call.
pub(super) fn is_access_denied(name: &str) -> bool {
    matches!(without_suffix(name), "AccessDenied" | "NotAuthorized")
}

/// Whether AWS refuses the credentials. The names for a wrong secret are not confirmed for
/// this API, so both forms are listed.
pub(super) fn is_identity_refused(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "UnrecognizedClient",
        "InvalidClientTokenId",
        "InvalidAccessKeyId",
        "InvalidSignature",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "ExpiredToken",
        "InvalidToken",
        "TokenRefreshRequired",
        "AuthFailure",
        "OptInRequired",
    ];
    NAMES.contains(&without_suffix(name)) || is_access_denied(name)
}

/// Whether AWS refuses a request because its date is more than 15 minutes off: by a name of
/// its own, or as a bad signature whose text mentions the time.
pub(super) fn is_clock_error(name: &str, message: &str) -> bool {
    matches!(
        without_suffix(name),
        "RequestExpired" | "RequestTimeTooSkewed" | "RequestInTheFuture"
    ) || message.starts_with("Signature expired")
        || message.starts_with("Signature not yet current")
}

/// Requests are dated by Postgres' clock, which corrects that of each process
/// ([`crate::clock`]).
pub(super) fn clock_text(name: &str) -> String {
    format!("{name}: the clock of the PostgreSQL server is off by more than AWS allows")
}

/// AWS explains a wrong signature by repeating the canonical request, and names the user if
/// a permission is missing. So the reason quotes the name only.
pub(super) fn identity_text(name: &str) -> String {
    if is_access_denied(name) {
        format!("{name}: the key lacks the permission")
    } else {
        format!("{name}: the credentials were refused")
    }
}

/// The error's name: the header, else `__type` or `code` of the body (botocore's parsers).
pub(super) fn error_name(reply: &ProviderReply, document: &Value) -> Option<String> {
    let fields = ["code", "Code", "__type"];
    let in_body = fields.iter().filter_map(|name| document[name].as_str());
    let in_header = reply.header("x-amzn-errortype");
    in_header.into_iter().chain(in_body).find_map(plain_name)
}

/// The bare name in `com.amazonaws.ses#MessageRejected:http://internal.amazon.com/coral/…`
/// (Smithy, "Operation error serialization").
fn plain_name(name: &str) -> Option<String> {
    let name = match name.split(':').next().unwrap_or_default() {
        "http" | "https" => name.rsplit(['#', '/']).find(|part| !part.is_empty())?,
        name => name,
    };
    let name = name.rsplit(['#', '.', '/']).next().unwrap_or_default();
    let name = name.split([',', ';']).next().unwrap_or_default().trim();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| name.to_owned())
}

pub(super) fn error_text(reply: &ProviderReply, document: &Value) -> String {
    let message = document["message"]
        .as_str()
        .or_else(|| document["Message"].as_str());
    match message {
        Some(message) => message.to_owned(),
        None if reply.is_html() => String::new(),
        None => reply.text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_every_decorated_form() {
        for decorated in [
            "MessageRejected",
            " MessageRejected ",
            "MessageRejected:",
            "MessageRejected:http://internal.amazon.com/coral/com.amazonaws.ses/",
            "com.amazonaws.ses#MessageRejected",
            "com.amazonaws.ses.v2#MessageRejected:http://x/y#z",
            "com.amazonaws.sesv2.MessageRejected",
            "http://internal.amazon.com/coral/com.amazonaws.ses/MessageRejected",
            "http://internal.amazon.com/coral/#MessageRejected",
            "MessageRejected,Sender",
            "MessageRejected;Sender",
        ] {
            let name = plain_name(decorated);
            assert_eq!(name.as_deref(), Some("MessageRejected"), "{decorated}");
        }
        for none in ["", ":", "#", "no name", "<html>"] {
            assert_eq!(plain_name(none), None, "{none}");
        }
    }
}
