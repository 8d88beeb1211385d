//! What a mail server says, and what a refusal of it means. Pure.

use super::super::outcome::{AccountTrouble, Blame, SendOutcome, clean};

/// One reply: a code and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Three digits (RFC 5321, 4.2).
    pub(super) code: u16,
    /// The text of each line.
    pub(super) lines: Vec<String>,
}

/// Where in a conversation a reply was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Greeting, EHLO, STARTTLS: before the server knows who we are.
    Greeting,
    /// AUTH.
    Login,
    /// MAIL, with the sender's address.
    Sender,
    /// RCPT, with the recipient's address.
    Recipient,
    /// DATA, and the reply to the content.
    Content,
}

/// A code of RFC 3463, such as 5.1.1.
type Enhanced = (u16, u16, u16);

impl Reply {
    /// Whether the command was carried out.
    pub(super) fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The lines as one text, for people: with its code, bounded, without addresses.
    pub(super) fn reason(&self) -> String {
        let text = self.lines.join(" ");
        clean(&format!("SMTP {}: {text}", self.code))
    }

    /// The enhanced code, where the reply begins with one that agrees with it.
    fn enhanced(&self) -> Option<Enhanced> {
        let first = self.lines.first()?.split_whitespace().next()?;
        let mut numbers = first.split('.').map(|part| {
            let plain = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| part.parse::<u16>().ok()).flatten()
        });
        let code = (numbers.next()??, numbers.next()??, numbers.next()??);
        (numbers.next().is_none() && code.0 == self.code / 100).then_some(code)
    }
}

/// What follows from a refusal: any reply but the one that was hoped for.
pub(super) fn read_refusal(stage: Stage, reply: &Reply) -> SendOutcome {
    let reason = reply.reason();
    let retry_after = None;
    if is_throttling(stage, reply) {
        return SendOutcome::Throttled {
            retry_after,
            reason,
        };
    }
    // A server that does not even greet may be the wrong one, or block our address
    // for a while: that is no verdict on the mail.
    let is_final = (500..600).contains(&reply.code) && stage != Stage::Greeting;
    if !is_final {
        return SendOutcome::Unavailable {
            retry_after,
            reason,
        };
    }
    match blame(stage, reply) {
        Some(blame) => SendOutcome::Rejected { reason, blame },
        None => SendOutcome::AccountUnusable {
            trouble: AccountTrouble::UntilMended,
            retry_after,
            reason,
        },
    }
}

/// Replies that ask to slow down rather than tell of trouble: 421 (RFC 5321, 3.8:
/// too many connections, or too much in one), the classes 4.7 (greylisting, rates)
/// and 4.3.2, 4.4.5 of RFC 3463; and 454, by which SES says that a sending rate or
/// quota is exceeded. At AUTH a 454 is the server's own trouble (RFC 4954).
fn is_throttling(stage: Stage, reply: &Reply) -> bool {
    if stage == Stage::Login {
        return reply.code == 421;
    }
    matches!(reply.code, 421 | 454)
        || (400..500).contains(&reply.code)
            && matches!(reply.enhanced(), Some((4, 7, _) | (4, 3, 2) | (4, 4, 5)))
}

