//! Templates and webhooks that a test put there, in the form in which the provider's API shows
//! one of them. The simulator sends nothing by them.

use std::collections::HashMap;

use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

/// Further credentials are rejected.
const CREDENTIALS_MAX: usize = 10_000;
/// The most objects of a credential.
const OBJECTS_MAX: usize = 10_000;

/// What a credential has.
#[derive(Clone, Debug, Default)]
pub struct StoredObjects {
    pub templates: Vec<Value>,
    /// Of Resend. Those of the other providers are registered by their own calls.
    pub webhooks: Vec<Value>,
}

/// The objects by provider and credential (API key, server token, access key id).
#[derive(Default)]
pub(crate) struct ObjectStore(RwLock<HashMap<(Provider, String), StoredObjects>>);

impl ObjectStore {
    /// Replaces the objects of a credential. False if a limit is reached.
    pub(crate) fn set(&self, provider: Provider, credential: &str, objects: StoredObjects) -> bool {
        let mut all = self.0.write();
        let key = (provider, credential.to_owned());
        let is_full = all.len() >= CREDENTIALS_MAX && !all.contains_key(&key);
        if is_full || objects.templates.len().max(objects.webhooks.len()) > OBJECTS_MAX {
            return false;
        }
        all.insert(key, objects);
        true
    }

    pub(crate) fn templates(&self, provider: Provider, credential: &str) -> Vec<Value> {
        self.get(provider, credential).templates
    }

    pub(crate) fn webhooks(&self, provider: Provider, credential: &str) -> Vec<Value> {
        self.get(provider, credential).webhooks
    }

    fn get(&self, provider: Provider, credential: &str) -> StoredObjects {
        let all = self.0.read();
        let own = all.get(&(provider, credential.to_owned()));
        own.cloned().unwrap_or_default()
    }
}

/// A copy of an object with these fields alone, as lists have it.
pub(crate) fn only(object: &Value, fields: &[&str]) -> Value {
    let fields = fields.iter().filter_map(|&field| {
        let value = object.get(field)?;
        Some((field.to_owned(), value.clone()))
    });
    Value::Object(fields.collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    provider: String,
    credential: String,
    #[serde(default)]
    templates: Vec<Value>,
    #[serde(default)]
    webhooks: Vec<Value>,
}

/// `POST /stored-objects`; `None` if the path is another.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.path() != "/stored-objects" || request.method != Method::POST {
        return None;
    }
    let problem = |text: &str| {
        let body = json!({ "error": text });
        Some(reply::json(StatusCode::BAD_REQUEST, body.to_string()))
    };
    let body: Body = match serde_json::from_slice(&request.body) {
        Ok(body) => body,
        Err(cause) => return problem(&cause.to_string()),
    };
    let Some(provider) = Provider::parse(&body.provider) else {
        return problem("provider must be the name of a provider");
    };
    let objects = StoredObjects {
        templates: body.templates,
        webhooks: body.webhooks,
    };
    if state
        .stored_objects
        .set(provider, &body.credential, objects)
    {
        Some(reply::empty(StatusCode::NO_CONTENT))
    } else {
        problem("too many credentials or objects")
    }
}
