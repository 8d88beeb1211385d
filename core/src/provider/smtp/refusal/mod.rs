//! The meaning of a refusal: what it is about, and whether it may pass. Decided by the
//! stage, the code and the enhanced code; by the text if a server uses one code for
//! recipients and for accounts, as all do. Pure.
//!
//! A refusal at RCPT is about that recipient, and a 4xx there asks for another try with it
//! (greylisting). About the account, its client or its rates are 421, the classes 4.7,
//! 4.3.2, 4.4.5 and 4.5.3 before and after the recipient, and texts that say so. A server
//! that refuses to relay refuses every recipient, whichever it names.
//!
//! From RCPT on a text may be about the recipient's account as well as about ours: "account
//! disabled", "user suspended". It counts as the recipient's unless it can only be ours. So
//! does everything that the server quotes of another server.

mod text;

use super::super::identities::blame_named;
use super::super::outcome::{AccountTrouble, Blame, SendOutcome};
use super::reply::{Reply, Stage};
use text::ReplyText;

/// The meaning of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyMeaning {
    /// The account or its client sends too much at once.
    Throttled,
    /// The account cannot send, or the server rejects its client.
    Account(AccountTrouble),
    /// Another try may succeed for this mail or recipient.
    Deferred,
    /// The server fails, or is not the expected one.
    Unavailable,
    Rejected(Blame),
}

/// The outcome of a refusal after the complete mail, with these addresses.
pub(super) fn read_refusal_of_mail(reply: &Reply, from: &str, to: &str) -> SendOutcome {
    let outcome = read_refusal(Stage::Content, reply);
    blame_named(outcome, &reply.lines.join(" "), from, to)
}

/// The outcome of a refusal: any reply but the expected one.
pub(super) fn read_refusal(stage: Stage, reply: &Reply) -> SendOutcome {
    let reason = reply.reason();
    let retry_after = None;
    match meaning(stage, reply) {
        ReplyMeaning::Throttled => SendOutcome::Throttled {
            retry_after,
            reason,
        },
        ReplyMeaning::Account(trouble) => SendOutcome::AccountUnusable {
            trouble,
            retry_after,
            reason,
        },
        ReplyMeaning::Deferred => SendOutcome::Deferred {
            retry_after,
            reason,
        },
        ReplyMeaning::Unavailable => SendOutcome::Unavailable {
            retry_after,
            reason,
        },
        ReplyMeaning::Rejected(blame) => SendOutcome::Rejected { reason, blame },
    }
}

fn meaning(stage: Stage, reply: &Reply) -> ReplyMeaning {
    let text = match stage {
        Stage::Greeting | Stage::Login => ReplyText::of(&reply.lines),
        Stage::Sender | Stage::Recipient | Stage::Content => {
            ReplyText::without_quotes(&reply.lines)
        }
    };
    match reply.code {
        400..500 => meaning_of_4xx(stage, reply, &text),
        500..600 => meaning_of_5xx(stage, reply, &text),
        _ => ReplyMeaning::Unavailable,
    }
}

fn meaning_of_4xx(stage: Stage, reply: &Reply, text: &ReplyText) -> ReplyMeaning {
    let trouble = account_trouble_in_text(stage, reply, text);
    if text.mentions_greylisting() {
        return ReplyMeaning::Deferred;
    }
    if let Some(trouble) = trouble {
        return match trouble {
            // A temporary code recovers without action; but Mailgun answers 421 for
            // unverified domains.
            AccountTrouble::Permanent if reply.code != 421 => {
                ReplyMeaning::Account(AccountTrouble::Temporary)
            }
            AccountTrouble::Permanent | AccountTrouble::Temporary => ReplyMeaning::Account(trouble),
        };
    }
    if is_about_recipient(stage, text) {
        return ReplyMeaning::Deferred;
    }
    // RFC 5321, 3.8: too many connections, or too much in one.
    if reply.code == 421 || text.mentions_rate() && !is_mailbox_code(reply) {
        return ReplyMeaning::Throttled;
    }
    let is_throttle_code = match reply.enhanced() {
        // RFC 7372: a temporary result of a check of the sender's domain.
        Some((4, 7, 20..=27)) => false,
        Some((4, 7, _) | (4, 3, 2) | (4, 4, 5) | (4, 5, 3)) => true,
        Some(_) | None => false,
    };
    match stage {
        // 454: TLS is not available for now (RFC 3207).
        Stage::Greeting if is_throttle_code && reply.code != 454 => ReplyMeaning::Throttled,
        // A password that must be changed first (RFC 4954).
        Stage::Login if reply.code == 432 => ReplyMeaning::Account(AccountTrouble::Permanent),
        Stage::Greeting | Stage::Login => ReplyMeaning::Unavailable,
        Stage::Recipient if matches!(reply.enhanced(), Some((4, 5, 3))) => ReplyMeaning::Throttled,
        Stage::Recipient => ReplyMeaning::Deferred,
        Stage::Sender | Stage::Content if is_throttle_code => ReplyMeaning::Throttled,
        Stage::Sender | Stage::Content if is_address_code(reply) => ReplyMeaning::Deferred,
        Stage::Sender | Stage::Content => ReplyMeaning::Unavailable,
    }
}

