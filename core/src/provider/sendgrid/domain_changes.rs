//! Authenticated domains of SendGrid: added, checked, removed. One name may be there
//! several times; a valid one counts, and all of them are removed.

use http::Method;
use serde_json::{Value, json};

use super::{Api, PAGE, error_text, read_domain};
use crate::provider::call::{ProviderCall, ProviderReply, Step};
use crate::provider::outcome::no_answer;
use crate::provider::upkeep::DomainAnswer;

const DOMAINS: &str = "/v3/whitelabel/domains";

/// `POST /v3/whitelabel/domains`, unless the domain is there. SendGrid is to keep
/// the records itself (`automatic_security`); the region is the account's (OAI).
pub(super) fn add(api: Api, domain: String) -> Step<DomainAnswer> {
    find(api.clone(), domain.clone(), move |entries| {
        if let Some(entry) = entries.first() {
            return Step::Done(known(entry));
        }
        let body = json!({
            "domain": domain,
            "automatic_security": true,
            "region": api.region.as_str(),
        });
        let call = ProviderCall::post_json(api.base.at(DOMAINS), &body);
        Step::call(api.authorize(call), |reply| {
            Step::Done(read_one(&reply, DomainAnswer::unmade))
        })
    })
}

/// `POST /v3/whitelabel/domains/{id}/validate` asks DNS; the domain's record says
/// what came of it. A key that may only read is shown what SendGrid found itself.
pub(super) fn verify(api: Api, domain: String) -> Step<DomainAnswer> {
    find(api.clone(), domain, move |entries| {
        let Some((entry, id)) = entries.first().and_then(|entry| Some((entry, id(entry)?))) else {
            return Step::Done(DomainAnswer::Missing);
        };
        let listed = known(entry);
        let url = api.base.at(&format!("{DOMAINS}/{id}/validate"));
        let call = ProviderCall {
            method: Method::POST,
            ..ProviderCall::get(url)
        };
        Step::call(api.authorize(call), move |reply| match reply.status {
            _ if no_answer(&reply).is_some() => Step::Done(unanswered(&reply)),
            403 => Step::Done(listed),
            200 => {
                let url = api.base.at(&format!("{DOMAINS}/{id}"));
                Step::call(api.authorize(ProviderCall::get(url)), |reply| {
                    Step::Done(read_one(&reply, DomainAnswer::undecided))
                })
            }
            404 => Step::Done(DomainAnswer::Missing),
            _ => Step::Done(DomainAnswer::undecided(&reply, &error_text(&reply))),
        })
    })
}

/// `DELETE /v3/whitelabel/domains/{id}` for each entry of this name.
pub(super) fn remove(api: Api, domain: String) -> Step<DomainAnswer> {
    find(api.clone(), domain, move |entries| {
        let ids: Vec<i64> = entries.iter().filter_map(id).collect();
        remove_each(api, ids.into_iter())
    })
}

fn remove_each(api: Api, mut ids: std::vec::IntoIter<i64>) -> Step<DomainAnswer> {
    let Some(id) = ids.next() else {
        return Step::Done(DomainAnswer::Missing);
    };
    let call = ProviderCall {
        method: Method::DELETE,
        ..ProviderCall::get(api.base.at(&format!("{DOMAINS}/{id}")))
    };
    Step::call(api.authorize(call), move |reply| match reply.status {
        _ if no_answer(&reply).is_some() => Step::Done(unanswered(&reply)),
        204 | 404 => remove_each(api, ids),
        _ => Step::Done(DomainAnswer::unmade(&reply, &error_text(&reply))),
    })
}

/// Hands on the entries of exactly this name, valid ones first: `domain` searches.
fn find(
    api: Api,
    domain: String,
    then: impl FnOnce(Vec<Value>) -> Step<DomainAnswer> + Send + 'static,
) -> Step<DomainAnswer> {
    let query = format!("domain={domain}&limit={PAGE}");
    let url = api.base.query(DOMAINS, &query);
    Step::call(api.authorize(ProviderCall::get(url)), move |reply| {
        if no_answer(&reply).is_some() {
            return Step::Done(unanswered(&reply));
        }
        let document = reply.json();
        let page = match (reply.status, document.as_ref().and_then(Value::as_array)) {
            (200, Some(page)) => page,
            (403, _) => {
                return Step::Done(DomainAnswer::not_visible(&reply, &error_text(&reply)));
            }
            _ => return Step::Done(DomainAnswer::undecided(&reply, &error_text(&reply))),
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
