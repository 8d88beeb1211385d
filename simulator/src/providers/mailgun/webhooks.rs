//! `/v3/domains/{domain}/webhooks`, the same in v4, and the account's signing key.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::form::Form;
use super::{domain_not_found, message};
use crate::callbacks::{Endpoint, Kinds, ProviderEventKind, Subscriber, Target, parse_url};
use crate::reply::{self, Answer};
use crate::request::{Request, decode};
use crate::state::State;

/// URLs per kind of event.
const URLS_MAX: usize = 3;
/// Further domains cannot register.
const DOMAINS_MAX: usize = 10_000;
/// The kinds of events, by their names in registrations.
const EVENTS: [(&str, &[ProviderEventKind]); 8] = [
    ("accepted", &[ProviderEventKind::Sent]),
    ("delivered", &[ProviderEventKind::Delivered]),
    ("opened", &[ProviderEventKind::Opened]),
    ("clicked", &[ProviderEventKind::Clicked]),
    ("unsubscribed", &[ProviderEventKind::Unsubscribed]),
    ("complained", &[ProviderEventKind::Complained]),
    ("temporary_fail", &[ProviderEventKind::Deferred]),
    (
        "permanent_fail",
        &[
            ProviderEventKind::HardBounce,
            ProviderEventKind::SoftBounce,
            ProviderEventKind::Listed,
            ProviderEventKind::Expired,
            ProviderEventKind::Block,
            ProviderEventKind::Dropped,
        ],
    ),
];

/// The webhooks of all keys' domains.
#[derive(Default)]
pub(crate) struct Webhooks(RwLock<HashMap<(String, String), Domain>>);

#[derive(Default)]
struct Domain {
    /// The URLs by kind of event.
    urls: BTreeMap<&'static str, Vec<String>>,
    subscribers: Vec<Subscriber>,
}

impl Webhooks {
    pub(crate) fn subscribers(&self, key: &str, domain: &str) -> Vec<Subscriber> {
        let all = self.0.read();
        let own = all.get(&(key.to_owned(), domain.to_owned()));
        own.map_or_else(Vec::new, |own| own.subscribers.clone())
    }
}

impl Domain {
    /// Creates an endpoint for each URL. Unchanged URLs keep their endpoint.
    fn update_endpoints(&mut self, key: &str) {
        let mut kinds_by_url: BTreeMap<&str, Kinds> = BTreeMap::new();
        for (name, kinds) in EVENTS {
            for url in self.urls.get(name).into_iter().flatten() {
                let subscribed = kinds_by_url.entry(url).or_default();
                *subscribed = subscribed.with(kinds);
            }
        }
        let old = std::mem::take(&mut self.subscribers);
        let known = |url: &str| {
            let url = parse_url(url)?;
            let found = old.iter().find(|one| one.endpoint.url == url)?;
            Some(Arc::clone(&found.endpoint))
        };
        self.subscribers = kinds_by_url
            .into_iter()
            .filter_map(|(url, subscribed_kinds)| {
                let signing_key = signing_key(key);
                let endpoint =
                    known(url).or_else(|| Endpoint::new(url, Target::Mailgun { signing_key }))?;
                Some(Subscriber {
                    endpoint,
                    subscribed_kinds,
                })
            })
            .collect();
    }

    fn to_json(&self) -> Value {
        let all = EVENTS.iter().map(|(name, _)| {
            let urls = self.urls.get(name).filter(|urls| !urls.is_empty());
            let to_json = urls.map_or(Value::Null, |urls| json!({ "urls": urls }));
            ((*name).to_owned(), to_json)
        });
        json!({"webhooks": Value::Object(all.collect())})
    }
}

/// The webhook signing key of the account that an API key belongs to.
pub(super) fn signing_key(key: &str) -> String {
    let digest = hex::encode(Sha256::digest(format!("http_signing_key:{key}")));
    format!("key-{}", &digest[..32])
}

/// `GET /v5/accounts/http_signing_key`.
pub(super) fn show_signing_key(key: &str) -> Answer {
    let body = json!({"message": "success", "http_signing_key": signing_key(key)});
    reply::json(StatusCode::OK, body.to_string())
}

/// `/v3/domains/{domain}/webhooks`, and with a name what is below it.
pub(super) async fn handle(
    state: &State,
    request: &Request,
    key: &str,
    domain: &str,
    name: Option<&str>,
) -> Answer {
    let done = match (&request.method, name) {
        (&Method::GET, None) => change(state, key, domain, |own| Ok(own.to_json())),
        (&Method::POST, None) => create(state, request, key, domain).await,
        (&Method::GET, Some(name)) => change(state, key, domain, |own| {
            let urls = own.urls.get(kind(name)?).filter(|urls| !urls.is_empty());
            let urls = urls.ok_or_else(|| message(StatusCode::NOT_FOUND, "Webhook not found"))?;
            Ok(json!({"webhook": {"urls": urls}}))
        }),
        (&Method::PUT, Some(name)) => replace(state, request, key, domain, name).await,
        (&Method::DELETE, Some(name)) => change(state, key, domain, |own| {
            let urls = own.urls.remove(kind(name)?);
            let urls = urls.ok_or_else(|| message(StatusCode::NOT_FOUND, "Webhook not found"))?;
            Ok(json!({"message": "Webhook has been deleted", "webhook": {"urls": urls}}))
        }),
        _ => Err(message(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method not allowed",
        )),
    };
    done.unwrap_or_else(|refusal| refusal)
}

