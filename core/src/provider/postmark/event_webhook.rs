//! Postmark's webhooks, per server and message stream, with the server token (page
//! "Webhooks API" of Postmark's developer documentation). Postmark signs nothing: its
//! calls carry a user name and password that Waypost generated.

use http::Method;
use serde_json::{Value, json};

use super::{PostmarkApi, error_text};
use crate::provider::call::{CallStep, ProviderCall, ProviderReply};
use crate::provider::event_secrets::EventSecrets;
use crate::provider::management::{EventTarget, Registration};
use crate::provider::outcome::unusable_reply;
use crate::secret::ExposeSecret;

/// The stream of accounts that name none.
const DEFAULT_STREAM: &str = "outbound";

/// `POST /webhooks`, or `PUT /webhooks/{id}` if a webhook has our URL.
pub(super) fn register(api: &PostmarkApi<'_>, target: EventTarget) -> CallStep<Registration> {
    let Some(secrets @ EventSecrets::Postmark { username, password }) = &target.secrets else {
        return CallStep::Done(Registration::Undecided {
            reason: "the account has no user name and password yet".to_owned(),
        });
    };
    let stream = api.message_stream.unwrap_or(DEFAULT_STREAM);
    let settings = json!({
        "Url": target.url.0,
        "HttpAuth": { "Username": username, "Password": password.expose_secret() },
        "Triggers": {
            "Open": { "Enabled": true, "PostFirstOpenOnly": false },
            "Click": { "Enabled": true },
            "Delivery": { "Enabled": true },
            "Bounce": { "Enabled": true, "IncludeContent": false },
            "SpamComplaint": { "Enabled": true, "IncludeContent": false },
            "SubscriptionChange": { "Enabled": true },
        },
    });
    let list = api
        .base
        .query("/webhooks", &format!("MessageStream={stream}"));
    let list = api.with_server_token(ProviderCall::get(list));
    let mut new = settings.clone();
    new["MessageStream"] = json!(stream);
    let create = ProviderCall::post_json(api.base.at("/webhooks"), &new);
    let create = api.with_server_token(create);
    let (base, token) = (api.base.clone(), api.server_token.clone());
    let secrets = secrets.clone();
    let url = target.url.clone();
    CallStep::call(list, move |reply| {
        let document = reply.json().unwrap_or_default();
        let Some(webhooks) = document["Webhooks"]
            .as_array()
            .filter(|_| reply.status == 200)
        else {
            return CallStep::Done(not_registered(&reply, &document));
        };
        let ours = webhooks.iter().find(|webhook| webhook["Url"] == *url.0);
        let call = match ours.and_then(|webhook| webhook["ID"].as_i64()) {
            Some(id) => {
                let call = ProviderCall {
                    method: Method::PUT,
                    ..ProviderCall::post_json(base.at(&format!("/webhooks/{id}")), &settings)
                };
                super::accepting_json(call).with(super::SERVER_TOKEN, token)
            }
            None => create,
        };
        CallStep::call(call, move |reply| {
            let document = reply.json().unwrap_or_default();
            // A successful reply repeats the password and is never quoted.
            let is_saved = reply.status == 200 && document["ID"].is_i64();
            CallStep::Done(if is_saved {
                Registration::Registered(secrets)
            } else {
                not_registered(&reply, &document)
            })
        })
    })
}

fn not_registered(reply: &ProviderReply, document: &Value) -> Registration {
    if let Some(why) = unusable_reply(reply) {
        return Registration::undecided(reply, why);
    }
    match reply.status {
        400..=499 => Registration::refused(reply, &error_text(reply, document), Vec::new()),
        // A successful reply is never quoted.
        _ => Registration::undecided(reply, "an unexpected reply"),
    }
}
