//! The four HTTP APIs, a module each. This module decides to which of them a call
//! belongs.
//!
//! All four share one base URL: their paths do not collide, except that SendGrid and
//! Mailgun both start with `/v3`, where the second segment of the path, or the kind of
//! credential, decides.

mod event_data;
mod mailgun;
mod postmark;
mod resend;
mod sendgrid;
mod ses;

pub(crate) use mailgun::webhooks::Webhooks as MailgunWebhooks;
pub(crate) use postmark::webhooks::Webhooks as PostmarkWebhooks;
pub(crate) use sendgrid::webhooks::Webhooks as SendGridWebhooks;
pub(crate) use ses::sns::{self, Topics};

use std::sync::atomic::Ordering;

use http::StatusCode;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

use crate::callbacks::{Endpoint, Event, PreparedCall, Stamp, Subscriber, Target};
use crate::capture::Accepted;
use crate::faults::FaultEffect;
use crate::ids::Ids;
use crate::recipients::AcceptedReply;
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::smtp;
use crate::state::State;

/// A simulated provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Provider {
    /// Twilio SendGrid, API v3.
    SendGrid,
    Postmark,
    /// Mailgun, APIs v3 and v4.
    Mailgun,
    /// Amazon SES, API v2.
    Ses,
    /// An SMTP server.
    Smtp,
    /// What imports read of Resend.
    Resend,
}

impl Provider {
    /// All providers, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::SendGrid,
        Self::Postmark,
        Self::Mailgun,
        Self::Ses,
        Self::Smtp,
        Self::Resend,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendGrid => "SENDGRID",
            Self::Postmark => "POSTMARK",
            Self::Mailgun => "MAILGUN",
            Self::Ses => "SES",
            Self::Smtp => "SMTP",
            Self::Resend => "RESEND",
        }
    }

    /// The provider of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Whether Waypost sends through it. Resend is read by imports alone.
    pub(crate) fn takes_mail(self) -> bool {
        self != Self::Resend
    }

    /// The longest request body that it reads.
    pub(crate) fn body_bytes_max(self, path: &str) -> usize {
        match self {
            Self::SendGrid => sendgrid::BODY_BYTES_MAX,
            Self::Postmark if path == "/email/batch" => postmark::BATCH_BYTES_MAX,
            Self::Postmark => postmark::EMAIL_BYTES_MAX,
            Self::Mailgun => mailgun::BODY_BYTES_MAX,
            Self::Ses => ses::BODY_BYTES_MAX,
            Self::Smtp => smtp::MAIL_BYTES_MAX,
            Self::Resend => resend::BODY_BYTES_MAX,
        }
    }
}

/// The provider of a call; `None` for the simulator's own pages.
pub(crate) fn route(request: &Request) -> Option<Provider> {
    let segments = request.segments();
    match segments.as_slice() {
        path if resend::is_path(path) && is_bearer(request) => Some(Provider::Resend),
        [
            "v3",
            "mail" | "scopes" | "whitelabel" | "verified_senders" | "user",
            ..,
        ] => Some(Provider::SendGrid),
        ["v3", _, "messages" | "messages.mime"] | ["v3", "domains", ..] => Some(Provider::Mailgun),
        ["v3", ..] if is_bearer(request) => Some(Provider::SendGrid),
        ["v1" | "v3" | "v4" | "v5", ..] => Some(Provider::Mailgun),
        ["v2", ..] => Some(Provider::Ses),
        [
            "email" | "server" | "servers" | "senders" | "webhooks" | "message-streams",
            ..,
        ] => Some(Provider::Postmark),
        // `POST /domains` without a Postmark token is the simulator's own call.
        ["domains", ..] if request.method != http::Method::POST => Some(Provider::Postmark),
        _ if postmark::has_token(request) => Some(Provider::Postmark),
        _ => None,
    }
}

/// Handles a provider's call.
pub(crate) async fn handle(provider: Provider, state: &State, request: &Request) -> Outcome {
    let is_send = match provider {
        Provider::SendGrid => sendgrid::is_send(request),
        Provider::Postmark => postmark::is_send(request),
        Provider::Mailgun => mailgun::is_send(request),
        Provider::Ses => ses::is_send(request),
        Provider::Smtp | Provider::Resend => false,
    };
    if is_send {
        state.send_calls[provider as usize].fetch_add(1, Ordering::Relaxed);
    }
    if let Some(delay) = state.faults.delay(provider, is_send, &state.ids) {
        tokio::time::sleep(delay).await;
    }
    if !is_send && let Some(effect) = state.faults.effect_on_read(provider, &state.ids) {
        return faulty_read(provider, state, effect);
    }
    match provider {
        Provider::SendGrid => sendgrid::handle(state, request),
        Provider::Postmark => postmark::handle(state, request),
        Provider::Mailgun => mailgun::handle(state, request).await,
        Provider::Ses => ses::handle(state, request),
        // SMTP is no HTTP API, and no request is routed to it.
        Provider::Smtp => Outcome::Reset,
        Provider::Resend => resend::handle(state, request),
    }
}

