//! Lanes: one for each URL that somebody registered, so that a slow receiver holds up nobody else.
//!
//! A lane never changes. Whoever changes a registration gets a new one; what waits in the old lane
//! still goes where it was bound for.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::{Notify, Semaphore};

use super::keys::{SendGridKey, SnsVersion};
use super::story::{Kinds, ProviderEventKind};
use crate::mail::Record;
use crate::providers::Provider;

/// Calls to one URL at the same time.
const CALLS_MAX: usize = 16;

/// One thing to tell one subscriber.
pub(crate) struct Event {
    pub(crate) record: Arc<Record>,
    pub(crate) happening: ProviderEventKind,
    /// When it happened, which is not always when it is told.
    pub(crate) at: DateTime<Utc>,
}

/// A lane with what its owner asked to be told.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) lane: Arc<Lane>,
    pub(crate) wants: Kinds,
}

/// Where calls go, and what has to be on them.
pub(crate) struct Lane {
    /// Without user name and password.
    pub(crate) url: Url,
    pub(crate) target: Target,
    /// How many calls may be under way.
    pub(crate) calls: Arc<Semaphore>,
    /// Told when a batch is full before its time.
    pub(crate) full: Notify,
    ready: Mutex<Ready>,
}

/// What a provider puts on its calls.
pub(crate) enum Target {
    /// The key is there when the webhook is signed.
    SendGrid {
        key: Option<Arc<SendGridKey>>,
    },
    Postmark {
        /// User name and password of HTTP Basic.
        auth: Option<(String, String)>,
        headers: Vec<(String, String)>,
        stream: String,
    },
    Mailgun {
        signing_key: String,
    },
    Sns {
        topic_arn: String,
        subscription_arn: String,
        version: SnsVersion,
    },
}

#[derive(Default)]
struct Ready {
    events: VecDeque<Event>,
    worked: bool,
}

impl Lane {
    /// `None` when the URL is none that can be called.
    pub(crate) fn new(url: &str, mut target: Target) -> Option<Arc<Self>> {
        let mut url = parse_url(url)?;
        if let Some(own) = user_info(&url) {
            // Cannot fail for a URL that has a host.
            let _ = url.set_username("").and_then(|()| url.set_password(None));
            if let Target::Postmark { auth, .. } = &mut target {
                auth.get_or_insert(own);
            }
        }
        Some(Arc::new(Self {
            url,
            target,
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            full: Notify::new(),
            ready: Mutex::default(),
        }))
    }

    pub(crate) fn provider(&self) -> Provider {
        match self.target {
            Target::SendGrid { .. } => Provider::SendGrid,
            Target::Postmark { .. } => Provider::Postmark,
            Target::Mailgun { .. } => Provider::Mailgun,
            Target::Sns { .. } => Provider::Ses,
        }
    }

    /// Whether many events share one call.
    pub(crate) fn batches(&self) -> bool {
        self.provider() == Provider::SendGrid
    }

    /// Adds an event. True when nobody empties the lane and the caller must see to it.
    pub(crate) fn push(&self, event: Event, batch_max: usize) -> bool {
        let mut ready = self.ready.lock();
        ready.events.push_back(event);
        let is_full = ready.events.len() >= batch_max;
        let is_first = !std::mem::replace(&mut ready.worked, true);
        drop(ready);
        if is_full {
            self.full.notify_one();
        }
        is_first
    }

    /// The next events. When there is none, whoever empties the lane is done with it.
    pub(crate) fn take(&self, max: usize) -> Vec<Event> {
        let mut ready = self.ready.lock();
        let count = ready.events.len().min(max.max(1));
        ready.worked = count > 0;
        ready.events.drain(..count).collect()
    }

    pub(crate) fn is_full(&self, batch_max: usize) -> bool {
        self.ready.lock().events.len() >= batch_max
    }
}

/// A URL that callbacks may be sent to.
pub(crate) fn parse_url(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
}

fn user_info(url: &Url) -> Option<(String, String)> {
    use crate::request::decode;
    let name = decode(url.username());
    let password = decode(url.password().unwrap_or_default());
    (!name.is_empty() || !password.is_empty()).then_some((name, password))
}
