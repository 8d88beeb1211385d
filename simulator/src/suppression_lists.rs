//! The suppression lists of the providers: addresses that a test put there. The simulator
//! itself adds none, and sends to them like to all others.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde::Deserialize;
use serde_json::json;

use crate::clock;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

/// Further credentials are rejected.
const CREDENTIALS_MAX: usize = 10_000;
/// The most addresses of a credential.
const ADDRESSES_MAX: usize = 200_000;

/// Why an address is in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListKind {
    Bounce,
    Complaint,
    Unsubscribe,
    /// The address is malformed or its domain does not exist (SendGrid).
    Invalid,
    /// Unsubscribed from one tag only (Mailgun).
    Tag,
}

/// An address in a list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Listed {
    /// Need not be an address.
    pub address: String,
    pub kind: ListKind,
    #[serde(default = "clock::now")]
    pub since: DateTime<Utc>,
}

impl Listed {
    /// An address that is listed now.
    pub fn now(address: &str, kind: ListKind) -> Self {
        Self {
            address: address.to_owned(),
            kind,
            since: clock::now(),
        }
    }
}

/// The lists by provider and credential (API key, server token, access key id).
#[derive(Default)]
pub(crate) struct SuppressionLists(RwLock<HashMap<(Provider, String), Vec<Listed>>>);

impl SuppressionLists {
    /// Replaces the lists of a credential. False if a limit is reached.
    pub(crate) fn set(&self, provider: Provider, credential: &str, listed: Vec<Listed>) -> bool {
        let mut all = self.0.write();
        let key = (provider, credential.to_owned());
        let is_full = all.len() >= CREDENTIALS_MAX && !all.contains_key(&key);
        if is_full || listed.len() > ADDRESSES_MAX {
            return false;
        }
        all.insert(key, listed);
        true
    }

    /// The addresses of these kinds, in the order in which they were given.
    pub(crate) fn list(
        &self,
        provider: Provider,
        credential: &str,
        kinds: &[ListKind],
    ) -> Vec<Listed> {
        let all = self.0.read();
        let own = all.get(&(provider, credential.to_owned()));
        let own = own.into_iter().flatten();
        own.filter(|listed| kinds.contains(&listed.kind))
            .cloned()
            .collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Lists {
    provider: String,
    credential: String,
    addresses: Vec<Listed>,
}

/// `POST /suppression-lists`; `None` if the path is another.
pub(crate) fn handle(state: &State, request: &Request) -> Option<Answer> {
    if request.path() != "/suppression-lists" || request.method != Method::POST {
        return None;
    }
    let problem = |text: &str| {
        let body = json!({ "error": text });
        Some(reply::json(StatusCode::BAD_REQUEST, body.to_string()))
    };
    let lists: Lists = match serde_json::from_slice(&request.body) {
        Ok(lists) => lists,
        Err(cause) => return problem(&cause.to_string()),
    };
    let Some(provider) = Provider::parse(&lists.provider) else {
        return problem("provider must be the name of a provider");
    };
    let is_set = state
        .suppression_lists
        .set(provider, &lists.credential, lists.addresses);
    if is_set {
        Some(reply::empty(StatusCode::NO_CONTENT))
    } else {
        problem("too many credentials or addresses")
    }
}
