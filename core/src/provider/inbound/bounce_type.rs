//! Classifies a permanent bounce. An address is suppressed only if the receiving server
//! says that the address does not exist or accepts no mail. A server that rejects this mail
//! or this sender says nothing about the address, whatever its reply code.

use crate::provider::event::BounceType;

/// What the reply of a receiving server is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalSubject {
    /// The mailbox or the domain does not exist.
    Address,
    /// A temporary condition: the mailbox is full, the system is unreachable.
    Temporary,
    /// This mail or this sender.
    Mail,
    Unclear,
}

/// The type of a permanent bounce. `is_labelled` says that the provider itself blames the
/// address; the server's reply may say otherwise.
pub(super) fn classify(is_labelled: bool, status: Option<&str>, reply: Option<&str>) -> BounceType {
    match subject(status, reply.unwrap_or_default()) {
        RefusalSubject::Address => BounceType::Hard,
        RefusalSubject::Temporary => BounceType::Soft,
        RefusalSubject::Mail => BounceType::Block,
        RefusalSubject::Unclear if is_labelled => BounceType::Hard,
        RefusalSubject::Unclear => BounceType::Block,
    }
}

/// Decided by the enhanced status (RFC 3463, 3) if it is conclusive, else by words that
/// name a block list.
fn subject(status: Option<&str>, reply: &str) -> RefusalSubject {
    let status = status.and_then(enhanced).or_else(|| {
        let words = reply.split(|c: char| c.is_whitespace() || "-;#<>[]()".contains(c));
        words.take(8).find_map(enhanced)
    });
    match status {
        // The sender's address.
        Some((5, 1, 7..=9)) => RefusalSubject::Mail,
        Some((5, 1, _)) => RefusalSubject::Address,
        Some((4, _, _) | (5, 2, 2)) => RefusalSubject::Temporary,
        // Too large; content; policy.
        Some((5, 2, 3) | (5, 3, 4) | (5, 6 | 7, _)) => RefusalSubject::Mail,
        Some(_) | None if names_a_block_list(reply) => RefusalSubject::Mail,
        Some(_) | None => RefusalSubject::Unclear,
    }
}

/// Class, subject and detail of a failure's enhanced status: `5.1.1`.
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

fn names_a_block_list(reply: &str) -> bool {
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
    let reply = reply.to_ascii_lowercase();
    WORDS.iter().any(|words| reply.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bounce_that_blames_the_address_is_hard() {
        use BounceType::{Block, Hard, Soft};
        // Status, reply; the type without and with the provider's label.
        for (status, reply, unlabelled, labelled) in [
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
            let (status, reply) = (Some(status), Some(reply));
            assert_eq!(classify(false, status, reply), unlabelled, "{reply:?}");
            assert_eq!(classify(true, status, reply), labelled, "{reply:?}");
        }
        assert_eq!(classify(true, None, None), Hard);
        assert_eq!(classify(false, None, None), Block);
    }
}
