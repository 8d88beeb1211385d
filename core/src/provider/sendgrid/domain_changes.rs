//! The authenticated domains of SendGrid: added, verified, removed. A name may occur
//! several times; a valid entry takes precedence, and a removal deletes all.

use http::Method;
use serde_json::{Value, json};

use super::{PAGE, SendgridApi, error_text, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::management::DomainResult;
use crate::provider::outcome::unusable_reply;

const DOMAINS: &str = "/v3/whitelabel/domains";

/// `POST /v3/whitelabel/domains`, unless the domain exists. SendGrid manages the records
/// itself (`automatic_security`); the region is the account's (OAI).
pub(super) fn add(api: SendgridApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain.clone(), move |entries| {
        if let Some(entry) = entries.first() {
            return CallStep::Done(read_known(entry));
        }
        let body = json!({
            "domain": domain,
            "automatic_security": true,
            "region": api.region.as_str(),
        });
        let call = ProviderCall::post_json(api.base.at(DOMAINS), &body);
        CallStep::call(api.authorize(call), |reply| {
            CallStep::Done(read_one(&reply, DomainResult::not_changed))
        })
    })
}

/// `POST /v3/whitelabel/domains/{id}/validate` checks DNS; the domain's record has the
/// result. A read-only key gets the last result.
pub(super) fn verify(api: SendgridApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain, move |entries| {
        let Some((entry, id)) = entries.first().and_then(|entry| Some((entry, id(entry)?))) else {
            return CallStep::Done(DomainResult::Missing);
        };
        let listed = read_known(entry);
        let url = api.base.at(&format!("{DOMAINS}/{id}/validate"));
        let call = ProviderCall {
            method: Method::POST,
            ..ProviderCall::get(url)
        };
        CallStep::call(api.authorize(call), move |reply| match reply.status {
            _ if unusable_reply(&reply).is_some() => CallStep::Done(undecided(&reply)),
            403 => CallStep::Done(listed),
            200 => {
                let url = api.base.at(&format!("{DOMAINS}/{id}"));
                CallStep::call(api.authorize(ProviderCall::get(url)), |reply| {
                    CallStep::Done(read_one(&reply, DomainResult::undecided))
                })
            }
            404 => CallStep::Done(DomainResult::Missing),
            _ => CallStep::Done(DomainResult::undecided(&reply, &error_text(&reply))),
        })
    })
}

/// `DELETE /v3/whitelabel/domains/{id}` for each entry of this name.
pub(super) fn remove(api: SendgridApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain, move |entries| {
        let ids: Vec<i64> = entries.iter().filter_map(id).collect();
        remove_each(api, ids.into_iter())
    })
}

fn remove_each(api: SendgridApi, mut ids: std::vec::IntoIter<i64>) -> CallStep<DomainResult> {
    let Some(id) = ids.next() else {
        return CallStep::Done(DomainResult::Missing);
    };
    let call = ProviderCall {
        method: Method::DELETE,
        ..ProviderCall::get(api.base.at(&format!("{DOMAINS}/{id}")))
    };
    CallStep::call(api.authorize(call), move |reply| match reply.status {
        _ if unusable_reply(&reply).is_some() => CallStep::Done(undecided(&reply)),
        204 | 404 => remove_each(api, ids),
        _ => CallStep::Done(DomainResult::not_changed(&reply, &error_text(&reply))),
    })
}

/// Passes the entries of exactly this name to `then`, valid ones first: the parameter
/// `domain` is a search.
fn find(
    api: SendgridApi,
    domain: String,
    then: impl FnOnce(Vec<Value>) -> CallStep<DomainResult> + Send + 'static,
) -> CallStep<DomainResult> {
    let query = format!("domain={domain}&limit={PAGE}");
    let url = api.base.query(DOMAINS, &query);
    CallStep::call(api.authorize(ProviderCall::get(url)), move |reply| {
        if unusable_reply(&reply).is_some() {
            return CallStep::Done(undecided(&reply));
        }
        let document = reply.json();
        let page = match (reply.status, document.as_ref().and_then(Value::as_array)) {
            (200, Some(page)) => page,
            (403, _) => {
                return CallStep::Done(DomainResult::not_visible(&reply, &error_text(&reply)));
            }
            _ => return CallStep::Done(DomainResult::undecided(&reply, &error_text(&reply))),
        };
        let is_match = |entry: &&Value| {
            let name = entry["domain"].as_str();
            name.is_some_and(|name| name.eq_ignore_ascii_case(&domain))
        };
        let mut entries: Vec<Value> = page.iter().filter(is_match).cloned().collect();
        entries.sort_by_key(|entry| entry["valid"] != true);
        then(entries)
    })
}

fn id(entry: &Value) -> Option<i64> {
    entry["id"].as_i64()
}

fn read_known(entry: &Value) -> DomainResult {
    read_domain(entry).map_or(DomainResult::Missing, DomainResult::Known)
}

/// Reads a domain's record; any other reply is read by `otherwise`.
fn read_one(
    reply: &ProviderReply,
    otherwise: fn(&ProviderReply, &str) -> DomainResult,
) -> DomainResult {
    if unusable_reply(reply).is_some() {
        return undecided(reply);
    }
    let entry = reply
        .json()
        .filter(|_| matches!(reply.status, 200 | 201))
        .and_then(|entry| read_domain(&entry));
    match entry {
        Some(domain) => DomainResult::Known(domain),
        None => otherwise(reply, &error_text(reply)),
    }
}

fn undecided(reply: &ProviderReply) -> DomainResult {
    DomainResult::undecided(reply, unusable_reply(reply).unwrap_or_default())
}
