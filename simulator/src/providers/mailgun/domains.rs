//! The account's domains. Every requested domain exists, unless its name contains
//! `invalid`, or starts with `new` and the domain was not created yet.

use http::StatusCode;
use serde_json::{Value, json};

use super::form::Form;
use super::{domain_not_found, message};
use crate::domains::is_name;
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
            .is_none_or(|wanted| wanted == state_of(state, key, name))
    });
    names.retain(|name| search.as_deref().is_none_or(|part| name.contains(part)));
    let items: Vec<Value> = names
        .iter()
        .skip(request.query_number("skip", 0, usize::MAX))
        .take(request.query_number("limit", PAGE_DEFAULT, PAGE_MAX))
        .map(|name| summary(state, key, name))
        .collect();
    let body = json!({"total_count": names.len(), "items": items});
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v4/domains/{name}`.
pub(super) fn find(state: &State, key: &str, name: &str) -> Answer {
    if !exists(state, key, name) {
        return domain_not_found();
    }
    reply::json(StatusCode::OK, details(state, key, name).to_string())
}

/// `POST /v4/domains`.
pub(super) async fn create(state: &State, request: &Request, key: &str) -> Answer {
    let form = match Form::read(request).await {
        Ok(form) => form,
        Err(text) => return message(StatusCode::BAD_REQUEST, &text),
    };
    let Some(name) = form.get("name").filter(|name| is_name(name)) else {
        return message(StatusCode::BAD_REQUEST, "'name' parameter is not a domain");
    };
    let name = name.to_ascii_lowercase();
    if state
        .domains
        .create(Provider::Mailgun, key, &name)
        .is_none()
    {
        return message(StatusCode::BAD_REQUEST, "This domain name is already taken");
    }
    let mut body = details(state, key, &name);
    body["message"] = json!("Domain has been created");
    reply::json(StatusCode::OK, body.to_string())
}

/// `PUT /v4/domains/{name}/verify`: checks the DNS records now.
pub(super) fn verify(state: &State, key: &str, name: &str) -> Answer {
    if !exists(state, key, name) {
        return domain_not_found();
    }
    state.domains.verify(Provider::Mailgun, key, name);
    let mut body = details(state, key, name);
    body["message"] = json!("Domain DNS records have been updated");
    reply::json(StatusCode::OK, body.to_string())
}

/// `DELETE /v3/domains/{name}`.
pub(super) fn remove(state: &State, key: &str, name: &str) -> Answer {
    if !state.domains.remove(Provider::Mailgun, key, name) {
        return domain_not_found();
    }
    message(StatusCode::OK, "Domain has been deleted")
}

fn exists(state: &State, key: &str, name: &str) -> bool {
    if state.domains.has(Provider::Mailgun, key, name) {
        return true;
    }
    if name.contains("invalid") || name.starts_with("new") || !name.contains('.') {
        return false;
    }
    state.domains.add_used(Provider::Mailgun, key, name);
    true
}

fn details(state: &State, key: &str, name: &str) -> Value {
    let verified = state.domains.is_verified(Provider::Mailgun, key, name);
    let valid = if verified { "valid" } else { "unknown" };
    let record = |kind: &str, host: String, value: &str| {
        json!({
            "is_active": verified,
            "cached": if verified { vec![value] } else { Vec::new() },
            "name": host,
            "record_type": kind,
            "valid": valid,
            "value": value,
        })
    };
    let exchanger = |host: &str| {
        json!({
            "is_active": verified,
            "cached": [],
            "priority": "10",
            "record_type": "MX",
            "valid": valid,
            "value": host,
        })
    };
    json!({
        "domain": summary(state, key, name),
        "receiving_dns_records": [exchanger("mxa.mailgun.org"), exchanger("mxb.mailgun.org")],
        "sending_dns_records": [
            record("TXT", name.to_owned(), "v=spf1 include:mailgun.org ~all"),
            record("TXT", format!("mx._domainkey.{name}"), "k=rsa; p=SIMULATED"),
            record("CNAME", format!("email.{name}"), "mailgun.org"),
        ],
    })
}

fn summary(state: &State, key: &str, name: &str) -> Value {
    json!({
        "created_at": "Thu, 01 Jan 2026 00:00:00 GMT",
        "id": format!("{name:0>24}"),
        "is_disabled": false,
        "name": name,
        "require_tls": false,
        "skip_verification": false,
        "smtp_login": format!("postmaster@{name}"),
        "spam_action": "disabled",
        "state": state_of(state, key, name),
        "type": "custom",
        "use_automatic_sender_security": false,
        "web_prefix": "email",
        "web_scheme": "https",
        "wildcard": false,
    })
}

fn state_of(state: &State, key: &str, name: &str) -> &'static str {
    if state.domains.is_verified(Provider::Mailgun, key, name) {
        "active"
    } else {
        "unverified"
    }
}
