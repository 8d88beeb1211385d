//! `/webhooks`: the webhooks of a server's message stream.

use std::collections::HashMap;
use std::sync::Arc;

use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::refusal;
use crate::callbacks::{Endpoint, Kinds, ProviderEventKind, Subscriber, Target};
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

/// Webhooks per stream.
const WEBHOOKS_MAX: usize = 10;
/// Further servers cannot register.
const CREDENTIALS_MAX: usize = 10_000;

/// The webhooks of all server tokens.
#[derive(Default)]
pub(crate) struct Webhooks(RwLock<Registered>);

#[derive(Default)]
struct Registered {
    last_id: u64,
    servers: HashMap<String, Vec<Webhook>>,
}

struct Webhook {
    id: u64,
    settings: Settings,
    endpoint: Arc<Endpoint>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Settings {
    url: String,
    message_stream: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_auth: Option<HttpAuth>,
    http_headers: Vec<HttpHeader>,
    triggers: Triggers,
}

/// The body of POST and PUT.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WebhookBody {
    url: Option<String>,
    message_stream: Option<String>,
    http_auth: Option<HttpAuth>,
    http_headers: Option<Vec<HttpHeader>>,
    triggers: Option<Triggers>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HttpAuth {
    username: String,
    password: String,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HttpHeader {
    name: String,
    value: String,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Triggers {
    open: Open,
    click: Trigger,
    delivery: Trigger,
    bounce: WithContent,
    spam_complaint: WithContent,
    subscription_change: Trigger,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Trigger {
    enabled: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Open {
    enabled: bool,
    post_first_open_only: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct WithContent {
    enabled: bool,
    include_content: bool,
}

impl Webhooks {
    pub(crate) fn subscribers(&self, token: &str, stream: &str) -> Vec<Subscriber> {
        let all = self.0.read();
        let own = all.servers.get(token).into_iter().flatten();
        own.filter(|webhook| webhook.settings.message_stream == stream)
            .map(|webhook| Subscriber {
                endpoint: Arc::clone(&webhook.endpoint),
                subscribed_kinds: webhook.settings.triggers.subscribed_kinds(),
            })
            .collect()
    }
}

impl Triggers {
    fn subscribed_kinds(&self) -> Kinds {
        let bounces: &[ProviderEventKind] = &[
            ProviderEventKind::Deferred,
            ProviderEventKind::HardBounce,
            ProviderEventKind::SoftBounce,
            ProviderEventKind::Listed,
            ProviderEventKind::Expired,
            ProviderEventKind::Block,
            ProviderEventKind::Dropped,
        ];
        let kinds = [
            (self.open.enabled, &[ProviderEventKind::Opened][..]),
            (self.click.enabled, &[ProviderEventKind::Clicked]),
            (self.delivery.enabled, &[ProviderEventKind::Delivered]),
            (self.bounce.enabled, bounces),
            (
                self.spam_complaint.enabled,
                &[ProviderEventKind::Complained],
            ),
            (
                self.subscription_change.enabled,
                &[ProviderEventKind::Unsubscribed],
            ),
        ];
        let wanted = kinds.into_iter().filter(|(enabled, _)| *enabled);
        wanted.fold(Kinds::default(), |all, (_, kinds)| all.with(kinds))
    }
}

impl Settings {
    fn endpoint(&self) -> Option<Arc<Endpoint>> {
        let auth = self.http_auth.clone();
        let headers = self.http_headers.iter().cloned();
        let target = Target::Postmark {
            auth: auth.map(|auth| (auth.username, auth.password)),
            headers: headers.map(|one| (one.name, one.value)).collect(),
            stream: self.message_stream.clone(),
        };
        Endpoint::new(&self.url, target)
    }
}

impl Webhook {
    fn to_json(&self) -> Value {
        let mut body = json!(self.settings);
        body["ID"] = json!(self.id);
        body
    }
}

/// Handles `/webhooks` and, with an id, `/webhooks/{Id}`.
pub(super) fn handle(state: &State, request: &Request, token: &str, id: Option<&str>) -> Answer {
    let done = match (&request.method, id) {
        (&Method::GET, None) => Ok(list(state, request, token)),
        (&Method::POST, None) => create(state, request, token),
        (&Method::GET, Some(id)) => find(state, token, id),
        (&Method::PUT, Some(id)) => update(state, request, token, id),
        (&Method::DELETE, Some(id)) => delete(state, token, id),
        _ => Err(reply::empty(StatusCode::METHOD_NOT_ALLOWED)),
    };
    done.unwrap_or_else(|refusal| refusal)
}

fn list(state: &State, request: &Request, token: &str) -> Answer {
    let stream = request.query("MessageStream");
    let all = state.postmark_webhooks.0.read();
    let own = all.servers.get(token).into_iter().flatten();
    let webhooks: Vec<Value> = own
        .filter(|one| {
            let own = &one.settings.message_stream;
            stream.as_ref().is_none_or(|stream| stream == own)
        })
        .map(Webhook::to_json)
        .collect();
    let body = json!({ "Webhooks": webhooks });
    reply::json(StatusCode::OK, body.to_string())
}

fn create(state: &State, request: &Request, token: &str) -> Result<Answer, Answer> {
    let body: WebhookBody = parse(request)?;
    let settings = Settings {
        url: body.url.unwrap_or_default(),
        message_stream: body.message_stream.unwrap_or_else(|| "outbound".to_owned()),
        http_auth: body.http_auth,
        http_headers: body.http_headers.unwrap_or_default(),
        triggers: body.triggers.unwrap_or_default(),
    };
    if settings.message_stream.contains("invalid") {
        let message = "The 'MessageStream' provided does not exist on this server.";
        return Err(refusal(1235, message));
    }
    let endpoint = settings.endpoint().ok_or_else(no_url)?;
    let mut all = state.postmark_webhooks.0.write();
    if all.servers.len() >= CREDENTIALS_MAX && !all.servers.contains_key(token) {
        return Err(refusal(
            100,
            "The simulator has no room for another server.",
        ));
    }
    all.last_id += 1;
    let id = all.last_id;
    let own = all.servers.entry(token.to_owned()).or_default();
    let stream = &settings.message_stream;
    let siblings = own
        .iter()
        .filter(|one| one.settings.message_stream == *stream);
    if siblings.count() >= WEBHOOKS_MAX {
        return Err(refusal(300, "The maximum number of webhooks is reached."));
    }
    let webhook = Webhook {
        id,
        settings,
        endpoint,
    };
    let body = webhook.to_json().to_string();
    own.push(webhook);
    Ok(reply::json(StatusCode::OK, body))
}

fn find(state: &State, token: &str, id: &str) -> Result<Answer, Answer> {
    let all = state.postmark_webhooks.0.read();
    let own = all.servers.get(token).ok_or_else(unknown)?;
    let webhook = own.iter().find(|one| one.id.to_string() == id);
    let body = webhook.ok_or_else(unknown)?.to_json();
    Ok(reply::json(StatusCode::OK, body.to_string()))
}

fn update(state: &State, request: &Request, token: &str, id: &str) -> Result<Answer, Answer> {
    let body: WebhookBody = parse(request)?;
    let mut all = state.postmark_webhooks.0.write();
    let own = all.servers.get_mut(token).ok_or_else(unknown)?;
    let webhook = own.iter_mut().find(|one| one.id.to_string() == id);
    let webhook = webhook.ok_or_else(unknown)?;
    let mut settings = webhook.settings.clone();
    settings.url = body.url.unwrap_or(settings.url);
    settings.http_auth = body.http_auth.or(settings.http_auth);
    settings.http_headers = body.http_headers.unwrap_or(settings.http_headers);
    settings.triggers = body.triggers.unwrap_or(settings.triggers);
    webhook.endpoint = settings.endpoint().ok_or_else(no_url)?;
    webhook.settings = settings;
    Ok(reply::json(StatusCode::OK, webhook.to_json().to_string()))
}

fn delete(state: &State, token: &str, id: &str) -> Result<Answer, Answer> {
    let mut all = state.postmark_webhooks.0.write();
    let own = all.servers.get_mut(token).ok_or_else(unknown)?;
    let at = own.iter().position(|one| one.id.to_string() == id);
    own.remove(at.ok_or_else(unknown)?);
    let body = json!({"ErrorCode": 0, "Message": format!("Webhook {id} removed.")});
    Ok(reply::json(StatusCode::OK, body.to_string()))
}

fn parse(request: &Request) -> Result<WebhookBody, Answer> {
    if !request.is_json() {
        return Err(reply::empty(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    serde_json::from_slice(&request.body)
        .map_err(|cause| refusal(402, &format!("Received invalid JSON input: {cause}")))
}

fn no_url() -> Answer {
    refusal(300, "Invalid 'Url' provided.")
}

/// No documentation of the vendor names the code of this rejection.
fn unknown() -> Answer {
    refusal(300, "The webhook was not found.")
}
