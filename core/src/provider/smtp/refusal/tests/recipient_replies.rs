//! Texts that may be about the recipient's account as well as about ours, quotes of other
//! servers, and login codes that come after the mail.

use super::Stage::{Content, Greeting, Recipient, Sender};
use super::{ReplyCase, read};

/// About an account or a user: the recipient's, once there is one.
const CLOSED: &[&str] = &[
    "account has been disabled",
    "Account has been suspended",
    "The account has been temporarily locked",
    "This account has been deactivated due to unusual activity",
    "account is disabled",
    "account suspended",
    "account is not active",
    "Account inactive",
    "account is locked",
    "Account was closed",
    "account expired",
    "domain is disabled",
];

/// About a recipient, whatever else the text says.
const OF_RECIPIENTS: &[&str] = &[
    "user suspended",
    "User is suspended.",
    "user disabled",
    "user is over quota",
    "User has exceeded its message quota",
    "mailbox disabled",
    "Mailbox disabled, not accepting messages",
    "mailbox disabled due to unusual activity",
    "mailbox is over its message limit",
    "mailbox has too many messages",
    "The recipient's inbox has reached its daily limit",
    "recipient is receiving mail too fast",
    "the recipient has exceeded the max emails per hour",
    "The email account that you tried to reach has been disabled",
];

/// Replies of another server, about us or about itself.
const QUOTED: &[&str] = &[
    "550 User unknown",
    "550 5.7.1 Relay access denied",
    "554 5.7.1 Client host blocked using zen.example.org",
    "550 Your account has been suspended",
    "535 authentication required",
    "550 Your IP is blocked",
    "421 4.7.0 too many connections",
    "550 5.4.5 Daily sending quota exceeded",
    "550 sending paused",
    "550 Sandbox subdomains are for test purposes only",
    "550 Sender address rejected: not logged in",
    "550 user suspended",
];

/// Phrases that introduce the reply of another server.
const QUOTES: &[&str] = &[
    "remote host said: ",
    "192.0.2.1 does not like recipient. Remote host said: ",
    "host mx.example.org[192.0.2.1] said: ",
    "<a@example.org>: host mx.example.org said: ",
    "mx.example.org said 5",
    "Remote server returned '",
    "Remote Server returned: ",
    "remote server replied: ",
    "mx.example.org responded: ",
    "SMTP error from remote mail server after RCPT TO: ",
    "Callout verification failed: response: ",
];

#[test]
fn a_closed_account_is_the_recipients_once_there_is_one() {
    for line in CLOSED.iter().chain(OF_RECIPIENTS) {
        for stage in [Recipient, Content] {
            for code in ["550", "554", "550 5.7.1", "550 5.2.1", "552", "553"] {
                let line = format!("{code} {line}");
                assert_eq!(read(stage, &line), "recipient", "{stage:?} {line}");
            }
            for code in ["450", "451 4.7.1", "421", "452 4.5.3", "450 4.2.1"] {
                let line = format!("{code} {line}");
                assert_eq!(read(stage, &line), "deferred", "{stage:?} {line}");
            }
        }
    }
    for line in CLOSED {
        let line = format!("550 {line}");
        let meaning = read(Sender, &line);
        assert!(meaning.starts_with("account"), "{line}: {meaning}");
    }
}

#[test]
fn our_account_is_recognised_at_every_stage() {
    for (line, meaning) in [
        ("550 Your account has been disabled", "account"),
        ("550 5.7.1 Your account is suspended", "account"),
        ("554 Your SMTP account is not active", "account"),
        ("554 Sending suspended for this account.", "account"),
        (
            "554 Sending paused for this account. account has been flagged",
            "account temporary",
        ),
        (
            "550 Mailbox info has exceeded its hourly sending limit",
            "account temporary",
        ),
        (
            "550 5.4.5 Daily user sending limit exceeded.",
            "account temporary",
        ),
        ("550 Your account is pending approval.", "account"),
    ] {
        for stage in [Sender, Recipient, Content] {
            assert_eq!(read(stage, line), meaning, "{stage:?} {line}");
        }
    }
    for line in [
        "451 sending rate limit exceeded",
        "421 4.7.0 Sending rate limit",
    ] {
        for stage in [Greeting, Sender, Recipient, Content] {
            assert_eq!(read(stage, line), "throttled", "{stage:?} {line}");
        }
    }
    let greeting = "554 sending limit exceeded";
    assert_eq!(read(Greeting, greeting), "unavailable", "{greeting}");
}

