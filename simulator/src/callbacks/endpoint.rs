//! Endpoints: one for each registered URL, so that a slow receiver delays no other.
//!
//! An endpoint never changes. A changed registration gets a new endpoint; events that
//! wait in the old one still go to its URL.

use std::collections::VecDeque;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::{Notify, Semaphore};

use super::event_kinds::{Kinds, ProviderEventKind};
use super::keys::{SendGridKey, SnsVersion};
use crate::mail::Record;
use crate::providers::Provider;

/// Concurrent calls to one URL.
const CALLS_MAX: usize = 16;

/// An event for one subscriber.
pub(crate) struct Event {
    pub(crate) record: Arc<Record>,
    pub(crate) kind: ProviderEventKind,
    /// When it happened; it may be reported later.
    pub(crate) at: DateTime<Utc>,
}

/// An endpoint with the event kinds that its owner subscribed to.
#[derive(Clone)]
pub(crate) struct Subscriber {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) subscribed_kinds: Kinds,
}

/// The URL of calls, and what they must contain.
pub(crate) struct Endpoint {
    /// Without user name and password.
    pub(crate) url: Url,
    pub(crate) target: Target,
    /// The number of calls that may run concurrently.
    pub(crate) calls: Arc<Semaphore>,
    /// Notified when a batch is full before its time.
    pub(crate) full: Notify,
    ready: Mutex<Ready>,
}

/// The provider's part of a call.
pub(crate) enum Target {
    /// The key is present if the webhook is signed.
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

impl Endpoint {
    /// `None` if the URL cannot be called.
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

    /// Whether several events share a call.
    pub(crate) fn batches(&self) -> bool {
        self.provider() == Provider::SendGrid
    }

    /// Adds an event. True if no task drains the endpoint yet and the caller must start
    /// one.
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

    /// The next events. If there are none, the task that drains the endpoint ends.
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

/// A URL to which callbacks may be sent.
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
