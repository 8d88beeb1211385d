//! Copies: what is known of them before the news is followed.

pub(super) mod store;

use super::recipient_state::RecipientState;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId, UnsubscribeGroupId};

/// A copy by its place: the message and the recipient's position.
pub(super) type RecipientKey = (MessageId, i32);

/// The copy that an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundRecipient {
    pub(super) place: RecipientKey,
    /// The call that the event names; nothing where it was found by the provider's
    /// own id.
    pub(super) attempt_id: Option<SendAttemptId>,
    /// Whether that call is known to have been taken, which nothing changes any more.
    pub(super) is_proven: bool,
    pub(super) started_at: Option<Timestamp>,
    /// The account that it went through.
    pub(super) account_id: ProviderAccountId,
}

/// A copy that nobody else changes until the transaction ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedRecipient {
    pub(super) standing: RecipientState,
    /// The account that it is known to have gone through.
    pub(super) account_id: Option<ProviderAccountId>,
}

/// What is known of a copy without our ids: the provider's id, and perhaps whose.
#[derive(Debug, Clone)]
pub(super) struct MatchKey {
    /// The event that it is from.
    pub(super) nth: usize,
    /// The account that tells, and whose it is.
    pub(super) organization_id: OrganizationId,
    pub(super) account_id: ProviderAccountId,
    pub(super) provider_message_id: String,
    pub(super) address_hash: Option<AddressHash>,
}

/// Whom a copy went to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressee {
    pub(super) address_hash: AddressHash,
    /// The group that the message was sent in.
    pub(super) group_id: Option<UnsubscribeGroupId>,
}
