//! The Email Activity, for accounts that have it: a list by a query, and the details of
//! an entry. The query language is limited to one custom arg or one recipient; other
//! queries get SendGrid's response to an unknown field.

use chrono::SecondsFormat;
use http::StatusCode;
use serde_json::{Value, json};

use super::error;
use super::events::message_id;
use crate::address::Mailbox;
use crate::credentials::{CredentialKind, has_activity};
use crate::mail::Record;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::{Request, decode};
use crate::state::State;

const PAGE_DEFAULT: usize = 10;
const PAGE_MAX: usize = 1_000;

/// `GET /v3/messages`, newest first.
pub(super) fn list(state: &State, request: &Request, key: &str) -> Answer {
    if let Some(refusal) = refusal(key) {
        return refusal;
    }
    let condition = match request.query("query").as_deref().map(Condition::parse) {
        Some(Ok(condition)) => condition,
        Some(Err(field)) => {
            let message = format!("invalid syntax: '{field}' is not a known field");
            return error(StatusCode::BAD_REQUEST, &message, None);
        }
        None => return error(StatusCode::BAD_REQUEST, "query is required", None),
    };
    let limit = request.query_number("limit", PAGE_DEFAULT, PAGE_MAX);
    let found = state.captures.search(limit, |record| {
        is_shown(state, record, key) && condition.holds(record)
    });
    let messages: Vec<Value> = found.iter().map(|record| summary(record)).collect();
    let body = json!({ "messages": messages });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v3/messages/{msg_id}`.
pub(super) fn find(state: &State, key: &str, id: &str) -> Answer {
    if let Some(refusal) = refusal(key) {
        return refusal;
    }
    let id = decode(id);
    let found = state.captures.search(1, |record| {
        is_shown(state, record, key) && message_id(record) == id
    });
    let Some(record) = found.first() else {
        return error(StatusCode::NOT_FOUND, "message not found", None);
    };
    let arguments = record.recipient.filled_metadata();
    let arguments = serde_json::to_string(&arguments).unwrap_or_default();
    let body = json!({
        "from_email": from(record),
        "msg_id": id,
        "subject": record.recipient.fill(&record.recipient.envelope.subject),
        "to_email": record.recipient.to,
        "status": "delivered",
        "template_id": "",
        "asm_group_id": 0,
        "teammate": "",
        "api_key_id": "simulated",
        "originating_ip": "192.0.2.1",
        "events": [{ "event_name": "processed", "processed": moment(record) }],
        "categories": record.recipient.envelope.tags,
        // A string, as in the published example.
        "unique_args": arguments,
        "outbound_ip": "192.0.2.25",
        "outbound_ip_type": "dedicated",
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// The response if the account has no activity, or the key may not read it.
fn refusal(key: &str) -> Option<Answer> {
    let may_read = has_activity(key) && CredentialKind::of(key) != CredentialKind::SendOnly;
    (!may_read).then(|| error(StatusCode::FORBIDDEN, "access forbidden", None))
}

/// The condition of a query.
enum Condition {
    /// `unique_args['name']="value"`.
    Argument(String, String),
    /// `to_email="address"`.
    Recipient(String),
}

impl Condition {
    /// `Err` is the name of an unknown field.
    fn parse(query: &str) -> Result<Self, String> {
        let bare = query
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
            .unwrap_or(query);
        let (field, value) = bare.split_once('=').unwrap_or((bare, ""));
        let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        let value = value.filter(|value| !value.contains('"'));
        let name = field
            .strip_prefix("unique_args['")
            .and_then(|rest| rest.strip_suffix("']"));
        match (field, name, value) {
            (_, Some(name), Some(value)) => Ok(Self::Argument(name.to_owned(), value.to_owned())),
            ("to_email", _, Some(value)) => Ok(Self::Recipient(value.to_owned())),
            _ => Err(field.to_owned()),
        }
    }

    fn holds(&self, record: &Record) -> bool {
        match self {
            Self::Argument(name, value) => record.recipient.has_metadata(name, value),
            Self::Recipient(address) => record.recipient.to.eq_ignore_ascii_case(address),
        }
    }
}

fn is_shown(state: &State, record: &Record, key: &str) -> bool {
    record.provider == Provider::SendGrid
        && &*record.credential == key
        && record.accepted_at <= state.searches.horizon()
}

fn summary(record: &Record) -> Value {
    json!({
        "from_email": from(record),
        "msg_id": message_id(record),
        "subject": record.recipient.fill(&record.recipient.envelope.subject),
        "to_email": record.recipient.to,
        "status": "delivered",
        "opens_count": 0,
        "clicks_count": 0,
        "last_event_time": moment(record),
    })
}

fn from(record: &Record) -> &str {
    let from = &record.recipient.envelope.from;
    Mailbox::parse(from).map_or(from, |mailbox| mailbox.address)
}

fn moment(record: &Record) -> String {
    record
        .accepted_at
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}
