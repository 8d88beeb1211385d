//! The replies of mail servers. Pure.

use super::super::outcome::clean;

/// One reply: a code and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Three digits (RFC 5321, 4.2).
    pub(super) code: u16,
    /// The text of each line.
    pub(super) lines: Vec<String>,
}

/// The stage of a session in which a reply was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Greeting, EHLO, STARTTLS: before the login.
    Greeting,
    Login,
    /// MAIL, with the sender's address.
    Sender,
    /// RCPT, with the recipient's address.
    Recipient,
    /// DATA, and the reply to the content.
    Content,
}

/// An enhanced status code of RFC 3463, such as 5.1.1.
pub(super) type Enhanced = (u16, u16, u16);

impl Reply {
    /// Whether the command succeeded.
    pub(super) fn is_done(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// The reply as a reason: with its code, on one line, bounded, without addresses.
    pub(super) fn reason(&self) -> String {
        let text = self.lines.join(" ");
        clean(&format!("SMTP {}: {text}", self.code))
    }

    /// The enhanced code, if the reply has one of the same class: as its first word, or in
    /// qmail's form after the text, `(#5.1.1)`.
    pub(super) fn enhanced(&self) -> Option<Enhanced> {
        let first = self.lines.first()?.split_whitespace().next()?;
        let mut words = self.lines.iter().flat_map(|line| line.split_whitespace());
        let marked = words.find_map(|word| word.trim_start_matches('(').strip_prefix('#'));
        let read = enhanced(first).or_else(|| enhanced(marked?.trim_end_matches([')', '.'])));
        read.filter(|code| code.0 == self.code / 100)
    }
}

fn enhanced(word: &str) -> Option<Enhanced> {
    let mut numbers = word.split('.').map(|part| {
        let plain = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| part.parse::<u16>().ok()).flatten()
    });
    let code = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

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