fn meaning_of_5xx(stage: Stage, reply: &Reply, text: &ReplyText) -> ReplyMeaning {
    if let Some(trouble) = account_trouble_in_text(stage, reply, text) {
        return ReplyMeaning::Account(trouble);
    }
    let permanent = ReplyMeaning::Account(AccountTrouble::Permanent);
    match (stage, reply.code) {
        (Stage::Login, _) => return permanent,
        // After the mail these codes also mean that something is wrong with the mail.
        (Stage::Content, 500 | 502 | 504 | 530 | 534 | 535 | 538) => {
            let is_security =
                matches!(reply.enhanced(), Some((5, 7, _))) && !is_address_code(reply);
            if is_security && !is_about_recipient(stage, text) {
                return permanent;
            }
        }
        // Authentication is missing, too weak or wrong (RFC 4954), at any stage.
        (_, 530 | 534 | 535 | 538) => return permanent,
        // The server accepts no mail at all (RFC 7504), or none from us.
        (Stage::Greeting, 521) => return permanent,
        (Stage::Greeting, _) if matches!(reply.enhanced(), Some((5, 7, _))) => return permanent,
        // A server that refuses at the greeting may be the wrong one, or block our address
        // for a while: that says nothing about the mail.
        (Stage::Greeting, _) => return ReplyMeaning::Unavailable,
        // A server that does not know the commands of RFC 5321 cannot send for anyone.
        (_, 500 | 502 | 504) => return permanent,
        // Server and client disagree about the state of the session.
        (_, 503) => return ReplyMeaning::Unavailable,
        (Stage::Sender | Stage::Recipient | Stage::Content, _) => {}
    }
    ReplyMeaning::Rejected(blame(stage, reply, text))
}

/// What a final refusal is about, if it is not about the account.
fn blame(stage: Stage, reply: &Reply, text: &ReplyText) -> Blame {
    match (reply.enhanced(), stage) {
        // RFC 3463: 7 and 8 are about the sender's address.
        (Some((5, 1, 7 | 8)), _) => Blame::Sender,
        // RFC 3463, 7505: the mailbox does not exist, or moved without a forwarding
        // address.
        (Some((5, 1, 1 | 2 | 3 | 6 | 10)), Stage::Recipient | Stage::Content) => Blame::Mailbox,
        (Some((5, 2, _)), Stage::Recipient | Stage::Content) => Blame::Recipient,
        // RFC 7372, 7505: SPF, DKIM, DMARC, and a sender's domain that takes no mail.
        (Some((5, 7, 20..=24 | 26 | 27)), Stage::Recipient | Stage::Content) => {
            Blame::SenderForRecipient
        }
        (Some((5, 3, 4)), _) => Blame::Message,
        (_, Stage::Sender) if reply.code == 552 => Blame::Message,
        (_, Stage::Sender) => Blame::Sender,
        (_, Stage::Recipient | Stage::Content) if text.mentions_test_account() => Blame::Recipient,
        // Many servers report problems with the sender at RCPT, when all is known.
        (_, Stage::Recipient | Stage::Content) if text.mentions_sender() => {
            Blame::SenderForRecipient
        }
        (_, Stage::Content) if is_about_recipient(stage, text) => Blame::Recipient,
        (_, Stage::Recipient) => Blame::Recipient,
        (_, Stage::Greeting | Stage::Login | Stage::Content) => Blame::Message,
    }
}

/// The account's problem according to the text, if it is about the account.
fn account_trouble_in_text(
    stage: Stage,
    reply: &Reply,
    text: &ReplyText,
) -> Option<AccountTrouble> {
    // The text is about the recipients that an account may write to, or about a sender.
    let recipient_is_known = matches!(stage, Stage::Recipient | Stage::Content);
    if recipient_is_known && text.mentions_test_account() || text.names_identity() {
        return None;
    }
    let is_final = reply.code >= 500;
    let about_mailbox = is_mailbox_code(reply);
    let about_recipient = about_mailbox || is_about_recipient(stage, text);
    let is_limit = text.mentions_quota() || is_final && text.mentions_rate();
    // At the greeting the server does not know the account yet.
    let (is_limit, is_our_limit) = match stage {
        Stage::Greeting => (false, false),
        Stage::Login | Stage::Sender | Stage::Recipient | Stage::Content => {
            (is_limit, text.mentions_our_limit())
        }
    };
    if text.mentions_our_quota()
        || !about_mailbox && (text.mentions_our_pause() || is_our_limit)
        || !about_recipient && (text.mentions_pause() || is_limit)
    {
        return Some(AccountTrouble::Temporary);
    }
    // From RCPT on the closed account may be the recipient's.
    let is_account = text.mentions_our_account()
        || match stage {
            Stage::Sender => text.mentions_account() || text.denies_our_rights(),
            Stage::Content => text.denies_our_rights() && !text.mentions_restricted_group(),
            Stage::Greeting | Stage::Login | Stage::Recipient => false,
        };
    let is_login = is_final && text.requires_login() && !text.mentions_restricted_group();
    let is_permanent = text.denies_relay()
        || is_login
        || text.rejects_client()
        // RFC 7372: no reverse name for our address.
        || reply.enhanced() == Some((5, 7, 25));
    (is_account && !about_mailbox || is_permanent).then_some(AccountTrouble::Permanent)
}

/// Whether the text is about the recipient, if one is known: about its mailbox or account,
/// about a test account's recipients, or quoted from another server.
fn is_about_recipient(stage: Stage, text: &ReplyText) -> bool {
    let recipient_is_known = matches!(stage, Stage::Recipient | Stage::Content);
    recipient_is_known
        && (text.mentions_recipient()
            || text.mentions_test_account()
            || text.mentions_restricted_group()
            || text.quotes_another_server())
}

/// Whether the enhanced code is about a mailbox (RFC 3463, 3.3).
fn is_mailbox_code(reply: &Reply) -> bool {
    matches!(reply.enhanced(), Some((_, 2, _)))
}

/// Whether the enhanced code is about an address, a mailbox, or a check of the sender's
/// domain.
fn is_address_code(reply: &Reply) -> bool {
    matches!(reply.enhanced(), Some((_, 1 | 2, _) | (_, 7, 20..=27)))
}

#[cfg(test)]
mod tests;
