//! Domains of a Mailgun account: added, checked, removed. Unlike the list, which
//! shows the credentials' own domain alone, these speak of any.

use http::{Method, header};

use super::{MailgunApi, error_text, field, read_domain};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::domain::add_domain;
use crate::provider::management::DomainAnswer;
use crate::provider::outcome::no_answer;

/// `POST /v4/domains`, unless the domain is there.
pub(super) fn add(api: MailgunApi, domain: String) -> CallStep<DomainAnswer> {
    CallStep::call(get(&api, &domain), move |reply| {
        let answer = read_one(&reply);
        if answer != DomainAnswer::Missing {
            return CallStep::Done(answer);
        }
        let url = api.base.at("/v4/domains");
        let call = ProviderCall::post_form(url, vec![field("name", &domain)]);
        CallStep::call(authorize(&api, call), |reply| {
            CallStep::Done(read_change(&reply))
        })
    })
}

/// `PUT /v4/domains/{name}/verify`.
pub(super) fn verify(api: &MailgunApi, domain: &str) -> CallStep<DomainAnswer> {
    let url = api.base.at(&format!("/v4/domains/{domain}/verify"));
    let call = ProviderCall {
        method: Method::PUT,
        ..ProviderCall::get(url)
    };
    CallStep::call(authorize(api, call), |reply| {
        CallStep::Done(read_one(&reply))
    })
}

/// `DELETE /v3/domains/{name}` (mailgun/documentation `api-domains.rst`). Not for
/// the domain that the account sends through.
pub(super) fn remove(api: &MailgunApi, domain: &str) -> CallStep<DomainAnswer> {
    if api.domain == domain {
        return CallStep::Done(DomainAnswer::Refused {
            reason: "the account sends through this domain".to_owned(),
        });
    }
    let call = ProviderCall {
        method: Method::DELETE,
        ..ProviderCall::get(api.base.at(&format!("/v3/domains/{domain}")))
    };
    CallStep::call(authorize(api, call), |reply| {
        CallStep::Done(match (no_answer(&reply), reply.status) {
            (Some(why), _) => DomainAnswer::undecided(&reply, why),
            (None, 200 | 404) => DomainAnswer::Missing,
            (None, 401 | 403) => not_visible(&reply),
            (None, _) => DomainAnswer::unmade(&reply, &error_text(&reply)),
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

fn read_one(reply: &ProviderReply) -> DomainAnswer {
    match reply.status {
        _ if no_answer(reply).is_some() => read_change(reply),
        404 => DomainAnswer::Missing,
        401 | 403 => not_visible(reply),
        _ => read_change(reply),
    }
}

/// A record under `domain` beside its DNS records, or a refusal. On paths that
/// Mailgun does not know it answers 200 without one.
fn read_change(reply: &ProviderReply) -> DomainAnswer {
    if let Some(why) = no_answer(reply) {
        return DomainAnswer::undecided(reply, why);
    }
    let record = reply.json().filter(|_| reply.status == 200);
    let mut found = Vec::with_capacity(1);
    if let Some(domain) = record.as_ref().and_then(read_domain) {
        add_domain(&mut found, domain);
    }
    match found.pop() {
        Some(domain) => DomainAnswer::Known(domain),
        None => DomainAnswer::unmade(reply, &error_text(reply)),
    }
}

fn not_visible(reply: &ProviderReply) -> DomainAnswer {
    DomainAnswer::not_visible(reply, "the API key may not work on domains")
}
