//! Domains of a Postmark account: added, checked, removed, with the account token.
//! They are named by number, so every conversation begins with the list.

use http::Method;
use serde_json::{Value, json};

use super::{AccountApi, PAGE, error_text, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::domain::DOMAINS_MAX;
use crate::provider::management::DomainAnswer;
use crate::provider::outcome::no_answer;

/// `POST /domains`, unless the domain is there; its record carries the DNS records
/// that the list lacks.
pub(super) fn add(api: AccountApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain.clone(), 0, move |id| {
        let call = match id {
            Some(id) => api.domain(id),
            None => {
                let body = json!({ "Name": domain });
                api.authorize(ProviderCall::post_json(api.base.at("/domains"), &body))
            }
        };
        CallStep::call(call, |reply| CallStep::Done(read_one(&reply)))
    })
}

/// `PUT /domains/{id}/verifydkim`, then `…/verifyreturnpath`. The second answers
/// with what both found.
pub(super) fn verify(api: AccountApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain, 0, move |id| {
        let Some(id) = id else {
            return CallStep::Done(DomainAnswer::Missing);
        };
        let ask = move |api: &AccountApi, what: &str| {
            let url = api.base.at(&format!("/domains/{id}/{what}"));
            api.authorize(ProviderCall {
                method: Method::PUT,
                ..ProviderCall::get(url)
            })
        };
        CallStep::call(ask(&api, "verifydkim"), move |reply| {
            let answer = read_one(&reply);
            if !matches!(answer, DomainAnswer::Known(_)) {
                return CallStep::Done(answer);
            }
            CallStep::call(ask(&api, "verifyreturnpath"), |reply| {
                CallStep::Done(read_one(&reply))
            })
        })
    })
}

/// `DELETE /domains/{id}`.
pub(super) fn remove(api: AccountApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain, 0, move |id| {
        let Some(id) = id else {
            return CallStep::Done(DomainAnswer::Missing);
        };
        let call = ProviderCall {
            method: Method::DELETE,
            ..ProviderCall::get(api.base.at(&format!("/domains/{id}")))
        };
        CallStep::call(api.authorize(call), |reply| {
            let document = reply.json().unwrap_or_default();
            let is_removed = reply.status == 200 && document["ErrorCode"] == 0;
            CallStep::Done(match no_answer(&reply) {
                Some(why) => DomainAnswer::undecided(&reply, why),
                None if is_removed || is_missing(&document) => DomainAnswer::Missing,
                None => DomainAnswer::unmade(&reply, &error_text(&reply, &document)),
            })
        })
    })
}

/// Hands on the number of the domain of this name, if the account has it.
fn find(
    api: AccountApi,
    domain: String,
    offset: usize,
    then: impl FnOnce(Option<i64>) -> CallStep<DomainAnswer> + Send + 'static,
) -> CallStep<DomainAnswer> {
    CallStep::call(api.domains(PAGE, offset), move |reply| {
        if let Some(why) = no_answer(&reply) {
            return CallStep::Done(DomainAnswer::undecided(&reply, why));
        }
        let document = reply.json().unwrap_or_default();
        let text = error_text(&reply, &document);
        let page = match (reply.status, document["Domains"].as_array()) {
            (200, Some(page)) => page,
            (401 | 403, _) => return CallStep::Done(DomainAnswer::not_visible(&reply, &text)),
            _ => return CallStep::Done(DomainAnswer::undecided(&reply, &text)),
        };
        let is_it = |entry: &&Value| {
            let name = entry["Name"].as_str();
            name.is_some_and(|name| name.eq_ignore_ascii_case(&domain))
        };
        let id = page
            .iter()
            .find(is_it)
            .and_then(|entry| entry["ID"].as_i64());
        let read = offset + page.len();
        if id.is_some() || page.len() < PAGE || read >= DOMAINS_MAX {
            return then(id);
        }
        find(api, domain, read, then)
    })
}

fn read_one(reply: &ProviderReply) -> DomainAnswer {
    if let Some(why) = no_answer(reply) {
        return DomainAnswer::undecided(reply, why);
    }
    let document = reply.json().unwrap_or_default();
    let found = read_domain(&document).filter(|_| reply.status == 200);
    match found {
        Some(domain) => DomainAnswer::Known(domain),
        None if is_missing(&document) => DomainAnswer::Missing,
        None => DomainAnswer::unmade(reply, &error_text(reply, &document)),
    }
}

/// Code 510: "This domain was not found."
fn is_missing(document: &Value) -> bool {
    document["ErrorCode"] == 510
}