/// What a final refusal is about; nothing where it is about the account.
fn blame(stage: Stage, reply: &Reply) -> Option<Blame> {
    // Authentication is missing, too weak or wrong (RFC 4954), whenever it is said.
    if stage == Stage::Login || matches!(reply.code, 530 | 534 | 535 | 538) {
        return None;
    }
    Some(match (reply.enhanced(), stage) {
        // RFC 3463: 7 and 8 are of the sender's address.
        (Some((5, 1, 7 | 8)), _) => Blame::Sender,
        (_, Stage::Sender) if reply.code == 552 => Blame::Message,
        (_, Stage::Sender) => Blame::Sender,
        (Some((5, 1, 1 | 2 | 3 | 6 | 10)), Stage::Recipient | Stage::Content) => Blame::Mailbox,
        (_, Stage::Recipient) => Blame::Recipient,
        (_, Stage::Greeting | Stage::Login | Stage::Content) => Blame::Message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(stage: Stage, line: &str) -> &'static str {
        let (code, text) = line.split_once(' ').unwrap();
        let reply = Reply {
            code: code.parse().unwrap(),
            lines: vec![text.to_owned()],
        };
        match read_refusal(stage, &reply) {
            SendOutcome::Throttled { .. } => "throttled",
            SendOutcome::Unavailable { .. } => "unavailable",
            SendOutcome::AccountUnusable { .. } => "account",
            SendOutcome::Deferred { .. } => "deferred",
            SendOutcome::Rejected { blame, .. } => match blame {
                Blame::Sender => "sender",
                Blame::Recipient => "recipient",
                Blame::Mailbox => "mailbox",
                Blame::Message => "message",
            },
            SendOutcome::Accepted { .. } | SendOutcome::Unknown { .. } => "not a refusal",
        }
    }

    #[test]
    fn a_refusal_is_read_by_its_stage_its_code_and_its_enhanced_code() {
        use Stage::{Content, Greeting, Login, Recipient, Sender};
        for (stage, line, expected) in [
            (Greeting, "421 4.3.2 Too many connections", "throttled"),
            (Greeting, "554 No SMTP service here", "unavailable"),
            (Greeting, "500 What?", "unavailable"),
            (Login, "535 5.7.8 Authentication failed", "account"),
            (
                Login,
                "454 4.7.0 Temporary authentication failure",
                "unavailable",
            ),
            (Login, "421 4.7.0 Try later", "throttled"),
            (Sender, "530 5.7.0 Authentication required", "account"),
            (Sender, "550 5.1.8 Bad sender's system", "sender"),
            (Sender, "553 Not your address", "sender"),
            (Sender, "552 5.3.4 Message too big", "message"),
            (Sender, "451 4.3.0 Disk full", "unavailable"),
            (
                Sender,
                "454 Throttling failure: Maximum sending rate exceeded",
                "throttled",
            ),
            (Recipient, "550 5.1.1 No such user", "mailbox"),
            (Recipient, "550 5.1.10 Null MX", "mailbox"),
            // Relays say so too where they refuse everybody: no proof of a bounce.
            (Recipient, "550 relay not permitted", "recipient"),
            (
                Recipient,
                "553 not in my list of allowed hosts",
                "recipient",
            ),
            (Recipient, "550 5.7.1 Blocked", "recipient"),
            (Recipient, "550 5.1.7 Bad sender", "sender"),
            (Recipient, "554 5.7.1 Relay access denied", "recipient"),
            (Recipient, "450 4.2.1 Mailbox busy", "unavailable"),
            (Recipient, "452 4.2.2 Mailbox full", "unavailable"),
            (Recipient, "451 4.7.1 Greylisted", "throttled"),
            // Codes that contradict each other: the first one counts.
            (Recipient, "450 5.1.1 No such user", "unavailable"),
            (Content, "552 5.3.4 Too big", "message"),
            (Content, "554 5.7.1 Spam", "message"),
            (Content, "550 5.1.1 No such user", "mailbox"),
            (Content, "421 4.3.2 Shutting down", "throttled"),
            (Content, "250 5.1.1.1 odd", "unavailable"),
        ] {
            assert_eq!(outcome(stage, line), expected, "{stage:?} {line}");
        }
    }

    #[test]
    fn a_reason_has_the_code_and_no_address() {
        let reply = Reply {
            code: 550,
            lines: vec![
                "5.1.1 <ada@example.org>:".to_owned(),
                "5.1.1 unknown".to_owned(),
            ],
        };
        assert_eq!(reply.reason(), "SMTP 550: 5.1.1 <address>: 5.1.1 unknown");
    }
}
