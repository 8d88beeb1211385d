//! The account, and the addresses and domains from which it may send.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Caller, access_denied, error};
use crate::credentials::CredentialKind;
use crate::domains::is_name;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1_000;

/// `GET /v2/email/account`.
pub(super) fn account(state: &State, caller: &Caller<'_>) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "GetAccount");
    }
    let sent = state.captures.counts()[Provider::Ses as usize];
    let body = json!({
        "DedicatedIpAutoWarmupEnabled": false,
        "EnforcementStatus": "HEALTHY",
        "ProductionAccessEnabled": true,
        "SendQuota": {
            "Max24HourSend": 50_000.0,
            "MaxSendRate": 14.0,
            "SentLast24Hours": sent,
        },
        "SendingEnabled": caller.credential_kind != CredentialKind::NoCredit,
        "SuppressionAttributes": {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]},
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v2/email/identities`; a page's token is the number of its first element.
pub(super) fn list(state: &State, request: &Request, caller: &Caller<'_>) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "ListEmailIdentities");
    }
    let size = match request.query_number("PageSize", PAGE_DEFAULT, PAGE_MAX) {
        0 => PAGE_DEFAULT,
        size => size,
    };
    let start = request.query_number("NextToken", 0, usize::MAX);
    let names = state.domains.list(Provider::Ses, caller.access_key_id);
    let page: Vec<Value> = names
        .iter()
        .skip(start)
        .take(size)
        .map(|name| summary(name, is_verified(state, caller, name)))
        .collect();
    let end = start.saturating_add(size);
    let mut body = json!({ "EmailIdentities": page });
    if end < names.len() {
        body["NextToken"] = Value::String(end.to_string());
    }
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v2/email/identities/{name}`.
pub(super) fn find(state: &State, caller: &Caller<'_>, name: &str) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "GetEmailIdentity");
    }
    let names = state.domains.list(Provider::Ses, caller.access_key_id);
    if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        let message = format!("Email identity {name} does not exist.");
        return error(state, StatusCode::NOT_FOUND, "NotFoundException", &message);
    }
    let verified = is_verified(state, caller, name);
    let status = status(verified);
    // SES verifies by itself, and the next request sees the result.
    state
        .domains
        .verify(Provider::Ses, caller.access_key_id, name);
    let body = json!({
        "IdentityType": kind(name),
        "FeedbackForwardingStatus": true,
        "VerifiedForSendingStatus": verified,
        "VerificationStatus": status,
        "DkimAttributes": {
            "SigningEnabled": true,
            "Status": status,
            "Tokens": tokens(name),
            "SigningHostedZone": "dkim.amazonses.com",
            "SigningAttributesOrigin": "AWS_SES",
            "NextSigningKeyLength": "RSA_2048_BIT",
            "CurrentSigningKeyLength": "RSA_2048_BIT",
        },
        "MailFromAttributes": {
            "MailFromDomain": format!("bounce.{name}"),
            "MailFromDomainStatus": status,
            "BehaviorOnMxFailure": "USE_DEFAULT_VALUE",
        },
        "Policies": {},
        "Tags": [],
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `POST /v2/email/identities`.
pub(super) fn create(state: &State, request: &Request, caller: &Caller<'_>) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "CreateEmailIdentity");
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let refuse = |name, message: &str| error(state, StatusCode::BAD_REQUEST, name, message);
    let Some(name) = body["EmailIdentity"].as_str().filter(|name| is_name(name)) else {
        return refuse("BadRequestException", "Invalid identity.");
    };
    let key = caller.access_key_id;
    if state.domains.create(Provider::Ses, key, name).is_none() {
        let message = format!("Email identity {name} already exist.");
        return refuse("AlreadyExistsException", &message);
    }
    let body = json!({
        "IdentityType": kind(name),
        "VerifiedForSendingStatus": false,
        "DkimAttributes": {
            "SigningEnabled": true,
            "Status": "NOT_STARTED",
            "Tokens": tokens(name),
            "SigningHostedZone": "dkim.amazonses.com",
            "SigningAttributesOrigin": "AWS_SES",
        },
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `DELETE /v2/email/identities/{name}`.
pub(super) fn remove(state: &State, caller: &Caller<'_>, name: &str) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "DeleteEmailIdentity");
    }
    if !state
        .domains
        .remove(Provider::Ses, caller.access_key_id, name)
    {
        let message = format!("Email identity {name} does not exist.");
        return error(state, StatusCode::NOT_FOUND, "NotFoundException", &message);
    }
    reply::json(StatusCode::OK, "{}")
}

fn summary(name: &str, verified: bool) -> Value {
    json!({
        "IdentityType": kind(name),
        "IdentityName": name,
        "SendingEnabled": verified,
        "VerificationStatus": status(verified),
    })
}

fn is_verified(state: &State, caller: &Caller<'_>, name: &str) -> bool {
    let key = caller.access_key_id;
    state.domains.is_verified(Provider::Ses, key, name)
}

fn kind(name: &str) -> &'static str {
    if name.contains('@') {
        "EMAIL_ADDRESS"
    } else {
        "DOMAIN"
    }
}

fn status(verified: bool) -> &'static str {
    if verified { "SUCCESS" } else { "PENDING" }
}

/// Three tokens that are the same for each request.
fn tokens(name: &str) -> [String; 3] {
    let label: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ["a", "b", "c"].map(|letter| format!("{label}{letter:0>8}"))
}
