//! Constants and fields that the events of all providers share: the parts that come from
//! mailboxes and their users, which the simulator does not have.

use crate::mail::Record;

/// The program that opens and clicks.
pub(super) const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, \
    like Gecko) Chrome/126.0.0.0 Safari/537.36";
/// The address of opens and clicks (RFC 5737).
pub(super) const READER_IP: &str = "203.0.113.7";
/// The address from which messages are sent.
pub(super) const SENDER_IP: &str = "192.0.2.25";
/// The clicked link of a message without links.
const LINK: &str = "https://example.com/";

pub(super) const ACCEPTED: &str = "250 2.0.0 OK: queued as 4F0A1B2C3D";
pub(super) const NO_SUCH_USER: &str =
    "550 5.1.1 The email account that you tried to reach does not exist.";
pub(super) const MAILBOX_FULL: &str =
    "452 4.2.2 The email account that you tried to reach is over quota.";
pub(super) const REFUSED_AS_SPAM: &str =
    "550 5.7.1 Our system has detected that this message is likely unsolicited mail.";
pub(super) const LISTED: &str = "554 5.7.1 Service unavailable; Client host [192.0.2.25] blocked \
    using zen.spamhaus.org";
pub(super) const NO_ANSWER: &str = "unable to get mx info: failed to get IPs from PTR record";
pub(super) const TRY_LATER: &str =
    "421 4.7.0 Temporarily deferred due to unusual sending rate. Try again later.";

/// The first link of a message, as its recipient sees it.
pub(super) fn link(record: &Record) -> String {
    let html = record.recipient.body.html.as_deref().unwrap_or_default();
    let links = html.split("href=\"").skip(1);
    let mut links = links.filter_map(|rest| rest.split('"').next());
    let found = links.find(|link| link.starts_with("http"));
    found.map_or_else(
        || LINK.to_owned(),
        |link| record.recipient.fill(link).replace("&amp;", "&"),
    )
}

/// The domain of the recipient.
pub(super) fn recipient_domain(record: &Record) -> &str {
    crate::address::domain_of(&record.recipient.to)
}
