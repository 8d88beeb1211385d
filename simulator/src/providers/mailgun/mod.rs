//! Mailgun: `POST /v3/{domain}/messages`, `GET /v4/domains` and webhooks.
//!
//! Like the real service, it answers an unknown path with status 200 and a greeting.

mod check;
mod domains;
pub(super) mod events;
mod form;
mod search;
mod send;
mod suppressions;
mod templates;
pub(super) mod webhooks;

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::json;

use super::reset_at;
use crate::credentials::{CredentialKind, firewall_page};
use crate::faults::AccountProblem;
use crate::reply::{self, Answer, Outcome};
use crate::request::{Request, decode};
use crate::state::State;

/// A request body may have 52.4 MiB.
pub(super) const BODY_BYTES_MAX: usize = 54_945_382;

/// The `Retry-After` of an account that used up its quota.
const QUOTA_WAIT: Duration = Duration::from_secs(3_600);

pub(super) fn is_send(request: &Request) -> bool {
    let path = request.path();
    path.starts_with("/v3/") && path.ends_with("/messages")
}

pub(super) async fn handle(state: &State, request: &Request) -> Outcome {
    let segments = request.segments();
    let (get, post) = (
        request.method == Method::GET,
        request.method == Method::POST,
    );
    match segments.as_slice() {
        ["v3", domain, "messages"] if post => match authenticate(request) {
            Ok(key) => send::send(state, request, &key, &decode(domain)).await,
            Err(Unauthorized::Firewall) => firewall_page().into(),
            Err(Unauthorized::Key) => forbidden().into(),
        },
        ["v4", "domains"] if get => read(request, |key| domains::list(state, request, key)).into(),
        ["v4", "domains", name] if get => {
            read(request, |key| domains::find(state, key, &decode(name))).into()
        }
        ["v4", "domains"] if post => match authorize(request) {
            Ok(key) => domains::create(state, request, &key).await,
            Err(refusal) => refusal,
        }
        .into(),
        ["v4", "domains", name, "verify"] if request.method == Method::PUT => {
            read(request, |key| domains::verify(state, key, &decode(name))).into()
        }
        ["v3", "domains", name] if request.method == Method::DELETE => {
            read(request, |key| domains::remove(state, key, &decode(name))).into()
        }
        ["v3", "domains", domain, "webhooks", rest @ ..] if rest.len() < 2 => {
            let (domain, name) = (decode(domain), rest.first().copied());
            match authorize(request) {
                Ok(key) => webhooks::handle(state, request, &key, &domain, name).await,
                Err(refusal) => refusal,
            }
            .into()
        }
        ["v4", "domains", domain, "webhooks"] => read(request, |key| {
            webhooks::handle_v4(state, request, key, &decode(domain))
        })
        .into(),
        ["v3", domain, "events"] if get => read(request, |_| {
            search::first_page(state, request, &decode(domain))
        })
        .into(),
        [
            "v3",
            domain,
            name @ ("bounces" | "complaints" | "unsubscribes"),
        ] if get => read(request, |key| {
            suppressions::list(state, request, key, (&decode(domain), name))
        })
        .into(),
        ["v3", domain, "events", page] if get => read(request, |_| {
            search::further_page(state, request, &decode(domain), page)
        })
        .into(),
        ["v3", domain, "templates"] if get => read(request, |key| {
            templates::list(state, request, key, &decode(domain))
        })
        .into(),
        ["v3", _, "templates", name] if get => read(request, |key| {
            templates::find(state, request, key, &decode(name))
        })
        .into(),
        ["v5", "accounts", "http_signing_key"] if get => {
            read(request, webhooks::show_signing_key).into()
        }
        _ => reply::text(StatusCode::OK, "Mailgun Magnificent API").into(),
    }
}

pub(super) fn throttled(domain: &str, wait: Duration) -> Answer {
    over_limit(domain, "account-requests-per-sec", wait)
}

pub(super) fn server_error() -> Answer {
    message(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
}

enum Unauthorized {
    Firewall,
    Key,
}

fn authenticate(request: &Request) -> Result<String, Unauthorized> {
    let credentials = request
        .header(AUTHORIZATION.as_str())
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(|value| STANDARD.decode(value).ok())
        .and_then(|value| String::from_utf8(value).ok());
    let key = credentials
        .as_deref()
        .and_then(|text| text.strip_prefix("api:"))
        .filter(|key| !key.is_empty())
        .ok_or(Unauthorized::Key)?;
    match CredentialKind::of(key) {
        CredentialKind::Firewall => Err(Unauthorized::Firewall),
        CredentialKind::Invalid => Err(Unauthorized::Key),
        CredentialKind::Good
        | CredentialKind::NoSendScope
        | CredentialKind::SendOnly
        | CredentialKind::NoCredit => Ok(key.to_owned()),
    }
}

/// Handles a call for which a domain sending key is not sufficient.
fn read(request: &Request, handle: impl FnOnce(&str) -> Answer) -> Answer {
    authorize(request).map_or_else(|refusal| refusal, |key| handle(&key))
}

/// The key of a call for which a domain sending key is not sufficient.
fn authorize(request: &Request) -> Result<String, Answer> {
    match authenticate(request) {
        Ok(key) if CredentialKind::of(&key) == CredentialKind::SendOnly => Err(forbidden()),
        Ok(key) => Ok(key),
        Err(Unauthorized::Firewall) => Err(firewall_page()),
        Err(Unauthorized::Key) => {
            let text = "Invalid private key";
            Err(message(StatusCode::UNAUTHORIZED, text))
        }
    }
}

fn message(status: StatusCode, text: &str) -> Answer {
    reply::json(status, json!({ "message": text }).to_string())
}

fn forbidden() -> Answer {
    reply::json(StatusCode::UNAUTHORIZED, "\"Forbidden\"")
}

fn domain_not_found() -> Answer {
    message(StatusCode::NOT_FOUND, "Domain not found")
}

/// An exceeded quota has a status of its own, and its date ends in `UTC` (mailgun-java
/// issue 50, Ghost issue 24494); the text for the customer's own limit is from glot issue
/// 59.
fn account_refused(domain: &str, problem: AccountProblem) -> Answer {
    let why = match problem {
        AccountProblem::Limit => {
            let until = crate::clock::now() + QUOTA_WAIT;
            let until = until.format("%a, %d %b %Y %H:%M:%S UTC");
            format!("recipient limit exceeded, try again after {until}")
        }
        AccountProblem::Pause => "You've reached the message limit you set on account.".to_owned(),
        AccountProblem::Suspended => "The account is disabled. Please contact support.".to_owned(),
    };
    let status = match problem {
        AccountProblem::Limit => StatusCode::from_u16(420).unwrap_or(StatusCode::TOO_MANY_REQUESTS),
        AccountProblem::Pause | AccountProblem::Suspended => StatusCode::FORBIDDEN,
    };
    message(
        status,
        &format!("Domain {domain} is not allowed to send: {why}"),
    )
}

fn over_limit(domain: &str, limit: &str, wait: Duration) -> Answer {
    let text = format!(
        "Domain {domain} is not allowed to send: {limit} limit exceeded, try again after {} seconds",
        wait.as_secs()
    );
    let answer = message(StatusCode::TOO_MANY_REQUESTS, &text);
    answer.with_header("x-ratelimit-reset", &reset_at(wait).to_string())
}
