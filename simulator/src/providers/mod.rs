//! The four companies. Each module answers for one of them; this one tells whose call it is.
//!
//! All four live at the root of one base URL: their paths do not collide, save that SendGrid and
//! Mailgun both begin with `/v3`, where the second part of the path, or the kind of credential,
//! decides.

mod mailgun;
mod postmark;
mod sendgrid;
mod ses;
mod told;

pub(crate) use mailgun::webhooks::Webhooks as MailgunWebhooks;
pub(crate) use postmark::webhooks::Webhooks as PostmarkWebhooks;
pub(crate) use sendgrid::webhooks::Webhooks as SendGridWebhooks;
pub(crate) use ses::sns::{self, Topics};

use std::sync::atomic::Ordering;

use http::StatusCode;
use http::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};

use crate::callbacks::{Dressed, Event, Lane, Stamp, Subscriber, Target};
use crate::capture::Accepted;
use crate::faults::Disturbance;
use crate::ids::Ids;
use crate::recipients::Ending;
use crate::reply::{self, Answer, Outcome};
use crate::request::Request;
use crate::smtp;
use crate::state::State;

/// One of the simulated providers.
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
    /// A mail server, over SMTP.
    Smtp,
}

impl Provider {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 5] = [
        Self::SendGrid,
        Self::Postmark,
        Self::Mailgun,
        Self::Ses,
        Self::Smtp,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SendGrid => "SENDGRID",
            Self::Postmark => "POSTMARK",
            Self::Mailgun => "MAILGUN",
            Self::Ses => "SES",
            Self::Smtp => "SMTP",
        }
    }

    /// The provider of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The longest request body it reads.
    pub(crate) fn body_bytes_max(self, path: &str) -> usize {
        match self {
            Self::SendGrid => sendgrid::BODY_BYTES_MAX,
            Self::Postmark if path == "/email/batch" => postmark::BATCH_BYTES_MAX,
            Self::Postmark => postmark::EMAIL_BYTES_MAX,
            Self::Mailgun => mailgun::BODY_BYTES_MAX,
            Self::Ses => ses::BODY_BYTES_MAX,
            Self::Smtp => smtp::MAIL_BYTES_MAX,
        }
    }
}

/// Whose call this is; `None` for the simulator's own pages.
pub(crate) fn route(request: &Request) -> Option<Provider> {
    let segments = request.segments();
    match segments.as_slice() {
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
        // `POST /domains` without a token of Postmark's is the simulator's own.
        ["domains", ..] if request.method != http::Method::POST => Some(Provider::Postmark),
        _ if postmark::has_token(request) => Some(Provider::Postmark),
        _ => None,
    }
}

/// Answers a provider's call.
pub(crate) async fn handle(provider: Provider, state: &State, request: &Request) -> Outcome {
    let is_send = match provider {
        Provider::SendGrid => sendgrid::is_send(request),
        Provider::Postmark => postmark::is_send(request),
        Provider::Mailgun => mailgun::is_send(request),
        Provider::Ses => ses::is_send(request),
        Provider::Smtp => false,
    };
    if is_send {
        state.send_calls[provider as usize].fetch_add(1, Ordering::Relaxed);
    }
    if let Some(delay) = state.faults.delay(provider, is_send, &state.ids) {
        tokio::time::sleep(delay).await;
    }
    if !is_send && let Some(disturbance) = state.faults.disturb_read(provider, &state.ids) {
        return disturbed_read(provider, state, disturbance);
    }
    match provider {
        Provider::SendGrid => sendgrid::handle(state, request),
        Provider::Postmark => postmark::handle(state, request),
        Provider::Mailgun => mailgun::handle(state, request).await,
        Provider::Ses => ses::handle(state, request),
        // It takes no HTTP requests, and none is routed to it.
        Provider::Smtp => Outcome::Reset,
    }
}

