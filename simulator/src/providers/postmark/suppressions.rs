//! The suppressions of a message stream, all at once.

use chrono::SecondsFormat;
use http::StatusCode;
use serde_json::{Value, json};

use super::refusal;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::suppression_lists::ListKind;

/// The reasons by their names.
const REASONS: [(&str, ListKind); 3] = [
    ("HardBounce", ListKind::Bounce),
    ("SpamComplaint", ListKind::Complaint),
    ("ManualSuppression", ListKind::Unsubscribe),
];

/// `GET /message-streams/{stream_id}/suppressions/dump`.
pub(super) fn dump(state: &State, request: &Request, token: &str, stream: &str) -> Answer {
    if stream.contains("missing") {
        return refusal(
            1226,
            "The message stream for the provided 'ID' was not found.",
        );
    }
    let wanted = request.query("SuppressionReason");
    let lists = &state.suppression_lists;
    let reasons = REASONS.into_iter();
    let reasons = reasons.filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted == name));
    let entries = reasons.flat_map(|(name, kind)| {
        let listed = lists.list(Provider::Postmark, token, &[kind]);
        listed.into_iter().map(move |listed| {
            json!({
                "EmailAddress": listed.address,
                "SuppressionReason": name,
                "Origin": "Recipient",
                "CreatedAt": listed.since.to_rfc3339_opts(SecondsFormat::Secs, false),
            })
        })
    });
    let body = json!({ "Suppressions": entries.collect::<Vec<Value>>() });
    reply::json(StatusCode::OK, body.to_string())
}
