//! Drafts: requests to send that are valid for any provider.

use serde_json::Value;

use crate::address::Mailbox;
use crate::idempotency::KeyClaim;
use crate::ids::{TemplateId, UnsubscribeGroupId};
use crate::text::{Subject, Tag};
use crate::tracking::TrackingChoice;

/// The most recipients of one message.
pub const RECIPIENTS_MAX: usize = 1_000;
/// The most tags of one message.
pub const TAGS_MAX: usize = 10;
/// The most bytes of a message's metadata. Each of its webhooks contains them, and a worker
/// has hundreds of webhooks in memory.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// A validated request to send. Without `Debug`, so that it is never logged.
#[derive(Clone)]
pub struct Draft {
    pub from: Mailbox,
    /// 1 to [`RECIPIENTS_MAX`] recipients, each address once.
    pub to: Vec<Mailbox>,
    pub reply_to: Option<Mailbox>,
    /// With variables, it is a template.
    pub subject: Subject,
    /// At least one body or a template is set.
    pub html: Option<String>,
    pub text: Option<String>,
    /// The variables, and the template for the bodies that the request does not bring.
    pub template: Option<TemplateUse>,
    /// Up to [`TAGS_MAX`], each once.
    pub tags: Vec<Tag>,
    /// A JSON object of the caller, of up to [`METADATA_BYTES_MAX`].
    pub metadata: Option<Value>,
    /// Its suppressions count besides the global ones.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// What the request says about tracking.
    pub tracking: TrackingChoice,
    /// The request's claim on its idempotency key.
    pub claim: Option<KeyClaim>,
}

/// The variables of a request, and its template. Without a template, the subject and the
/// bodies of the request are templates themselves.
#[derive(Debug, Clone)]
pub struct TemplateUse {
    /// Its current version is rendered.
    pub template_id: Option<TemplateId>,
    pub variables: Value,
}

/// Removes repeated addresses and keeps the first of each: a recipient gets one mail, however
/// often a request names it.
#[must_use]
pub fn distinct(recipients: Vec<Mailbox>) -> Vec<Mailbox> {
    let mut seen = std::collections::HashSet::with_capacity(recipients.len());
    let is_new = |mailbox: &Mailbox| seen.insert(mailbox.address().hash());
    recipients.into_iter().filter(is_new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_named_twice_is_one_recipient() {
        let named = [
            "a@example.com",
            "B@example.com",
            "A@Example.com",
            "b@example.com",
        ];
        let mailboxes = named.map(|text| Mailbox::parse(text).unwrap());
        let distinct = distinct(mailboxes.to_vec());
        let distinct: Vec<&str> = distinct
            .iter()
            .map(|mailbox| mailbox.address().as_str())
            .collect();
        assert_eq!(distinct, ["a@example.com", "B@example.com"]);
    }
}
