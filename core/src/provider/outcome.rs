//! What came of a call, in our own words. A send ends in one of seven outcomes; a
//! credential check in one of three. Both carry a reason for people: one line,
//! bounded, without addresses or secrets.

use std::time::Duration;

use super::call::ProviderReply;
use super::credentials::UnusableCredentials;
use crate::clock::Timestamp;

/// The longest reason that is kept, in characters.
pub const REASON_CHARS_MAX: usize = 300;

/// What came of sending one mail. The variants say what the worker does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The provider took the mail. It may still refuse or drop it later.
    Accepted {
        /// The provider's name for it, as its events repeat it.
        provider_message_id: Option<String>,
    },
    /// The provider refused for good: the same call would be refused again.
    Rejected {
        reason: String,
        /// What must change before it would be taken.
        blame: Blame,
    },
    /// The recipient's server asks for another try (greylisting, a full mailbox). The
    /// mail was not taken. It says nothing of the account.
    Deferred {
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The provider asks us to slow down. The mail was not taken; trying again
    /// uses up no attempt.
    Throttled {
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The account cannot send: other mail through it would fare alike. The mail was
    /// not taken; trying again uses up no attempt.
    AccountUnusable {
        /// Whether that passes by itself.
        trouble: AccountTrouble,
        /// How long the provider asks us to wait.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The mail was not taken, through no fault of its own: the provider or the
    /// way to it is broken.
    Unavailable {
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
        reason: String,
    },
    /// The request was written and no usable answer came: the provider may have
    /// taken the mail. Never to be read as success or as failure.
    Unknown { reason: String },
}

/// What a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The mail's content or form.
    Message,
    Recipient,
    /// The recipient's address, for there is no such mailbox: a hard bounce that no
    /// event will tell of.
    Mailbox,
    /// The sender's address or its domain, at this account.
    Sender,
    /// The sender's address or its domain, as this recipient's server sees it. Another
    /// recipient may be sent to.
    SenderForRecipient,
}

/// What is wrong with an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountTrouble {
    /// It may pass by itself: a quota, credits, a pause that the provider imposed.
    Temporary,
    /// Somebody has to mend it: revoked credentials, a suspension, an unpaid bill, a
    /// setting.
    UntilMended,
}

/// What came of asking a provider whether it knows the credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CredentialCheck {
    /// The provider accepted the identity, and it may send.
    Valid,
    /// The provider refused the identity, or it may not send.
    Invalid { reason: String },
    /// No verdict: a limit, a failure, a network layer's answer.
    Undecided { reason: String },
}

impl SendOutcome {
    pub(super) fn rejected(blame: Blame, reply: &ProviderReply, text: &str) -> Self {
        Self::Rejected {
            reason: reason(reply.status, text),
            blame,
        }
    }

    /// A refusal for good, or, where nothing of the mail is to blame, the account's.
    pub(super) fn refused(
        blame: Option<Blame>,
        reply: &ProviderReply,
        now: Timestamp,
        text: &str,
    ) -> Self {
        match blame {
            Some(blame) => Self::rejected(blame, reply, text),
            None => Self::account_unusable(AccountTrouble::UntilMended, reply, now, text),
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

    /// What holds for every provider, before its own words are read. `is_own` says
    /// whether the answer has the form in which the provider answers. Nothing for what
    /// the adapter must decide.
    ///
    /// A send was written when its answer came. So a page, a redirection and a foreign
    /// document, which come from something on the way, leave open whether the provider
    /// took the mail, and so does a gateway that got no answer from behind it, whatever
    /// form it gives to that. Two statuses say that nothing was taken, whoever gives
    /// them: 429 (and Mailgun's 420), and 413, which is about the message.
    pub(super) fn common(
        reply: &ProviderReply,
        now: Timestamp,
        text: &str,
        is_own: bool,
    ) -> Option<Self> {
        let text = if reply.is_html() { "" } else { text };
        match reply.status {
            200..=299 if reply.is_html() => Some(Self::unknown(reply, NOT_THE_API)),
            200..=299 => None,
            420 | 429 => Some(Self::throttled(reply, now, text)),
            413 => {
                let text = if is_own { text } else { TOO_LARGE };
                Some(Self::rejected(Blame::Message, reply, text))
            }
            _ if reply.is_html() || !is_own => Some(Self::unknown(reply, NOT_THE_API)),
            100..=199 | 300..=399 => Some(Self::unknown(reply, NOT_THE_API)),
            status if is_of_a_gateway(status) => Some(Self::unknown(reply, NO_ANSWER_BEHIND)),
            408 | 500.. => Some(Self::unavailable(reply, now, text)),
            _ => None,
        }
    }
}

/// Whether a status says that a gateway got no good answer from the server behind it:
/// 502 and 504 (RFC 9110, 15.6), 520 to 530 (Cloudflare, "5xx errors"), 598 and 599 (some
/// proxies).
fn is_of_a_gateway(status: u16) -> bool {
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

/// Why a reply is no answer of a provider's API at all, or says nothing about
/// what was asked; `None` where its own words must be read.
pub(super) fn no_answer(reply: &ProviderReply) -> Option<&'static str> {
    match reply.status {
        _ if reply.is_html() => Some(NOT_THE_API),
        408 | 500.. => Some("the provider failed"),
        420 | 429 => Some("the provider asks us to slow down"),
        100..=199 | 300..=399 => Some(NOT_THE_API),
        _ => None,
    }
}

/// The reason for answers that no provider gives.
const TOO_LARGE: &str = "the message is too large";
const NO_ANSWER_BEHIND: &str = "a gateway got no answer from the provider";
const NOT_THE_API: &str = "the answer came from a network layer, not from the provider's API";

/// A reason: the status and the provider's text, on one line, bounded, with
/// whatever looks like an address taken out (providers echo them).
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