#[test]
fn a_quoted_reply_is_about_the_recipient() {
    for quote in QUOTES {
        for quoted in QUOTED {
            for stage in [Recipient, Content] {
                for (code, meaning) in [
                    ("550", "recipient"),
                    ("554 5.4.0", "recipient"),
                    ("550 5.7.1", "recipient"),
                    ("450", "deferred"),
                    ("451 4.7.1", "deferred"),
                    ("450 4.1.1", "deferred"),
                ] {
                    for line in [
                        format!("{code} {quote}{quoted}"),
                        format!("{code} Recipient address rejected: {quote}{quoted}"),
                        format!("{code} {quote}\n{} {quoted}", &code[..3]),
                    ] {
                        // After a line-by-line report the next line is the server's own.
                        if !(line.contains('\n') && quote.ends_with("response: ")) {
                            assert_eq!(read(stage, &line), meaning, "{stage:?} {line}");
                        }
                    }
                }
            }
        }
    }
    let own = "550 5.1.1 <a@example.org>: Recipient address rejected: undeliverable address: host mx.example.org[192.0.2.1] said: 550 5.1.1 User unknown (in reply to RCPT TO command)";
    assert_eq!(read(Recipient, own), "mailbox");
}

const OTHERS: &[ReplyCase] = &[
    // Exim verifies the sender by asking its server.
    (
        Recipient,
        "550-Verification failed for <a@example.com>\n550-Called:   192.0.2.1\n550-Sent:     RCPT TO:<a@example.com>\n550-Response: 550 relay not permitted\n550 Sender verify failed",
        "sender",
    ),
    (
        Sender,
        "550 5.1.8 <a@example.com>: Sender address rejected: undeliverable address: host mx.example.com said: 550 Your account has been suspended",
        "sender",
    ),
    (
        Recipient,
        "550 5.1.0 <a@example.com>: Sender address rejected: undeliverable address: host mx.example.com said: 550 User unknown",
        "sender",
    ),
    // A group that accepts mail from authenticated senders only.
    (
        Content,
        "550 5.7.133 RESOLVER.RST.SenderNotAuthenticatedForGroup; authentication required; Delivery restriction check failed because the sender was not authenticated when sending to this group",
        "recipient",
    ),
    (
        Content,
        "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required",
        "recipient",
    ),
    (
        Recipient,
        "550 You are not allowed to send to this group; authentication required",
        "recipient",
    ),
    // Accounts that may write to few recipients.
    (
        Content,
        "554 Free accounts are for test purposes only. Please upgrade or add the address to your authorized recipients.",
        "recipient",
    ),
    (
        Recipient,
        "550 While your account is pending approval, all recipient addresses must share the same domain as the 'From' address.",
        "recipient",
    ),
    (
        Content,
        "550 You can only send testing emails to your own email address",
        "recipient",
    ),
    (
        Sender,
        "550 Domain sandbox.example.org is not allowed to send: Sandbox subdomains are for test purposes only.",
        "account",
    ),
    // What an account may do.
    (
        Content,
        "554 Domain example.com is not allowed to send: Account is disabled",
        "account",
    ),
    (
        Content,
        "554 Access denied: User `arn:aws:iam::123456789012:user/x' is not authorized to perform `ses:SendRawEmail' on resource `arn:aws:ses:eu-west-1:123456789012:configuration-set/x'",
        "account",
    ),
    (
        Content,
        "554 Access denied: User `arn:aws:iam::123456789012:user/x' is not authorized to perform `ses:SendRawEmail' on resource `arn:aws:ses:eu-west-1:123456789012:identity/example.com'",
        "sender",
    ),
];

#[test]
fn every_other_reply_has_its_meaning() {
    for (stage, line, meaning) in OTHERS {
        assert_eq!(read(*stage, line), *meaning, "{stage:?} {line}");
    }
}

#[test]
fn login_codes_after_the_mail_are_about_the_mail() {
    for code in ["500", "502", "504", "530", "534", "535", "538"] {
        for text in [
            "Message refused",
            "5.6.0 Message content rejected",
            "5.5.2 Line too long",
            "5.0.0 Rejected",
            "5.3.0 Something is wrong with it",
        ] {
            let line = format!("{code} {text}");
            assert_eq!(read(Content, &line), "message", "{line}");
            assert_eq!(read(Sender, &line), "account", "{line}");
            assert_eq!(read(Recipient, &line), "account", "{line}");
        }
        for text in [
            "Authentication required",
            "5.5.1 Please log in first",
            "5.7.0 Not now",
            "5.7.1 Refused",
            "5.7.8 Credentials",
        ] {
            let line = format!("{code} {text}");
            assert_eq!(read(Content, &line), "account", "{line}");
        }
        let line = format!("{code} 5.1.1 No such user");
        assert_eq!(read(Content, &line), "mailbox", "{line}");
        let line = format!("{code} mailbox disabled");
        assert_eq!(read(Content, &line), "recipient", "{line}");
        let line = format!("{code} 5.7.26 DMARC");
        assert_eq!(read(Content, &line), "sender", "{line}");
    }
}