fn faulty_read(provider: Provider, state: &State, effect: FaultEffect) -> Outcome {
    use crate::recipients::THROTTLE_WAIT;
    let throttle = || match provider {
        Provider::SendGrid => sendgrid::throttled(THROTTLE_WAIT),
        Provider::Postmark => postmark::throttled(),
        Provider::Mailgun => mailgun::throttled("example.com", THROTTLE_WAIT),
        Provider::Ses => ses::throttled(state),
        Provider::Smtp => reply::empty(StatusCode::NOT_FOUND),
        Provider::Resend => resend::throttled(),
    };
    let error = || match provider {
        Provider::SendGrid => sendgrid::server_error(),
        Provider::Postmark => postmark::server_error(),
        Provider::Mailgun => mailgun::server_error(),
        Provider::Ses => ses::server_error(state),
        Provider::Smtp => reply::empty(StatusCode::NOT_FOUND),
        Provider::Resend => resend::server_error(),
    };
    match effect {
        FaultEffect::Throttle => throttle().into(),
        FaultEffect::Error => error().into(),
        FaultEffect::Timeout => Outcome::Silence,
        FaultEffect::Reset => Outcome::Reset,
        FaultEffect::Gateway => gateway_page(502).into(),
        // An account that may not send may still read.
        FaultEffect::Account(_) => error().into(),
    }
}

/// The page of a gateway (nginx) whose upstream did not respond.
fn gateway_page(status: u16) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let page = format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1>\
         </center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    );
    reply::html(status, page)
}

/// Records an accepted message and ends the call.
fn accept(
    state: &State,
    accepted: Accepted<'_>,
    accepted_reply: AcceptedReply,
    answer: Answer,
) -> Outcome {
    record(state, accepted);
    finish(accepted_reply, answer)
}

/// Stores an accepted message and schedules its events for the subscribers.
fn record(state: &State, accepted: Accepted<'_>) {
    let subscribers = subscribers(state, &accepted);
    let records = state.captures.record(accepted);
    if !subscribers.is_empty() {
        state.callbacks.schedule_events(&records, &subscribers);
    }
}

fn subscribers(state: &State, accepted: &Accepted<'_>) -> Vec<Subscriber> {
    let Some(recipient) = accepted.recipients.first() else {
        return Vec::new();
    };
    let (key, scope) = (accepted.credential, recipient.envelope.scope.as_str());
    match accepted.provider {
        Provider::SendGrid => state.sendgrid_webhooks.subscribers(key),
        Provider::Postmark => state.postmark_webhooks.subscribers(key, scope),
        Provider::Mailgun => state.mailgun_webhooks.subscribers(key, scope),
        // Without a configuration set there are no events.
        Provider::Ses if scope.is_empty() => Vec::new(),
        Provider::Smtp | Provider::Resend => Vec::new(),
        Provider::Ses => state.sns_topics.subscribers(scope),
    }
}

/// The body of a call, and the number of events in it.
pub(crate) fn call_body(endpoint: &Endpoint, events: &[Event], stamp: Stamp) -> (String, usize) {
    let first = &events[0];
    match &endpoint.target {
        Target::SendGrid { .. } => sendgrid::events::call_body(events),
        Target::Postmark { stream, .. } => (postmark::events::call_body(first, stream), 1),
        Target::Mailgun { .. } => (mailgun::events::call_body(first), 1),
        Target::Sns { .. } => (ses::events::call_body(endpoint, first, stamp), 1),
    }
}

/// Prepares a call for one try: adds the proof of origin.
pub(crate) fn prepare_call(
    endpoint: &Endpoint,
    text: &str,
    stamp: Stamp,
    ids: &Ids,
) -> PreparedCall {
    match &endpoint.target {
        Target::SendGrid { key } => sendgrid::events::prepare_call(key.as_deref(), text, stamp),
        Target::Postmark { auth, .. } => postmark::events::prepare_call(auth.as_ref(), text, stamp),
        Target::Mailgun { signing_key } => {
            mailgun::events::prepare_call(signing_key, text, stamp, ids)
        }
        Target::Sns { .. } => ses::events::prepare_call(endpoint, text),
    }
}

fn finish(accepted_reply: AcceptedReply, answer: Answer) -> Outcome {
    match accepted_reply {
        AcceptedReply::Answer => Outcome::Answer(answer),
        AcceptedReply::Silence => Outcome::Silence,
        AcceptedReply::Reset => Outcome::Reset,
        AcceptedReply::Gateway(status) => gateway_page(status).into(),
    }
}

fn is_bearer(request: &Request) -> bool {
    request
        .headers
        .get(AUTHORIZATION)
        .is_some_and(|value| value.as_bytes().starts_with(b"Bearer "))
}

/// The Unix second at which a wait ends, rounded up.
fn reset_at(wait: std::time::Duration) -> i64 {
    let wait = chrono::TimeDelta::from_std(wait).unwrap_or_default();
    let end = crate::clock::now() + wait;
    end.timestamp() + i64::from(end.timestamp_subsec_nanos() > 0)
}
