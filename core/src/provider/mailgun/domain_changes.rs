//! The domains of a Mailgun account: added, verified, removed. The list shows only the
//! domain of the credentials; these calls accept any domain.

use http::{Method, header};

use super::{MailgunApi, error_text, field, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::domain::add_domain;
use crate::provider::management::DomainResult;
use crate::provider::outcome::unusable_reply;

/// `POST /v4/domains`, unless the domain exists.
pub(super) fn add(api: MailgunApi, domain: String) -> CallStep<DomainResult> {
    CallStep::call(get(&api, &domain), move |reply| {
        let result = read_one(&reply);
        if result != DomainResult::Missing {
            return CallStep::Done(result);
        }
        let url = api.base.at("/v4/domains");
        let call = ProviderCall::post_form(url, vec![field("name", &domain)]);
        CallStep::call(authorize(&api, call), |reply| {
            CallStep::Done(read_change(&reply))
        })
    })
}

/// `PUT /v4/domains/{name}/verify`.
pub(super) fn verify(api: &MailgunApi, domain: &str) -> CallStep<DomainResult> {
    let url = api.base.at(&format!("/v4/domains/{domain}/verify"));
    let call = ProviderCall {
        method: Method::PUT,
        ..ProviderCall::get(url)
    };
    CallStep::call(authorize(api, call), |reply| {
        CallStep::Done(read_one(&reply))
    })
}

/// `DELETE /v3/domains/{name}` (mailgun/documentation `api-domains.rst`). Refused for the
/// domain that the account sends through.
pub(super) fn remove(api: &MailgunApi, domain: &str) -> CallStep<DomainResult> {
    if api.domain == domain {
        return CallStep::Done(DomainResult::Refused {
            reason: "the account sends through this domain".to_owned(),
        });
    }
    let call = ProviderCall {
        method: Method::DELETE,
        ..ProviderCall::get(api.base.at(&format!("/v3/domains/{domain}")))
    };
    CallStep::call(authorize(api, call), |reply| {
        CallStep::Done(match (unusable_reply(&reply), reply.status) {
            (Some(why), _) => DomainResult::undecided(&reply, why),
            (None, 200 | 404) => DomainResult::Missing,
            (None, 401 | 403) => not_visible(&reply),
            (None, _) => DomainResult::not_changed(&reply, &error_text(&reply)),
        })
    })
}

fn get(api: &MailgunApi, domain: &str) -> ProviderCall {
    let url = api.base.at(&format!("/v4/domains/{domain}"));
    authorize(api, ProviderCall::get(url))
}

fn authorize(api: &MailgunApi, call: ProviderCall) -> ProviderCall {
    call.with(header::AUTHORIZATION, api.authorization.clone())
}

fn read_one(reply: &ProviderReply) -> DomainResult {
    match reply.status {
        _ if unusable_reply(reply).is_some() => read_change(reply),
        404 => DomainResult::Missing,
        401 | 403 => not_visible(reply),
        _ => read_change(reply),
    }
}

/// Reads a record with `domain` and its DNS records, or a refusal. Mailgun answers 200
/// without a record on unknown paths.
fn read_change(reply: &ProviderReply) -> DomainResult {
    if let Some(why) = unusable_reply(reply) {
        return DomainResult::undecided(reply, why);
    }
    let record = reply.json().filter(|_| reply.status == 200);
    let mut found = Vec::with_capacity(1);
    if let Some(domain) = record.as_ref().and_then(read_domain) {
        add_domain(&mut found, domain);
    }
    match found.pop() {
        Some(domain) => DomainResult::Known(domain),
        None => DomainResult::not_changed(reply, &error_text(reply)),
    }
}

fn not_visible(reply: &ProviderReply) -> DomainResult {
    DomainResult::not_visible(reply, "the API key may not manage domains")
}
