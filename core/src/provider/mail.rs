//! The input of an adapter: the composed and checked mail of one recipient. Also what all
//! adapters share: the names of the ids that travel with the mail, and the rules for
//! extra headers.

use std::fmt;

use super::credentials::UnusableCredentials;
use super::outcome::{AccountTrouble, Blame, SendOutcome};
use crate::address::Mailbox;
use crate::ids::{MessageId, SendAttemptId};

/// The name of the message id that travels with the mail and comes back in the provider's
/// events. SendGrid merges such names into the top level of its events, so they carry a
/// prefix; Postmark allows 20 characters, SES only letters, digits, `_` and `-`.
pub const TAG_MESSAGE: &str = "waypost_message";
/// The name of the recipient's position in the message.
pub const TAG_RECIPIENT: &str = "waypost_recipient";
/// The name of the send attempt's id.
pub const TAG_ATTEMPT: &str = "waypost_attempt";

/// Headers that the provider or Waypost sets: the union of what the providers refuse
/// (SendGrid's OpenAPI document names most of them).
const HEADERS_RESERVED: [&str; 16] = [
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
    "x-sg-eid",
    "x-sg-id",
];
/// SES allows a name of up to 126 characters, a value of up to 995, both together up to
/// 996, and 15 headers. The other providers allow more; one rule serves all.
const HEADER_NAME_BYTES_MAX: usize = 126;
const HEADER_VALUE_BYTES_MAX: usize = 995;
const HEADER_BYTES_MAX: usize = 996;
const HEADERS_MAX: usize = 15;

/// The mail of one recipient of a message.
#[derive(Clone)]
pub struct OutgoingMail {
    pub message_id: MessageId,
    /// The recipient's position in the message, from 0.
    pub recipient: u32,
    /// The attempt that was recorded before this call.
    pub attempt_id: SendAttemptId,
    pub from: Mailbox,
    pub to: Mailbox,
    /// The address for replies, if not the sender.
    pub reply_to: Option<Mailbox>,
    /// The subject, on one line.
    pub subject: String,
    /// The HTML body. At least one body is present.
    pub html: Option<String>,
    pub text: Option<String>,
    /// The message's tags: up to 10, of any text. Each adapter documents which of them the
    /// provider gets; the message keeps all.
    pub tags: Vec<String>,
    /// Extra headers (`List-Unsubscribe`), in ASCII.
    pub headers: Vec<(String, String)>,
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
    pub fn correlation(&self) -> [(&'static str, String); 3] {
        [
            (TAG_MESSAGE, self.message_id.to_string()),
            (TAG_RECIPIENT, self.recipient.to_string()),
            (TAG_ATTEMPT, self.attempt_id.to_string()),
        ]
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
        if self.headers.len() > HEADERS_MAX {
            return Err(Unsendable::message(
                "the mail has more than 15 extra headers",
            ));
        }
        self.headers
            .iter()
            .try_for_each(|(name, value)| require_header(name, value))
    }
}

fn require_header(name: &str, value: &str) -> Result<(), Unsendable> {
    let refuse = |what: &str| {
        let shown: String = name.escape_default().take(40).collect();
        Err(Unsendable::message(format!("the header {shown} {what}")))
    };
    let name_fits = (1..=HEADER_NAME_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b':');
    if !name_fits {
        return refuse("has a name that is not a header name");
    }
    if HEADERS_RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return refuse("is written by Waypost or the provider");
    }
    let value_fits = (1..=HEADER_VALUE_BYTES_MAX).contains(&value.len())
        && name.len() + value.len() <= HEADER_BYTES_MAX
        && value
            .bytes()
            .all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !value_fits {
        return refuse("has a value that is empty, too long or not plain ASCII");
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
