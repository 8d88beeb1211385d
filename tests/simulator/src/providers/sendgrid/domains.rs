//! Authenticated domains and single senders.

use http::StatusCode;
use serde_json::{Value, json};

use super::error;
use crate::credentials::Standing;
use crate::domains::is_verified;
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
        .enumerate()
        .filter(|(_, name)| wanted.as_ref().is_none_or(|wanted| wanted == name))
        .map(|(at, name)| element(at + 1, &name))
        .skip(request.query_number("offset", 0, usize::MAX))
        .take(request.query_number("limit", PAGE_DEFAULT, PAGE_MAX))
        .collect();
    reply::json(StatusCode::OK, Value::Array(found).to_string())
}

/// `POST /v3/whitelabel/domains/{id}/validate`: as if DNS were asked now.
pub(super) fn validate(state: &State, key: &str, id: &str) -> Answer {
    if let Some(refusal) = forbidden(key) {
        return refusal;
    }
    let at = id.parse::<usize>().ok().and_then(|id| id.checked_sub(1));
    let Some(name) = at.and_then(|at| domains(state, key).into_iter().nth(at)) else {
        return error(StatusCode::NOT_FOUND, "resource not found", None);
    };
    let valid = is_verified(&name);
    let result = |host: &str| {
        let reason = format!("Expected CNAME for \"{host}.{name}\" but found none.");
        json!({"valid": valid, "reason": (!valid).then_some(reason)})
    };
    let body = json!({
        "id": id.parse::<usize>().unwrap_or_default(),
        "valid": valid,
        "validation_results": {
            "mail_cname": result("em1"),
            "dkim1": result("s1._domainkey"),
            "dkim2": result("s2._domainkey"),
        },
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v3/verified_senders`: the addresses among what the key has.
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

fn domains(state: &State, key: &str) -> Vec<String> {
    let mut names = state.domains.list(Provider::SendGrid, key);
    names.retain(|name| !name.contains('@'));
    names
}

fn forbidden(key: &str) -> Option<Answer> {
    (Standing::of(key) == Standing::SendOnly)
        .then(|| error(StatusCode::FORBIDDEN, "access forbidden", None))
}

fn element(id: usize, name: &str) -> Value {
    let valid = is_verified(name);
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
