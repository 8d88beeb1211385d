//! The account's domains. Whatever domain is asked for exists, unless it says it is `invalid`.

use http::StatusCode;
use serde_json::{Value, json};

use super::domain_not_found;
use crate::domains::is_verified;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1_000;

/// `GET /v4/domains`.
pub(super) fn list(state: &State, request: &Request, key: &str) -> Answer {
    let (wanted, search) = (request.query("state"), request.query("search"));
    let mut names = state.domains.list(Provider::Mailgun, key);
    names.retain(|name| !name.contains('@'));
    names.retain(|name| {
        wanted
            .as_deref()
            .is_none_or(|wanted| wanted == state_of(name))
    });
    names.retain(|name| search.as_deref().is_none_or(|part| name.contains(part)));
    let items: Vec<Value> = names
        .iter()
        .skip(request.query_number("skip", 0, usize::MAX))
        .take(request.query_number("limit", PAGE_DEFAULT, PAGE_MAX))
        .map(|name| summary(name))
        .collect();
    let body = json!({"total_count": names.len(), "items": items});
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v4/domains/{name}`.
pub(super) fn find(state: &State, key: &str, name: &str) -> Answer {
    if name.contains("invalid") || !name.contains('.') {
        return domain_not_found();
    }
    state.domains.note(Provider::Mailgun, key, name);
    let valid = if is_verified(name) {
        "valid"
    } else {
        "unknown"
    };
    let record = |kind: &str, host: String, value: &str| {
        json!({
            "is_active": is_verified(name),
            "cached": if is_verified(name) { vec![value] } else { Vec::new() },
            "name": host,
            "record_type": kind,
            "valid": valid,
            "value": value,
        })
    };
    let exchanger = |host: &str| {
        json!({
            "is_active": is_verified(name),
            "cached": [],
            "priority": "10",
            "record_type": "MX",
            "valid": valid,
            "value": host,
        })
    };
    let body = json!({
        "domain": summary(name),
        "receiving_dns_records": [exchanger("mxa.mailgun.org"), exchanger("mxb.mailgun.org")],
        "sending_dns_records": [
            record("TXT", name.to_owned(), "v=spf1 include:mailgun.org ~all"),
            record("TXT", format!("mx._domainkey.{name}"), "k=rsa; p=SIMULATED"),
            record("CNAME", format!("email.{name}"), "mailgun.org"),
        ],
    });
    reply::json(StatusCode::OK, body.to_string())
}

fn summary(name: &str) -> Value {
    json!({
        "created_at": "Thu, 01 Jan 2026 00:00:00 GMT",
        "id": format!("{name:0>24}"),
        "is_disabled": false,
        "name": name,
        "require_tls": false,
        "skip_verification": false,
        "smtp_login": format!("postmaster@{name}"),
        "spam_action": "disabled",
        "state": state_of(name),
        "type": "custom",
        "use_automatic_sender_security": false,
        "web_prefix": "email",
        "web_scheme": "https",
        "wildcard": false,
    })
}

fn state_of(name: &str) -> &'static str {
    if is_verified(name) {
        "active"
    } else {
        "unverified"
    }
}
