//! The domains of a Postmark account: added, verified, removed, with the account token.
//! The API addresses them by id, so every conversation starts with the list.

use http::Method;
use serde_json::{Value, json};

use super::{AccountApi, PAGE, error_text, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::domain::DOMAINS_MAX;
use crate::provider::management::DomainResult;
use crate::provider::outcome::unusable_reply;

/// `POST /domains`, unless the domain exists. Its record has the DNS records that the list
/// lacks.
pub(super) fn add(api: AccountApi, domain: String) -> CallStep<DomainResult> {
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

/// `PUT /domains/{id}/verifydkim`, then `…/verifyreturnpath`. The second reply has both
/// results.
pub(super) fn verify(api: AccountApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain, 0, move |id| {
        let Some(id) = id else {
            return CallStep::Done(DomainResult::Missing);
        };
        let put = move |api: &AccountApi, what: &str| {
            let url = api.base.at(&format!("/domains/{id}/{what}"));
            api.authorize(ProviderCall {
                method: Method::PUT,
                ..ProviderCall::get(url)
            })
        };
        CallStep::call(put(&api, "verifydkim"), move |reply| {
            let result = read_one(&reply);
            if !matches!(result, DomainResult::Known(_)) {
                return CallStep::Done(result);
            }
            CallStep::call(put(&api, "verifyreturnpath"), |reply| {
                CallStep::Done(read_one(&reply))
            })
        })
    })
}

/// `DELETE /domains/{id}`.
pub(super) fn remove(api: AccountApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain, 0, move |id| {
        let Some(id) = id else {
            return CallStep::Done(DomainResult::Missing);
        };
        let call = ProviderCall {
            method: Method::DELETE,
            ..ProviderCall::get(api.base.at(&format!("/domains/{id}")))
        };
        CallStep::call(api.authorize(call), |reply| {
            let document = reply.json().unwrap_or_default();
            let is_removed = reply.status == 200 && document["ErrorCode"] == 0;
            CallStep::Done(match unusable_reply(&reply) {
                Some(why) => DomainResult::undecided(&reply, why),
                None if is_removed || is_missing(&document) => DomainResult::Missing,
                None => DomainResult::not_changed(&reply, &error_text(&reply, &document)),
            })
        })
    })
}

/// Passes the id of the domain with this name to `then`, if the account has it.
fn find(
    api: AccountApi,
    domain: String,
    offset: usize,
    then: impl FnOnce(Option<i64>) -> CallStep<DomainResult> + Send + 'static,
) -> CallStep<DomainResult> {
    CallStep::call(api.domains(PAGE, offset), move |reply| {
        if let Some(why) = unusable_reply(&reply) {
            return CallStep::Done(DomainResult::undecided(&reply, why));
        }
        let document = reply.json().unwrap_or_default();
        let text = error_text(&reply, &document);
        let page = match (reply.status, document["Domains"].as_array()) {
            (200, Some(page)) => page,
            (401 | 403, _) => return CallStep::Done(DomainResult::not_visible(&reply, &text)),
            _ => return CallStep::Done(DomainResult::undecided(&reply, &text)),
        };
        let is_match = |entry: &&Value| {
            let name = entry["Name"].as_str();
            name.is_some_and(|name| name.eq_ignore_ascii_case(&domain))
        };
        let id = page
            .iter()
            .find(is_match)
            .and_then(|entry| entry["ID"].as_i64());
        let read = offset + page.len();
        if id.is_some() || page.len() < PAGE || read >= DOMAINS_MAX {
            return then(id);
        }
        find(api, domain, read, then)
    })
}

fn read_one(reply: &ProviderReply) -> DomainResult {
    if let Some(why) = unusable_reply(reply) {
        return DomainResult::undecided(reply, why);
    }
    let document = reply.json().unwrap_or_default();
    let found = read_domain(&document).filter(|_| reply.status == 200);
    match found {
        Some(domain) => DomainResult::Known(domain),
        None if is_missing(&document) => DomainResult::Missing,
        None => DomainResult::not_changed(reply, &error_text(reply, &document)),
    }
}

/// Code 510: "This domain was not found."
fn is_missing(document: &Value) -> bool {
    document["ErrorCode"] == 510
}
