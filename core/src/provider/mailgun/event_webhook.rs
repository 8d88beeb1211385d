//! Mailgun's webhooks: for each kind of event up to three URLs, per domain (OAS, v3:
//! v4 sets several kinds at once, in a form that the transport does not write). All
//! are signed with one key of the account.

use http::{Method, header};
use serde_json::Value;

use super::{MailgunApi, error_text, field};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::event_secrets::EventSecrets;
use crate::provider::management::{EventTarget, Registration};
use crate::provider::outcome::no_answer;

/// Every kind of event that Mailgun tells of.
const KINDS: [&str; 8] = [
    "accepted",
    "delivered",
    "opened",
    "clicked",
    "unsubscribed",
    "complained",
    "permanent_fail",
    "temporary_fail",
];
/// The most URLs of one kind.
const URLS_MAX: usize = 3;

/// `GET /v5/accounts/http_signing_key` first: without the key nothing that comes
/// would be believed. A key that may not see it does where the signing key was
/// given by hand.
pub(super) fn register(api: MailgunApi, target: EventTarget) -> CallStep<Registration> {
    let url = api.base.at("/v5/accounts/http_signing_key");
    CallStep::call(authorize(&api, ProviderCall::get(url)), move |reply| {
        let document = reply.json().unwrap_or_default();
        let key = document["http_signing_key"].as_str();
        let key = key.filter(|_| reply.status == 200);
        let secrets = match (key.and_then(EventSecrets::mailgun), target.secrets) {
            (Some(secrets), _) => secrets,
            (None, Some(given)) if matches!(reply.status, 401 | 403) => given,
            (None, _) => return CallStep::Done(unmade(&reply)),
        };
        let path = format!("/v3/domains/{}/webhooks", api.domain);
        let call = authorize(&api, ProviderCall::get(api.base.at(&path)));
        CallStep::call(call, move |reply| {
            let document = reply.json().unwrap_or_default();
            let webhooks = &document["webhooks"];
            if reply.status != 200 || !webhooks.is_object() {
                return CallStep::Done(unmade(&reply));
            }
            match missing(webhooks, &target.url.0) {
                Ok(missing) => add_each(api, missing.into_iter(), secrets),
                Err(kind) => CallStep::Done(full(kind)),
            }
        })
    })
}

/// A kind of event, and the URLs that it is to be told to.
type WantedWebhook = (&'static str, Vec<String>, bool);

/// The kinds that our URL is not told of yet, each with the URLs that it has beside
/// ours and whether it had any; else the kind that has no room for ours.
fn missing(webhooks: &Value, url: &str) -> Result<Vec<WantedWebhook>, &'static str> {
    let mut missing = Vec::with_capacity(KINDS.len());
    for kind in KINDS {
        let urls = webhooks[kind]["urls"].as_array().into_iter().flatten();
        let mut urls: Vec<String> = urls
            .filter_map(|url| Some(url.as_str()?.to_owned()))
            .collect();
        if urls.iter().any(|known| known == url) {
            continue;
        }
        if urls.len() >= URLS_MAX {
            return Err(kind);
        }
        let had_any = !urls.is_empty();
        urls.push(url.to_owned());
        missing.push((kind, urls, had_any));
    }
    Ok(missing)
}

/// `POST …/webhooks` for a kind without URLs, `PUT …/webhooks/{kind}` for others.
fn add_each(
    api: MailgunApi,
    mut missing: std::vec::IntoIter<WantedWebhook>,
    secrets: EventSecrets,
) -> CallStep<Registration> {
    let Some((kind, urls, had_any)) = missing.next() else {
        return CallStep::Done(Registration::Registered(secrets));
    };
    let path = format!("/v3/domains/{}/webhooks", api.domain);
    let mut fields: Vec<(String, String)> = urls.into_iter().map(|url| field("url", url)).collect();
    let call = if had_any {
        let url = api.base.at(&format!("{path}/{kind}"));
        ProviderCall {
            method: Method::PUT,
            ..ProviderCall::post_form(url, fields)
        }
    } else {
        fields.insert(0, field("id", kind));
        ProviderCall::post_form(api.base.at(&path), fields)
    };
    CallStep::call(authorize(&api, call), move |reply| {
        let document = reply.json().unwrap_or_default();
        let is_saved = reply.status == 200 && document["webhook"].is_object();
        if is_saved {
            add_each(api, missing, secrets)
        } else {
            CallStep::Done(unmade(&reply))
        }
    })
}

fn authorize(api: &MailgunApi, call: ProviderCall) -> ProviderCall {
    call.with(header::AUTHORIZATION, api.authorization.clone())
}

fn full(kind: &str) -> Registration {
    Registration::Refused {
        reason: format!("three other URLs are told of {kind} events already"),
        steps: vec!["Remove one of them in Mailgun and register again.".to_owned()],
    }
}

/// Validation in these calls says `{"Reason"}`.
fn unmade(reply: &ProviderReply) -> Registration {
    if let Some(why) = no_answer(reply) {
        return Registration::undecided(reply, why);
    }
    match reply.status {
        400..=499 => {
            let document = reply.json().unwrap_or_default();
            let reason = document["Reason"].as_str();
            let text = reason.map_or_else(|| error_text(reply), str::to_owned);
            Registration::refused(reply, &text, by_hand())
        }
        // Never the text of a good answer: it may hold the key.
        _ => Registration::undecided(reply, "not the answer to the question"),
    }
}

fn by_hand() -> Vec<String> {
    [
        "Use an account key rather than a domain's sending key and register again; or go on by hand.",
        "In Mailgun, under Send, Sending, Webhooks, add this account's webhookUrl for every event type of the domain.",
        "Give the HTTP webhook signing key (API Security) to this account as eventSecrets.signingKey.",
    ]
    .map(str::to_owned)
    .into()
}
