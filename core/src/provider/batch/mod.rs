//! Batches: several recipients' private copies of one message in one call. Only
//! where each copy keeps what tells it from the others: its own ids, links and
//! headers, and a verdict of its own, or one that holds for all.
//!
//! Providers do this in two ways. Postmark takes a list of whole mails and answers
//! for each. SendGrid and Mailgun take one mail with values to fill in for each
//! recipient, and answer once; what the copies share is found by comparing them
//! (`blank`), so that nothing need be known of what made them differ.
//!
//! What is refused as a whole was taken for nobody. It is never charged to those who
//! only shared the call: they are tried again without the others.

pub(super) mod substitutions;

use std::collections::HashSet;

use super::AccountAccess;
use super::call::{ProviderCall, ProviderReply};
use super::mail::OutgoingMail;
use super::outcome::{Blame, SendOutcome};
use crate::address::EmailAddress;
use crate::clock::Timestamp;

/// How a provider takes several mails in one call.
pub trait Batching: Send + Sync {
    /// The most mails of one call.
    fn mails_max(&self) -> usize;

    /// Whether a mail to this address can share a call at all. One that cannot gets a call
    /// of its own, and does not keep the others from sharing theirs.
    fn may_share(&self, _to: &EmailAddress) -> bool {
        true
    }

    /// The request that sends all of them; nothing where they cannot share one, for
    /// whatever reason. They are copies of one message.
    fn send(&self, access: &AccountAccess<'_>, mails: &[OutgoingMail]) -> Option<ProviderCall>;

    /// What the complete reply means for each of so many mails.
    fn read(&self, reply: &ProviderReply, mails: usize, now: Timestamp) -> BatchAnswer;
}

/// What came of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchAnswer {
    /// What came of each mail, in their order. Nothing where a mail was not taken and
    /// it is not known that it was its fault: it is to be tried without the others.
    pub outcomes: Vec<Option<SendOutcome>>,
    /// What the call says of its account.
    pub of_account: SendOutcome,
}

impl BatchAnswer {
    /// The same for all.
    #[must_use]
    pub fn all(mails: usize, outcome: SendOutcome) -> Self {
        Self {
            outcomes: vec![Some(outcome.clone()); mails],
            of_account: outcome,
        }
    }

    /// A refusal that may be about any of them, or about their being so many.
    pub(super) fn apart(mails: usize, reason: String) -> Self {
        Self {
            outcomes: vec![None; mails],
            // The account answered, and says nothing against itself.
            of_account: SendOutcome::Rejected {
                reason,
                blame: Blame::Message,
            },
        }
    }

    /// A verdict for each. Of the account it says what is worst for it: that it
    /// cannot send, that it is used too fast, then that it fails, then what was well.
    pub(super) fn each(outcomes: Vec<SendOutcome>) -> Self {
        let weight = |outcome: &&SendOutcome| match outcome {
            SendOutcome::Throttled { .. } => 4,
            SendOutcome::Unavailable { .. } | SendOutcome::Unknown { .. } => 3,
            SendOutcome::AccountUnusable { .. } => 5,
            SendOutcome::Accepted { .. } => 1,
            SendOutcome::Deferred { .. } | SendOutcome::Rejected { .. } => 0,
        };
        let worst = outcomes.iter().max_by_key(weight).cloned();
        Self {
            of_account: worst.unwrap_or(SendOutcome::Accepted {
                provider_message_id: None,
            }),
            outcomes: outcomes.into_iter().map(Some).collect(),
        }
    }
}

/// Whether the mails have everything in common but the recipient, the bodies and the
/// headers, and no address twice: what names a copy by its address must name one.
pub(super) fn share_an_envelope(mails: &[OutgoingMail]) -> bool {
    let Some((first, others)) = mails.split_first() else {
        return false;
    };
    let is_alike = |mail: &OutgoingMail| {
        mail.message_id == first.message_id
            && mail.from == first.from
            && mail.reply_to == first.reply_to
            && mail.subject == first.subject
            && mail.tags == first.tags
    };
    let mut addresses = HashSet::with_capacity(mails.len());
    let mut is_new = |mail: &OutgoingMail| {
        let address = mail.to.address().as_str();
        addresses.insert(address.to_ascii_lowercase())
    };
    others.iter().all(is_alike)
        && mails
            .iter()
            .all(|mail| is_new(mail) && mail.require_sendable().is_ok())
}
