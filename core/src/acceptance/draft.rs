//! Drafts: requests to send that are valid for any provider.

use std::collections::HashSet;

use serde_json::Value;

use crate::address::Mailbox;
use crate::attachment::{AttachmentRef, AttachmentSource};
use crate::clock::Timestamp;
use crate::idempotency::KeyClaim;
use crate::ids::{ProviderAccountId, TemplateId, UnsubscribeGroupId};
use crate::issue::Issue;
use crate::message::{RecipientKind, SimulatedOutcome};
use crate::routing::conditions::MessageClass;
use crate::template::current::VersionChoice;
use crate::text::{Subject, Tag};
use crate::tracking::TrackingChoice;

/// The most recipients of one message.
pub const RECIPIENTS_MAX: usize = 1_000;
/// The most addresses of a shared message, To, Cc and Bcc together.
pub const SHARED_ADDRESSES_MAX: usize = 50;
/// The most addresses for replies.
pub const REPLY_TO_MAX: usize = 10;
/// How far ahead a message can be scheduled.
pub const SCHEDULE_MONTHS_MAX: u32 = 12;
/// The most tags of one message.
pub const TAGS_MAX: usize = 10;
/// The most bytes of a message's metadata. Each of its webhooks contains them, and a worker
/// has hundreds of webhooks in memory.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// A validated request to send. Without `Debug`, so that it is never logged.
#[derive(Clone)]
pub struct Draft {
    /// Without one, the sender of the template's version.
    pub from: Option<Mailbox>,
    /// 1 to [`RECIPIENTS_MAX`] recipients, each address once.
    pub to: Vec<DraftRecipient>,
    pub delivery: DeliveryMode,
    /// The addresses for replies; without any, the sender's. `None` is those of the
    /// template's version.
    pub reply_to: Option<Vec<Mailbox>>,
    /// With variables, it is a template. Without one, that of the template's version.
    pub subject: Option<Subject>,
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
    /// Extra headers: names and values, in the order of the request.
    pub headers: Vec<(String, String)>,
    /// Its files, until their content is stored.
    pub files: Vec<AttachmentSource>,
    /// Its files, whose content is stored already.
    pub attachments: Vec<AttachmentRef>,
    /// Not sent before this time. `None` is at once.
    pub scheduled_at: Option<Timestamp>,
    /// Not sent from this time on.
    pub expires_at: Option<Timestamp>,
    /// What kind of mail it is, for the routing rules.
    pub class: MessageClass,
    /// The only account that may send it. `None` is by the routing rules.
    pub provider_account_id: Option<ProviderAccountId>,
    /// What becomes of a test, for which no provider is called and nothing is counted. `None`
    /// is a live message.
    pub test_outcome: Option<SimulatedOutcome>,
    /// The request's claim on its idempotency key.
    pub claim: Option<KeyClaim>,
}

/// Who gets a mail of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeliveryMode {
    /// Each recipient gets a mail of its own.
    #[default]
    Private,
    /// All recipients get one mail and see each other, except those of Bcc.
    Shared,
}

impl DeliveryMode {
    /// All deliveries.
    pub const ALL: [Self; 2] = [Self::Private, Self::Shared];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }
}

/// A recipient of a draft. Without `Debug`, so that it is never logged.
#[derive(Clone)]
pub struct DraftRecipient {
    pub mailbox: Mailbox,
    pub kind: RecipientKind,
    /// Its index in the request's list, for error messages.
    pub index: usize,
    /// Its variables, which lie over those of the message.
    pub variables: Option<Value>,
    /// Its metadata, which lies over that of the message in its webhooks.
    pub metadata: Option<Value>,
}

impl From<Mailbox> for DraftRecipient {
    fn from(mailbox: Mailbox) -> Self {
        Self {
            mailbox,
            kind: RecipientKind::To,
            index: 0,
            variables: None,
            metadata: None,
        }
    }
}

/// The variables of a request, and its template. Without a template, the subject and the
/// bodies of the request are templates themselves.
#[derive(Debug, Clone)]
pub struct TemplateUse {
    pub template_id: Option<TemplateId>,
    /// Which version of the template is rendered.
    pub choice: VersionChoice,
    pub variables: Value,
    /// Whether the message tries the template out: its subject says so, and the unsubscribe
    /// link is an example.
    pub is_test_send: bool,
}

impl Draft {
    /// Whether a recipient has variables of its own.
    pub(super) fn has_own_variables(&self) -> bool {
        self.to
            .iter()
            .any(|recipient| recipient.variables.is_some())
    }
}

/// The issues of times that are past. A request that was accepted before with the same
/// idempotency key gets its answer all the same, so this is checked at acceptance.
#[must_use]
pub fn past_times(
    scheduled_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Vec<Issue> {
    let times = [("scheduledAt", scheduled_at), ("expiresAt", expires_at)];
    let past = times
        .into_iter()
        .filter(|(_, time)| time.is_some_and(|time| time <= now));
    past.map(|(path, _)| Issue::new(path, "must be in the future"))
        .collect()
}

/// Removes repeated addresses and keeps the first of each: a recipient gets one mail, however
/// often a request names it.
#[must_use]
pub fn distinct(mut recipients: Vec<DraftRecipient>) -> Vec<DraftRecipient> {
    if recipients.len() > 1 {
        let mut seen = HashSet::with_capacity(recipients.len());
        recipients.retain(|recipient| seen.insert(recipient.mailbox.address().hash()));
    }
    recipients
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_named_twice_is_one_recipient_of_its_first_kind() {
        use RecipientKind::{Bcc, Cc, To};
        let named = [
            ("a@example.com", To),
            ("B@example.com", Cc),
            ("A@Example.com", Cc),
            ("b@example.com", Bcc),
            ("c@example.com", Bcc),
        ];
        let recipients = named.map(|(text, kind)| DraftRecipient {
            kind,
            ..Mailbox::parse(text).unwrap().into()
        });
        let distinct = distinct(recipients.into());
        let distinct: Vec<(&str, RecipientKind)> = distinct
            .iter()
            .map(|recipient| (recipient.mailbox.address().as_str(), recipient.kind))
            .collect();
        let expected = [
            ("a@example.com", To),
            ("B@example.com", Cc),
            ("c@example.com", Bcc),
        ];
        assert_eq!(distinct, expected);
    }
}