fn disturbed_read(provider: Provider, state: &State, disturbance: Disturbance) -> Outcome {
    use crate::recipients::THROTTLE_WAIT;
    let throttle = || match provider {
        Provider::SendGrid => sendgrid::throttled(THROTTLE_WAIT),
        Provider::Postmark => postmark::throttled(),
        Provider::Mailgun => mailgun::throttled("example.com", THROTTLE_WAIT),
        Provider::Ses => ses::throttled(state),
        Provider::Smtp => reply::empty(StatusCode::NOT_FOUND),
    };
    let error = || match provider {
        Provider::SendGrid => sendgrid::server_error(),
        Provider::Postmark => postmark::server_error(),
        Provider::Mailgun => mailgun::server_error(),
        Provider::Ses => ses::server_error(state),
        Provider::Smtp => reply::empty(StatusCode::NOT_FOUND),
    };
    match disturbance {
        Disturbance::Throttle => throttle().into(),
        Disturbance::Error => error().into(),
        Disturbance::Timeout => Outcome::Silence,
        Disturbance::Reset => Outcome::Reset,
        Disturbance::Gateway => gateway_page(502).into(),
        // Reading is not sending.
        Disturbance::Account(_) => error().into(),
    }
}

/// The page of a gateway (nginx) that got no answer from the server behind it.
fn gateway_page(status: u16) -> Answer {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let page = format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1>\
         </center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    );
    reply::html(status, page)
}

/// Records accepted mail and ends the call as the verdict says.
fn accept(state: &State, accepted: Accepted<'_>, ending: Ending, answer: Answer) -> Outcome {
    record(state, accepted);
    finish(ending, answer)
}

/// Keeps accepted mail, and sees to it that those who asked are told what becomes of it.
fn record(state: &State, accepted: Accepted<'_>) {
    let subscribers = subscribers(state, &accepted);
    let records = state.captures.record(accepted);
    if !subscribers.is_empty() {
        state.callbacks.tell(&records, &subscribers);
    }
}

fn subscribers(state: &State, accepted: &Accepted<'_>) -> Vec<Subscriber> {
    let Some(copy) = accepted.copies.first() else {
        return Vec::new();
    };
    let (key, scope) = (accepted.credential, copy.envelope.scope.as_str());
    match accepted.provider {
        Provider::SendGrid => state.sendgrid_webhooks.subscribers(key),
        Provider::Postmark => state.postmark_webhooks.subscribers(key, scope),
        Provider::Mailgun => state.mailgun_webhooks.subscribers(key, scope),
        // Without a configuration set there are no events.
        Provider::Ses if scope.is_empty() => Vec::new(),
        Provider::Smtp => Vec::new(),
        Provider::Ses => state.sns_topics.subscribers(scope),
    }
}

/// What a call says: the text, and how many of the events it tells.
pub(crate) fn word(lane: &Lane, events: &[Event], stamp: Stamp) -> (String, usize) {
    let first = &events[0];
    match &lane.target {
        Target::SendGrid { .. } => sendgrid::events::word(events),
        Target::Postmark { stream, .. } => (postmark::events::word(first, stream), 1),
        Target::Mailgun { .. } => (mailgun::events::word(first), 1),
        Target::Sns { .. } => (ses::events::word(lane, first, stamp), 1),
    }
}

/// Makes a call ready for one try: adds what proves whose it is.
pub(crate) fn dress(lane: &Lane, text: &str, stamp: Stamp, ids: &Ids) -> Dressed {
    match &lane.target {
        Target::SendGrid { key } => sendgrid::events::dress(key.as_deref(), text, stamp),
        Target::Postmark { auth, .. } => postmark::events::dress(auth.as_ref(), text, stamp),
        Target::Mailgun { signing_key } => mailgun::events::dress(signing_key, text, stamp, ids),
        Target::Sns { .. } => ses::events::dress(lane, text),
    }
}

fn finish(ending: Ending, answer: Answer) -> Outcome {
    match ending {
        Ending::Answer => Outcome::Answer(answer),
        Ending::Silence => Outcome::Silence,
        Ending::Reset => Outcome::Reset,
        Ending::Gateway(status) => gateway_page(status).into(),
    }
}

fn is_bearer(request: &Request) -> bool {
    request
        .headers
        .get(AUTHORIZATION)
        .is_some_and(|value| value.as_bytes().starts_with(b"Bearer "))
}

/// The Unix second at which a wait is over, rounded up.
fn reset_at(wait: std::time::Duration) -> i64 {
    let wait = chrono::TimeDelta::from_std(wait).unwrap_or_default();
    let end = crate::clock::now() + wait;
    end.timestamp() + i64::from(end.timestamp_subsec_nanos() > 0)
}
