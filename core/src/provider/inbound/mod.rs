//! The event webhooks of the providers. A request is *verified* first, by the provider's
//! signature over the raw bytes; only then is its content read and turned into
//! [`ProviderEvent`]s. There is a file for each provider; `sns` is the envelope of SES
//! events, and `fetch` makes the requests that its verification needs.
//!
//! Promises: of a request that is not genuine, nothing is read but the part with the
//! signature. An unreadable item does not affect the other items of its request. All stored
//! values are bounded, whatever the provider sent.
//!
//! This module stores nothing: the caller of [`receive`] commits the events before the
//! provider gets its reply, and refuses a signature token that was used for another
//! content ([`ReplayGuard`]).

mod bounce_type;
mod fetch;
mod item;
mod lossy;
mod mailgun;
mod postmark;
mod sendgrid;
mod ses;
mod sns;

use chrono::TimeDelta;
use http::HeaderMap;

use super::event::ProviderEvent;
use super::event_secrets::EventSecrets;
use super::kind::ProviderType;
use crate::clock::Timestamp;
pub use fetch::SnsFetcher;
use item::NoEvent;

/// How far in the future a signed time may be. Mailgun signs a time and a token without a
/// separator: an attacker can move a digit from the token to the time, keep the signature,
/// and get a time ten times as far from 1970. So the time is bounded on both sides.
const AHEAD_MAX: TimeDelta = TimeDelta::days(1);

/// A request that claims to come from a provider.
#[derive(Clone, Copy)]
pub struct Inbound<'a> {
    pub headers: &'a HeaderMap,
    /// The raw body: signatures cover its bytes.
    pub body: &'a [u8],
    pub now: Timestamp,
}

/// The content of a genuine request.
#[derive(Debug, Default)]
pub struct Received {
    /// The events in the order of the request.
    pub events: Vec<ProviderEvent>,
    /// Items whose kind is not recorded.
    pub skipped: usize,
    /// Items that could not be read or lack a required field.
    pub unreadable: usize,
    /// Protects against replays if the signature does not cover the content.
    pub replay_guard: Option<ReplayGuard>,
}

/// Binds a signature token to the first content that came with it. The signature covers
/// only itself, so anyone who has seen it could put it on another content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayGuard {
    /// The token; at most 128 visible ASCII characters.
    pub token: String,
    /// A hash of the content. The provider may repeat a request unchanged: the same token
    /// with the same content is genuine.
    pub content: [u8; 32],
    /// When the signature expires, and with it the need for the guard.
    pub until: Timestamp,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboundRefusal {
    /// Nothing proves that the provider sent it. Answered with 401: 403 and 406 would end
    /// the retries of Postmark and Mailgun, and a wrong secret on our side must not do
    /// that.
    #[error("not verified: {why}")]
    Unverified {
        /// What is missing or wrong, for the log. Quotes nothing of the request.
        why: &'static str,
    },
    /// It is genuine, but its content is not what the provider documents.
    #[error("genuine, but unreadable: {why}")]
    Malformed {
        /// What is wrong, for the log. Quotes nothing of the request.
        why: &'static str,
    },
    /// It cannot be verified or processed now. Answered with 5xx, so that the provider
    /// repeats it.
    #[error("cannot be verified now: {why}")]
    Unavailable {
        /// What is unavailable, for the log.
        why: String,
    },
}

impl InboundRefusal {
    const fn unverified(why: &'static str) -> Self {
        Self::Unverified { why }
    }
}

/// Verifies a request with the secrets of its account and reads it. A confirmation request
/// of an SNS subscription is answered here.
///
/// # Errors
/// Why the request was refused.
pub async fn receive(
    kind: ProviderType,
    secrets: &EventSecrets,
    inbound: &Inbound<'_>,
    fetcher: &SnsFetcher,
) -> Result<Received, InboundRefusal> {
    match (kind, secrets) {
        (ProviderType::Sendgrid, EventSecrets::Sendgrid { public_key }) => {
            sendgrid::verify(public_key, inbound)?;
            sendgrid::read(inbound.body, inbound.now)
        }
        (ProviderType::Postmark, EventSecrets::Postmark { username, password }) => {
            postmark::verify(username, password, inbound)?;
            postmark::read(inbound.body, inbound.now)
        }
        (ProviderType::Mailgun, EventSecrets::Mailgun { signing_key }) => {
            mailgun::verify(signing_key, inbound)?;
            mailgun::read(inbound.body, inbound.now)
        }
        (ProviderType::Ses, EventSecrets::Ses { topic_arn }) => {
            sns::receive(topic_arn, inbound, fetcher).await
        }
        (
            ProviderType::Sendgrid
            | ProviderType::Postmark
            | ProviderType::Mailgun
            | ProviderType::Ses
            | ProviderType::Smtp,
            _,
        ) => Err(InboundRefusal::unverified(
            "the account has no secrets of its provider",
        )),
    }
}

/// Reads a body without verifying it, for the fuzzer.
///
/// # Errors
/// Why it cannot be read.
#[cfg(fuzzing)]
pub fn read_unverified(
    kind: ProviderType,
    body: &[u8],
    now: Timestamp,
) -> Result<Received, InboundRefusal> {
    match kind {
        ProviderType::Sendgrid => sendgrid::read(body, now),
        ProviderType::Postmark => postmark::read(body, now),
        ProviderType::Mailgun => mailgun::read(body, now),
        ProviderType::Ses => sns::read_unverified(body, now),
        ProviderType::Smtp => Err(InboundRefusal::unverified("SMTP accounts have no events")),
    }
}

/// Reads a certificate, PEM or DER, for the fuzzer.
#[cfg(fuzzing)]
pub fn read_certificate(bytes: &[u8]) {
    fetch::read_any_certificate(bytes);
}

impl Received {
    /// Adds the events of one item, or counts it as skipped or unreadable.
    fn add(&mut self, item: Result<impl IntoIterator<Item = ProviderEvent>, NoEvent>) {
        match item {
            Ok(events) => self.events.extend(events),
            Err(NoEvent::Skipped) => self.skipped += 1,
            Err(NoEvent::Unreadable) => self.unreadable += 1,
        }
    }
}

/// The value of a header that occurs once. A repeated header is ambiguous and ignored.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    match values.next() {
        None => value.to_str().ok(),
        Some(_) => None,
    }
}

/// Refuses a request that was signed too long ago or in the future.
fn require_recent(
    signed_at: Option<Timestamp>,
    now: Timestamp,
    age_max: TimeDelta,
) -> Result<Timestamp, InboundRefusal> {
    let signed_at = signed_at.ok_or(InboundRefusal::unverified("its time is invalid"))?;
    if now - signed_at > age_max {
        return Err(InboundRefusal::unverified("its signature is too old"));
    }
    if signed_at - now > AHEAD_MAX {
        return Err(InboundRefusal::unverified(
            "its signature is from the future; check the clock of this host",
        ));
    }
    Ok(signed_at)
}
