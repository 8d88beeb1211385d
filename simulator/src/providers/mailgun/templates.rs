//! Stored templates of a domain, by name. Pages link to each other by URLs; the page after the
//! last one is empty.

use http::StatusCode;
use http::header::HOST;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::message;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::stored_objects::only;

const PAGE_DEFAULT: usize = 10;
const PAGE_MAX: usize = 100;

fn name(template: &Value) -> &str {
    template["name"].as_str().unwrap_or_default()
}

/// `GET /v3/{domain}/templates`.
pub(super) fn list(state: &State, request: &Request, key: &str, domain: &str) -> Answer {
    let limit = request.query_number("limit", PAGE_DEFAULT, usize::MAX);
    if limit == 0 || limit > PAGE_MAX {
        return message(StatusCode::BAD_REQUEST, "Invalid 'limit' parameter");
    }
    let pivot = match request.query("page").as_deref() {
        None | Some("" | "first") => None,
        Some("next") => request.query("p"),
        Some(_) => return message(StatusCode::BAD_REQUEST, "Invalid 'page' parameter"),
    };
    let mut all = state.stored_objects.templates(Provider::Mailgun, key);
    all.sort_by(|one, other| name(one).cmp(name(other)));
    let is_after = |template: &&Value| pivot.as_deref().is_none_or(|pivot| name(template) > pivot);
    let page: Vec<&Value> = all.iter().filter(is_after).take(limit).collect();
    let host = request.header(HOST.as_str()).unwrap_or("api.mailgun.net");
    let url = |page: &str, pivot: &str| {
        let pivot = utf8_percent_encode(pivot, NON_ALPHANUMERIC);
        format!("https://{host}/v3/{domain}/templates?page={page}&p={pivot}&limit={limit}")
    };
    let last = page.last().map(|template| name(template));
    let last = last.or(pivot.as_deref()).unwrap_or_default();
    let first = page.first().map_or("", |template| name(template));
    let fields = ["name", "description", "createdAt", "createdBy", "id"];
    let items: Vec<Value> = page
        .iter()
        .map(|template| only(template, &fields))
        .collect();
    let body = json!({
        "items": items,
        "paging": {
            "first": url("first", ""),
            "next": url("next", last),
            "previous": url("previous", first),
            "last": url("last", ""),
        },
    });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v3/{domain}/templates/{name}`; the version only with `active=yes`.
pub(super) fn find(state: &State, request: &Request, key: &str, sought: &str) -> Answer {
    let all = state.stored_objects.templates(Provider::Mailgun, key);
    let Some(template) = all.into_iter().find(|template| name(template) == sought) else {
        return message(StatusCode::NOT_FOUND, "template not found");
    };
    let mut template = template;
    if request.query("active").as_deref() != Some("yes")
        && let Some(fields) = template.as_object_mut()
    {
        fields.remove("version");
    }
    reply::json(StatusCode::OK, json!({ "template": template }).to_string())
}
