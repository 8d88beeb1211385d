//! Replies to RCPT, and to the mail.

use super::ReplyCase;
use super::Stage::{Content, Recipient};

/// All of these are about the account: the server refuses every recipient.
pub(super) const RELAYING_DENIED: &[&str] = &[
    "554 5.7.1 <ada@example.org>: Relay access denied",
    "554 5.7.1 Relay access denied",
    "554 Relay access denied",
    "550 relaying denied",
    "550 5.7.1 <ada@example.org>... Relaying denied",
    "550 5.7.1 <ada@example.org>... Relaying denied. Proper authentication required.",
    "550 5.7.1 Unable to relay",
    "550 5.7.1 Unable to relay for ada@example.org",
    "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain",
    "550 5.7.64 TenantAttribution; Relay Access Denied",
    "550 5.7.68 TenantInboundAttribution; Relay Access Denied",
    "550 relay not permitted",
    "550 relay not permitted, authentication required",
    "550-relaying to <ada@example.org> prohibited by administrator",
    "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
    "553 not in my list of allowed rcpthosts",
    "553 Relaying disallowed as ada@example.org",
    "551 we do not relay",
    "550 5.1.1 We do not relay to example.org",
    "571 Relay not authorized",
    "513 Relaying denied.",
    "550 This system does not relay for you",
    "550 not local host example.org, not a gateway",
    "550 You are not allowed to send mail through this server",
    "530 SMTP authentication is required.",
    "530 5.7.0 Authentication required",
    "530 5.7.1 Client was not authenticated",
    "550 Please turn on SMTP Authentication in your mail client.",
    "550 SMTP AUTH is required for message submission",
    "503 5.5.4 Error: send AUTH first",
    "554 5.7.1 <host.example.net[192.0.2.1]>: Client host rejected: Access denied",
    "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.example.org",
    "550 5.7.1 Your IP is not allowed to send",
    "550 5.7.606 Access denied, banned sending IP [192.0.2.1]",
];

