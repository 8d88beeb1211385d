//! Templates and layouts of a server.

use http::StatusCode;
use serde_json::{Value, json};

use super::refusal;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::stored_objects::only;

const PAGE_MAX: usize = 500;

/// `GET /templates`.
pub(super) fn list(state: &State, request: &Request, token: &str) -> Answer {
    let number = |name| {
        request
            .query(name)
            .and_then(|text| text.parse::<usize>().ok())
    };
    let (Some(count), Some(offset)) = (number("Count"), number("Offset")) else {
        return refusal(
            600,
            "The 'Count' and 'Offset' query parameters are required.",
        );
    };
    if count == 0 || count > PAGE_MAX {
        return refusal(600, "The 'Count' parameter must be between 1 and 500.");
    }
    let kind = request
        .query("TemplateType")
        .unwrap_or_else(|| "Standard".to_owned());
    let mut all = state.stored_objects.templates(Provider::Postmark, token);
    all.retain(|template| {
        let own = template["TemplateType"].as_str().unwrap_or("Standard");
        kind == "All" || own == kind
    });
    let fields = [
        "Active",
        "TemplateId",
        "Name",
        "Alias",
        "TemplateType",
        "LayoutTemplate",
    ];
    let page = all.iter().skip(offset).take(count);
    let page: Vec<Value> = page.map(|template| only(template, &fields)).collect();
    let body = json!({ "TotalCount": all.len(), "Templates": page });
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /templates/{idOrAlias}`.
pub(super) fn find(state: &State, token: &str, name: &str) -> Answer {
    let all = state.stored_objects.templates(Provider::Postmark, token);
    let number: Option<u64> = name.parse().ok();
    let is_named = |template: &&Value| {
        number.is_some_and(|number| template["TemplateId"] == number) || template["Alias"] == name
    };
    match all.iter().find(is_named) {
        Some(template) => reply::json(StatusCode::OK, template.to_string()),
        None => refusal(
            1101,
            "The 'TemplateID' associated with this request is not valid or was not found.",
        ),
    }
}
