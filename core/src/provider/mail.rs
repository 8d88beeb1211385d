//! The input of an adapter: a composed and checked mail, of one recipient or of several who
//! see each other. Also what all adapters share: the names of the ids that travel with the
//! mail, and the rules for extra headers and files.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use super::credentials::UnusableCredentials;
use super::outcome::{AccountTrouble, Blame, SendOutcome};
use crate::address::{EmailAddress, Mailbox};
use crate::ids::{MessageId, SendAttemptId};
use crate::text::header;

/// The name of the message id that travels with the mail and comes back in the provider's
/// events. SendGrid merges such names into the top level of its events, so they carry a
/// prefix; Postmark allows 20 characters, SES only letters, digits, `_` and `-`.
pub const TAG_MESSAGE: &str = "waypost_message";
/// The name of the recipient's position in the message.
pub const TAG_RECIPIENT: &str = "waypost_recipient";
/// The name of the send attempt's id.
pub const TAG_ATTEMPT: &str = "waypost_attempt";

/// Headers that the provider or Waypost sets, whatever the provider.
const HEADERS_RESERVED: [&str; 14] = [
    "bcc",
    "cc",
    "content-transfer-encoding",
    "content-type",
    "date",
    "dkim-signature",
    "from",
    "message-id",
    "mime-version",
    "received",
    "reply-to",
    "return-path",
    "subject",
    "to",
];

/// A mail of a message.
#[derive(Clone)]
pub struct OutgoingMail {
    pub message_id: MessageId,
    /// The recipient's position in the message, from 0. `None` if the mail is shared: then
    /// events find their recipient by its address.
    pub recipient: Option<u32>,
    /// The attempt that was recorded before this call; of a shared mail, that of its first
    /// recipient.
    pub attempt_id: SendAttemptId,
    pub from: Mailbox,
    /// One, if the mail is private; the visible ones, if it is shared. Never empty.
    pub to: Vec<Mailbox>,
    /// More visible recipients.
    pub cc: Vec<Mailbox>,
    /// Recipients that nobody sees.
    pub bcc: Vec<Mailbox>,
    /// The addresses for replies, if not the sender.
    pub reply_to: Vec<Mailbox>,
    /// The subject, on one line.
    pub subject: String,
    /// The HTML body. At least one body is present.
    pub html: Option<String>,
    pub text: Option<String>,
    /// The message's tags: up to 10, of any text. Each adapter documents which of them the
    /// provider gets; the message keeps all.
    pub tags: Vec<String>,
    /// Extra headers: the customer's, then Waypost's (`List-Unsubscribe`). An adapter writes
    /// [`header_value`] of them.
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<MailAttachment>,
}

/// A file of a mail.
#[derive(Clone)]
pub struct MailAttachment {
    pub filename: String,
    /// The media type, such as `application/pdf`.
    pub content_type: String,
    /// The id by which the HTML body shows it. Without one it is an attachment.
    pub content_id: Option<String>,
    /// Shared by all mails of the message.
    pub content: Bytes,
}

impl MailAttachment {
    /// `inline` if the HTML body shows it, else `attachment`.
    #[must_use]
    pub fn disposition(&self) -> &'static str {
        if self.content_id.is_some() {
            "inline"
        } else {
            "attachment"
        }
    }
}

/// Addresses and content do not belong in logs.
impl fmt::Debug for OutgoingMail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingMail")
            .field("message_id", &self.message_id)
            .field("recipient", &self.recipient)
            .field("attempt_id", &self.attempt_id)
            .finish_non_exhaustive()
    }
}

impl OutgoingMail {
    /// Our ids with the names under which they travel. Nothing else is sent: providers
    /// treat these values as non-personal data, and some show them to the recipient.
    #[must_use]
    pub fn correlation(&self) -> Vec<(&'static str, String)> {
        let recipient = self.recipient.map(|nth| (TAG_RECIPIENT, nth.to_string()));
        let mut ids = vec![(TAG_MESSAGE, self.message_id.to_string())];
        ids.extend(recipient);
        ids.push((TAG_ATTEMPT, self.attempt_id.to_string()));
        ids
    }

    /// All recipients: To, Cc, Bcc.
    pub fn recipients(&self) -> impl Iterator<Item = &Mailbox> {
        self.to.iter().chain(&self.cc).chain(&self.bcc)
    }

