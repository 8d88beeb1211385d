//! `/v3/user/webhooks/event/settings`: the event webhooks, and the keys of signed ones.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::SecondsFormat;
use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::error;
use crate::callbacks::{
    Endpoint, Kinds, ProviderEventKind, SendGridKey, Subscriber, Target, parse_url,
};
use crate::clock;
use crate::credentials::CredentialKind;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

/// The limit of a plan.
const WEBHOOKS_MAX: usize = 5;
/// Further keys cannot register.
const CREDENTIALS_MAX: usize = 10_000;
/// The kinds of events, by their names in settings. Kinds with an empty list never happen
/// here.
const EVENTS: [(&str, &[ProviderEventKind]); 11] = [
    ("group_resubscribe", &[]),
    ("delivered", &[ProviderEventKind::Delivered]),
    ("group_unsubscribe", &[]),
    ("spam_report", &[ProviderEventKind::Complained]),
    (
        "bounce",
        &[
            ProviderEventKind::HardBounce,
            ProviderEventKind::SoftBounce,
            ProviderEventKind::Listed,
            ProviderEventKind::Expired,
            ProviderEventKind::Block,
        ],
    ),
    ("deferred", &[ProviderEventKind::Deferred]),
    ("unsubscribe", &[ProviderEventKind::Unsubscribed]),
    ("processed", &[ProviderEventKind::Sent]),
    ("open", &[ProviderEventKind::Opened]),
    ("click", &[ProviderEventKind::Clicked]),
    ("dropped", &[ProviderEventKind::Dropped]),
];

/// The webhooks of all API keys, oldest first.
#[derive(Default)]
pub(crate) struct Webhooks(RwLock<HashMap<String, Vec<Webhook>>>);

struct Webhook {
    id: String,
    enabled: bool,
    url: String,
    events: Map<String, Value>,
    friendly_name: Option<String>,
    oauth_client_id: Option<String>,
    oauth_token_url: Option<String>,
    key: Option<Arc<SendGridKey>>,
    created: String,
    updated: String,
    endpoint: Arc<Endpoint>,
}

/// The body of POST and PATCH; unknown fields are ignored, as in the real service.
#[derive(Deserialize)]
struct Settings {
    enabled: Option<bool>,
    url: Option<String>,
    friendly_name: Option<String>,
    oauth_client_id: Option<String>,
    oauth_token_url: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct Signed {
    enabled: bool,
}

impl Webhooks {
    pub(crate) fn subscribers(&self, key: &str) -> Vec<Subscriber> {
        let all = self.0.read();
        let own = all.get(key).into_iter().flatten();
        own.filter(|webhook| webhook.enabled)
            .map(|webhook| Subscriber {
                endpoint: Arc::clone(&webhook.endpoint),
                subscribed_kinds: webhook.subscribed_kinds(),
            })
            .collect()
    }
}

impl Webhook {
    fn subscribed_kinds(&self) -> Kinds {
        EVENTS
            .iter()
            .filter(|(name, _)| self.events[*name] == true)
            .fold(Kinds::default(), |all, (_, kinds)| all.with(kinds))
    }

    fn apply(&mut self, settings: Settings) {
        self.enabled = settings.enabled.unwrap_or(self.enabled);
        for (name, value) in settings.others {
            if let Some(known) = self.events.get_mut(&name) {
                *known = json!(value == true);
            }
        }
        let texts = [
            (&mut self.friendly_name, settings.friendly_name),
            (&mut self.oauth_client_id, settings.oauth_client_id),
            (&mut self.oauth_token_url, settings.oauth_token_url),
        ];
        for (own, given) in texts {
            if let Some(given) = given {
                *own = Some(given).filter(|text| !text.is_empty());
            }
        }
        if let Some(url) = settings.url {
            self.url = url;
        }
        self.changed();
    }

    /// Applies a change of the URL or the key.
    fn changed(&mut self) {
        let key = self.key.clone();
        if let Some(endpoint) = Endpoint::new(&self.url, Target::SendGrid { key }) {
            self.endpoint = endpoint;
        }
        self.updated = now();
    }

