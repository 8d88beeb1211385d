//! The replies of servers and their meanings. The texts are public: the documentation of
//! Postfix (`postconf(5)`, `access(5)`), Exim, Sendmail, qmail, Exchange Online ("Email
//! non-delivery reports"), Gmail ("SMTP errors and codes"), Amazon SES ("SMTP response
//! codes"), SendGrid ("SMTP errors and troubleshooting"), and reports of users.

mod mail_replies;
mod recipient_replies;

use Stage::{Greeting, Login, Recipient, Sender};
use mail_replies::{AFTER_THE_MAIL, AT_RCPT, RELAYING_DENIED};

use super::*;

/// Stage, reply, expected meaning.
type ReplyCase = (Stage, &'static str, &'static str);

const BEFORE_THE_MAIL: &[ReplyCase] = &[
    (Greeting, "421 4.3.2 Too many connections", "throttled"),
    (
        Greeting,
        "421 4.7.0 mx.example.net Error: too many connections from 192.0.2.1",
        "throttled",
    ),
    (
        Greeting,
        "421 Too many concurrent SMTP connections",
        "throttled",
    ),
    (
        Greeting,
        "421 4.4.5 Too many connections, try again later",
        "throttled",
    ),
    (
        Greeting,
        "421 mx.example.net Service not available, closing transmission channel",
        "throttled",
    ),
    (Greeting, "450 4.7.1 Service unavailable", "throttled"),
    (
        Greeting,
        "450 too frequent connects from 192.0.2.1, please try again later.",
        "throttled",
    ),
    (
        Greeting,
        "451 4.3.0 Temporary lookup failure",
        "unavailable",
    ),
    (
        Greeting,
        "454 4.7.0 TLS not available due to local problem",
        "unavailable",
    ),
    (Greeting, "554 No SMTP service here", "unavailable"),
    (Greeting, "554 5.3.2 Service not available", "unavailable"),
    (Greeting, "500 What?", "unavailable"),
    (
        Greeting,
        "521 mx.example.net does not accept mail",
        "account",
    ),
    (
        Greeting,
        "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.example.org",
        "account",
    ),
    (Greeting, "550 5.7.1 Access denied", "account"),
    (
        Greeting,
        "554 <host.example.net>: Client host rejected: Access denied",
        "account",
    ),
    (Login, "535 5.7.8 Authentication failed", "account"),
    (Login, "535 Authentication Credentials Invalid", "account"),
    (
        Login,
        "535 Authentication failed: Bad username / password",
        "account",
    ),
    (
        Login,
        "535 Authentication failed: account disabled",
        "account",
    ),
    (Login, "535 5.7.3 Authentication unsuccessful", "account"),
    (
        Login,
        "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant.",
        "account",
    ),
    (
        Login,
        "534 5.7.9 Application-specific password required.",
        "account",
    ),
    (
        Login,
        "530 5.7.0 Must issue a STARTTLS command first",
        "account",
    ),
    (
        Login,
        "538 5.7.11 Encryption required for requested authentication mechanism",
        "account",
    ),
    (
        Login,
        "504 5.5.4 Unrecognized authentication type",
        "account",
    ),
    (Login, "503 AUTH not available", "account"),
    (Login, "525 5.7.1 Unauthorized IP address", "account"),
    (
        Login,
        "502 5.7.0 Your SMTP account is not yet activated",
        "account",
    ),
    (
        Login,
        "432 4.7.12 A password transition is needed",
        "account",
    ),
    (
        Login,
        "451 Authentication failed: Maximum credits exceeded",
        "account temporary",
    ),
    (
        Login,
        "451 Authentication failed: You have exceeded your messaging limits",
        "account temporary",
    ),
    (
        Login,
        "454 4.7.0 Temporary authentication failure",
        "unavailable",
    ),
    (
        Login,
        "451 4.7.0 Temporary server error. Please try again later",
        "unavailable",
    ),
    (
        Login,
        "454 4.7.0 Too many login attempts, please try again later.",
        "throttled",
    ),
    (
        Login,
        "421 4.7.0 Try again later, closing connection.",
        "throttled",
    ),
];