    /// The first recipient: the only one, if the mail is private.
    #[must_use]
    pub fn first_to(&self) -> Option<&EmailAddress> {
        self.to.first().map(Mailbox::address)
    }

    /// The bytes of all files.
    #[must_use]
    pub fn attachment_bytes(&self) -> usize {
        self.attachments.iter().map(|file| file.content.len()).sum()
    }

    /// Checks that every provider could send this mail.
    ///
    /// # Errors
    /// The first problem.
    pub fn require_sendable(&self) -> Result<(), Unsendable> {
        let filled = |body: &Option<String>| body.as_ref().is_some_and(|text| !text.is_empty());
        if !filled(&self.html) && !filled(&self.text) {
            return Err(Unsendable::message("the mail has no body"));
        }
        if self.subject.is_empty() || self.subject.chars().any(char::is_control) {
            return Err(Unsendable::message(
                "the subject is empty or holds a control character",
            ));
        }
        if self.to.is_empty() {
            return Err(Unsendable::message("the mail has no recipient in To"));
        }
        self.attachments.iter().try_for_each(require_attachment)?;
        self.headers
            .iter()
            .try_for_each(|(name, value)| require_header(name, value))
    }
}

/// The value of a header in ASCII on one line. Text beyond ASCII becomes encoded words.
#[must_use]
pub fn header_value(value: &str) -> Cow<'_, str> {
    if value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(header::unstructured(value, 0).replace("\r\n ", " "))
    }
}

/// Mailboxes as one header has them, with Unicode in the names.
#[must_use]
pub(super) fn mailbox_list(mailboxes: &[Mailbox]) -> String {
    let each = mailboxes.iter().map(Mailbox::to_header);
    each.collect::<Vec<_>>().join(", ")
}

/// Mailboxes as one header has them, in ASCII.
#[must_use]
pub(super) fn encoded_mailbox_list(mailboxes: &[Mailbox]) -> String {
    let each = mailboxes.iter().map(Mailbox::to_encoded_header);
    each.collect::<Vec<_>>().join(", ")
}

/// Checks what would break a header of the part.
fn require_attachment(file: &MailAttachment) -> Result<(), Unsendable> {
    let refuse = |what: &str| {
        let shown: String = file.filename.escape_default().take(40).collect();
        Err(Unsendable::message(format!("the file {shown} {what}")))
    };
    if file.filename.is_empty() || file.filename.chars().any(char::is_control) {
        return refuse("has no name, or a control character in it");
    }
    let is_plain = |text: &str| text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_plain(&file.content_type) || !file.content_type.contains('/') {
        return refuse("has a content type that is not one");
    }
    let is_id = |id: &String| {
        let allowed = |byte: u8| byte.is_ascii_graphic() && !b"<>\"()\\,;".contains(&byte);
        !id.is_empty() && id.bytes().all(allowed)
    };
    if file.content_id.as_ref().is_some_and(|id| !is_id(id)) {
        return refuse("has a content id that is not one");
    }
    Ok(())
}

fn require_header(name: &str, value: &str) -> Result<(), Unsendable> {
    let refuse = |what: &str| {
        let shown: String = name.escape_default().take(40).collect();
        Err(Unsendable::message(format!("the header {shown} {what}")))
    };
    let name_fits = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b':');
    if !name_fits {
        return refuse("has a name that is not a header name");
    }
    if HEADERS_RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return refuse("is written by Waypost or the provider");
    }
    if value.is_empty() || value.chars().any(char::is_control) {
        return refuse("has a value that is empty or holds a control character");
    }
    Ok(())
}

/// Why a mail cannot be put into a request. Found before any call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unsendable {
    /// What is wrong, on one line.
    pub reason: String,
    /// Whether the account is the cause; else the mail is.
    pub blames_account: bool,
}

impl Unsendable {
    /// The mail is the cause.
    pub fn message(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            blames_account: false,
        }
    }

    /// The account is the cause.
    pub fn account(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            blames_account: true,
        }
    }
}

impl From<UnusableCredentials> for Unsendable {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::account(unusable.to_string())
    }
}

impl From<Unsendable> for SendOutcome {
    fn from(refusal: Unsendable) -> Self {
        let reason = refusal.reason;
        if refusal.blames_account {
            Self::AccountUnusable {
                trouble: AccountTrouble::Permanent,
                retry_after: None,
                reason,
            }
        } else {
            Self::Rejected {
                reason,
                blame: Blame::Message,
            }
        }
    }
}
