//! Domain identities of SES: added, checked, removed. SES looks into DNS by itself;
//! a check asks what it found.

use http::Method;
use percent_encoding::utf8_percent_encode;
use serde_json::json;

use super::domains::{RESERVED, read_identity};
use super::{SesApi, error_name, error_text, is_access_denied};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::management::DomainAnswer;
use crate::provider::outcome::no_answer;

/// `POST /v2/email/identities`, unless the domain is there; its record says the DNS
/// records of Easy DKIM.
pub(super) fn add(api: SesApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain.clone(), move |answer| {
        if answer != DomainAnswer::Missing {
            return CallStep::Done(answer);
        }
        let body = json!({ "EmailIdentity": domain });
        let call = ProviderCall::post_json(api.base.at("/v2/email/identities"), &body);
        api.clone().hold(call, move |reply| {
            let is_there = matches!(name(&reply).as_deref(), Some("AlreadyExistsException"));
            if reply.status == 200 || is_there {
                return find(api, domain, CallStep::Done);
            }
            CallStep::Done(unmade(&reply))
        })
    })
}

/// `GET /v2/email/identities/{EmailIdentity}`.
pub(super) fn verify(api: SesApi, domain: String) -> CallStep<DomainAnswer> {
    find(api, domain, CallStep::Done)
}

/// `DELETE /v2/email/identities/{EmailIdentity}`, where the key sees it.
pub(super) fn remove(api: SesApi, domain: String) -> CallStep<DomainAnswer> {
    find(api.clone(), domain.clone(), move |answer| {
        if !matches!(answer, DomainAnswer::Known(_)) {
            return CallStep::Done(answer);
        }
        let call = ProviderCall {
            method: Method::DELETE,
            ..ProviderCall::get(api.base.at(&path(&domain)))
        };
        api.hold(call, |reply| {
            let is_gone = reply.status == 200 || is_missing(&reply);
            CallStep::Done(if is_gone {
                DomainAnswer::Missing
            } else {
                unmade(&reply)
            })
        })
    })
}

fn path(domain: &str) -> String {
    let encoded = utf8_percent_encode(domain, RESERVED);
    format!("/v2/email/identities/{encoded}")
}

/// Hands on what the identity's record says.
fn find(
    api: SesApi,
    domain: String,
    then: impl FnOnce(DomainAnswer) -> CallStep<DomainAnswer> + Send + 'static,
) -> CallStep<DomainAnswer> {
    let call = ProviderCall::get(api.base.at(&path(&domain)));
    api.clone().hold(call, move |reply| {
        let record = reply.json().filter(|_| reply.status == 200);
        let answer = match record {
            Some(record) if record["IdentityType"].is_string() => {
                DomainAnswer::Known(read_identity(&record, &domain, &api.region))
            }
            _ if is_missing(&reply) => DomainAnswer::Missing,
            _ => unseen(&reply),
        };
        then(answer)
    })
}

fn name(reply: &ProviderReply) -> Option<String> {
    error_name(reply, &reply.json().unwrap_or_default())
}

fn is_missing(reply: &ProviderReply) -> bool {
    name(reply).as_deref() == Some("NotFoundException")
}

/// Limits come as 400 too, by name.
fn is_limit(name: &str) -> bool {
    matches!(
        name,
        "TooManyRequestsException" | "ThrottlingException" | "Throttling"
    )
}

fn unseen(reply: &ProviderReply) -> DomainAnswer {
    let text = error_text(reply, &reply.json().unwrap_or_default());
    match name(reply) {
        Some(name) if is_access_denied(&name) => {
            DomainAnswer::not_visible(reply, "the key may not see identities")
        }
        Some(name) => DomainAnswer::undecided(reply, &format!("{name}: {text}")),
        None => DomainAnswer::undecided(reply, no_answer(reply).unwrap_or("not an answer of SES")),
    }
}

fn unmade(reply: &ProviderReply) -> DomainAnswer {
    let text = error_text(reply, &reply.json().unwrap_or_default());
    match name(reply) {
        Some(name) if is_limit(&name) => DomainAnswer::undecided(reply, &format!("{name}: {text}")),
        Some(name) if is_access_denied(&name) => {
            DomainAnswer::refused(reply, "the key may not change identities")
        }
        Some(name) => DomainAnswer::unmade(reply, &format!("{name}: {text}")),
        None => DomainAnswer::undecided(reply, no_answer(reply).unwrap_or("not an answer of SES")),
    }
}
