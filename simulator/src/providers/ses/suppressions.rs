//! The suppression list of the account.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Caller, access_denied, error};
use crate::credentials::CredentialKind;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::suppression_lists::{ListKind, Listed};

const PAGE_MAX: usize = 1_000;

/// `GET /v2/email/suppression/addresses`; a page's token is the number of its first element,
/// behind a mark that must be percent-encoded.
pub(super) fn list(state: &State, request: &Request, caller: &Caller<'_>) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "ListSuppressedDestinations");
    }
    let size = request.query_number("PageSize", PAGE_MAX, usize::MAX);
    if size == 0 || size > PAGE_MAX {
        let text = "1 validation error detected: PageSize";
        return error(state, StatusCode::BAD_REQUEST, "BadRequestException", text);
    }
    let start = match request.query("NextToken") {
        None => Some(0),
        Some(token) => token
            .strip_prefix("+/=")
            .and_then(|start| start.parse().ok()),
    };
    let Some(start) = start else {
        let (name, text) = ("InvalidNextTokenException", "The token is not valid.");
        return error(state, StatusCode::BAD_REQUEST, name, text);
    };
    let kinds = [ListKind::Bounce, ListKind::Complaint];
    let all = state
        .suppression_lists
        .list(Provider::Ses, caller.access_key_id, &kinds);
    let page: Vec<Value> = all.iter().skip(start).take(size).map(summary).collect();
    let end = start.saturating_add(size);
    let mut body = json!({ "SuppressedDestinationSummaries": page });
    if end < all.len() {
        body["NextToken"] = json!(format!("+/={end}"));
    }
    reply::json(StatusCode::OK, body.to_string())
}

fn summary(listed: &Listed) -> Value {
    let reason = match listed.kind {
        ListKind::Complaint => "COMPLAINT",
        ListKind::Bounce | ListKind::Unsubscribe | ListKind::Invalid | ListKind::Tag => "BOUNCE",
    };
    json!({
        "EmailAddress": listed.address,
        "Reason": reason,
        "LastUpdateTime": listed.since.timestamp_millis() as f64 / 1_000.0,
    })
}
