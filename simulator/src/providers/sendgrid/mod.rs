//! SendGrid, API v3: `POST /v3/mail/send`, event webhooks, and the calls about keys,
//! domains and senders.

mod check;
mod domains;
pub(super) mod events;
mod model;
mod search;
mod send;
mod suppressions;
mod templates;
pub(super) mod webhooks;

use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::reset_at;
use crate::credentials::{CredentialKind, firewall_page};
use crate::faults::AccountProblem;
use crate::reply::{self, Answer, Outcome};
use crate::request::{Request, decode};
use crate::state::State;

/// The whole message may have 30 MB.
pub(super) const BODY_BYTES_MAX: usize = 30_000_000;

/// Requests per second, in the rate limit headers.
const RATE_LIMIT: &str = "600";

pub(super) fn is_send(request: &Request) -> bool {
    request.path() == "/v3/mail/send"
}

pub(super) fn handle(state: &State, request: &Request) -> Outcome {
    let key = match authenticate(request) {
        Ok(key) => key,
        Err(refusal) => return limited(refusal).into(),
    };
    let segments = request.segments();
    let get = request.method == Method::GET;
    let answer = match segments.as_slice() {
        ["v3", "mail", "send"] if request.method == Method::POST => {
            return match send::send(state, request, key) {
                Outcome::Answer(answer) => limited(answer).into(),
                ended @ (Outcome::Silence | Outcome::Reset) => ended,
            };
        }
        ["v3", "scopes"] if get => scopes(key),
        ["v3", "whitelabel", "domains"] if get => domains::list(state, request, key),
        ["v3", "whitelabel", "domains"] if request.method == Method::POST => {
            domains::create(state, request, key)
        }
        ["v3", "whitelabel", "domains", id] if get => domains::find(state, key, id),
        ["v3", "whitelabel", "domains", id] if request.method == Method::DELETE => {
            domains::remove(state, key, id)
        }
        ["v3", "whitelabel", "domains", id, "validate"] if request.method == Method::POST => {
            domains::validate(state, key, id)
        }
        ["v3", "verified_senders"] if get => domains::senders(state, request, key),
        ["v3", "suppression", name] if get => suppressions::list(state, request, key, name),
        ["v3", "templates"] if get => templates::list(state, request, key),
        ["v3", "templates", id] if get => templates::find(state, key, &decode(id)),
        ["v3", "messages"] if get => search::list(state, request, key),
        ["v3", "messages", id] if get => search::find(state, key, id),
        ["v3", "user", "webhooks", "event", "settings", rest @ ..] => {
            webhooks::handle(state, request, key, rest)
        }
        ["v3", "mail", "send"]
        | ["v3", "scopes"]
        | ["v3", "whitelabel", "domains"]
        | ["v3", "verified_senders"] => {
            error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", None)
        }
        _ => error(StatusCode::NOT_FOUND, "not found", None),
    };
    limited(answer).into()
}

pub(super) fn throttled(wait: Duration) -> Answer {
    let answer = error(StatusCode::TOO_MANY_REQUESTS, "too many requests", None);
    let answer = answer.with_header("x-ratelimit-limit", RATE_LIMIT);
    let answer = answer.with_header("x-ratelimit-remaining", "0");
    answer.with_header("x-ratelimit-reset", &reset_at(wait).to_string())
}

pub(super) fn server_error() -> Answer {
    error(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal server error",
        None,
    )
}

/// From sendgrid-php issue 931 and sendgrid-nodejs issue 1032; the last one is error
/// 60604.
fn account_refused(problem: AccountProblem) -> Answer {
    match problem {
        AccountProblem::Limit => {
            let message = "You have exceeded your messaging limits";
            error(StatusCode::FORBIDDEN, message, None)
        }
        AccountProblem::Pause => error(StatusCode::UNAUTHORIZED, "Maximum credits exceeded", None),
        AccountProblem::Suspended => {
            let message = "Authenticated user is not authorized to send mail";
            error(StatusCode::UNAUTHORIZED, message, None)
        }
    }
}

/// The key of an authenticated request.
fn authenticate(request: &Request) -> Result<&str, Answer> {
    let unauthorized = |message| Err(error(StatusCode::UNAUTHORIZED, message, None));
    let Some(key) = request
        .header(AUTHORIZATION.as_str())
        .and_then(|value| value.strip_prefix("Bearer "))
        .filter(|key| !key.is_empty())
    else {
        return unauthorized("authorization required");
    };
    match CredentialKind::of(key) {
        CredentialKind::Firewall => Err(firewall_page()),
        CredentialKind::Invalid => {
            unauthorized("The provided authorization grant is invalid, expired, or revoked")
        }
        CredentialKind::Good
        | CredentialKind::NoSendScope
        | CredentialKind::SendOnly
        | CredentialKind::NoCredit => Ok(key),
    }
}

fn scopes(key: &str) -> Answer {
    let scopes: &[&str] = match CredentialKind::of(key) {
        CredentialKind::NoSendScope => &["alerts.read", "stats.read", "whitelabel.read"],
        CredentialKind::SendOnly => &["mail.send"],
        CredentialKind::Good
        | CredentialKind::NoCredit
        | CredentialKind::Invalid
        | CredentialKind::Firewall => &[
            "mail.send",
            "alerts.create",
            "alerts.read",
            "whitelabel.read",
            "sender_verification_eligible",
        ],
    };
    reply::json(StatusCode::OK, json!({ "scopes": scopes }).to_string())
}

/// A problem of a request.
struct Problem {
    message: String,
    field: String,
}

impl Problem {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: field.into(),
        }
    }
}

fn error(status: StatusCode, message: &str, field: Option<&str>) -> Answer {
    let body = json!({"errors": [{"message": message, "field": field, "help": null}]});
    reply::json(status, body.to_string())
}

fn problems(status: StatusCode, problems: &[Problem]) -> Answer {
    let errors: Vec<Value> = problems
        .iter()
        .map(|one| json!({"message": one.message, "field": one.field, "help": null}))
        .collect();
    reply::json(status, json!({ "errors": errors }).to_string())
}

/// Adds the rate limit headers, which every response has.
fn limited(answer: Answer) -> Answer {
    if answer.has_header("x-ratelimit-reset") {
        return answer;
    }
    let answer = answer.with_header("x-ratelimit-limit", RATE_LIMIT);
    let answer = answer.with_header("x-ratelimit-remaining", "599");
    let next_minute = reset_at(Duration::from_secs(60));
    answer.with_header("x-ratelimit-reset", &next_minute.to_string())
}
