//! The transport: the only code that makes calls to providers. It decides what a broken
//! call proves. "Not sent" is reported only if nothing can have reached the provider; every
//! other break is "unanswered", which means for a send that the provider may have taken the
//! mail.

use std::time::Duration;

use tokio::time::Instant;

use super::batch::{BatchReply, Batching};
use super::call::{CallBody, CallStep, ProviderCall, ProviderReply};
use super::domain::DomainList;
use super::mail::OutgoingMail;
use super::outcome::{Blame, CredentialCheck, SendOutcome, clean};
use super::smtp::client::SmtpClient;
use super::{AccountAccess, Adapter};
use crate::address::AddressHash;
use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::http::{HttpBody, HttpClient, HttpError, HttpReply, HttpRequest, HttpSettings};
use crate::provider::smtp::settings::SmtpSettings;

/// The longest reply read, in bytes. Replies to sends have a few hundred; the largest is a
/// page of a thousand identities.
const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// The longest reply read that holds a whole list, in bytes: Postmark lists all suppressions
/// of a stream at once, in 150 bytes each.
const LONG_REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most calls of one conversation. Adapters end theirs well before.
const CALLS_MAX: usize = 100;

/// The limits of the transport.
#[derive(Debug, Clone)]
pub struct TransportSettings {
    /// The longest wait for a connection, TLS included.
    pub connect_timeout: Duration,
    /// The longest wait for a complete reply, connecting included.
    pub call_timeout: Duration,
    /// The most idle connections per host.
    pub idle_connections_max: usize,
    /// How long an idle connection is kept. Shorter than the providers keep theirs, so that
    /// no call is written into a connection that the provider is closing.
    pub idle_timeout: Duration,
    pub smtp: SmtpSettings,
}

impl Default for TransportSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            idle_connections_max: 128,
            idle_timeout: Duration::from_secs(20),
            smtp: SmtpSettings::default(),
        }
    }
}

/// Makes calls to providers. Cheap to clone; clones share the connections.
#[derive(Debug, Clone)]
pub struct Transport {
    http: HttpClient,
    smtp: SmtpClient,
}

/// The result of the call for one mail.
#[derive(Debug)]
pub struct SendReply {
    pub outcome: SendOutcome,
    /// The recipients to whom the mail is not sent, while it is sent to others.
    pub refused: Vec<(AddressHash, SendOutcome)>,
    /// The HTTP status or the SMTP code, if one came.
    pub status_code: Option<u16>,
}

impl SendReply {
    /// The same outcome for all recipients.
    pub(super) fn of((outcome, status_code): (SendOutcome, Option<u16>)) -> Self {
        Self {
            outcome,
            refused: Vec::new(),
            status_code,
        }
    }
}

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The request was certainly not written: the name did not resolve, the connection or
    /// its TLS failed, or the request could not be built.
    #[error("the request was not sent: {reason}")]
    NotSent { reason: String },
    /// The request may have been written, and no complete reply came.
    #[error("no reply came: {reason}")]
    Unanswered { reason: String },
}

impl TransportError {
    /// The cause, without what it proves about the request.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::NotSent { reason } | Self::Unanswered { reason } => reason,
        }
    }
}

impl Transport {
    /// A transport with a connection pool of its own.
    ///
    /// # Errors
    /// A fault if TLS cannot be set up (no root certificates).
    pub fn new(settings: &TransportSettings) -> Result<Self, Fault> {
        let http = HttpClient::new(&HttpSettings {
            connect_timeout: settings.connect_timeout.min(settings.call_timeout),
            answer_timeout: settings.call_timeout,
            idle_connections_max: settings.idle_connections_max,
            idle_timeout: settings.idle_timeout,
            answer_bytes_max: REPLY_BYTES_MAX,
        })?;
        let smtp = SmtpClient::new(settings)?;
        Ok(Self { http, smtp })
    }

