//! The suppression lists of a domain, by address. Pages link to each other by URLs; the page
//! after the last one is empty, as Mailgun's is.

use http::StatusCode;
use http::header::HOST;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::message;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::suppression_lists::{ListKind, Listed};

const PAGE_DEFAULT: usize = 100;
const PAGE_MAX: usize = 1_000;

/// `GET /v3/{domain_name}/{list}`.
pub(super) fn list(
    state: &State,
    request: &Request,
    key: &str,
    (domain, name): (&str, &str),
) -> Answer {
    let kinds: &[ListKind] = match name {
        "bounces" => &[ListKind::Bounce],
        "complaints" => &[ListKind::Complaint],
        _ => &[ListKind::Unsubscribe, ListKind::Tag],
    };
    let limit = request.query_number("limit", PAGE_DEFAULT, usize::MAX);
    if limit == 0 || limit > PAGE_MAX {
        return message(StatusCode::BAD_REQUEST, "Invalid 'limit' parameter");
    }
    let lists = &state.suppression_lists;
    let mut all = lists.list(Provider::Mailgun, key, kinds);
    all.sort_by(|one, other| one.address.cmp(&other.address));
    let pivot = match request.query("page").as_deref() {
        None | Some("") => None,
        Some("next") => request.query("address"),
        Some(_) => return message(StatusCode::BAD_REQUEST, "Invalid 'page' parameter"),
    };
    let is_after = |listed: &&Listed| {
        let pivot = pivot.as_deref();
        pivot.is_none_or(|pivot| listed.address.as_str() > pivot)
    };
    let page: Vec<&Listed> = all.iter().filter(is_after).take(limit).collect();
    let host = request.header(HOST.as_str()).unwrap_or("api.mailgun.net");
    let url = |page: &str, address: &str| {
        let address = utf8_percent_encode(address, NON_ALPHANUMERIC);
        format!("http://{host}/v3/{domain}/{name}?page={page}&address={address}&limit={limit}")
    };
    let last = page.last().map(|listed| listed.address.as_str());
    let last = last.or(pivot.as_deref()).unwrap_or_default();
    let first = page.first().map_or("", |listed| listed.address.as_str());
    let body = json!({
        "items": page.iter().map(|listed| item(listed)).collect::<Vec<Value>>(),
        "paging": {
            "first": url("first", ""),
            "next": url("next", last),
            "previous": url("previous", first),
            "last": url("last", ""),
        },
    });
    reply::json(StatusCode::OK, body.to_string())
}

fn item(listed: &Listed) -> Value {
    let since = listed.since.format("%a, %d %b %Y %H:%M:%S UTC");
    let mut item = json!({ "address": listed.address, "created_at": since.to_string() });
    match listed.kind {
        ListKind::Bounce => {
            item["code"] = json!("550");
            item["error"] = json!("No such mailbox");
        }
        ListKind::Unsubscribe => item["tags"] = json!(["*"]),
        ListKind::Tag => item["tags"] = json!(["newsletter"]),
        ListKind::Complaint | ListKind::Invalid => {}
    }
    item
}
