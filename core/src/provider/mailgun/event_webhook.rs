//! Mailgun's webhooks: up to three URLs per event type and domain (OAS, v3: v4 sets several
//! types at once, in a form that the transport does not write). One key of the account
//! signs all of them.

use http::{Method, header};
use serde_json::Value;

use super::{MailgunApi, error_text, field};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::event_secrets::EventSecrets;
use crate::provider::management::{EventTarget, Registration};
use crate::provider::outcome::unusable_reply;

/// Every event type of Mailgun's webhooks.
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
/// The most URLs of one event type.
const URLS_MAX: usize = 3;

/// `GET /v5/accounts/http_signing_key` first: events cannot be verified without the key. An
/// API key that may not read it suffices if the customer provided the signing key.
pub(super) fn register(api: MailgunApi, target: EventTarget) -> CallStep<Registration> {
    let url = api.base.at("/v5/accounts/http_signing_key");
    CallStep::call(authorize(&api, ProviderCall::get(url)), move |reply| {
        let document = reply.json().unwrap_or_default();
        let key = document["http_signing_key"].as_str();
        let key = key.filter(|_| reply.status == 200);
        let secrets = match (key.and_then(EventSecrets::mailgun), target.secrets) {
            (Some(secrets), _) => secrets,
            (None, Some(given)) if matches!(reply.status, 401 | 403) => given,
            (None, _) => return CallStep::Done(not_registered(&reply)),
        };
        let path = format!("/v3/domains/{}/webhooks", api.domain);
        let call = authorize(&api, ProviderCall::get(api.base.at(&path)));
        CallStep::call(call, move |reply| {
            let document = reply.json().unwrap_or_default();
            let webhooks = &document["webhooks"];
            if reply.status != 200 || !webhooks.is_object() {
                return CallStep::Done(not_registered(&reply));
            }
            match missing(webhooks, &target.url.0) {
                Ok(missing) => add_each(api, missing.into_iter(), secrets),
                Err(kind) => CallStep::Done(too_many_urls(kind)),
            }
        })
    })
}

/// An event type, the URLs to set for it, and whether it had URLs before.
type WantedWebhook = (&'static str, Vec<String>, bool);

/// The event types that lack our URL, each with its other URLs. The error is an event type
/// that already has the maximum of other URLs.
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

/// `POST …/webhooks` for an event type without URLs, `PUT …/webhooks/{type}` for others.
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
            CallStep::Done(not_registered(&reply))
        }
    })
}

fn authorize(api: &MailgunApi, call: ProviderCall) -> ProviderCall {
    call.with(header::AUTHORIZATION, api.authorization.clone())
}

fn too_many_urls(kind: &str) -> Registration {
    Registration::Refused {
        reason: format!("{kind} events already have three other URLs"),
        steps: vec!["Remove one of them in Mailgun and register again.".to_owned()],
    }
}

/// Validation errors of these calls are in `{"Reason"}`.
fn not_registered(reply: &ProviderReply) -> Registration {
    if let Some(why) = unusable_reply(reply) {
        return Registration::undecided(reply, why);
    }
    match reply.status {
        400..=499 => {
            let document = reply.json().unwrap_or_default();
            let reason = document["Reason"].as_str();
            let text = reason.map_or_else(|| error_text(reply), str::to_owned);
            Registration::refused(reply, &text, by_hand())
        }
        // A successful reply is not quoted: it may hold the key.
        _ => Registration::undecided(reply, "an unexpected reply"),
    }
}

fn by_hand() -> Vec<String> {
    [
        "Use an account key instead of a domain's sending key and register again; or continue by hand.",
        "In Mailgun, under Send, Sending, Webhooks, add this account's webhookUrl for every event type of the domain.",
        "Give the HTTP webhook signing key (API Security) to this account as eventSecrets.signingKey.",
    ]
    .map(str::to_owned)
    .into()
}