    /// The same transport for calls whose replies hold whole lists.
    #[must_use]
    pub fn with_long_replies(&self) -> Self {
        Self {
            http: self.http.with_answer_max(LONG_REPLY_BYTES_MAX),
            smtp: self.smtp.clone(),
        }
    }

    /// Makes one call.
    ///
    /// # Errors
    /// Why there is no reply, and whether the request may have been written.
    pub async fn call(&self, call: ProviderCall) -> Result<ProviderReply, TransportError> {
        self.http
            .call(request(call))
            .await
            .map(reply)
            .map_err(|error| match error {
                HttpError::NotSent { reason } => TransportError::NotSent {
                    reason: clean(&reason),
                },
                HttpError::Unanswered { reason } | HttpError::CutOff { reason, .. } => {
                    TransportError::Unanswered {
                        reason: clean(&reason),
                    }
                }
            })
    }

    /// Runs a conversation to its end.
    ///
    /// # Errors
    /// The error of the first call without a reply.
    pub async fn run<T>(&self, conversation: CallStep<T>) -> Result<T, TransportError> {
        let mut step = conversation;
        for _ in 0..CALLS_MAX {
            match step {
                CallStep::Done(result) => return Ok(result),
                CallStep::Call { call, then } => step = then(self.call(*call).await?),
            }
        }
        match step {
            CallStep::Done(result) => Ok(result),
            CallStep::Call { .. } => Err(TransportError::Unanswered {
                reason: format!("the conversation did not end within {CALLS_MAX} calls"),
            }),
        }
    }

    /// Checks credentials with the provider; undecided without a reply.
    pub async fn check(
        &self,
        adapter: &dyn Adapter,
        access: &AccountAccess<'_>,
    ) -> CredentialCheck {
        if let Some(account) = access.credentials.mail_server() {
            return self.smtp.check(account).await;
        }
        self.run(adapter.check(access))
            .await
            .unwrap_or_else(|error| CredentialCheck::Undecided {
                reason: error.to_string(),
            })
    }

    /// Lists the account's domains at the provider; undecided without a reply.
    pub async fn domains(&self, adapter: &dyn Adapter, access: &AccountAccess<'_>) -> DomainList {
        self.run(adapter.domains(access))
            .await
            .unwrap_or_else(|error| DomainList::Undecided {
                reason: error.to_string(),
            })
    }

