//! The search for mail that was sent: by the fields of the page "Messages API", and by
//! one field of the metadata ("Custom metadata FAQ").

use std::sync::Arc;

use chrono::SecondsFormat;
use http::StatusCode;
use serde_json::{Value, json};

use super::refusal;
use crate::address::Mailbox;
use crate::mail::Record;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::{Request, decode};
use crate::state::State;

const PAGE_MAX: usize = 500;
/// How far a search reaches: `count` and `offset` together.
const REACH_MAX: usize = 10_000;
const METADATA: &str = "metadata_";

/// `GET /messages/outbound`, newest first.
pub(super) fn list(state: &State, request: &Request, token: &str) -> Answer {
    let number = |name| {
        let text = request.query(name);
        text.and_then(|text| text.parse::<usize>().ok())
    };
    let (Some(count), Some(offset)) = (number("count"), number("offset")) else {
        return refusal(300, "Parameters 'count' and 'offset' are required.");
    };
    if count == 0 || count > PAGE_MAX || count.saturating_add(offset) > REACH_MAX {
        return refusal(300, "Parameters 'count' and 'offset' are out of range.");
    }
    let metadata = metadata_filters(request);
    if metadata.len() > 1 {
        return refusal(300, "Only one metadata field may be searched for.");
    }
    let found = state.captures.search(REACH_MAX, |record| {
        is_shown(state, record, token)
            && matches(request, record)
            && metadata
                .iter()
                .all(|(name, value)| record.copy.has_metadata(name, value))
    });
    let page: Vec<Value> = found
        .iter()
        .skip(offset)
        .take(count)
        .map(|record| summary(record))
        .collect();
    let body = json!({ "TotalCount": found.len(), "Messages": page });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /messages/outbound/{messageid}/details`.
pub(super) fn details(state: &State, token: &str, id: &str) -> Answer {
    let found: Vec<Arc<Record>> = state.captures.search(1, |record| {
        is_shown(state, record, token) && &*record.provider_message_id == id
    });
    let Some(record) = found.first() else {
        return refusal(701, "This message was not found.");
    };
    let mut body = summary(record);
    body["TextBody"] = json!(record.copy.body.text);
    body["HtmlBody"] = json!(record.copy.body.html);
    body["MessageEvents"] = json!([]);
    reply::json(StatusCode::OK, body.to_string())
}

fn is_shown(state: &State, record: &Record, token: &str) -> bool {
    record.provider == Provider::Postmark
        && &*record.credential == token
        && record.accepted_at <= state.searches.horizon()
}

fn metadata_filters(request: &Request) -> Vec<(String, String)> {
    let query = request.uri.query().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = decode(name).strip_prefix(METADATA)?.to_owned();
        Some((name, decode(&value.replace('+', " "))))
    });
    pairs.collect()
}

fn matches(request: &Request, record: &Record) -> bool {
    let copy = &record.copy;
    let envelope = &copy.envelope;
    let is = |name: &str, own: &str| {
        let wanted = request.query(name);
        wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(own))
    };
    let contains = |name: &str, own: &str| {
        let wanted = request.query(name);
        wanted.is_none_or(|wanted| own.contains(&wanted))
    };
    let from = Mailbox::parse(&envelope.from);
    is("recipient", &copy.to)
        && is("fromemail", from.map_or("", |mailbox| mailbox.address))
        && is("tag", envelope.tags.first().map_or("", String::as_str))
        && is("status", "sent")
        && is("messagestream", stream(record))
        && contains("subject", &copy.fill(&envelope.subject))
}

/// Postmark's own name for mail that names no stream.
fn stream(record: &Record) -> &str {
    match record.copy.envelope.scope.as_str() {
        "" => "outbound",
        stream => stream,
    }
}

fn summary(record: &Record) -> Value {
    let copy = &record.copy;
    json!({
        "Tag": copy.envelope.tags.first().map_or("", String::as_str),
        "MessageID": *record.provider_message_id,
        "MessageStream": stream(record),
        "To": [{ "Email": copy.to, "Name": null }],
        "Cc": [],
        "Bcc": [],
        "Recipients": [copy.to],
        "ReceivedAt": record.accepted_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "From": copy.envelope.from,
        "Subject": copy.fill(&copy.envelope.subject),
        "Attachments": [],
        "Status": "Sent",
        "TrackOpens": false,
        "TrackLinks": "None",
        "Metadata": copy.filled_metadata(),
        "Sandboxed": false,
    })
}
