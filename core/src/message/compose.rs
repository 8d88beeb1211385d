//! Composes the mail that an adapter sends, from the rows of a recipient and its message.
//! Pure. Tracking is added next ([`crate::tracking::link`]), and the unsubscribe link
//! last ([`crate::unsubscribe::link`]), after all other changes of the bodies.

use std::fmt;

use crate::address::Mailbox;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, SendAttemptId, UnsubscribeGroupId};
use crate::provider::mail::OutgoingMail;
use crate::tracking::Tracking;

/// The content that all recipients of a message share.
#[derive(Clone)]
pub struct MessageContent {
    pub id: MessageId,
    pub organization_id: OrganizationId,
    /// The sender as given, with its name.
    pub from_mailbox: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    pub tags: Vec<String>,
    /// The group that its recipients may unsubscribe from.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub tracking: Tracking,
}

/// Addresses and content do not belong in logs.
impl fmt::Debug for MessageContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageContent")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

fn open_address(
    content: &MessageContent,
    address_sealed: &[u8],
    sealer: &Sealer,
) -> Result<String, Fault> {
    let opened = sealer.open(
        content.organization_id,
        Sealed::Recipient,
        content.id.0,
        address_sealed,
    )?;
    String::from_utf8(opened)
        .map_err(|error| Fault::internal("read a recipient's address", error.utf8_error()))
}

/// The domain of a recipient's address, in lower case.
///
/// # Errors
/// As [`compose`].
pub fn domain(
    content: &MessageContent,
    address_sealed: &[u8],
    sealer: &Sealer,
) -> Result<String, Fault> {
    let address = open_address(content, address_sealed, sealer)?;
    let (_, domain) = address.rsplit_once('@').unwrap_or(("", &address));
    Ok(domain.to_ascii_lowercase())
}

/// Composes the mail for one recipient.
///
/// # Errors
/// A fault if the address cannot be opened (its key is not configured) or a stored
/// mailbox is invalid.
pub fn compose(
    content: &MessageContent,
    position: i32,
    address_sealed: &[u8],
    attempt_id: SendAttemptId,
    sealer: &Sealer,
) -> Result<OutgoingMail, Fault> {
    let to = open_address(content, address_sealed, sealer)?;
    Ok(OutgoingMail {
        message_id: content.id,
        recipient: u32::try_from(position).unwrap_or_default(),
        attempt_id,
        from: stored_mailbox(&content.from_mailbox)?,
        to: stored_mailbox(&to)?,
        reply_to: content
            .reply_to
            .as_deref()
            .map(stored_mailbox)
            .transpose()?,
        subject: content.subject.clone(),
        html: content.html.clone(),
        text: content.text.clone(),
        tags: content.tags.clone(),
        headers: Vec::new(),
    })
}

/// Parses a mailbox that was validated before it was stored.
///
/// # Errors
/// A fault if it is invalid.
pub fn stored_mailbox(text: &str) -> Result<Mailbox, Fault> {
    Mailbox::parse(text).map_err(|error| Fault::internal("read a stored mailbox", error))
}
