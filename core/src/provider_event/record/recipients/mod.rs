//! Recipients as they are before events are applied.

pub(super) mod store;

use super::recipient_state::RecipientState;
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::ids::{MessageId, OrganizationId, ProviderAccountId, SendAttemptId, UnsubscribeGroupId};
use crate::provider::event::EventIds;

/// Identifies a recipient: the message and the recipient's position.
pub(super) type RecipientKey = (MessageId, i32);

/// What an event says of its recipient by Waypost's ids.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedRecipient {
    pub(super) organization_id: OrganizationId,
    pub(super) ids: EventIds,
    pub(super) address_hash: Option<AddressHash>,
}

/// The recipient that an event is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundRecipient {
    pub(super) key: RecipientKey,
    /// The attempt that the event names; `None` if the recipient was found by the
    /// provider's message id.
    pub(super) attempt_id: Option<SendAttemptId>,
    /// Whether that attempt is known to be accepted. This never changes back.
    pub(super) is_proven: bool,
    pub(super) started_at: Option<Timestamp>,
    /// The account that the attempt used.
    pub(super) account_id: ProviderAccountId,
}

/// A recipient whose row is locked until the transaction ends.
#[derive(Debug, Clone)]
pub(super) struct LockedRecipient {
    pub(super) state: RecipientState,
    /// The account that is known to have sent it.
    pub(super) account_id: Option<ProviderAccountId>,
    /// The domain of the address; empty if it is not known.
    pub(super) domain: String,
}

/// What identifies a recipient without Waypost's ids: the provider's message id and
/// perhaps the address.
#[derive(Debug, Clone)]
pub(super) struct MatchKey {
    /// The index of the event.
    pub(super) event_index: usize,
    /// The account that reported the event, and its organization.
    pub(super) organization_id: OrganizationId,
    pub(super) account_id: ProviderAccountId,
    pub(super) provider_message_id: String,
    pub(super) address_hash: Option<AddressHash>,
}

/// The address that a suppression is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addressee {
    pub(super) address_hash: AddressHash,
    /// The unsubscribe group of the message.
    pub(super) group_id: Option<UnsubscribeGroupId>,
}
