//! What a refusal means: whom it is about, and whether it passes. Decided by where it was
//! given, by its code and by its enhanced code; by its words where a server says with one
//! code what is about a recipient and what is about us, as all do. Pure.
//!
//! What is said at RCPT is about that recipient, and a 4xx there asks for another try
//! with it (greylisting). Of the account, its client or its rates speak 421, the classes
//! 4.7, 4.3.2, 4.4.5 and 4.5.3 before and after the recipient, and whatever says so in words. A
//! server that refuses to relay refuses everybody, whichever recipient it names.
//!
//! From RCPT on the words may speak of the recipient's account as well as of ours: "account
//! disabled", "user suspended". They are taken for the recipient's, and so is all that the
//! server quotes of another one, unless they can be of ours alone.

mod words;

use super::super::identities::blame_named;
use super::super::outcome::{AccountTrouble, Blame, SendOutcome};
use super::reply::{Reply, Stage};
use words::Words;

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyMeaning {
    /// The account or its client sends too much at once.
    Slower,
    /// The account cannot send, or its client may not speak with the server.
    Account(AccountTrouble),
    /// This mail or its recipient is worth another try.
    Later,
    /// The server is in trouble, or is not the one we look for.
    Away,
    Final(Blame),
}

/// What follows from a refusal of a mail from and to these addresses, when all of it was
/// said.
pub(super) fn read_refusal_of_mail(reply: &Reply, from: &str, to: &str) -> SendOutcome {
    let outcome = read_refusal(Stage::Content, reply);
    blame_named(outcome, &reply.lines.join(" "), from, to)
}

/// What follows from a refusal: any reply but the one that was hoped for.
pub(super) fn read_refusal(stage: Stage, reply: &Reply) -> SendOutcome {
    let reason = reply.reason();
    let retry_after = None;
    match meaning(stage, reply) {
        ReplyMeaning::Slower => SendOutcome::Throttled {
            retry_after,
            reason,
        },
        ReplyMeaning::Account(trouble) => SendOutcome::AccountUnusable {
            trouble,
            retry_after,
            reason,
        },
        ReplyMeaning::Later => SendOutcome::Deferred {
            retry_after,
            reason,
        },
        ReplyMeaning::Away => SendOutcome::Unavailable {
            retry_after,
            reason,
        },
        ReplyMeaning::Final(blame) => SendOutcome::Rejected { reason, blame },
    }
}

fn meaning(stage: Stage, reply: &Reply) -> ReplyMeaning {
    let words = match stage {
        Stage::Greeting | Stage::Login => Words::of(&reply.lines),
        Stage::Sender | Stage::Recipient | Stage::Content => Words::without_quotes(&reply.lines),
    };
    match reply.code {
        400..500 => of_4xx(stage, reply, &words),
        500..600 => of_5xx(stage, reply, &words),
        _ => ReplyMeaning::Away,
    }
}

fn of_4xx(stage: Stage, reply: &Reply, words: &Words) -> ReplyMeaning {
    let told = of_account_in_words(stage, reply, words);
    if words.tell_of_greylisting() {
        return ReplyMeaning::Later;
    }
    if let Some(trouble) = told {
        return match trouble {
            // Nobody mends what ends by itself, and Mailgun says 421 to unverified domains.
            AccountTrouble::UntilMended if reply.code != 421 => {
                ReplyMeaning::Account(AccountTrouble::Temporary)
            }
            AccountTrouble::UntilMended | AccountTrouble::Temporary => {
                ReplyMeaning::Account(trouble)
            }
        };
    }
    if is_of_the_recipient(stage, words) {
        return ReplyMeaning::Later;
    }
    // RFC 5321, 3.8: too many connections, or too much in one.
    if reply.code == 421 || words.tell_of_a_rate() && !is_of_mailbox(reply) {
        return ReplyMeaning::Slower;
    }
    let asks_for_less = match reply.enhanced() {
        // RFC 7372: what a look at the sender's domain found, for now.
        Some((4, 7, 20..=27)) => false,
        Some((4, 7, _) | (4, 3, 2) | (4, 4, 5) | (4, 5, 3)) => true,
        Some(_) | None => false,
    };
    match stage {
        // 454: TLS is not available for now (RFC 3207).
        Stage::Greeting if asks_for_less && reply.code != 454 => ReplyMeaning::Slower,
        // A password that must be changed first (RFC 4954).
        Stage::Login if reply.code == 432 => ReplyMeaning::Account(AccountTrouble::UntilMended),
        Stage::Greeting | Stage::Login => ReplyMeaning::Away,
        Stage::Recipient if matches!(reply.enhanced(), Some((4, 5, 3))) => ReplyMeaning::Slower,
        Stage::Recipient => ReplyMeaning::Later,
        Stage::Sender | Stage::Content if asks_for_less => ReplyMeaning::Slower,
        Stage::Sender | Stage::Content if is_of_party(reply) => ReplyMeaning::Later,
        Stage::Sender | Stage::Content => ReplyMeaning::Away,
    }
}

