//! Postmark: `POST /email`, `POST /email/batch`, the server, its webhooks and the
//! account's domains.
//!
//! A server token may send; only an account token may read domains.

mod check;
mod domains;
pub(super) mod events;
mod model;
mod search;
mod send;
mod suppressions;
mod templates;
pub(super) mod webhooks;

use http::header::ACCEPT;
use http::{Method, StatusCode};
use serde_json::json;

use crate::credentials::{CredentialKind, firewall_page};
use crate::faults::AccountProblem;
use crate::reply::{self, Answer, Outcome};
use crate::request::{Request, decode};
use crate::state::State;

/// A message may have 10 MB.
pub(super) const EMAIL_BYTES_MAX: usize = 10_000_000;
/// A batch may have 50 MB.
pub(super) const BATCH_BYTES_MAX: usize = 50_000_000;

const SERVER_TOKEN: &str = "x-postmark-server-token";
const ACCOUNT_TOKEN: &str = "x-postmark-account-token";
/// A token that validates without sending.
const TEST_TOKEN: &str = "POSTMARK_API_TEST";

pub(super) fn has_token(request: &Request) -> bool {
    request.headers.contains_key(SERVER_TOKEN) || request.headers.contains_key(ACCOUNT_TOKEN)
}

pub(super) fn is_send(request: &Request) -> bool {
    matches!(request.path(), "/email" | "/email/batch")
}

pub(super) fn handle(state: &State, request: &Request) -> Outcome {
    let segments = request.segments();
    let (get, post) = (
        request.method == Method::GET,
        request.method == Method::POST,
    );
    match segments.as_slice() {
        ["email"] if post => match authenticate(request, SERVER_TOKEN) {
            Ok(token) => send::one(state, request, token),
            Err(refusal) => refusal.into(),
        },
        ["email", "batch"] if post => match authenticate(request, SERVER_TOKEN) {
            Ok(token) => send::batch(state, request, token),
            Err(refusal) => refusal.into(),
        },
        ["server"] if get => answer(request, SERVER_TOKEN, server),
        ["domains"] if get => answer(request, ACCOUNT_TOKEN, |token| {
            domains::list(state, request, token)
        }),
        ["domains"] if post => answer(request, ACCOUNT_TOKEN, |token| {
            domains::create(state, request, token)
        }),
        ["domains", id] if get => answer(request, ACCOUNT_TOKEN, |token| {
            domains::find(state, token, id)
        }),
        ["domains", id] if request.method == Method::DELETE => {
            answer(request, ACCOUNT_TOKEN, |token| {
                domains::remove(state, token, id)
            })
        }
        ["domains", id, "verifydkim" | "verifyreturnpath"] if request.method == Method::PUT => {
            answer(request, ACCOUNT_TOKEN, |token| {
                domains::verify(state, token, id)
            })
        }
        ["messages", "outbound"] if get => answer(request, SERVER_TOKEN, |token| {
            search::list(state, request, token)
        }),
        ["messages", "outbound", id, "details"] if get => answer(request, SERVER_TOKEN, |token| {
            search::details(state, token, id)
        }),
        ["message-streams", stream, "suppressions", "dump"] if get => {
            answer(request, SERVER_TOKEN, |token| {
                suppressions::dump(state, request, token, stream)
            })
        }
        ["templates"] if get => answer(request, SERVER_TOKEN, |token| {
            templates::list(state, request, token)
        }),
        ["templates", name] if get => answer(request, SERVER_TOKEN, |token| {
            templates::find(state, token, &decode(name))
        }),
        ["webhooks"] => answer(request, SERVER_TOKEN, |token| {
            webhooks::handle(state, request, token, None)
        }),
        ["webhooks", id] => answer(request, SERVER_TOKEN, |token| {
            webhooks::handle(state, request, token, Some(id))
        }),
        // No documentation of the vendor shows the body of this response.
        _ => reply::empty(StatusCode::NOT_FOUND).into(),
    }
}

pub(super) fn throttled() -> Answer {
    error(StatusCode::TOO_MANY_REQUESTS, 429, "Rate limit exceeded.")
}

pub(super) fn server_error() -> Answer {
    let message = "An internal server error occurred.";
    error(StatusCode::INTERNAL_SERVER_ERROR, 100, message)
}

fn account_refused(problem: AccountProblem) -> Answer {
    match problem {
        AccountProblem::Limit | AccountProblem::Pause => {
            let message = "You have run out of credits. Please buy more to continue sending.";
            refusal(405, message)
        }
        AccountProblem::Suspended => refusal(413, "The account is not allowed to send."),
    }
}

fn answer(request: &Request, header: &str, handle: impl FnOnce(&str) -> Answer) -> Outcome {
    let answer = authenticate(request, header).and_then(|token| {
        accepts_json(request)?;
        Ok(handle(token))
    });
    answer.unwrap_or_else(|refusal| refusal).into()
}

fn authenticate<'a>(request: &'a Request, header: &str) -> Result<&'a str, Answer> {
    let unauthorized = |message: &str| Err(error(StatusCode::UNAUTHORIZED, 10, message));
    let Some(token) = request.header(header).filter(|token| !token.is_empty()) else {
        return unauthorized(
            "No Account or Server API tokens were supplied in the HTTP headers. Please add a \
             header for either X-Postmark-Server-Token or X-Postmark-Account-Token.",
        );
    };
    match CredentialKind::of(token) {
        CredentialKind::Firewall => Err(firewall_page()),
        CredentialKind::Invalid => unauthorized("Request does not contain a valid Server token."),
        CredentialKind::Good
        | CredentialKind::NoSendScope
        | CredentialKind::SendOnly
        | CredentialKind::NoCredit => Ok(token),
    }
}

fn accepts_json(request: &Request) -> Result<(), Answer> {
    let accept = request.header(ACCEPT.as_str()).unwrap_or_default();
    if accept.contains("application/json") {
        return Ok(());
    }
    Err(refusal(
        409,
        "The 'Accept' header must be set to 'application/json'.",
    ))
}

fn error(status: StatusCode, code: u16, message: &str) -> Answer {
    let body = json!({"ErrorCode": code, "Message": message});
    reply::json(status, body.to_string())
}

/// The usual rejection: status 422, and the reason as a code in the body.
fn refusal(code: u16, message: &str) -> Answer {
    error(StatusCode::UNPROCESSABLE_ENTITY, code, message)
}

fn server(token: &str) -> Answer {
    let body = json!({
        "ID": 1,
        "Name": "Simulated server",
        "ApiTokens": [token],
        "Color": "blue",
        "SmtpApiActivated": true,
        "RawEmailEnabled": false,
        "DeliveryType": "Live",
        "ServerLink": "https://postmarkapp.com/servers/1/streams",
        "InboundAddress": "simulator@inbound.postmarkapp.com",
        "InboundHookUrl": "",
        "BounceHookUrl": "",
        "OpenHookUrl": "",
        "DeliveryHookUrl": "",
        "ClickHookUrl": "",
        "PostFirstOpenOnly": false,
        "TrackOpens": false,
        "TrackLinks": "None",
        "InboundDomain": "",
        "InboundHash": "simulator",
        "InboundSpamThreshold": 0,
    });
    reply::json(StatusCode::OK, body.to_string())
}
