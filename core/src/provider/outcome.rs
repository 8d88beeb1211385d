//! The results of calls, normalised. A send has one of seven outcomes, a credential check
//! one of three. Each carries a reason to display: one line, bounded, without addresses or
//! secrets.

use std::time::Duration;

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use crate::clock::Timestamp;

/// The longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 300;

/// The outcome of a send. Each variant has a different next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The provider took the mail. It may still bounce or drop it later.
    Accepted {
        /// The provider's id of the mail, as in its events.
        provider_message_id: Option<String>,
    },
    /// The provider refused for good: the same call would be refused again.
    Rejected {
        reason: String,
        /// What the refusal is about.
        blame: Blame,
    },
    /// The recipient's server asks for another try (greylisting, a full mailbox). The mail
    /// was not taken. The outcome says nothing about the account.
    Deferred {
        /// The wait that it names.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The provider throttles. The mail was not taken; the retry does not count as an
    /// attempt.
    Throttled {
        /// The wait that it names.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The account cannot send any mail. The mail was not taken; the retry does not count
    /// as an attempt.
    AccountUnusable {
        /// Whether that may pass without action.
        trouble: AccountTrouble,
        /// The wait that the provider names.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The mail was not taken, because the provider or the network failed.
    Unavailable {
        /// The wait that it names.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The request was written and no usable reply came: the provider may have taken the
    /// mail. Never treated as success or as failure.
    Unknown { reason: String },
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The mail's content or form.
    Message,
    Recipient,
    /// The recipient's mailbox, which does not exist: a hard bounce that no event will
    /// report.
    Mailbox,
    /// The sender's address or domain, at this account.
    Sender,
    /// The sender's address or domain, as this recipient's server sees it. Other
    /// recipients may still get mail from this sender.
    SenderForRecipient,
}

/// Whether an unusable account may recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountTrouble {
    /// It may pass without action: a quota, credits, a pause that the provider imposed.
    Temporary,
    /// The customer must act: revoked credentials, a suspension, an unpaid bill, a setting.
    Permanent,
}

/// The result of a credential check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialCheck {
    /// The provider accepts the credentials, and they may send.
    Valid,
    /// The provider refuses the credentials, or they may not send.
    Invalid { reason: String },
    /// No usable reply: a rate limit, a failure, a network device.
    Undecided { reason: String },
}

impl Blame {
    /// Whether a refusal of one call holds for every recipient of the call. A refusal of
    /// the content does not: the mails of a batch call differ.
    #[must_use]
    pub fn holds_for_all_recipients(self) -> bool {
        match self {
            Self::Sender => true,
            Self::Message | Self::Recipient | Self::Mailbox | Self::SenderForRecipient => false,
        }
    }
}

impl SendOutcome {
    /// The names of all outcomes in the API.
    pub const NAMES: [&'static str; 5] = [
        "ACCEPTED",
        "REJECTED",
        "THROTTLED",
        "UNAVAILABLE",
        "UNKNOWN",
    ];

    /// The name of the outcome in the API. Seven kinds have five names: what differs between
    /// the others matters to the next step only.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "ACCEPTED",
            Self::Rejected { .. } | Self::AccountUnusable { .. } => "REJECTED",
            Self::Throttled { .. } => "THROTTLED",
            Self::Deferred { .. } | Self::Unavailable { .. } => "UNAVAILABLE",
            Self::Unknown { .. } => "UNKNOWN",
        }
    }

    pub(super) fn rejected(blame: Blame, reply: &ProviderReply, text: &str) -> Self {
        Self::Rejected {
            reason: reason(reply.status, text),
            blame,
        }
    }

    /// A refusal of the mail; if `blame` is `None`, the account is unusable.
    pub(super) fn refused(
        blame: Option<Blame>,
        reply: &ProviderReply,
        now: Timestamp,
        text: &str,
    ) -> Self {
        match blame {
            Some(blame) => Self::rejected(blame, reply, text),
            None => Self::account_unusable(AccountTrouble::Permanent, reply, now, text),
        }
    }

    pub(super) fn account_unusable(
        trouble: AccountTrouble,
        reply: &ProviderReply,
        now: Timestamp,
        text: &str,
    ) -> Self {
        Self::AccountUnusable {
            trouble,
            retry_after: reply.limit_wait(now),
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn throttled(reply: &ProviderReply, now: Timestamp, text: &str) -> Self {
        Self::Throttled {
            retry_after: reply.limit_wait(now),
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn unavailable(reply: &ProviderReply, now: Timestamp, text: &str) -> Self {
        Self::Unavailable {
            retry_after: reply.retry_after(now),
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn unknown(reply: &ProviderReply, text: &str) -> Self {
        Self::Unknown {
            reason: reason(reply.status, text),
        }
    }

    /// The outcome that holds for every provider; `None` if the adapter must decide.
    /// `is_own` says whether the reply has the form of the provider's replies.
    ///
    /// The request was written when a reply came. So a web page, a redirect and a foreign
    /// document, which come from a network device, leave open whether the provider took the
    /// mail. So does the reply of a gateway without a reply from its server, whatever its
    /// form. Two statuses always mean that nothing was taken: 429 (and Mailgun's 420), and
    /// 413, which is about the message.
    pub(super) fn common(
        reply: &ProviderReply,
        now: Timestamp,
        text: &str,
        is_own: bool,
    ) -> Option<Self> {
        let text = if reply.is_html() { "" } else { text };
        match reply.status {
            200..=299 if reply.is_html() => Some(Self::unknown(reply, NOT_FROM_API)),
            200..=299 => None,
            420 | 429 => Some(Self::throttled(reply, now, text)),
            413 => {
                let text = if is_own { text } else { TOO_LARGE };
                Some(Self::rejected(Blame::Message, reply, text))
            }
            _ if reply.is_html() || !is_own => Some(Self::unknown(reply, NOT_FROM_API)),
            100..=199 | 300..=399 => Some(Self::unknown(reply, NOT_FROM_API)),
            status if is_gateway_status(status) => {
                Some(Self::unknown(reply, GATEWAY_WITHOUT_REPLY))
            }
            408 | 500.. => Some(Self::unavailable(reply, now, text)),
            _ => None,
        }
    }
}

/// Whether a status means that a gateway got no good reply from the server behind it: 502
/// and 504 (RFC 9110, 15.6), 520 to 530 (Cloudflare, "5xx errors"), 598 and 599 (some
/// proxies).
fn is_gateway_status(status: u16) -> bool {
    matches!(status, 502 | 504 | 520..=530 | 598 | 599)
}

impl CredentialCheck {
    pub(super) fn invalid(reply: &ProviderReply, text: &str) -> Self {
        Self::Invalid {
            reason: reason(reply.status, text),
        }
    }

    pub(super) fn undecided(reply: &ProviderReply, text: &str) -> Self {
        Self::Undecided {
            reason: reason(reply.status, text),
        }
    }
}

impl From<UnusableCredentials> for CredentialCheck {
    fn from(unusable: UnusableCredentials) -> Self {
        Self::Undecided {
            reason: unusable.to_string(),
        }
    }
}

/// Why a reply does not come from a provider's API or does not answer the request; `None`
/// if the adapter must read it.
pub(super) fn unusable_reply(reply: &ProviderReply) -> Option<&'static str> {
    match reply.status {
        _ if reply.is_html() => Some(NOT_FROM_API),
        408 | 500.. => Some("the provider failed"),
        420 | 429 => Some("the provider throttles our calls"),
        100..=199 | 300..=399 => Some(NOT_FROM_API),
        _ => None,
    }
}

/// The reasons for replies that no provider gives.
const TOO_LARGE: &str = "the message is too large";
const GATEWAY_WITHOUT_REPLY: &str = "a gateway got no reply from the provider";
const NOT_FROM_API: &str = "the reply came from a network device, not from the provider's API";

/// A reason: the status and the provider's text on one line, bounded, with anything that
/// looks like an address masked (providers echo addresses).
pub(super) fn reason(status: u16, text: &str) -> String {
    let text = clean(text);
    if text.is_empty() {
        format!("HTTP {status}")
    } else {
        let line = format!("HTTP {status}: {text}");
        line.chars().take(REASON_CHARS_MAX).collect()
    }
}

/// A text on one line, bounded, without addresses.
pub(super) fn clean(text: &str) -> String {
    let bounded: String = text.chars().take(REASON_CHARS_MAX * 4).collect();
    let words = bounded.split(|c: char| c.is_whitespace() || c.is_control());
    let words = words.filter(|word| !word.is_empty()).map(mask_addresses);
    let line = words.collect::<Vec<_>>().join(" ");
    line.chars().take(REASON_CHARS_MAX).collect()
}

/// A word with every address in it replaced by `<address>`.
fn mask_addresses(word: &str) -> String {
    if !word.contains('@') && !word.contains("%40") {
        return word.to_owned();
    }
    let is_border = |c: char| "<>()[]{},;:\"'`|\\".contains(c);
    let mut masked = String::with_capacity(word.len());
    for piece in word.split_inclusive(is_border) {
        let body = piece.trim_end_matches(is_border);
        if body.contains('@') || body.contains("%40") {
            masked.push_str("<address>");
        } else {
            masked.push_str(body);
        }
        masked.push_str(&piece[body.len()..]);
    }
    masked.replace("<<address>>", "<address>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_bounded_line_without_addresses() {
        for (text, line) in [
            ("no\r\nsuch  thing", "no such thing"),
            (
                "Inactive: ada@example.com, <b@c.org>.",
                "Inactive: <address>, <address>.",
            ),
            (
                "to='ada@example.com' to=ada%40x.org",
                "to='<address>' <address>",
            ),
            (r#""ada l"@x.org"#, r#""ada l"<address>"#),
            ("plain", "plain"),
        ] {
            assert_eq!(clean(text), line);
        }
        assert_eq!(clean(&"ä".repeat(2_000)).chars().count(), REASON_CHARS_MAX);
        assert_eq!(reason(400, " "), "HTTP 400");
        assert_eq!(reason(400, &"x".repeat(400)).len(), REASON_CHARS_MAX);
    }
}
