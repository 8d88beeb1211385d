//! What providers post to us. A request is *verified* first, by what its provider
//! signs with, over the bytes as they came; only then is its content read and
//! turned into [`ProviderEvent`]s. A file for each provider; `sns` is the envelope
//! in which the events of SES travel, `fetch` gets what its verification needs.
//!
//! Promises: nothing is read of a request that is not genuine, beyond the part that
//! holds the signature. One item that cannot be read does not spoil the others of
//! its request. All that is kept is bounded, whatever the provider sent.
//!
//! It records nothing and knows no database: who calls [`receive`] commits the
//! events before the provider is answered, and refuses a signature token that was
//! used for something else ([`ReplayGuard`]).

mod fetch;
mod item;
mod lossy;
mod mailgun;
mod postmark;
mod sendgrid;
mod ses;
mod sns;
mod verdict;

use chrono::TimeDelta;
use http::HeaderMap;

use super::event::ProviderEvent;
use super::event_secrets::EventSecrets;
use super::kind::ProviderType;
use crate::clock::Timestamp;
pub use fetch::SnsFetcher;
use item::Passed;

/// How far a signed time may lie in the future. Mailgun signs a time and a token
/// without anything between them: whoever moves a digit from one to the other keeps
/// the signature, and gets a time that is ten times as far from 1970. So there is a
/// bound on either side.
const AHEAD_MAX: TimeDelta = TimeDelta::days(1);

/// A request that claims to come from a provider.
#[derive(Clone, Copy)]
pub struct Inbound<'a> {
    pub headers: &'a HeaderMap,
    /// Its content, byte for byte as it came: signatures cover the bytes.
    pub body: &'a [u8],
    pub now: Timestamp,
}

/// What a genuine request told.
#[derive(Debug, Default)]
pub struct Received {
    /// What happened, in the order of the request.
    pub events: Vec<ProviderEvent>,
    /// Items of kinds that we do not keep.
    pub skipped: usize,
    /// Items that could not be read, or say too little to be of use.
    pub unreadable: usize,
    /// What must not be taken twice, where the signature does not cover the content.
    pub replay_guard: Option<ReplayGuard>,
}

/// A signature that covers only itself: whoever has seen it can put it on a
/// content of their own. So the first content that came with it is the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayGuard {
    /// What is used once; at most 128 visible ASCII characters.
    pub token: String,
    /// What tells the content from others. The provider may repeat a request as it
    /// was: the same token with the same content is genuine.
    pub content: [u8; 32],
    /// Until when it matters: later the signature is too old to be believed.
    pub until: Timestamp,
}

/// Why nothing was received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboundRefusal {
    /// Nothing shows that the provider sent it. To be answered 401; 403 and 406 end
    /// the repetitions of Postmark and Mailgun, which a wrong secret on our side
    /// must not.
    #[error("not shown to be genuine: {why}")]
    Unverified {
        /// What is missing or wrong, for the log; nothing of the request.
        why: &'static str,
    },
    /// It is genuine, and its content is not what the provider documents.
    #[error("genuine, but not readable: {why}")]
    Malformed {
        /// What is wrong, for the log; nothing of the request.
        why: &'static str,
    },
    /// It cannot be verified or acted on at the moment. To be answered 5xx, so that
    /// the provider repeats it.
    #[error("cannot be judged now: {why}")]
    Unavailable {
        /// What is away, for the log.
        why: String,
    },
}

impl InboundRefusal {
    const fn unverified(why: &'static str) -> Self {
        Self::Unverified { why }
    }
}

/// Verifies a request with the secrets of the account that it was posted to, and
/// reads it. A confirmation of an SNS subscription is followed on the way.
///
/// # Errors
/// Why it was not received.
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

/// Reads a content without asking who sent it, for the fuzzer: what a stranger
/// cannot reach must not break either.
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
        ProviderType::Smtp => Err(InboundRefusal::unverified("a mail server posts nothing")),
    }
}

/// Reads a certificate, for the fuzzer: PEM, else DER.
#[cfg(fuzzing)]
pub fn read_certificate(bytes: &[u8]) {
    fetch::read_any_certificate(bytes);
}

impl Received {
    /// Counts what came of one item.
    fn add(&mut self, item: Result<impl IntoIterator<Item = ProviderEvent>, Passed>) {
        match item {
            Ok(events) => self.events.extend(events),
            Err(Passed::Skipped) => self.skipped += 1,
            Err(Passed::Unreadable) => self.unreadable += 1,
        }
    }
}

/// A header that is there once. One that is there twice could be read in two ways.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    match values.next() {
        None => value.to_str().ok(),
        Some(_) => None,
    }
}

/// Refuses what was signed too long ago.
fn require_recent(
    signed_at: Option<Timestamp>,
    now: Timestamp,
    age_max: TimeDelta,
) -> Result<Timestamp, InboundRefusal> {
    let signed_at = signed_at.ok_or(InboundRefusal::unverified("its time is none"))?;
    if now - signed_at > age_max {
        return Err(InboundRefusal::unverified("its signature is too old"));
    }
    if signed_at - now > AHEAD_MAX {
        return Err(InboundRefusal::unverified(
            "its signature is of the future; is a clock wrong?",
        ));
    }
    Ok(signed_at)
}