/// `/v4/domains/{domain}/webhooks`: one URL with all its kinds of events.
pub(super) fn handle_v4(state: &State, request: &Request, key: &str, domain: &str) -> Answer {
    let done = match request.method {
        Method::POST | Method::PUT => associate(state, request, key, domain),
        Method::DELETE => match request.query("url").filter(|url| !url.is_empty()) {
            Some(list) => change(state, key, domain, |own| {
                for url in list.split(',') {
                    own.urls
                        .values_mut()
                        .for_each(|urls| urls.retain(|one| one != url));
                }
                Ok(own.to_json())
            }),
            None => Err(reply::json(
                StatusCode::BAD_REQUEST,
                json!({"Field": "url"}).to_string(),
            )),
        },
        _ => Err(message(
            StatusCode::METHOD_NOT_ALLOWED,
            "Method not allowed",
        )),
    };
    done.unwrap_or_else(|refusal| refusal)
}

async fn create(
    state: &State,
    request: &Request,
    key: &str,
    domain: &str,
) -> Result<Answer, Answer> {
    let form = form(request).await?;
    let name = kind(form.get("id").unwrap_or_default())?;
    let urls = urls(form.all("url").map(str::to_owned).collect())?;
    change(state, key, domain, |own| {
        if own.urls.get(name).is_some_and(|urls| !urls.is_empty()) {
            return Err(reason("Webhook already exists"));
        }
        own.urls.insert(name, urls.clone());
        Ok(json!({"message": "Webhook has been created", "webhook": {"urls": urls}}))
    })
}

async fn replace(
    state: &State,
    request: &Request,
    key: &str,
    domain: &str,
    name: &str,
) -> Result<Answer, Answer> {
    let form = form(request).await?;
    let name = kind(name)?;
    let urls = urls(form.all("url").map(str::to_owned).collect())?;
    change(state, key, domain, |own| {
        let known = own.urls.get_mut(name);
        *known.ok_or_else(|| message(StatusCode::NOT_FOUND, "Webhook not found"))? = urls.clone();
        Ok(json!({"message": "Webhook has been updated", "webhook": {"urls": urls}}))
    })
}

fn associate(state: &State, request: &Request, key: &str, domain: &str) -> Result<Answer, Answer> {
    let is_new = request.method == Method::POST;
    let text = String::from_utf8_lossy(&request.body);
    let pairs: Vec<(String, String)> = text
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(&value.replace('+', " "))))
        .collect();
    let all = |wanted: &str| {
        let found = pairs.iter().filter(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let url = urls(all("url"))?.swap_remove(0);
    let names = all("event_types");
    let names: Vec<_> = names
        .iter()
        .map(|name| kind(name))
        .collect::<Result<_, _>>()?;
    if names.is_empty() {
        let body = json!({"Field": "event_types"}).to_string();
        return Err(reply::json(StatusCode::BAD_REQUEST, body));
    }
    change(state, key, domain, |own| {
        let is_known = own.urls.values().flatten().any(|one| *one == url);
        if !is_new && !is_known {
            let body = json!({"Description": "Webhook not found"}).to_string();
            return Err(reply::json(StatusCode::NOT_FOUND, body));
        }
        if !is_new {
            own.urls
                .values_mut()
                .for_each(|urls| urls.retain(|one| *one != url));
        }
        for name in names {
            let urls = own.urls.entry(name).or_default();
            if urls.contains(&url) {
                return Err(reason(&format!(
                    "Webhook for event type '{name}' with URL '{url}' already exists"
                )));
            }
            if urls.len() >= URLS_MAX {
                return Err(too_many());
            }
            urls.push(url.clone());
        }
        Ok(own.to_json())
    })
}

/// Reads or changes a domain's webhooks; a rejected change leaves them unchanged.
fn change(
    state: &State,
    key: &str,
    domain: &str,
    change: impl FnOnce(&mut Domain) -> Result<Value, Answer>,
) -> Result<Answer, Answer> {
    if domain.contains("invalid") || !domain.contains('.') {
        return Err(domain_not_found());
    }
    let mut all = state.mailgun_webhooks.0.write();
    let key_and_domain = (key.to_owned(), domain.to_owned());
    if all.len() >= DOMAINS_MAX && !all.contains_key(&key_and_domain) {
        return Err(reason("the simulator has no room for another domain"));
    }
    let own = all.entry(key_and_domain).or_default();
    let before = own.urls.clone();
    match change(own) {
        Ok(body) => {
            own.update_endpoints(key);
            Ok(reply::json(StatusCode::OK, body.to_string()))
        }
        Err(refusal) => {
            own.urls = before;
            Err(refusal)
        }
    }
}

async fn form(request: &Request) -> Result<Form, Answer> {
    let form = Form::read(request).await;
    form.map_err(|text| message(StatusCode::BAD_REQUEST, &text))
}

fn kind(name: &str) -> Result<&'static str, Answer> {
    let mut known = EVENTS.iter().map(|(known, _)| *known);
    known
        .find(|known| *known == name)
        .ok_or_else(|| reason(&format!("'{name}' is not a valid webhook type")))
}

fn urls(urls: Vec<String>) -> Result<Vec<String>, Answer> {
    if urls.is_empty() {
        let body = json!({"Field": "url"}).to_string();
        return Err(reply::json(StatusCode::BAD_REQUEST, body));
    }
    if urls.len() > URLS_MAX {
        return Err(too_many());
    }
    match urls.iter().find(|url| parse_url(url).is_none()) {
        Some(url) => Err(reason(&format!(
            "{url} is not a valid url: invalid URL scheme"
        ))),
        None => Ok(urls),
    }
}

fn too_many() -> Answer {
    reason(&format!("at most {URLS_MAX} urls for a webhook"))
}

fn reason(text: &str) -> Answer {
    reply::json(
        StatusCode::BAD_REQUEST,
        json!({ "Reason": text }).to_string(),
    )
}