    fn public_key(&self) -> String {
        self.key
            .as_ref()
            .map_or_else(String::new, |key| key.public_key())
    }

    fn to_json(&self) -> Value {
        let mut body = json!({
            "id": self.id,
            "enabled": self.enabled,
            "url": self.url,
            "account_status_change": false,
            "friendly_name": self.friendly_name,
            "created_date": self.created,
            "updated_date": self.updated,
        });
        let optional = [
            ("oauth_client_id", self.oauth_client_id.clone()),
            ("oauth_token_url", self.oauth_token_url.clone()),
            ("public_key", self.key.as_ref().map(|key| key.public_key())),
        ];
        if let Value::Object(body) = &mut body {
            body.extend(self.events.clone());
            for (name, value) in optional {
                if let Some(value) = value {
                    body.insert(name.to_owned(), Value::String(value));
                }
            }
        }
        body
    }
}

/// Handles the paths below `/v3/user/webhooks/event/settings`; `rest` are the remaining
/// segments.
pub(super) fn handle(state: &State, request: &Request, key: &str, rest: &[&str]) -> Answer {
    match CredentialKind::of(key) {
        CredentialKind::NoSendScope | CredentialKind::SendOnly => {
            return error(StatusCode::FORBIDDEN, "access forbidden", None);
        }
        CredentialKind::Good
        | CredentialKind::NoCredit
        | CredentialKind::Invalid
        | CredentialKind::Firewall => {}
    }
    let done = match (&request.method, rest) {
        (&Method::POST, []) => create(state, request, key),
        (&Method::GET, ["all"]) => Ok(list(state, key)),
        (&Method::GET, []) => find(state, key, None, Webhook::to_json),
        (&Method::PATCH, []) => update(state, request, key, None),
        (&Method::GET, ["signed"]) => find(state, key, None, |one| signed("", one)),
        (&Method::PATCH, ["signed"]) => sign(state, request, key, None),
        (&Method::GET, ["signed", id]) => find(state, key, Some(id), |one| signed(id, one)),
        (&Method::PATCH, ["signed", id]) => sign(state, request, key, Some(id)),
        (&Method::GET, [id]) => find(state, key, Some(id), Webhook::to_json),
        (&Method::PATCH, [id]) => update(state, request, key, Some(id)),
        (&Method::DELETE, [id]) => delete(state, key, id),
        (_, [] | [_] | ["signed", _]) => Err(error(
            StatusCode::METHOD_NOT_ALLOWED,
            "method not allowed",
            None,
        )),
        _ => Err(error(StatusCode::NOT_FOUND, "not found", None)),
    };
    done.unwrap_or_else(|refusal| refusal)
}

fn create(state: &State, request: &Request, key: &str) -> Result<Answer, Answer> {
    let settings: Settings = parse(request)?;
    let Some(url) = settings.url.clone() else {
        return Err(bad(json!({"message": "url is required"})));
    };
    let events = EVENTS.map(|(name, _)| (name.to_owned(), Value::Bool(false)));
    let endpoint = endpoint(&url)?;
    let mut all = state.sendgrid_webhooks.0.write();
    if all.len() >= CREDENTIALS_MAX && !all.contains_key(key) {
        return Err(bad(
            json!({"message": "the simulator has no room for another key"}),
        ));
    }
    let own = all.entry(key.to_owned()).or_default();
    unique(own, &url, None)?;
    if own.len() >= WEBHOOKS_MAX {
        let message = "You have reached the maximum number of webhooks per your current billing \
             plan.";
        return Err(bad(json!({ "message": message })));
    }
    let created = now();
    let mut webhook = Webhook {
        id: state.ids.uuid(),
        enabled: true,
        url,
        events: events.into_iter().collect(),
        friendly_name: None,
        oauth_client_id: None,
        oauth_token_url: None,
        key: None,
        updated: created.clone(),
        created,
        endpoint,
    };
    webhook.apply(settings);
    let body = webhook.to_json().to_string();
    own.push(webhook);
    Ok(reply::json(StatusCode::CREATED, body))
}

fn list(state: &State, key: &str) -> Answer {
    let all = state.sendgrid_webhooks.0.read();
    let own = all.get(key).into_iter().flatten();
    let webhooks: Vec<Value> = own.map(Webhook::to_json).collect();
    let body = json!({"max_allowed": WEBHOOKS_MAX, "webhooks": webhooks});
    reply::json(StatusCode::OK, body.to_string())
}

fn find(
    state: &State,
    key: &str,
    id: Option<&str>,
    show: impl FnOnce(&Webhook) -> Value,
) -> Result<Answer, Answer> {
    let all = state.sendgrid_webhooks.0.read();
    let own = all.get(key).map(Vec::as_slice).unwrap_or_default();
    let at = position(own, id)?;
    Ok(reply::json(StatusCode::OK, show(&own[at]).to_string()))
}

fn update(state: &State, request: &Request, key: &str, id: Option<&str>) -> Result<Answer, Answer> {
    let settings: Settings = parse(request)?;
    let mut all = state.sendgrid_webhooks.0.write();
    let own = all.get_mut(key).map(Vec::as_mut_slice).unwrap_or_default();
    let at = position(own, id)?;
    if let Some(url) = &settings.url {
        endpoint(url)?;
        unique(own, url, Some(at))?;
    }
    own[at].apply(settings);
    Ok(reply::json(StatusCode::OK, own[at].to_json().to_string()))
}

fn sign(state: &State, request: &Request, key: &str, id: Option<&str>) -> Result<Answer, Answer> {
    let wish: Signed = parse(request)?;
    let mut all = state.sendgrid_webhooks.0.write();
    let own = all.get_mut(key).map(Vec::as_mut_slice).unwrap_or_default();
    let at = position(own, id)?;
    let webhook = &mut own[at];
    if wish.enabled != webhook.key.is_some() {
        webhook.key = wish.enabled.then(|| Arc::new(SendGridKey::generate()));
        webhook.changed();
    }
    let body = signed(&webhook.id, webhook).to_string();
    Ok(reply::json(StatusCode::OK, body))
}

fn delete(state: &State, key: &str, id: &str) -> Result<Answer, Answer> {
    let mut all = state.sendgrid_webhooks.0.write();
    let own = all.get_mut(key).ok_or_else(unknown)?;
    let at = position(own, Some(id))?;
    own.remove(at);
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

fn signed(id: &str, webhook: &Webhook) -> Value {
    json!({"id": id, "public_key": webhook.public_key()})
}

/// The position of the webhook; of the oldest one if no id is given.
fn position(own: &[Webhook], id: Option<&str>) -> Result<usize, Answer> {
    let found = match id {
        Some(id) => own.iter().position(|webhook| webhook.id == id),
        None => (!own.is_empty()).then_some(0),
    };
    found.ok_or_else(unknown)
}

fn unique(own: &[Webhook], url: &str, except: Option<usize>) -> Result<(), Answer> {
    let others = own.iter().enumerate().filter(|(at, _)| Some(*at) != except);
    match others.map(|(_, one)| one).find(|one| one.url == url) {
        Some(taken) => Err(bad(json!({
            "id": taken.id,
            "message": format!(
                "Webhook at '{url}' already exists. Please provide a unique URL."
            ),
            "url": url,
        }))),
        None => Ok(()),
    }
}

fn endpoint(url: &str) -> Result<Arc<Endpoint>, Answer> {
    let endpoint = parse_url(url).and_then(|_| Endpoint::new(url, Target::SendGrid { key: None }));
    endpoint.ok_or_else(|| bad(json!({"message": format!("'{url}' is not a valid url")})))
}

fn parse<T: DeserializeOwned>(request: &Request) -> Result<T, Answer> {
    serde_json::from_slice(&request.body)
        .map_err(|cause| bad(json!({"message": format!("Bad Request: {cause}")})))
}

fn bad(error: Value) -> Answer {
    let body = json!({ "errors": [error] });
    reply::json(StatusCode::BAD_REQUEST, body.to_string())
}

fn unknown() -> Answer {
    let body = json!({"errors": [{"message": "Invalid id provided."}]});
    reply::json(StatusCode::NOT_FOUND, body.to_string())
}

fn now() -> String {
    clock::now().to_rfc3339_opts(SecondsFormat::Secs, true)
}
