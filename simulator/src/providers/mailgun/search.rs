//! The events of a domain: each accepted message with all its events, as if they had
//! happened at once. Pages link to each other by URLs, as Mailgun's do.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HOST;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::events::call_body;
use super::message;
use crate::callbacks::{Event, events_for};
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 300;
/// Messages that one search looks at.
const REACH_MAX: usize = 100_000;

/// `GET /v3/{domain}/events`.
pub(super) fn first_page(state: &State, request: &Request, domain: &str) -> Answer {
    let query = request.uri.query().unwrap_or_default().to_owned();
    page(state, request, domain, &query, 0)
}

/// `GET /v3/{domain}/events/{token}`: the next or previous page of a page.
pub(super) fn further_page(state: &State, request: &Request, domain: &str, token: &str) -> Answer {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let parts = text.as_deref().and_then(|text| text.split_once(' '));
    match parts.map(|(skip, query)| (skip.parse(), query.to_owned())) {
        Some((Ok(skip), query)) => page(state, request, domain, &query, skip),
        _ => message(StatusCode::BAD_REQUEST, "Invalid page"),
    }
}

fn page(state: &State, request: &Request, domain: &str, query: &str, skip: usize) -> Answer {
    let filters = Request {
        method: request.method.clone(),
        uri: format!("/?{query}").parse::<Uri>().unwrap_or_default(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        too_large: false,
    };
    let begin = filters.query("begin").map(|text| text.parse::<f64>());
    let ascending = filters.query("ascending");
    if matches!(begin, Some(Err(_))) {
        return message(StatusCode::BAD_REQUEST, "Invalid 'begin' parameter");
    }
    // Without an end the direction is required (OpenAPI).
    if filters.query("end").is_none() && ascending.is_none() {
        let text = "'ascending' is required where 'end' is not given";
        return message(StatusCode::BAD_REQUEST, text);
    }
    let begin = begin.and_then(Result::ok);
    let limit = filters.query_number("limit", PAGE_DEFAULT, PAGE_MAX);
    let mut events = events(state, &filters, domain);
    let is_ascending = ascending.as_deref() == Some("yes");
    events.retain(|event| {
        let at = event["timestamp"].as_f64().unwrap_or_default();
        begin.is_none_or(|begin| {
            if is_ascending {
                at >= begin
            } else {
                at <= begin
            }
        })
    });
    if is_ascending {
        events.reverse();
    }
    let items: Vec<Value> = events.into_iter().skip(skip).take(limit).collect();
    let host = request.header(HOST.as_str()).unwrap_or("api.mailgun.net");
    let url = |skip: usize| {
        let token = URL_SAFE_NO_PAD.encode(format!("{skip} {query}"));
        format!("http://{host}/v3/{domain}/events/{token}")
    };
    let body = json!({
        "paging": {
            "next": url(skip + items.len()),
            "previous": url(skip.saturating_sub(limit)),
        },
        "items": items,
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// The events that pass the filters, newest first.
fn events(state: &State, filters: &Request, domain: &str) -> Vec<Value> {
    let horizon = state.searches.horizon();
    let (recipient, kind) = (filters.query("recipient"), filters.query("event"));
    let records = state.captures.search(REACH_MAX, |record| {
        let to = &record.recipient.to;
        record.provider == Provider::Mailgun
            && record.recipient.envelope.scope == domain
            && record.accepted_at <= horizon
            && recipient
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(to))
    });
    let events = records.iter().flat_map(|record| {
        let kinds = events_for(&record.recipient.to).iter().rev();
        kinds.map(|&kind| Event {
            record: record.clone(),
            kind,
            at: record.accepted_at,
        })
    });
    let events = events.filter_map(|event| serde_json::from_str::<Value>(&call_body(&event)).ok());
    let wanted = |event: &Value| kind.as_ref().is_none_or(|kind| event["event"] == **kind);
    events.filter(wanted).collect()
}
