//! Authenticated domains and single senders.

use http::StatusCode;
use serde_json::{Value, json};

use super::error;
use crate::credentials::CredentialKind;
use crate::domains::{is_name, is_verified};
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 50;
const PAGE_MAX: usize = 1_000;

/// `GET /v3/whitelabel/domains`: a bare array.
pub(super) fn list(state: &State, request: &Request, key: &str) -> Answer {
    if let Some(refusal) = forbidden(key) {
        return refusal;
    }
    let wanted = request.query("domain");
    let found: Vec<Value> = domains(state, key)
        .into_iter()
        .filter(|(_, name)| wanted.as_ref().is_none_or(|wanted| wanted == name))
        .map(|(id, name)| element(state, key, id, &name))
        .skip(request.query_number("offset", 0, usize::MAX))
        .take(request.query_number("limit", PAGE_DEFAULT, PAGE_MAX))
        .collect();
    reply::json(StatusCode::OK, Value::Array(found).to_string())
}

/// `POST /v3/whitelabel/domains`. The real service adds a second entry for an existing
/// name; this one rejects it.
pub(super) fn create(state: &State, request: &Request, key: &str) -> Answer {
    if let Some(refusal) = forbidden(key) {
        return refusal;
    }
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let Some(name) = body["domain"].as_str().filter(|name| is_name(name)) else {
        let message = "domain is invalid";
        return error(StatusCode::BAD_REQUEST, message, Some("domain"));
    };
    match state.domains.create(Provider::SendGrid, key, name) {
        Some(id) => {
            let body = element(state, key, id, &name.to_ascii_lowercase());
            reply::json(StatusCode::CREATED, body.to_string())
        }
        None => error(
            StatusCode::BAD_REQUEST,
            "domain already exists",
            Some("domain"),
        ),
    }
}

/// `GET /v3/whitelabel/domains/{id}`.
pub(super) fn find(state: &State, key: &str, id: &str) -> Answer {
    named(state, key, id, |id, name| {
        let body = element(state, key, id, name);
        reply::json(StatusCode::OK, body.to_string())
    })
}

/// `DELETE /v3/whitelabel/domains/{id}`.
pub(super) fn remove(state: &State, key: &str, id: &str) -> Answer {
    named(state, key, id, |_, name| {
        state.domains.remove(Provider::SendGrid, key, name);
        reply::empty(StatusCode::NO_CONTENT)
    })
}

/// `POST /v3/whitelabel/domains/{id}/validate`: checks the DNS records now.
pub(super) fn validate(state: &State, key: &str, id: &str) -> Answer {
    named(state, key, id, |id, name| {
        state.domains.verify(Provider::SendGrid, key, name);
        validated(id, name)
    })
}

/// Calls `handle` with the domain of this number.
fn named(state: &State, key: &str, id: &str, handle: impl FnOnce(usize, &str) -> Answer) -> Answer {
    if let Some(refusal) = forbidden(key) {
        return refusal;
    }
    let id = id.parse::<usize>().ok();
    let found = domains(state, key).into_iter();
    match found.into_iter().find(|(own, _)| Some(*own) == id) {
        Some((id, name)) => handle(id, &name),
        None => error(StatusCode::NOT_FOUND, "resource not found", None),
    }
}

fn validated(id: usize, name: &str) -> Answer {
    let valid = is_verified(name);
    let result = |host: &str| {
        let reason = format!("Expected CNAME for \"{host}.{name}\" but found none.");
        json!({"valid": valid, "reason": (!valid).then_some(reason)})
    };
    let body = json!({
        "id": id,
        "valid": valid,
        "validation_results": {
            "mail_cname": result("em1"),
            "dkim1": result("s1._domainkey"),
            "dkim2": result("s2._domainkey"),
        },
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v3/verified_senders`: the addresses among the key's domains.
pub(super) fn senders(state: &State, request: &Request, key: &str) -> Answer {
    if let Some(refusal) = forbidden(key) {
        return refusal;
    }
    let last_seen = request.query_number("lastSeenID", 0, usize::MAX);
    let results: Vec<Value> = state
        .domains
        .list(Provider::SendGrid, key)
        .into_iter()
        .filter(|name| name.contains('@'))
        .enumerate()
        .map(|(at, address)| sender(at + 1, &address))
        .skip(last_seen)
        .take(request.query_number("limit", PAGE_DEFAULT, PAGE_MAX))
        .collect();
    reply::json(StatusCode::OK, json!({ "results": results }).to_string())
}

fn domains(state: &State, key: &str) -> Vec<(usize, String)> {
    let mut names = state.domains.numbered(Provider::SendGrid, key);
    names.retain(|(_, name)| !name.contains('@'));
    names
}

fn forbidden(key: &str) -> Option<Answer> {
    (CredentialKind::of(key) == CredentialKind::SendOnly)
        .then(|| error(StatusCode::FORBIDDEN, "access forbidden", None))
}

fn element(state: &State, key: &str, id: usize, name: &str) -> Value {
    let valid = state.domains.is_verified(Provider::SendGrid, key, name);
    let cname = |host: &str, data: String| {
        json!({
            "valid": valid,
            "type": "cname",
            "host": format!("{host}.{name}"),
            "data": data,
        })
    };
    json!({
        "id": id,
        "user_id": 7,
        "subdomain": "em1",
        "domain": name,
        "username": "simulator",
        "ips": [],
        "custom_spf": false,
        "default": id == 1,
        "legacy": false,
        "automatic_security": true,
        "valid": valid,
        "dns": {
            "mail_cname": cname("em1", "u7.wl.sendgrid.net".to_owned()),
            "dkim1": cname("s1._domainkey", "s1._domainkey.u7.wl.sendgrid.net".to_owned()),
            "dkim2": cname("s2._domainkey", "s2._domainkey.u7.wl.sendgrid.net".to_owned()),
        },
    })
}

fn sender(id: usize, address: &str) -> Value {
    json!({
        "id": id,
        "nickname": address,
        "from_email": address,
        "from_name": "",
        "reply_to": address,
        "reply_to_name": "",
        "address": "1 Example Street",
        "address2": "",
        "state": "",
        "city": "Example",
        "country": "USA",
        "zip": "",
        "verified": is_verified(address),
        "locked": false,
    })
}
