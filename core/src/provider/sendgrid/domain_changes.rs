//! Authenticated domains of SendGrid: added, checked, removed. One name may be there
//! several times; a valid one counts, and all of them are removed.

use http::Method;
use serde_json::{Value, json};

use super::{PAGE, SendgridApi, error_text, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::management::DomainAnswer;
use crate::provider::outcome::no_answer;

const DOMAINS: &str = "/v3/whitelabel/domains";

/// `POST /v3/whitelabel/domains`, unless the domain is there. SendGrid is to keep
/// the records itself (`automatic_security`); the region is the account's (OAI).
pub(super) fn add(api: SendgridApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain.clone(), move |entries| {
        if let Some(entry) = entries.first() {
            return CallStep::Done(known(entry));
        }
        let body = json!({
            "domain": domain,
            "automatic_security": true,
            "region": api.region.as_str(),
        });
        let call = ProviderCall::post_json(api.base.at(DOMAINS), &body);
        CallStep::call(api.authorize(call), |reply| {
            CallStep::Done(read_one(&reply, DomainAnswer::unmade))
        })
    })
}

/// `POST /v3/whitelabel/domains/{id}/validate` asks DNS; the domain's record says
/// what came of it. A key that may only read is shown what SendGrid found itself.
pub(super) fn verify(api: SendgridApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain, move |entries| {
        let Some((entry, id)) = entries.first().and_then(|entry| Some((entry, id(entry)?))) else {
            return CallStep::Done(DomainAnswer::Missing);
        };
        let listed = known(entry);
        let url = api.base.at(&format!("{DOMAINS}/{id}/validate"));
        let call = ProviderCall {
            method: Method::POST,
            ..ProviderCall::get(url)
        };
        CallStep::call(api.authorize(call), move |reply| match reply.status {
            _ if no_answer(&reply).is_some() => CallStep::Done(unanswered(&reply)),
            403 => CallStep::Done(listed),
            200 => {
                let url = api.base.at(&format!("{DOMAINS}/{id}"));
                CallStep::call(api.authorize(ProviderCall::get(url)), |reply| {
                    CallStep::Done(read_one(&reply, DomainAnswer::undecided))
                })
            }
            404 => CallStep::Done(DomainAnswer::Missing),
            _ => CallStep::Done(DomainAnswer::undecided(&reply, &error_text(&reply))),
        })
    })
}

/// `DELETE /v3/whitelabel/domains/{id}` for each entry of this name.
pub(super) fn remove(api: SendgridApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain, move |entries| {
        let ids: Vec<i64> = entries.iter().filter_map(id).collect();
        remove_each(api, ids.into_iter())
    })
}

fn remove_each(api: SendgridApi, mut ids: std::vec::IntoIter<i64>) -> CallStep<DomainAnswer> {
    let Some(id) = ids.next() else {
        return CallStep::Done(DomainAnswer::Missing);
    };
    let call = ProviderCall {
        method: Method::DELETE,
        ..ProviderCall::get(api.base.at(&format!("{DOMAINS}/{id}")))
    };
    CallStep::call(api.authorize(call), move |reply| match reply.status {
        _ if no_answer(&reply).is_some() => CallStep::Done(unanswered(&reply)),
        204 | 404 => remove_each(api, ids),
        _ => CallStep::Done(DomainAnswer::unmade(&reply, &error_text(&reply))),
    })
}

/// Hands on the entries of exactly this name, valid ones first: `domain` searches.
fn find(
    api: SendgridApi,
    domain: String,
    then: impl FnOnce(Vec<Value>) -> CallStep<DomainAnswer> + Send + 'static,
) -> CallStep<DomainAnswer> {
    let query = format!("domain={domain}&limit={PAGE}");
    let url = api.base.query(DOMAINS, &query);
    CallStep::call(api.authorize(ProviderCall::get(url)), move |reply| {
        if no_answer(&reply).is_some() {
            return CallStep::Done(unanswered(&reply));
        }
        let document = reply.json();
        let page = match (reply.status, document.as_ref().and_then(Value::as_array)) {
            (200, Some(page)) => page,
            (403, _) => {
                return CallStep::Done(DomainAnswer::not_visible(&reply, &error_text(&reply)));
            }
            _ => return CallStep::Done(DomainAnswer::undecided(&reply, &error_text(&reply))),
        };
        let is_it = |entry: &&Value| {
            let name = entry["domain"].as_str();
            name.is_some_and(|name| name.eq_ignore_ascii_case(&domain))
        };
        let mut entries: Vec<Value> = page.iter().filter(is_it).cloned().collect();
        entries.sort_by_key(|entry| entry["valid"] != true);
        then(entries)
    })
}

fn id(entry: &Value) -> Option<i64> {
    entry["id"].as_i64()
}

fn known(entry: &Value) -> DomainAnswer {
    read_domain(entry).map_or(DomainAnswer::Missing, DomainAnswer::Known)
}

/// A reply that is one domain's record, or what `otherwise` makes of it.
fn read_one(
    reply: &ProviderReply,
    otherwise: fn(&ProviderReply, &str) -> DomainAnswer,
) -> DomainAnswer {
    if no_answer(reply).is_some() {
        return unanswered(reply);
    }
    let entry = reply
        .json()
        .filter(|_| matches!(reply.status, 200 | 201))
        .and_then(|entry| read_domain(&entry));
    match entry {
        Some(domain) => DomainAnswer::Known(domain),
        None => otherwise(reply, &error_text(reply)),
    }
}

fn unanswered(reply: &ProviderReply) -> DomainAnswer {
    DomainAnswer::undecided(reply, no_answer(reply).unwrap_or_default())
}
