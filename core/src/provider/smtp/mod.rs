//! SMTP submission: any mail server that accepts mail for the account. It is the one
//! provider without an HTTP API, so the transport passes sends to `client::SmtpClient`
//! instead of the HTTP client.
//!
//! An [`SmtpAccount`] holds the server and the login; `mime_message` writes the message
//! (RFC 5322; its bodies by lettre), with its files as `parts`, and `wire` refuses content that servers would read
//! differently; a `connection` is one session after its greeting, TLS and login; `dial`
//! decides which addresses may be connected to; `reply` is a server's reply, and `refusal`
//! its meaning; `pool` keeps connections; the `client` decides what a broken session
//! proves.
//!
//! Facts: replies and their classes are RFC 5321, 4.2; enhanced codes RFC 3463;
//! AUTH RFC 4954; STARTTLS RFC 3207; SIZE RFC 1870. SMTPUTF8 (RFC 6531) is never
//! needed: our addresses are ASCII by construction, and the rest is encoded.
//!
//! The session is our own, not lettre's: lettre does not report which command failed
//! (whether the mail may have been delivered depends on it), and it continues with
//! unencrypted data that it read before STARTTLS, so an attacker on the network could
//! answer for the server.
//!
//! SMTP has no domains, no tags, none of our ids, and no events. A refusal in the server's
//! reply is the only report of a bounce.

mod account;
pub(super) mod client;
mod connection;
mod dial;
mod mime_message;
mod parts;
mod pool;
mod refusal;
mod reply;
pub mod settings;
mod wire;

use super::call::{CallStep, ProviderCall, ProviderReply};
use super::domain::DomainList;
use super::limits::{FileLimits, HeaderLimits, MailLimits};
use super::mail::{OutgoingMail, Unsendable};
use super::outcome::{CredentialCheck, SendOutcome};
use super::{AccountAccess, Adapter};
use crate::clock::Timestamp;
pub use account::{SmtpAccount, SmtpHost, SmtpLogin, SmtpServer, SmtpTls};

/// The most connections to one account's server, per process. Servers limit them too
/// (Postfix to 50 per client address, many services to 10 to 20).
pub(super) const CONNECTIONS_MAX: u32 = 16;

/// The adapter, which only says that domains cannot be listed. The transport passes all
/// other calls to [`client::SmtpClient`] before it would use this.
pub(super) struct Smtp;

/// RFC 5321, 4.5.3.1.8: every server takes 100 recipients. Sizes differ from server to
/// server; the server is told the size with MAIL and refuses it there (RFC 1870).
const LIMITS: MailLimits = MailLimits {
    recipients_max: 100,
    mail_bytes_max: None,
    body_bytes_max: None,
    headers: HeaderLimits::NONE,
    files: FileLimits::NONE,
};

const NOT_HTTP: &str = "SMTP has no HTTP API";

impl Adapter for Smtp {
    fn check(&self, _access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        CallStep::Done(CredentialCheck::Undecided {
            reason: NOT_HTTP.to_owned(),
        })
    }

    fn domains(&self, _access: &AccountAccess<'_>) -> CallStep<DomainList> {
        CallStep::Done(DomainList::NotVisible {
            reason: "a mail server cannot list the domains that it sends for".to_owned(),
        })
    }

    fn limits(&self) -> &'static MailLimits {
        &LIMITS
    }

    fn send(
        &self,
        _access: &AccountAccess<'_>,
        _mail: &OutgoingMail,
    ) -> Result<ProviderCall, Unsendable> {
        Err(Unsendable::account(NOT_HTTP))
    }

    fn read_send(&self, _reply: &ProviderReply, _now: Timestamp) -> SendOutcome {
        SendOutcome::Unknown {
            reason: NOT_HTTP.to_owned(),
        }
    }

    fn status_is_proof(&self, _status: u16) -> bool {
        false
    }
}