const AT_MAIL: &[ReplyCase] = &[
    (Sender, "530 5.7.0 Authentication required", "account"),
    (
        Sender,
        "530 5.7.57 SMTP; Client was not authenticated to send anonymous mail during MAIL FROM",
        "account",
    ),
    (Sender, "530 Authentication required", "account"),
    (Sender, "550 Unauthenticated senders not allowed", "account"),
    (Sender, "503 AUTH first (#5.5.1)", "account"),
    (
        Sender,
        "503 5.5.1 Error: authentication required",
        "account",
    ),
    (
        Sender,
        "553 5.7.1 <a@example.com>: Sender address rejected: not logged in",
        "account",
    ),
    (
        Sender,
        "550 5.7.1 <relay.example.net>: Helo command rejected: Access denied",
        "account",
    ),
    (
        Sender,
        "504 5.5.2 <host>: Helo command rejected: need fully-qualified hostname",
        "account",
    ),
    (Sender, "500 5.5.1 Command unrecognized", "account"),
    (Sender, "502 5.5.1 Command not implemented", "account"),
    (Sender, "550 5.7.1 Your account is suspended", "account"),
    (
        Sender,
        "421 Domain mail.example.com is not allowed to send: Please activate your account.",
        "account",
    ),
    (
        Sender,
        "421 Domain mail.example.com is not allowed to send: The domain is unverified",
        "account",
    ),
    (
        Sender,
        "421 Domain mail.example.com is not allowed to send: recipient limit exceeded",
        "account temporary",
    ),
    (
        Sender,
        "454 Throttling failure: Daily message quota exceeded.",
        "account temporary",
    ),
    (
        Sender,
        "454 4.7.0 Throttling failure: Daily message quota exceeded.",
        "account temporary",
    ),
    (
        Sender,
        "451 You have exceeded your messaging limits",
        "account temporary",
    ),
    (
        Sender,
        "550 5.4.5 Daily user sending limit exceeded.",
        "account temporary",
    ),
    (
        Sender,
        "550 5.4.6 Unusual sending activity detected. Please try after sometime",
        "account temporary",
    ),
    (
        Sender,
        "550 5.7.233 Daily limit of the trial tenant",
        "account temporary",
    ),
    (
        Sender,
        "450 4.7.1 <h.example.net>: Client host rejected: cannot find your hostname",
        "account temporary",
    ),
    (
        Sender,
        "454 Throttling failure: Maximum sending rate exceeded",
        "throttled",
    ),
    (
        Sender,
        "450 4.7.1 Error: too much mail from 192.0.2.1",
        "throttled",
    ),
    (
        Sender,
        "451 4.7.500 Server busy. Please try again later",
        "throttled",
    ),
    (
        Sender,
        "421 4.7.0 Error: too many messages, try again later",
        "throttled",
    ),
    (
        Sender,
        "452 4.5.3 Too many messages in this session",
        "throttled",
    ),
    (Sender, "451 4.3.0 Disk full", "unavailable"),
    (
        Sender,
        "452 4.3.1 Insufficient system storage",
        "unavailable",
    ),
    (Sender, "451 Temporary service failure", "unavailable"),
    (Sender, "454 Temporary service failure", "unavailable"),
    (
        Sender,
        "503 5.5.1 Error: nested MAIL command",
        "unavailable",
    ),
    (
        Sender,
        "450 4.1.8 <a@example.com>: Sender address rejected: Domain not found",
        "deferred",
    ),
    (
        Sender,
        "451 4.7.24 SPF validation failed for now",
        "deferred",
    ),
    (Sender, "550 5.1.8 Bad sender's system", "sender"),
    (Sender, "501 5.1.7 Bad sender address syntax", "sender"),
    (Sender, "553 Not your address", "sender"),
    (
        Sender,
        "553 5.7.1 <a@example.com>: Sender address rejected: not owned by user someone",
        "sender",
    ),
    (
        Sender,
        "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
        "sender",
    ),
    (
        Sender,
        "550 5.7.1 Unconfigured Sending Domain <example.com>",
        "sender",
    ),
    (
        Sender,
        "552 5.3.4 Message size exceeds fixed limit",
        "message",
    ),
    (Sender, "552 Message too big", "message"),
];

fn read(stage: Stage, line: &str) -> &'static str {
    let lines = line.lines().map(|line| line[4..].to_owned());
    let reply = Reply {
        code: line[..3].parse().unwrap(),
        lines: lines.collect(),
    };
    match read_refusal(stage, &reply) {
        SendOutcome::Throttled { .. } => "throttled",
        SendOutcome::Unavailable { .. } => "unavailable",
        SendOutcome::Deferred { .. } => "deferred",
        SendOutcome::AccountUnusable { trouble, .. } => match trouble {
            AccountTrouble::Temporary => "account temporary",
            AccountTrouble::Permanent => "account",
        },
        SendOutcome::Rejected { blame, .. } => match blame {
            Blame::Sender | Blame::SenderForRecipient => "sender",
            Blame::Recipient => "recipient",
            Blame::Mailbox => "mailbox",
            Blame::Message => "message",
        },
        SendOutcome::Accepted { .. } | SendOutcome::Unknown { .. } => "not a refusal",
    }
}

#[test]
fn every_known_reply_has_its_meaning() {
    let denied = RELAYING_DENIED
        .iter()
        .map(|line| (Recipient, *line, "account"));
    let tables = [BEFORE_THE_MAIL, AT_MAIL, AT_RCPT, AFTER_THE_MAIL];
    let rows = tables.iter().flat_map(|table| table.iter().copied());
    let wrong: Vec<String> = rows
        .chain(denied)
        .filter(|(stage, line, expected)| read(*stage, line) != *expected)
        .map(|(stage, line, expected)| {
            format!("{stage:?} {line}: {expected}, not {}", read(stage, line))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_4xx_at_rcpt_is_about_the_recipient_whatever_its_code() {
    for code in [450, 451, 452, 454, 455, 471] {
        for class in 0..=7 {
            for detail in [0, 1, 4, 7] {
                let line = format!("{code} 4.{class}.{detail} Come back later");
                assert_eq!(read(Recipient, &line), "deferred", "{line}");
            }
        }
        assert_eq!(read(Recipient, &format!("{code} Later")), "deferred");
    }
}

#[test]
fn words_in_host_names_and_addresses_do_not_count() {
    for name in [
        "no-relay.example.org",
        "helo.throttled.example.org",
        "<relay@denied.example>",
    ] {
        let line = format!("550 5.1.0 {name} rejected this mail");
        assert_eq!(read(Recipient, &line), "recipient", "{line}");
    }
}
