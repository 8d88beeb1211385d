//! The events of a domain: what was accepted, and the rest of each mail's story, as if it
//! had happened at once. Pages lead to each other by URLs, as Mailgun's do.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HOST;
use http::{StatusCode, Uri};
use serde_json::{Value, json};

use super::events::word;
use super::message;
use crate::callbacks::{Event, story_of};
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 300;
/// Mails that one search goes through.
const REACH_MAX: usize = 100_000;

/// `GET /v3/{domain}/events`.
pub(super) fn first_page(state: &State, request: &Request, domain: &str) -> Answer {
    let query = request.uri.query().unwrap_or_default().to_owned();
    page(state, request, domain, &query, 0)
}

/// `GET /v3/{domain}/events/{token}`: what a page named as its next or previous one.
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
    let asked = Request {
        method: request.method.clone(),
        uri: format!("/?{query}").parse::<Uri>().unwrap_or_default(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        too_large: false,
    };
    let begin = asked.query("begin").map(|text| text.parse::<f64>());
    let ascending = asked.query("ascending");
    if matches!(begin, Some(Err(_))) {
        return message(StatusCode::BAD_REQUEST, "Invalid 'begin' parameter");
    }
    // Without an end the direction must be named (OpenAPI).
    if asked.query("end").is_none() && ascending.is_none() {
        let text = "'ascending' is required where 'end' is not given";
        return message(StatusCode::BAD_REQUEST, text);
    }
    let begin = begin.and_then(Result::ok);
    let limit = asked.query_number("limit", PAGE_DEFAULT, PAGE_MAX);
    let mut events = events(state, &asked, domain);
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

/// What the filters let through, newest first.
fn events(state: &State, asked: &Request, domain: &str) -> Vec<Value> {
    let horizon = state.searches.horizon();
    let (recipient, kind) = (asked.query("recipient"), asked.query("event"));
    let records = state.captures.search(REACH_MAX, |record| {
        let to = &record.copy.to;
        record.provider == Provider::Mailgun
            && record.copy.envelope.scope == domain
            && record.accepted_at <= horizon
            && recipient
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(to))
    });
    let events = records.iter().flat_map(|record| {
        let story = story_of(&record.copy.to).iter().rev();
        story.map(|&happening| Event {
            record: record.clone(),
            happening,
            at: record.accepted_at,
        })
    });
    let events = events.filter_map(|event| serde_json::from_str::<Value>(&word(&event)).ok());
    let wanted = |event: &Value| kind.as_ref().is_none_or(|kind| event["event"] == **kind);
    events.filter(wanted).collect()
}
