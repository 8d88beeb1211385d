//! Composes the mail that an adapter sends, from the rows of a recipient and its message.
//! Pure. Tracking is added next ([`crate::tracking::link`]), and the unsubscribe link
//! last ([`crate::unsubscribe::link`]), after all other changes of the bodies.

use std::fmt;

use crate::address::Mailbox;
use crate::attachment::AttachmentRef;
use crate::crypto::seal::{Sealed, Sealer};
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId, SendAttemptId, UnsubscribeGroupId};
use crate::message::RecipientKind;
use crate::provider::limits::MailShape;
use crate::provider::mail::OutgoingMail;
use crate::tracking::Tracking;

/// The content that all recipients of a message share.
#[derive(Clone)]
pub struct MessageContent {
    pub id: MessageId,
    pub organization_id: OrganizationId,
    /// The sender as given, with its name.
    pub from_mailbox: String,
    /// Mailboxes, separated by commas.
    pub reply_to: Option<String>,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    pub tags: Vec<String>,
    /// The group that its recipients may unsubscribe from.
    pub unsubscribe_group_id: Option<UnsubscribeGroupId>,
    pub tracking: Tracking,
    /// Extra headers: names and values.
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<AttachmentRef>,
    /// Whether all recipients get one mail.
    pub is_shared: bool,
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

/// What a recipient has instead of the message's content (`recipient_contents`). `None` is
/// the message's. No `Debug`: it must not be logged.
#[derive(Clone, Default)]
pub struct OwnContent {
    pub subject: Option<String>,
    pub html: Option<String>,
    pub text: Option<String>,
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
        recipient: Some(u32::try_from(position).unwrap_or_default()),
        to: vec![stored_mailbox(&to)?],
        ..without_recipients(content, attempt_id)?
    })
}

/// Composes the one mail for all these recipients of a shared message, each with its kind
/// and its sealed address.
///
/// # Errors
/// As [`compose`].
pub fn compose_shared<'a>(
    content: &MessageContent,
    recipients: impl Iterator<Item = (RecipientKind, &'a [u8])>,
    attempt_id: SendAttemptId,
    sealer: &Sealer,
) -> Result<OutgoingMail, Fault> {
    let mut mail = without_recipients(content, attempt_id)?;
    for (kind, address_sealed) in recipients {
        let mailbox = stored_mailbox(&open_address(content, address_sealed, sealer)?)?;
        match kind {
            RecipientKind::To => mail.to.push(mailbox),
            RecipientKind::Cc => mail.cc.push(mailbox),
            RecipientKind::Bcc => mail.bcc.push(mailbox),
        }
    }
    Ok(mail)
}

fn without_recipients(
    content: &MessageContent,
    attempt_id: SendAttemptId,
) -> Result<OutgoingMail, Fault> {
    Ok(OutgoingMail {
        message_id: content.id,
        recipient: None,
        attempt_id,
        from: stored_mailbox(&content.from_mailbox)?,
        to: Vec::new(),
        cc: Vec::new(),
        bcc: Vec::new(),
        reply_to: stored_mailboxes(content.reply_to.as_deref().unwrap_or_default())?,
        subject: content.subject.clone(),
        html: content.html.clone(),
        text: content.text.clone(),
        tags: content.tags.clone(),
        headers: content.headers.clone(),
        attachments: Vec::new(),
    })
}

/// The shape of a message's mails, by which providers refuse them.
#[must_use]
pub fn shape(content: &MessageContent, recipients: usize) -> MailShape<'_> {
    let bytes = |body: &Option<String>| body.as_ref().map_or(0, String::len);
    MailShape {
        recipients: if content.is_shared { recipients } else { 1 },
        headers: &content.headers,
        has_unsubscribe_link: content.unsubscribe_group_id.is_some(),
        reply_to_bytes: content.reply_to.as_ref().map_or(0, String::len),
        body_bytes: [bytes(&content.html), bytes(&content.text)],
        attachments: &content.attachments,
    }
}

/// Parses mailboxes that were validated before they were stored as one header has them.
///
/// # Errors
/// A fault if one is invalid.
pub fn stored_mailboxes(text: &str) -> Result<Vec<Mailbox>, Fault> {
    let mut mailboxes = Vec::new();
    let (mut is_quoted, mut is_escaped, mut begin) = (false, false, 0);
    for (at, character) in text.char_indices().chain([(text.len(), ',')]) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted || at == text.len() => {
                let one = text[begin..at].trim();
                if !one.is_empty() {
                    mailboxes.push(stored_mailbox(one)?);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    Ok(mailboxes)
}

/// Parses a mailbox that was validated before it was stored.
///
/// # Errors
/// A fault if it is invalid.
pub fn stored_mailbox(text: &str) -> Result<Mailbox, Fault> {
    Mailbox::parse(text).map_err(|error| Fault::internal("read a stored mailbox", error))
}