fn of_5xx(stage: Stage, reply: &Reply, words: &Words) -> ReplyMeaning {
    if let Some(trouble) = of_account_in_words(stage, reply, words) {
        return ReplyMeaning::Account(trouble);
    }
    let until_mended = ReplyMeaning::Account(AccountTrouble::UntilMended);
    match (stage, reply.code) {
        (Stage::Login, _) => return until_mended,
        // After the mail these codes are given for what is wrong with it, too.
        (Stage::Content, 500 | 502 | 504 | 530 | 534 | 535 | 538) => {
            let is_security = matches!(reply.enhanced(), Some((5, 7, _))) && !is_of_party(reply);
            if is_security && !is_of_the_recipient(stage, words) {
                return until_mended;
            }
        }
        // Authentication is missing, too weak or wrong (RFC 4954), whenever it is said.
        (_, 530 | 534 | 535 | 538) => return until_mended,
        // It takes no mail at all (RFC 7504), or none from us.
        (Stage::Greeting, 521) => return until_mended,
        (Stage::Greeting, _) if matches!(reply.enhanced(), Some((5, 7, _))) => return until_mended,
        // A server that does not even greet may be the wrong one, or block our address
        // for a while: that is no verdict on the mail.
        (Stage::Greeting, _) => return ReplyMeaning::Away,
        // A server that does not know the commands of RFC 5321 sends for nobody.
        (_, 500 | 502 | 504) => return until_mended,
        // It and we do not agree where the conversation stands.
        (_, 503) => return ReplyMeaning::Away,
        (Stage::Sender | Stage::Recipient | Stage::Content, _) => {}
    }
    ReplyMeaning::Final(blame(stage, reply, words))
}

/// Whom a final refusal blames that says nothing of the account.
fn blame(stage: Stage, reply: &Reply, words: &Words) -> Blame {
    match (reply.enhanced(), stage) {
        // RFC 3463: 7 and 8 are of the sender's address.
        (Some((5, 1, 7 | 8)), _) => Blame::Sender,
        // RFC 3463, 7505: there is no such mailbox, or it moved without a trace.
        (Some((5, 1, 1 | 2 | 3 | 6 | 10)), Stage::Recipient | Stage::Content) => Blame::Mailbox,
        (Some((5, 2, _)), Stage::Recipient | Stage::Content) => Blame::Recipient,
        // RFC 7372, 7505: SPF, DKIM, DMARC, and a sender's domain that takes no mail.
        (Some((5, 7, 20..=24 | 26 | 27)), Stage::Recipient | Stage::Content) => {
            Blame::SenderForRecipient
        }
        (Some((5, 3, 4)), _) => Blame::Message,
        (_, Stage::Sender) if reply.code == 552 => Blame::Message,
        (_, Stage::Sender) => Blame::Sender,
        (_, Stage::Recipient | Stage::Content) if words.tell_of_a_test_account() => {
            Blame::Recipient
        }
        // What is about the sender is often said at RCPT, when all is known.
        (_, Stage::Recipient | Stage::Content) if words.tell_of_the_sender() => {
            Blame::SenderForRecipient
        }
        (_, Stage::Content) if is_of_the_recipient(stage, words) => Blame::Recipient,
        (_, Stage::Recipient) => Blame::Recipient,
        (_, Stage::Greeting | Stage::Login | Stage::Content) => Blame::Message,
    }
}

/// What a refusal says of the account in words, where it does.
fn of_account_in_words(stage: Stage, reply: &Reply, words: &Words) -> Option<AccountTrouble> {
    // It speaks of the recipients that an account may write to, or of a sender.
    let knows_recipient = matches!(stage, Stage::Recipient | Stage::Content);
    if knows_recipient && words.tell_of_a_test_account() || words.name_an_identity() {
        return None;
    }
    let is_final = reply.code >= 500;
    let of_mailbox = is_of_mailbox(reply);
    let of_recipient = of_mailbox || is_of_the_recipient(stage, words);
    let is_limit = words.tell_of_a_quota() || is_final && words.tell_of_a_rate();
    // Who greets does not know us yet.
    let (is_limit, is_our_limit) = match stage {
        Stage::Greeting => (false, false),
        Stage::Login | Stage::Sender | Stage::Recipient | Stage::Content => {
            (is_limit, words.tell_of_our_limit())
        }
    };
    if words.tell_of_our_quota()
        || !of_mailbox && (words.tell_of_our_pause() || is_our_limit)
        || !of_recipient && (words.tell_of_a_pause() || is_limit)
    {
        return Some(AccountTrouble::Temporary);
    }
    // From RCPT on the account that is closed may be the recipient's.
    let is_account = words.tell_of_our_account()
        || match stage {
            Stage::Sender => words.tell_of_an_account() || words.tell_of_our_rights(),
            Stage::Content => words.tell_of_our_rights() && !words.tell_of_a_closed_group(),
            Stage::Greeting | Stage::Login | Stage::Recipient => false,
        };
    let is_login = is_final && words.ask_for_a_login() && !words.tell_of_a_closed_group();
    let mended = words.refuse_to_relay()
        || is_login
        || words.tell_of_the_client()
        // RFC 7372: no reverse name for our address.
        || reply.enhanced() == Some((5, 7, 25));
    (is_account && !of_mailbox || mended).then_some(AccountTrouble::UntilMended)
}

/// Whether the words are of the recipient, where one is known: of its mailbox or its
/// account, of an account that may write to few, or another server's.
fn is_of_the_recipient(stage: Stage, words: &Words) -> bool {
    let knows_recipient = matches!(stage, Stage::Recipient | Stage::Content);
    knows_recipient
        && (words.tell_of_the_recipient()
            || words.tell_of_a_test_account()
            || words.tell_of_a_closed_group()
            || words.quote_another_server())
}

/// Whether the enhanced code is of a mailbox (RFC 3463, 3.3), whatever the words are.
fn is_of_mailbox(reply: &Reply) -> bool {
    matches!(reply.enhanced(), Some((_, 2, _)))
}

/// Whether the enhanced code is of an address, a mailbox, or a look at the sender's domain.
fn is_of_party(reply: &Reply) -> bool {
    matches!(reply.enhanced(), Some((_, 1 | 2, _) | (_, 7, 20..=27)))
}

#[cfg(test)]
mod tests;
