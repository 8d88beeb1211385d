//! The account's domains.

use http::StatusCode;
use serde_json::{Value, json};

use super::refusal;
use crate::domains::is_name;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_MAX: usize = 500;

/// `GET /domains?count&offset`; both are required.
pub(super) fn list(state: &State, request: &Request, token: &str) -> Answer {
    let number = |name| {
        request
            .query(name)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let (Some(count), Some(offset)) = (number("count"), number("offset")) else {
        return refusal(300, "Parameters 'count' and 'offset' are required.");
    };
    if count == 0 || count > PAGE_MAX {
        return refusal(300, "Parameter 'count' must be between 1 and 500.");
    }
    let all = domains(state, token);
    let page: Vec<Value> = all
        .iter()
        .skip(offset)
        .take(count)
        .map(|(id, name)| summary(state, token, *id, name))
        .collect();
    let body = json!({"TotalCount": all.len(), "Domains": page});
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /domains/{id}`: the domain with its DNS records.
pub(super) fn find(state: &State, token: &str, id: &str) -> Answer {
    named(state, token, id, |id, name| details(state, token, id, name))
}

/// `POST /domains`.
pub(super) fn create(state: &State, request: &Request, token: &str) -> Answer {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let Some(name) = body["Name"].as_str().filter(|name| is_name(name)) else {
        return refusal(300, "Invalid 'Name' value.");
    };
    match state.domains.create(Provider::Postmark, token, name) {
        Some(id) => details(state, token, id, &name.to_ascii_lowercase()),
        // No documentation of the vendor names the code of this rejection.
        None => refusal(300, "This domain already exists."),
    }
}

/// `PUT /domains/{id}/verifydkim` and `…/verifyreturnpath`: checks the DNS records now.
pub(super) fn verify(state: &State, token: &str, id: &str) -> Answer {
    named(state, token, id, |id, name| {
        state.domains.verify(Provider::Postmark, token, name);
        details(state, token, id, name)
    })
}

/// `DELETE /domains/{id}`.
pub(super) fn remove(state: &State, token: &str, id: &str) -> Answer {
    named(state, token, id, |_, name| {
        state.domains.remove(Provider::Postmark, token, name);
        let body = json!({"ErrorCode": 0, "Message": format!("Domain {name} removed.")});
        reply::json(StatusCode::OK, body.to_string())
    })
}

/// Calls `handle` with the domain of this number.
fn named(
    state: &State,
    token: &str,
    id: &str,
    handle: impl FnOnce(usize, &str) -> Answer,
) -> Answer {
    let id = id.parse::<usize>().ok();
    let mut all = domains(state, token).into_iter();
    match all.find(|(own, _)| Some(*own) == id) {
        Some((id, name)) => handle(id, &name),
        None => refusal(510, "This domain was not found."),
    }
}

fn details(state: &State, token: &str, id: usize, name: &str) -> Answer {
    let verified = state.domains.is_verified(Provider::Postmark, token, name);
    let (host, text) = (
        format!("20260101._domainkey.{name}"),
        "k=rsa;p=SIMULATED".to_owned(),
    );
    let when = |wanted: bool, text: &str| {
        if wanted {
            text.to_owned()
        } else {
            String::new()
        }
    };
    let mut body = summary(state, token, id, name);
    let records = json!({
        "SPFHost": name,
        "SPFTextValue": "v=spf1 a mx include:spf.mtasv.net ~all",
        "DKIMHost": when(verified, &host),
        "DKIMTextValue": when(verified, &text),
        "DKIMPendingHost": when(!verified, &host),
        "DKIMPendingTextValue": when(!verified, &text),
        "DKIMRevokedHost": "",
        "DKIMRevokedTextValue": "",
        "SafeToRemoveRevokedKeyFromDNS": false,
        "DKIMUpdateStatus": if verified { "Verified" } else { "Pending" },
        "ReturnPathDomain": format!("pm-bounces.{name}"),
        "ReturnPathDomainCNAMEValue": "pm.mtasv.net",
    });
    if let (Value::Object(body), Value::Object(records)) = (&mut body, records) {
        body.extend(records);
    }
    reply::json(StatusCode::OK, body.to_string())
}

fn domains(state: &State, token: &str) -> Vec<(usize, String)> {
    let mut names = state.domains.numbered(Provider::Postmark, token);
    names.retain(|(_, name)| !name.contains('@'));
    names
}

fn summary(state: &State, token: &str, id: usize, name: &str) -> Value {
    let verified = state.domains.is_verified(Provider::Postmark, token, name);
    json!({
        "ID": id,
        "Name": name,
        "SPFVerified": verified,
        "DKIMVerified": verified,
        "WeakDKIM": false,
        "ReturnPathDomainVerified": verified,
    })
}
