//! Resend: the calls that read templates, webhooks, domains and suppressions. It accepts no
//! mail.

use std::ops::Range;

use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Provider;
use crate::credentials::{CredentialKind, firewall_page};
use crate::domains::is_verified;
use crate::reply::{self, Answer, Outcome};
use crate::request::{Request, decode};
use crate::state::State;
use crate::stored_objects::only;
use crate::suppression_lists::{ListKind, Listed};

pub(super) const BODY_BYTES_MAX: usize = 1 << 20;
const PAGE_DEFAULT: usize = 20;
const PAGE_MAX: usize = 100;

/// Whether the path is one of these calls.
pub(super) fn is_path(segments: &[&str]) -> bool {
    matches!(
        segments,
        ["templates" | "webhooks" | "domains" | "suppressions", ..]
    )
}

pub(super) fn handle(state: &State, request: &Request) -> Outcome {
    let key = match authenticate(request) {
        Ok(key) => key,
        Err(refusal) => return refusal.into(),
    };
    if request.method != Method::GET {
        return error(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "Method not allowed",
        )
        .into();
    }
    let objects = &state.stored_objects;
    match request.segments().as_slice() {
        ["templates"] => {
            let fields = [
                "id",
                "name",
                "status",
                "published_at",
                "created_at",
                "updated_at",
                "alias",
            ];
            let all = objects.templates(Provider::Resend, key);
            page(request, all.iter().map(|one| only(one, &fields)).collect())
        }
        ["templates", id] => {
            let id = decode(id);
            let all = objects.templates(Provider::Resend, key);
            let found = all
                .iter()
                .find(|one| one["id"] == *id || one["alias"] == *id);
            match found {
                Some(template) => reply::json(StatusCode::OK, template.to_string()),
                None => error(StatusCode::NOT_FOUND, "not_found", "Template not found"),
            }
        }
        ["webhooks"] => page(request, objects.webhooks(Provider::Resend, key)),
        ["domains"] => {
            let all = state.domains.list(Provider::Resend, key).into_iter();
            page(request, all.enumerate().map(domain).collect())
        }
        ["suppressions"] => {
            let kinds = [ListKind::Bounce, ListKind::Complaint, ListKind::Unsubscribe];
            let all = state.suppression_lists.list(Provider::Resend, key, &kinds);
            suppressions(request, &all)
        }
        _ => error(StatusCode::NOT_FOUND, "not_found", "Not found"),
    }
    .into()
}

pub(super) fn throttled() -> Answer {
    let text = "Too many requests. You can only make 2 requests per second.";
    let answer = error(StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded", text);
    answer.with_header("retry-after", "1")
}

pub(super) fn server_error() -> Answer {
    let text = "An unexpected error occurred.";
    error(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal_server_error",
        text,
    )
}

fn authenticate(request: &Request) -> Result<&str, Answer> {
    let key = request.header(AUTHORIZATION.as_str()).unwrap_or_default();
    let key = key.strip_prefix("Bearer ").unwrap_or_default();
    match CredentialKind::of(key) {
        CredentialKind::Firewall => Err(firewall_page()),
        CredentialKind::Invalid => Err(error(
            StatusCode::BAD_REQUEST,
            "validation_error",
            "API key is invalid",
        )),
        CredentialKind::SendOnly => Err(error(
            StatusCode::UNAUTHORIZED,
            "restricted_api_key",
            "This API key is restricted to only send emails",
        )),
        CredentialKind::Good | CredentialKind::NoSendScope | CredentialKind::NoCredit => Ok(key),
    }
}

fn error(status: StatusCode, name: &str, message: &str) -> Answer {
    let body = json!({ "statusCode": status.as_u16(), "message": message, "name": name });
    reply::json(status, body.to_string())
}

/// A page of a list, which goes on after the object with the id `after`.
fn page(request: &Request, all: Vec<Value>) -> Answer {
    let find = |id: &str| all.iter().position(|one| one["id"] == *id);
    let range = match range(request, all.len(), find) {
        Ok(range) => range,
        Err(refusal) => return refusal,
    };
    list(all[range.clone()].to_vec(), range.end < all.len())
}

/// The same for suppressions, which may be many: their ids end with their numbers.
fn suppressions(request: &Request, all: &[Listed]) -> Answer {
    let find = |id: &str| {
        let number = id.rsplit('-').next()?.parse().ok()?;
        (number < all.len()).then_some(number)
    };
    let range = match range(request, all.len(), find) {
        Ok(range) => range,
        Err(refusal) => return refusal,
    };
    let shown = all.iter().enumerate().take(range.end).skip(range.start);
    list(shown.map(suppression).collect(), range.end < all.len())
}

/// Which objects of a list of this length are on the page.
fn range(
    request: &Request,
    length: usize,
    find: impl Fn(&str) -> Option<usize>,
) -> Result<Range<usize>, Answer> {
    let refuse = |text: &str| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Err(error(status, "validation_error", text))
    };
    let limit = request.query_number("limit", PAGE_DEFAULT, usize::MAX);
    if limit == 0 || limit > PAGE_MAX {
        return refuse("The `limit` must be between 1 and 100.");
    }
    let start = match request.query("after").map(|id| find(&id)) {
        None => 0,
        Some(Some(found)) => found + 1,
        Some(None) => return refuse("The pagination ID is invalid."),
    };
    Ok(start..length.min(start + limit))
}

fn list(data: Vec<Value>, has_more: bool) -> Answer {
    let body = json!({ "object": "list", "has_more": has_more, "data": data });
    reply::json(StatusCode::OK, body.to_string())
}

fn domain((nth, name): (usize, String)) -> Value {
    let status = if is_verified(&name) {
        "verified"
    } else {
        "pending"
    };
    json!({
        "id": format!("d91cd9bd-1176-453e-8fc1-{nth:012}"), "name": name, "status": status,
        "created_at": "2023-04-26 20:21:26.347412+00", "region": "us-east-1",
    })
}

fn suppression((nth, listed): (usize, &Listed)) -> Value {
    let origin = match listed.kind {
        ListKind::Bounce => "bounce",
        ListKind::Complaint => "complaint",
        ListKind::Unsubscribe | ListKind::Invalid | ListKind::Tag => "manual",
    };
    json!({
        "id": format!("e169aa45-1ecf-4183-9955-{nth:012}"), "email": listed.address,
        "origin": origin, "source_id": null,
        "created_at": listed.since.format("%Y-%m-%d %H:%M:%S%.6f+00").to_string(),
    })
}
