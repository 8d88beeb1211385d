//! SendGrid's event webhook (OAI `tsg_webhooks_v3`). A URL belongs to one webhook, so ours
//! is searched first. A separate call enables the signature and returns its key.

use http::Method;
use serde_json::{Value, json};

use super::{SendgridApi, error_text};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::event_secrets::EventSecrets;
use crate::provider::management::{EventTarget, Registration};
use crate::provider::outcome::unusable_reply;

const SETTINGS: &str = "/v3/user/webhooks/event/settings";

pub(super) fn register(api: SendgridApi, target: EventTarget) -> CallStep<Registration> {
    let url = api.base.at(&format!("{SETTINGS}/all"));
    CallStep::call(api.authorize(ProviderCall::get(url)), move |reply| {
        let document = reply.json().unwrap_or_default();
        let Some(webhooks) = document["webhooks"].as_array() else {
            return CallStep::Done(not_registered(&reply));
        };
        let ours = webhooks
            .iter()
            .find(|webhook| webhook["url"] == *target.url.0);
        let body = settings(&target.url.0);
        match ours.and_then(webhook_id) {
            Some(id) => {
                let url = api.base.at(&format!("{SETTINGS}/{id}"));
                let call = patch(url, &body);
                CallStep::call(api.authorize(call), move |reply| {
                    enable_signature(api, &reply)
                })
            }
            None => {
                let call = ProviderCall::post_json(api.base.at(SETTINGS), &body);
                CallStep::call(api.authorize(call), move |reply| {
                    enable_signature(api, &reply)
                })
            }
        }
    })
}

/// `PATCH …/settings/signed/{id}`: enables the signature.
fn enable_signature(api: SendgridApi, reply: &ProviderReply) -> CallStep<Registration> {
    let document = reply.json().unwrap_or_default();
    let id = webhook_id(&document).filter(|_| matches!(reply.status, 200 | 201));
    let Some(id) = id else {
        return CallStep::Done(not_registered(reply));
    };
    let url = api.base.at(&format!("{SETTINGS}/signed/{id}"));
    let call = patch(url, &json!({ "enabled": true }));
    CallStep::call(api.authorize(call), |reply| {
        CallStep::Done(read_key(&reply))
    })
}

fn read_key(reply: &ProviderReply) -> Registration {
    let document = reply.json().unwrap_or_default();
    match (reply.status, document["public_key"].as_str()) {
        (200, Some(key)) => EventSecrets::sendgrid(key).map_or_else(
            || Registration::undecided(reply, "its public key is not a P-256 key"),
            Registration::Registered,
        ),
        _ => not_registered(reply),
    }
}

/// Every kind of event about a mail. Waypost tracks opens and clicks of its own mail; those
/// of other mail arrive too and match no recipient.
fn settings(url: &str) -> Value {
    json!({
        "enabled": true,
        "url": url,
        "friendly_name": "Waypost",
        "processed": true,
        "delivered": true,
        "deferred": true,
        "bounce": true,
        "dropped": true,
        "open": true,
        "click": true,
        "spam_report": true,
        "unsubscribe": true,
        "group_unsubscribe": true,
        "group_resubscribe": false,
    })
}

/// A webhook's id, if it is safe in a path.
fn webhook_id(webhook: &Value) -> Option<String> {
    let id = webhook["id"].as_str()?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (!id.is_empty() && id.bytes().all(is_plain)).then(|| id.to_owned())
}

fn patch(url: url::Url, body: &Value) -> ProviderCall {
    ProviderCall {
        method: Method::PATCH,
        ..ProviderCall::post_json(url, body)
    }
}

fn not_registered(reply: &ProviderReply) -> Registration {
    if let Some(why) = unusable_reply(reply) {
        return Registration::undecided(reply, why);
    }
    match reply.status {
        400..=499 => Registration::refused(reply, &error_text(reply), by_hand()),
        _ => Registration::undecided(reply, "an unexpected reply"),
    }
}

fn by_hand() -> Vec<String> {
    [
        "Give the API key the scopes user.webhooks.event.settings.read, user.webhooks.event.settings.create and user.webhooks.event.settings.update and register again; or continue by hand.",
        "In SendGrid, under Settings, Mail Settings, Event Webhooks, create a webhook with this account's webhookUrl as its post URL and all actions.",
        "Enable its signature verification and give its verification key to this account as eventSecrets.publicKey.",
    ]
    .map(str::to_owned)
    .into()
}
