//! The suppression lists: bare arrays, in pages by `limit` and `offset`.

use http::StatusCode;
use serde_json::{Value, json};

use super::error;
use crate::credentials::CredentialKind;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::suppression_lists::{ListKind, Listed};

const PAGE_MAX: usize = 500;

/// `GET /v3/suppression/{list}`.
pub(super) fn list(state: &State, request: &Request, key: &str, name: &str) -> Answer {
    if CredentialKind::of(key) == CredentialKind::SendOnly {
        return error(StatusCode::FORBIDDEN, "access forbidden", None);
    }
    let kind = match name {
        "bounces" => ListKind::Bounce,
        "invalid_emails" => ListKind::Invalid,
        "spam_reports" => ListKind::Complaint,
        "unsubscribes" => ListKind::Unsubscribe,
        _ => return error(StatusCode::NOT_FOUND, "not found", None),
    };
    let limit = request.query_number("limit", PAGE_MAX, usize::MAX);
    if limit == 0 || limit > PAGE_MAX {
        return error(
            StatusCode::BAD_REQUEST,
            "limit is out of range",
            Some("limit"),
        );
    }
    let offset = request.query_number("offset", 0, usize::MAX);
    let lists = &state.suppression_lists;
    let all = lists.list(Provider::SendGrid, key, &[kind]);
    let page = all.iter().skip(offset).take(limit);
    let page: Vec<Value> = page.map(|listed| entry(listed, kind)).collect();
    reply::json(StatusCode::OK, Value::Array(page).to_string())
}

fn entry(listed: &Listed, kind: ListKind) -> Value {
    let mut entry = json!({ "created": listed.since.timestamp(), "email": listed.address });
    match kind {
        ListKind::Bounce => {
            entry["reason"] = json!("550 5.1.1 The email account does not exist");
            entry["status"] = json!("5.1.1");
        }
        ListKind::Invalid => {
            entry["reason"] = json!("Mail domain mentioned in email address is unknown")
        }
        ListKind::Complaint => entry["ip"] = json!("192.0.2.25"),
        ListKind::Unsubscribe | ListKind::Tag => {}
    }
    entry
}
