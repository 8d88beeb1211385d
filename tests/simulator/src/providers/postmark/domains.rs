//! The account's domains.

use http::StatusCode;
use serde_json::{Value, json};

use super::refusal;
use crate::domains::is_verified;
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
        .enumerate()
        .skip(offset)
        .take(count)
        .map(|(at, name)| summary(at + 1, name))
        .collect();
    let body = json!({"TotalCount": all.len(), "Domains": page});
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /domains/{id}`: the same and its records.
pub(super) fn find(state: &State, token: &str, id: &str) -> Answer {
    let at = id.parse::<usize>().ok().and_then(|id| id.checked_sub(1));
    let found = at.and_then(|at| Some((at, domains(state, token).into_iter().nth(at)?)));
    let Some((at, name)) = found else {
        return refusal(510, "This domain was not found.");
    };
    let verified = is_verified(&name);
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
    let mut body = summary(at + 1, &name);
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

fn domains(state: &State, token: &str) -> Vec<String> {
    let mut names = state.domains.list(Provider::Postmark, token);
    names.retain(|name| !name.contains('@'));
    names
}

fn summary(id: usize, name: &str) -> Value {
    let verified = is_verified(name);
    json!({
        "ID": id,
        "Name": name,
        "SPFVerified": verified,
        "DKIMVerified": verified,
        "WeakDKIM": false,
        "ReturnPathDomainVerified": verified,
    })
}