    /// Sends one mail to its only recipient. The second value is the HTTP status or the
    /// SMTP code, if one came.
    pub async fn send(
        &self,
        adapter: &dyn Adapter,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> (SendOutcome, Option<u16>) {
        let reply = self.send_shared(adapter, access, mail).await;
        (reply.outcome, reply.status_code)
    }

    /// Sends one mail to all its recipients.
    pub async fn send_shared(
        &self,
        adapter: &dyn Adapter,
        access: &AccountAccess<'_>,
        mail: &OutgoingMail,
    ) -> SendReply {
        if let Some(account) = access.credentials.mail_server() {
            return self.smtp.send(account, mail, access.now).await;
        }
        let call = match adapter.send(access, mail) {
            Ok(call) => call,
            Err(refusal) => return SendReply::of((refusal.into(), None)),
        };
        let started = Instant::now();
        match self.http.call(request(call)).await {
            Ok(http_reply) => {
                let now = later(access.now, started.elapsed());
                let status = http_reply.status;
                let reply = reply(http_reply);
                let outcome = adapter.read_send_of(mail, &reply, now);
                let refused = match &outcome {
                    SendOutcome::Accepted { .. } => adapter.refused_recipients(mail, &reply),
                    SendOutcome::Rejected { .. }
                    | SendOutcome::Deferred { .. }
                    | SendOutcome::Throttled { .. }
                    | SendOutcome::AccountUnusable { .. }
                    | SendOutcome::Unavailable { .. }
                    | SendOutcome::Unknown { .. } => Vec::new(),
                };
                SendReply {
                    outcome,
                    refused,
                    status_code: Some(status),
                }
            }
            Err(error) => SendReply::of(broken_call(adapter, error, access.now)),
        }
    }

    /// Makes the call of a batch of `mails` mails, started at `now`. If the call breaks, it
    /// breaks for all of them.
    pub async fn send_batch(
        &self,
        adapter: &dyn Adapter,
        batching: &dyn Batching,
        call: ProviderCall,
        mails: usize,
        now: Timestamp,
    ) -> (BatchReply, Option<u16>) {
        let started = Instant::now();
        match self.http.call(request(call)).await {
            Ok(http_reply) => {
                let now = later(now, started.elapsed());
                let status = http_reply.status;
                (batching.read(&reply(http_reply), mails, now), Some(status))
            }
            Err(error) => {
                let (outcome, status) = broken_call(adapter, error, now);
                let result = match outcome {
                    // The batch is too large: each mail may be sent alone.
                    SendOutcome::Rejected { reason, .. } => BatchReply::retry_each(mails, reason),
                    SendOutcome::Accepted { .. }
                    | SendOutcome::Deferred { .. }
                    | SendOutcome::Throttled { .. }
                    | SendOutcome::AccountUnusable { .. }
                    | SendOutcome::Unavailable { .. }
                    | SendOutcome::Unknown { .. } => BatchReply::all(mails, outcome),
                };
                (result, status)
            }
        }
    }
}

/// The outcome of a call without a complete reply.
fn broken_call(
    adapter: &dyn Adapter,
    error: HttpError,
    now: Timestamp,
) -> (SendOutcome, Option<u16>) {
    match error {
        HttpError::NotSent { reason } => {
            let retry_after = None;
            let reason = clean(&format!("the request was not sent: {reason}"));
            (
                SendOutcome::Unavailable {
                    retry_after,
                    reason,
                },
                None,
            )
        }
        HttpError::Unanswered { reason } => {
            let reason = clean(&format!("no reply came: {reason}"));
            (SendOutcome::Unknown { reason }, None)
        }
        HttpError::CutOff { head, reason } => {
            let status = head.status;
            (
                read_truncated(adapter, reply(head), &reason, now),
                Some(status),
            )
        }
    }
}

/// The outcome of a reply without its body. The mail was taken if the provider's status
/// alone proves it, and was not taken if it was too large or came too fast. With every
/// other status it may have been taken: only the body shows whether the provider replied or
/// a network device.
fn read_truncated(
    adapter: &dyn Adapter,
    head: ProviderReply,
    reason: &str,
    now: Timestamp,
) -> SendOutcome {
    let text = format!("the reply was cut off: {reason}");
    match head.status {
        status if adapter.status_is_proof(status) => adapter.read_send(&head, now),
        413 => SendOutcome::rejected(Blame::Message, &head, &text),
        420 | 429 => SendOutcome::throttled(&head, now, &text),
        _ => SendOutcome::unknown(&head, &text),
    }
}

fn later(start: Timestamp, elapsed: Duration) -> Timestamp {
    chrono::TimeDelta::from_std(elapsed)
        .ok()
        .and_then(|elapsed| start.checked_add_signed(elapsed))
        .unwrap_or(start)
}

fn request(call: ProviderCall) -> HttpRequest {
    HttpRequest {
        method: call.method,
        url: call.url,
        headers: call.headers,
        body: match call.body {
            CallBody::Empty => HttpBody::Empty,
            CallBody::Json(bytes) => HttpBody::Bytes(bytes),
            CallBody::Pieces(pieces) => HttpBody::Pieces(pieces),
            CallBody::Form(form) => HttpBody::Form(form),
        },
    }
}

fn reply(http_reply: HttpReply) -> ProviderReply {
    ProviderReply {
        status: http_reply.status,
        headers: http_reply.headers,
        body: http_reply.body,
    }
}