pub(super) const AT_RCPT: &[ReplyCase] = &[
    (
        Recipient,
        "454 4.7.1 <ada@example.org>: Relay access denied",
        "account temporary",
    ),
    (
        Recipient,
        "450 4.7.1 Client host rejected: cannot find your reverse hostname",
        "account temporary",
    ),
    (
        Recipient,
        "550 5.4.5 Daily sending quota exceeded",
        "account temporary",
    ),
    (
        Recipient,
        "550 Domain example.com has exceeded the max emails per hour (50/50 (100%)) allowed.",
        "account temporary",
    ),
    (
        Recipient,
        "451 4.7.1 Ratelimit \"out\" exceeded",
        "throttled",
    ),
    (
        Recipient,
        "450 4.7.1 Error: too many recipients from 192.0.2.1",
        "throttled",
    ),
    (
        Recipient,
        "452 4.5.3 Error: too many recipients",
        "throttled",
    ),
    (
        Recipient,
        "452 Too many recipients received this hour (throttled)",
        "throttled",
    ),
    (Recipient, "421 4.7.0 Try again later", "throttled"),
    (
        Recipient,
        "421 Message from (192.0.2.1) temporarily deferred",
        "throttled",
    ),
    (Recipient, "451 4.7.1 Greylisted", "deferred"),
    (
        Recipient,
        "451 4.7.1 <ada@example.org>: Recipient address rejected: Greylisting in action, please come back later",
        "deferred",
    ),
    (
        Recipient,
        "450 4.2.0 <ada@example.org>: Recipient address rejected: Greylisted, see http://help.example.org/",
        "deferred",
    ),
    (Recipient, "451 4.7.1 Please try again later", "deferred"),
    (
        Recipient,
        "451 4.7.1 Service unavailable - try again later",
        "deferred",
    ),
    (Recipient, "450 4.7.1 Policy: try again", "deferred"),
    (
        Recipient,
        "451 Temporary local problem - please try later",
        "deferred",
    ),
    (
        Recipient,
        "451 4.3.0 <ada@example.org>: Temporary lookup failure",
        "deferred",
    ),
    (
        Recipient,
        "450 4.1.1 <ada@example.org>: Recipient address rejected: unverified address",
        "deferred",
    ),
    (
        Recipient,
        "450 4.1.2 <ada@example.org>: Recipient address rejected: Domain not found",
        "deferred",
    ),
    (Recipient, "450 4.2.1 Mailbox busy", "deferred"),
    (
        Recipient,
        "450 4.2.1 The user you are trying to contact is receiving mail too quickly.",
        "deferred",
    ),
    (
        Recipient,
        "450-4.2.1 The user is receiving mail at a rate that exceeds a rate limit",
        "deferred",
    ),
    (
        Recipient,
        "432 4.3.2 STOREDRV.Deliver; recipient thread limit exceeded",
        "deferred",
    ),
    (Recipient, "452 4.2.2 Mailbox full", "deferred"),
    (
        Recipient,
        "452 4.2.2 The recipient's mailbox is over its message quota",
        "deferred",
    ),
    (
        Recipient,
        "452 4.3.1 Insufficient system storage",
        "deferred",
    ),
    (
        Recipient,
        "450 Requested mail action not taken: mailbox unavailable",
        "deferred",
    ),
    // Contradicting codes: the first one counts.
    (Recipient, "450 5.1.1 No such user", "deferred"),
    (Recipient, "550 5.1.1 No such user", "mailbox"),
    (
        Recipient,
        "550 5.1.1 <ada@example.org>: Recipient address rejected: User unknown in relay recipient table",
        "mailbox",
    ),
    (
        Recipient,
        "550 5.1.1 <ada@no.relay.example.org>: Recipient address rejected: User unknown",
        "mailbox",
    ),
    (
        Recipient,
        "550 5.1.2 Bad destination system address",
        "mailbox",
    ),
    (
        Recipient,
        "501 5.1.3 Bad recipient address syntax",
        "mailbox",
    ),
    (Recipient, "550 5.1.6 Mailbox has moved", "mailbox"),
    (Recipient, "550 5.1.10 Null MX", "mailbox"),
    (
        Recipient,
        "556 5.1.10 Recipient address has null MX",
        "mailbox",
    ),
    (
        Recipient,
        "550 sorry, no mailbox here by that name. (#5.1.1)",
        "mailbox",
    ),
    // Without an enhanced code there is no proof of a bounce.
    (
        Recipient,
        "550 Requested action not taken: mailbox unavailable",
        "recipient",
    ),
    (
        Recipient,
        "550 <ada@example.org>: User unknown in relay recipient table",
        "recipient",
    ),
    (Recipient, "550 No such user here", "recipient"),
    (Recipient, "551 User not local", "recipient"),
    (Recipient, "550 5.7.1 Blocked", "recipient"),
    (
        Recipient,
        "554 5.7.1 <ada@example.org>: Recipient address rejected: Access denied",
        "recipient",
    ),
    (
        Recipient,
        "550 5.4.1 Recipient address rejected: Access denied",
        "recipient",
    ),
    (
        Recipient,
        "550 5.2.1 The email account that you tried to reach is disabled.",
        "recipient",
    ),
    (Recipient, "550 account is disabled", "recipient"),
    (
        Recipient,
        "550 5.2.1 The user you are trying to contact is receiving mail at a rate limited",
        "recipient",
    ),
    (Recipient, "552 5.2.2 Mailbox full", "recipient"),
    (Recipient, "552 5.2.2 Over its daily quota", "recipient"),
    (Recipient, "550 5.1.7 Bad sender", "sender"),
    (
        Recipient,
        "550 5.1.8 Sender's domain does not exist",
        "sender",
    ),
    (
        Recipient,
        "554 5.7.1 <a@example.com>: Sender address rejected: Access denied",
        "sender",
    ),
    (Recipient, "550 5.7.23 SPF check failed", "sender"),
    (
        Recipient,
        "503 5.5.1 Error: need MAIL command",
        "unavailable",
    ),
];

