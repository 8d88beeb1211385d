//! The search for sent messages: by the fields of the documentation page "Messages API",
//! and by one metadata field ("Custom metadata FAQ").

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
/// The most messages that a search reaches: `count` and `offset` together.
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
                .all(|(name, value)| record.recipient.has_metadata(name, value))
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
    body["TextBody"] = json!(record.recipient.body.text);
    body["HtmlBody"] = json!(record.recipient.body.html);
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
    let recipient = &record.recipient;
    let envelope = &recipient.envelope;
    let is = |name: &str, own: &str| {
        let wanted = request.query(name);
        wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(own))
    };
    let contains = |name: &str, own: &str| {
        let wanted = request.query(name);
        wanted.is_none_or(|wanted| own.contains(&wanted))
    };
    let from = Mailbox::parse(&envelope.from);
    is("recipient", &recipient.to)
        && is("fromemail", from.map_or("", |mailbox| mailbox.address))
        && is("tag", envelope.tags.first().map_or("", String::as_str))
        && is("status", "sent")
        && is("messagestream", stream(record))
        && contains("subject", &recipient.fill(&envelope.subject))
}

/// The stream, or Postmark's default for a message that names none.
fn stream(record: &Record) -> &str {
    match record.recipient.envelope.scope.as_str() {
        "" => "outbound",
        stream => stream,
    }
}

fn summary(record: &Record) -> Value {
    let recipient = &record.recipient;
    json!({
        "Tag": recipient.envelope.tags.first().map_or("", String::as_str),
        "MessageID": *record.provider_message_id,
        "MessageStream": stream(record),
        "To": [{ "Email": recipient.to, "Name": null }],
        "Cc": [],
        "Bcc": [],
        "Recipients": [recipient.to],
        "ReceivedAt": record.accepted_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        "From": recipient.envelope.from,
        "Subject": recipient.fill(&recipient.envelope.subject),
        "Attachments": [],
        "Status": "Sent",
        "TrackOpens": false,
        "TrackLinks": "None",
        "Metadata": recipient.filled_metadata(),
        "Sandboxed": false,
    })
}
