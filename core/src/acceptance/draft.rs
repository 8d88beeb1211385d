//! Drafts: requests to send that have passed every check of their form. What a
//! draft holds may go to any provider.

use serde_json::Value;

use crate::address::Mailbox;
use crate::idempotency::KeyClaim;
use crate::ids::{TemplateId, UnsubscribeGroupId};
use crate::text::{Subject, Tag};
use crate::tracking::TrackingChoice;

/// Recipients of one message at the most.
pub const RECIPIENTS_MAX: usize = 1_000;
/// Tags of one message at the most.
pub const TAGS_MAX: usize = 10;
/// Bytes of a message's metadata at the most: each webhook of it carries them, and a worker
/// holds hundreds of webhooks.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// A checked request to send. It shows itself to no log.
#[derive(Clone)]
pub struct Draft {
    pub from: Mailbox,
    /// To whom: 1 to [`RECIPIENTS_MAX`], each address once.
    pub to: Vec<Mailbox>,
    pub reply_to: Option<Mailbox>,
    /// The subject; where there are variables a template text itself.
    pub subject: Subject,
    /// The HTML body. At least one body or a template is there.
    pub html: Option<String>,
    pub text: Option<String>,
    /// The values to render with, and the template that gives the bodies which are not
    /// there.
    pub template: Option<TemplateUse>,
    /// Up to [`TAGS_MAX`], each once.
    pub tags: Vec<Tag>,
    /// Whatever the caller wants kept with the message: an object of up to
    /// [`METADATA_BYTES_MAX`].
    pub metadata: Option<Value>,
    /// The group whose suppressions count besides the global ones.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    /// What is tracked, as far as the request says.
    pub tracking: TrackingChoice,
    /// The claim of the request's idempotency key.
    pub claim: Option<KeyClaim>,
}

/// The values to render with, and the template, where one is named: without one the
/// subject and the bodies of the request are templates themselves.
#[derive(Debug, Clone)]
pub struct TemplateUse {
    /// The template; its current version is rendered.
    pub template_id: Option<TemplateId>,
    pub variables: Value,
}

/// Leaves each address in once, at its first place: a recipient gets one copy
/// however often a request names it.
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
    fn an_address_named_twice_gets_one_copy() {
        let named = [
            "a@example.com",
            "B@example.com",
            "A@Example.com",
            "b@example.com",
        ];
        let mailboxes = named.map(|text| Mailbox::parse(text).unwrap());
        let left = distinct(mailboxes.to_vec());
        let left: Vec<&str> = left
            .iter()
            .map(|mailbox| mailbox.address().as_str())
            .collect();
        assert_eq!(left, ["a@example.com", "B@example.com"]);
    }
}
