//! SMTP submission: any mail server that takes mail for the account. The one
//! provider without an HTTP API, so the transport holds its conversation itself
//! (`client::SmtpClient`) instead of handing an adapter's requests to the HTTP
//! client.
//!
//! The characters: an [`SmtpAccount`] says where the server is and who we are;
//! `compose` makes the letter (RFC 5322; its bodies by lettre), `wire` refuses what servers
//! would read differently; a `connection` is one conversation after its greeting, TLS and
//! login; `dial` decides which addresses may be reached at all; `reply` is what a server
//! says, `refusal` what that means; the `client` keeps connections and tells what a broken
//! conversation proves.
//!
//! Facts: replies and their classes are RFC 5321, 4.2; enhanced codes RFC 3463;
//! AUTH RFC 4954; STARTTLS RFC 3207; SIZE RFC 1870. SMTPUTF8 (RFC 6531) is never
//! needed: our addresses are ASCII by construction, and the rest is encoded.
//!
//! The conversation is our own, not lettre's: lettre does not say in which command
//! it failed (what of a mail is lost depends on it), and it goes on with what it had
//! read in the clear before STARTTLS, which lets a man in the middle answer for the
//! server.
//!
//! What SMTP does not do: tell of domains, take tags or our ids, or report events.
//! What a server refuses in its answer is all that is ever heard of a bounce.

mod account;
pub(super) mod client;
mod compose;
mod connection;
mod dial;
mod lines;
mod refusal;
mod reply;
pub mod settings;
mod wire;

use super::call::{CallStep, ProviderCall, ProviderReply};
use super::domain::DomainList;
use super::mail::{OutgoingMail, Unsendable};
use super::outcome::{CredentialCheck, SendOutcome};
use super::{AccountAccess, Adapter};
use crate::clock::Timestamp;
pub use account::{SmtpAccount, SmtpHost, SmtpLogin, SmtpServer, SmtpTls};

/// Connections to one account's server at the same time, per process. Servers bound
/// them too (Postfix at 50 for each client address, many services at 10 to 20).
pub(super) const CONNECTIONS_MAX: u32 = 16;

/// What of SMTP has the shape of an HTTP API: nothing but the answer that domains
/// are not known. The transport asks [`client::SmtpClient`] for all else, before it
/// would ask this.
pub(super) struct Smtp;

const NOT_HTTP: &str = "SMTP has no HTTP API";

impl Adapter for Smtp {
    fn check(&self, _access: &AccountAccess<'_>) -> CallStep<CredentialCheck> {
        CallStep::Done(CredentialCheck::Undecided {
            reason: NOT_HTTP.to_owned(),
        })
    }

    fn domains(&self, _access: &AccountAccess<'_>) -> CallStep<DomainList> {
        CallStep::Done(DomainList::NotVisible {
            reason: "a mail server does not tell which domains it sends for".to_owned(),
        })
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