pub(super) const AFTER_THE_MAIL: &[ReplyCase] = &[
    (Content, "421 4.3.2 Shutting down", "throttled"),
    (
        Content,
        "421 4.7.28 Our system has detected an unusual rate of mail",
        "throttled",
    ),
    (
        Content,
        "451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited",
        "throttled",
    ),
    (Content, "451 4.7.1 Try again later", "throttled"),
    (
        Content,
        "454 Throttling failure: Maximum sending rate exceeded.",
        "throttled",
    ),
    (
        Content,
        "432 4.3.2 STOREDRV.ClientSubmit; sender thread limit exceeded",
        "throttled",
    ),
    (
        Content,
        "451 4.7.1 Greylisting in action, please come back later",
        "deferred",
    ),
    (Content, "452 4.2.2 Mailbox full", "deferred"),
    (
        Content,
        "451 4.3.0 Error: queue file write error",
        "unavailable",
    ),
    (
        Content,
        "451 Timeout waiting for data from client",
        "unavailable",
    ),
    (
        Content,
        "452 4.3.1 Insufficient system storage",
        "unavailable",
    ),
    (Content, "250 5.1.1.1 odd", "unavailable"),
    (
        Content,
        "454 Throttling failure: Daily message quota exceeded.",
        "account temporary",
    ),
    (
        Content,
        "451 You have exceeded your messaging limits",
        "account temporary",
    ),
    (
        Content,
        "554 Message rejected: Sending paused for this account. For more information, see",
        "account temporary",
    ),
    (
        Content,
        "554 5.2.2 Submission quota exceeded",
        "account temporary",
    ),
    (
        Content,
        "550 5.4.5 Daily user sending limit exceeded.",
        "account temporary",
    ),
    (
        Content,
        "554 Access denied: User `arn:aws:iam::123456789012:user/x' is not authorized to perform `ses:SendRawEmail'",
        "account",
    ),
    (
        Content,
        "554 Configuration set <x> does not exist",
        "account",
    ),
    (Content, "535 Account not subscribed to SES", "account"),
    (
        Content,
        "554 Sandbox subdomains are for test purposes only. Please add your own domain or add the address to authorized recipients in Account Settings.",
        "recipient",
    ),
    (
        Content,
        "421 Domain sandbox.example.org is not allowed to send: Sandbox subdomains are for test purposes only.",
        "deferred",
    ),
    (
        Content,
        "550 5.7.25 The IP address sending this message does not have a PTR record",
        "account",
    ),
    (Content, "554 5.7.1 Relay access denied", "account"),
    (
        Content,
        "550 5.7.64 TenantAttribution; Relay Access Denied",
        "account",
    ),
    (
        Content,
        "554 Message rejected: Email address is not verified. The following identities failed the check in region US-EAST-1: a@example.com",
        "sender",
    ),
    (
        Content,
        "550 The from address does not match a verified Sender Identity.",
        "sender",
    ),
    (
        Content,
        "550-5.7.26 Unauthenticated email from example.com is not accepted due to domain's DMARC policy.",
        "sender",
    ),
    (
        Content,
        "550 5.7.1 Email rejected per DMARC policy for example.com",
        "sender",
    ),
    (Content, "550 5.1.1 No such user", "mailbox"),
    (Content, "552 5.2.2 Mailbox full", "recipient"),
    (Content, "552 5.3.4 Too big", "message"),
    (Content, "552 Message is too long.", "message"),
    (Content, "554 5.7.1 Spam", "message"),
    (
        Content,
        "550 5.7.1 Message content rejected, UBE",
        "message",
    ),
    (
        Content,
        "554 Transaction failed: Duplicate header 'Date'.",
        "message",
    ),
    (Content, "550 5.5.2 Error: bare <LF> received", "message"),
    (Content, "554 5.4.6 Too many hops", "message"),
    (Content, "554 5.5.1 Error: no valid recipients", "message"),
];
