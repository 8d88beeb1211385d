//! What a customer keeps at a provider besides mail: templates, and webhooks that post to the
//! customer's own application. The adapters read it and never change it.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::call::{CallStep, ProviderCall, ProviderReply};
use super::credentials::UnusableCredentials;
use super::outcome::{reason, unusable_reply};
use crate::clock::Timestamp;

/// Every character except those that stay unencoded in a path segment (RFC 3986 "unreserved").
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A template in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedTemplate {
    /// What names it in the call that reads it.
    pub id: String,
    pub name: String,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InventoryPage<T> {
    pub items: Vec<T>,
    /// The provider's mark of the next page; `None` after the last one.
    pub next: Option<String>,
}

/// A template as the provider sends it: its active version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredTemplate {
    pub id: String,
    /// A second name by which a send may name it.
    pub alias: Option<String>,
    pub name: String,
    /// Whether it stands around others and is not sent itself.
    pub is_layout: bool,
    /// The alias of its layout.
    pub layout: Option<String>,
    pub from: Option<String>,
    pub reply_to: Vec<String>,
    pub subject: Option<String>,
    pub html: Option<String>,
    /// `None` is no text, unless it is made from the HTML.
    pub text: Option<String>,
    /// Whether the provider makes a text from the HTML.
    pub is_text_generated: bool,
    /// The variables that it declares, if its provider has such declarations.
    pub variables: Option<Vec<StoredVariable>>,
    /// Why the provider itself would not send it, or not as it is here.
    pub unsendable: Option<String>,
    /// What a person should know about it.
    pub notes: Vec<String>,
}

/// A declared variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVariable {
    pub key: String,
    pub is_number: bool,
    /// What stands for it when a send does not give it.
    pub fallback: Option<String>,
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWebhook {
    pub id: String,
    pub url: String,
    /// The provider's names of the events that it posts.
    pub events: Vec<String>,
    pub is_active: bool,
}

/// The result of reading. Each variant has a different next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inventory<T> {
    Found(T),
    /// It was there when the list was read, and is gone.
    Missing,
    /// The provider has nothing of the kind, or no way to read it. Why, as a sentence.
    NotOffered(&'static str),
    /// The provider refused; the same call would fail again.
    Refused {
        reason: String,
    },
    /// No usable reply: a rate limit, a failure, a network device.
    Undecided {
        reason: String,
        /// The wait that it names.
        retry_after: Option<Duration>,
    },
}

impl<T> From<UnusableCredentials> for Inventory<T> {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Refused {
            reason: unusable.to_string(),
        }
    }
}

impl<T> Inventory<T> {
    /// The result of a reply that is not what was asked for.
    pub(super) fn not_read(reply: &ProviderReply, text: &str, now: Timestamp) -> Self {
        let undecided = |text: &str| Self::Undecided {
            reason: reason(reply.status, text),
            retry_after: reply.limit_wait(now),
        };
        match (reply.status, unusable_reply(reply)) {
            (408 | 420 | 425 | 429, _) => undecided(text),
            (_, Some(why)) => undecided(why),
            (404, None) => Self::Missing,
            (400..=499, None) => Self::Refused {
                reason: reason(reply.status, text),
            },
            (_, None) => undecided("the reply is not what the provider documents"),
        }
    }
}

/// Makes a call and reads its reply by `parse`, which returns `None` for a document of another
/// form. `error_text` finds the provider's sentence in a refusal.
pub(super) fn read<T: 'static>(
    call: ProviderCall,
    now: Timestamp,
    error_text: impl FnOnce(&ProviderReply) -> String + Send + 'static,
    parse: impl FnOnce(&Value) -> Option<T> + Send + 'static,
) -> CallStep<Inventory<T>> {
    CallStep::call(call, move |reply| {
        let document = reply.json().filter(|_| reply.status == 200);
        let found = document.as_ref().and_then(parse);
        CallStep::Done(match found {
            Some(found) => Inventory::Found(found),
            None => Inventory::not_read(&reply, &error_text(&reply), now),
        })
    })
}

/// An id as one segment of a path.
pub(super) fn segment(id: &str) -> String {
    utf8_percent_encode(id, RESERVED).to_string()
}

/// A text that is not empty.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.map(str::to_owned)
}
