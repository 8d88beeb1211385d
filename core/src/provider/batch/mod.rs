//! Batches: the mails of several recipients of one message in one call. A batch is used
//! only if each mail keeps its own ids, links and headers, and gets its own outcome or one
//! that holds for all.
//!
//! Providers offer two ways. Postmark takes a list of complete mails and answers for each.
//! SendGrid and Mailgun take one template with substitutions for each recipient and answer
//! once. `substitutions` derives the template by comparing the mails, so nothing needs
//! to know why they differ.
//!
//! A batch that is rejected as a whole reached no recipient. The rejection is never
//! recorded for a recipient that only shared the call: its mail is sent again without the
//! others.

pub(super) mod substitutions;

use std::collections::HashSet;

use super::AccountAccess;
use super::call::{ProviderCall, ProviderReply};
use super::mail::{MailAttachment, OutgoingMail};
use super::outcome::{Blame, SendOutcome};
use crate::address::EmailAddress;
use crate::clock::Timestamp;

/// How a provider takes several mails in one call.
pub trait Batching: Send + Sync {
    /// The most mails in one call.
    fn mails_max(&self) -> usize;

    /// Whether a mail to this address can be part of a batch. A mail that cannot is sent
    /// in a call of its own; the others still share theirs.
    fn can_batch(&self, _to: &EmailAddress) -> bool {
        true
    }

    /// Whether each mail of a call has its own copy of the files.
    fn repeats_files(&self) -> bool {
        false
    }

    /// The request that sends all mails, which belong to one message; `None` if they
    /// cannot share a call.
    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall>;

    /// Reads the complete reply to a batch of `mails` mails.
    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchReply;
}

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchReply {
    /// The outcome of each mail, in their order. `None` if the mail was not taken and may
    /// not be the cause: it is sent again without the others.
    pub outcomes: Vec<Option<SendOutcome>>,
    /// What the call says about the account.
    pub account_outcome: SendOutcome,
}

impl BatchReply {
    /// The same outcome for all mails.
    #[must_use]
    pub fn all(mails: usize, outcome: SendOutcome) -> Self {
        Self {
            outcomes: vec![Some(outcome.clone()); mails],
            account_outcome: outcome,
        }
    }

    /// A rejection that may be about any of the mails, or about their number.
    pub(super) fn retry_each(mails: usize, reason: String) -> Self {
        Self {
            outcomes: vec![None; mails],
            // A rejected message says nothing about the account.
            account_outcome: SendOutcome::Rejected {
                reason,
                blame: Blame::Message,
            },
        }
    }

    /// An outcome for each mail. The account gets the worst one: unusable, then throttled,
    /// then a failure, then accepted.
    pub(super) fn per_mail(outcomes: Vec<SendOutcome>) -> Self {
        let weight = |outcome: &&SendOutcome| match outcome {
            SendOutcome::Throttled { .. } => 4,
            SendOutcome::Unavailable { .. } | SendOutcome::Unknown { .. } => 3,
            SendOutcome::AccountUnusable { .. } => 5,
            SendOutcome::Accepted { .. } => 1,
            SendOutcome::Deferred { .. } | SendOutcome::Rejected { .. } => 0,
        };
        let worst = outcomes.iter().max_by_key(weight).cloned();
        Self {
            account_outcome: worst.unwrap_or(SendOutcome::Accepted {
                provider_message_id: None,
            }),
            outcomes: outcomes.into_iter().map(Some).collect(),
        }
    }
}

/// Whether the mails differ in nothing but the recipient, the bodies and the headers, each
/// has one recipient, and no address occurs twice: the call tells the recipients apart by
/// their addresses.
pub(super) fn have_same_envelope(mails: &[OutgoingMail]) -> bool {
    let Some((first, others)) = mails.split_first() else {
        return false;
    };
    let is_alike = |mail: &OutgoingMail| {
        mail.message_id == first.message_id
            && mail.from == first.from
            && mail.reply_to == first.reply_to
            && mail.subject == first.subject
            && mail.tags == first.tags
            && have_same_files(mail, first)
    };
    let mut addresses = HashSet::with_capacity(mails.len());
    let mut is_new = |mail: &OutgoingMail| match mail.to.as_slice() {
        [to] if mail.cc.is_empty() && mail.bcc.is_empty() => {
            addresses.insert(to.address().as_str().to_ascii_lowercase())
        }
        _ => false,
    };
    others.iter().all(is_alike)
        && mails
            .iter()
            .all(|mail| is_new(mail) && mail.require_sendable().is_ok())
}

/// Whether two mails have the same files. Equal contents are one in memory, as a rule.
fn have_same_files(one: &OutgoingMail, other: &OutgoingMail) -> bool {
    let alike = |(one, other): (&MailAttachment, &MailAttachment)| {
        let is_same = one.content.as_ptr() == other.content.as_ptr()
            && one.content.len() == other.content.len();
        one.filename == other.filename
            && one.content_type == other.content_type
            && one.content_id == other.content_id
            && (is_same || one.content == other.content)
    };
    one.attachments.len() == other.attachments.len()
        && one.attachments.iter().zip(&other.attachments).all(alike)
}
