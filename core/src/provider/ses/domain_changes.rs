//! The domain identities of SES: added, verified, removed. SES checks DNS by itself; a
//! verification reads its last result.

use http::Method;
use percent_encoding::utf8_percent_encode;
use serde_json::json;

use super::domains::{RESERVED, read_identity};
use super::{SesApi, error_name, error_text, is_access_denied};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::management::DomainResult;
use crate::provider::outcome::unusable_reply;

/// `POST /v2/email/identities`, unless the domain exists. Its record has the DNS records of
/// Easy DKIM.
pub(super) fn add(api: SesApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain.clone(), move |result| {
        if result != DomainResult::Missing {
            return CallStep::Done(result);
        }
        let body = json!({ "EmailIdentity": domain });
        let call = ProviderCall::post_json(api.base.at("/v2/email/identities"), &body);
        api.clone().call(call, move |reply| {
            let is_there = matches!(name(&reply).as_deref(), Some("AlreadyExistsException"));
            if reply.status == 200 || is_there {
                return find(api, domain, CallStep::Done);
            }
            CallStep::Done(not_changed(&reply))
        })
    })
}

/// `GET /v2/email/identities/{EmailIdentity}`.
pub(super) fn verify(api: SesApi, domain: String) -> CallStep<DomainResult> {
    find(api, domain, CallStep::Done)
}

/// `DELETE /v2/email/identities/{EmailIdentity}`, if the key may read it.
pub(super) fn remove(api: SesApi, domain: String) -> CallStep<DomainResult> {
    find(api.clone(), domain.clone(), move |result| {
        if !matches!(result, DomainResult::Known(_)) {
            return CallStep::Done(result);
        }
        let call = ProviderCall {
            method: Method::DELETE,
            ..ProviderCall::get(api.base.at(&path(&domain)))
        };
        api.call(call, |reply| {
            let is_gone = reply.status == 200 || is_missing(&reply);
            CallStep::Done(if is_gone {
                DomainResult::Missing
            } else {
                not_changed(&reply)
            })
        })
    })
}

fn path(domain: &str) -> String {
    let encoded = utf8_percent_encode(domain, RESERVED);
    format!("/v2/email/identities/{encoded}")
}

/// Passes the identity's record to `then`.
fn find(
    api: SesApi,
    domain: String,
    then: impl FnOnce(DomainResult) -> CallStep<DomainResult> + Send + 'static,
) -> CallStep<DomainResult> {
    let call = ProviderCall::get(api.base.at(&path(&domain)));
    api.clone().call(call, move |reply| {
        let record = reply.json().filter(|_| reply.status == 200);
        let result = match record {
            Some(record) if record["IdentityType"].is_string() => {
                DomainResult::Known(read_identity(&record, &domain, &api.region))
            }
            _ if is_missing(&reply) => DomainResult::Missing,
            _ => not_read(&reply),
        };
        then(result)
    })
}

fn name(reply: &ProviderReply) -> Option<String> {
    error_name(reply, &reply.json().unwrap_or_default())
}

fn is_missing(reply: &ProviderReply) -> bool {
    name(reply).as_deref() == Some("NotFoundException")
}

/// Rate limits have the status 400 too; their names tell them apart.
fn is_limit(name: &str) -> bool {
    matches!(
        name,
        "TooManyRequestsException" | "ThrottlingException" | "Throttling"
    )
}

fn not_read(reply: &ProviderReply) -> DomainResult {
    let text = error_text(reply, &reply.json().unwrap_or_default());
    match name(reply) {
        Some(name) if is_access_denied(&name) => {
            DomainResult::not_visible(reply, "the key may not read identities")
        }
        Some(name) => DomainResult::undecided(reply, &format!("{name}: {text}")),
        None => {
            DomainResult::undecided(reply, unusable_reply(reply).unwrap_or("not a reply of SES"))
        }
    }
}

fn not_changed(reply: &ProviderReply) -> DomainResult {
    let text = error_text(reply, &reply.json().unwrap_or_default());
    match name(reply) {
        Some(name) if is_limit(&name) => DomainResult::undecided(reply, &format!("{name}: {text}")),
        Some(name) if is_access_denied(&name) => {
            DomainResult::refused(reply, "the key may not change identities")
        }
        Some(name) => DomainResult::not_changed(reply, &format!("{name}: {text}")),
        None => {
            DomainResult::undecided(reply, unusable_reply(reply).unwrap_or("not a reply of SES"))
        }
    }
}
