//! What a refusal for good says of the mailbox. An address is suppressed only for a
//! verdict on it: that it does not exist or takes no mail. A server that refuses this
//! mail or this sender says nothing of the kind, whatever its reply code.

use crate::provider::event::BounceType;

/// What a receiving server's words are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalSubject {
    /// There is no such mailbox, or no such domain.
    Address,
    /// Something that passes: the mailbox is full, its system is away.
    Passing,
    /// This mail or this sender.
    Mail,
    Nothing,
}

/// The kind of a bounce for good. `is_labelled` says that the provider itself calls it a
/// verdict on the address; the server's words may tell otherwise.
pub(super) fn bounce_type(
    is_labelled: bool,
    status: Option<&str>,
    answer: Option<&str>,
) -> BounceType {
    match subject(status, answer.unwrap_or_default()) {
        RefusalSubject::Address => BounceType::Hard,
        RefusalSubject::Passing => BounceType::Soft,
        RefusalSubject::Mail => BounceType::Block,
        RefusalSubject::Nothing if is_labelled => BounceType::Hard,
        RefusalSubject::Nothing => BounceType::Block,
    }
}

/// By the enhanced status (RFC 3463, 3), where it says anything, else by words that name
/// a list of senders.
fn subject(status: Option<&str>, answer: &str) -> RefusalSubject {
    let status = status.and_then(enhanced).or_else(|| {
        let words = answer.split(|c: char| c.is_whitespace() || "-;#<>[]()".contains(c));
        words.take(8).find_map(enhanced)
    });
    match status {
        // The address of the sender.
        Some((5, 1, 7..=9)) => RefusalSubject::Mail,
        Some((5, 1, _)) => RefusalSubject::Address,
        Some((4, _, _) | (5, 2, 2)) => RefusalSubject::Passing,
        // Too large; content; policy.
        Some((5, 2, 3) | (5, 3, 4) | (5, 6 | 7, _)) => RefusalSubject::Mail,
        Some(_) | None if names_a_list(answer) => RefusalSubject::Mail,
        Some(_) | None => RefusalSubject::Nothing,
    }
}

/// Class, subject and detail of an enhanced status of failure: `5.1.1`.
fn enhanced(word: &str) -> Option<(u8, u16, u16)> {
    let mut parts = word.trim_end_matches([':', ',', '.']).split('.');
    let class = match parts.next()? {
        "4" => 4,
        "5" => 5,
        _ => return None,
    };
    let (subject, detail) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some((class, subject, detail))
}

fn names_a_list(answer: &str) -> bool {
    const WORDS: [&str; 12] = [
        "spamhaus",
        "spamcop",
        "barracuda",
        "blocklist",
        "block list",
        "blacklist",
        "black list",
        "dnsbl",
        "reputation",
        "spam",
        "policy",
        "blocked",
    ];
    let answer = answer.to_ascii_lowercase();
    WORDS.iter().any(|words| answer.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_verdict_on_the_address_is_hard() {
        use BounceType::{Block, Hard, Soft};
        // Status, answer; without a label, with one.
        for (status, answer, unlabelled, labelled) in [
            ("5.1.1", "", Hard, Hard),
            ("5.1.2", "", Hard, Hard),
            ("5.1.10", "", Hard, Hard),
            ("", "550 5.1.1 <ada@x.org>: user unknown", Hard, Hard),
            ("", "550-5.1.1 The email account does not exist", Hard, Hard),
            ("", "smtp; 550 5.1.1 user unknown", Hard, Hard),
            ("5.0.0", "550 no such user", Block, Hard),
            ("", "550 no such user", Block, Hard),
            ("", "", Block, Hard),
            ("5.1.8", "sender's domain does not exist", Block, Block),
            ("5.7.1", "550 5.7.1 refused", Block, Block),
            ("5.7.509", "", Block, Block),
            ("", "554 5.7.1 Service unavailable", Block, Block),
            ("", "554 blocked using Spamhaus", Block, Block),
            ("5.0.0", "550 poor reputation", Block, Block),
            ("5.3.4", "552 too large", Block, Block),
            ("5.2.2", "552 5.2.2 mailbox full", Soft, Soft),
            ("4.2.2", "452 mailbox full", Soft, Soft),
            ("", "421 4.7.0 try later", Soft, Soft),
            ("5.2.1", "disabled", Block, Hard),
            ("5.4.1", "recipient address rejected", Block, Hard),
            ("5.6.0", "", Block, Block),
            ("550", "", Block, Hard),
            ("nonsense", "1.2.3.4 refused", Block, Hard),
        ] {
            let (status, answer) = (Some(status), Some(answer));
            assert_eq!(bounce_type(false, status, answer), unlabelled, "{answer:?}");
            assert_eq!(bounce_type(true, status, answer), labelled, "{answer:?}");
        }
        assert_eq!(bounce_type(true, None, None), Hard);
        assert_eq!(bounce_type(false, None, None), Block);
    }
}
