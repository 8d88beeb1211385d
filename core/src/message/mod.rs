//! Messages: accepted requests to send, and the private copies that they become.
//!
//! A *message* is one accepted request. Each of its addresses is a *recipient*
//! with a status, attempts and history of its own; the message shows their
//! aggregate. Recipients are worked off in *chunks* of up to [`CHUNK_RECIPIENTS`],
//! each of which is one row of the outbox and one job.

pub mod attempts;
pub mod compose;
pub mod list;
pub mod status;
pub mod store;

use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::event::Event;
use crate::ids::{MessageId, ProviderAccountId};
pub use status::MessageStatus;

/// Recipients that one job sends to at the most.
pub const CHUNK_RECIPIENTS: i32 = 100;

/// One line of the list of messages. It shows itself to no log.
#[derive(Clone)]
pub struct MessageItem {
    pub id: MessageId,
    /// The account that it goes through: the one resolved at acceptance, until the
    /// first recipient has gone through another.
    pub provider_account_id: ProviderAccountId,
    pub from_address: String,
    /// The first recipient's hash.
    pub to_hash: AddressHash,
    pub subject: String,
    /// The aggregate of its recipients' statuses.
    pub status: MessageStatus,
    pub tags: Vec<String>,
    /// How many recipients it has.
    pub recipient_count: i32,
    /// The first recipient's id at the provider.
    pub provider_message_id: Option<String>,
    pub created_at: Timestamp,
    /// When a provider first took a copy.
    pub sent_at: Option<Timestamp>,
    /// When a mailbox first took a copy.
    pub delivered_at: Option<Timestamp>,
}

/// One recipient of a message, as its owner sees it.
#[derive(Debug, Clone)]
pub struct RecipientItem {
    /// Its place in the request, from 0.
    pub position: i32,
    /// The hash of its address.
    pub address_hash: AddressHash,
    pub status: MessageStatus,
    /// The account of the latest attempt.
    pub provider_account_id: Option<ProviderAccountId>,
    /// Its id at the provider.
    pub provider_message_id: Option<String>,
    /// Attempts made, throttled ones apart.
    pub attempts: i32,
    /// What the latest failure said.
    pub last_error: Option<String>,
    pub events: Vec<Event>,
}
