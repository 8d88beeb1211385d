//! The templates of the account.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Caller, access_denied, error};
use crate::credentials::CredentialKind;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;

const PAGE_DEFAULT: usize = 10;
const PAGE_MAX: usize = 100;

/// `GET /v2/email/templates`; a page's token is the number of its first template, behind a mark
/// that must be percent-encoded.
pub(super) fn list(state: &State, request: &Request, caller: &Caller<'_>) -> Answer {
    if caller.credential_kind == CredentialKind::SendOnly {
        return access_denied(state, caller, "ListEmailTemplates");
    }
    let size = request.query_number("PageSize", PAGE_DEFAULT, usize::MAX);
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
        let text = "The token is not valid.";
        return error(state, StatusCode::BAD_REQUEST, "BadRequestException", text);
    };
    let all = state
        .stored_objects
        .templates(Provider::Ses, caller.access_key_id);
    let page = all.iter().skip(start).take(size).map(|template: &Value| {
        json!({ "TemplateName": template["TemplateName"], "CreatedTimestamp": 1_700_000_000.0 })
    });
    let mut body = json!({ "TemplatesMetadata": page.collect::<Value>() });
    let end = start.saturating_add(size);
    if end < all.len() {
        body["NextToken"] = json!(format!("+/={end}"));
    }
    reply::json(StatusCode::OK, body.to_string())
}

/// `GET /v2/email/templates/{name}`.
pub(super) fn find(state: &State, caller: &Caller<'_>, name: &str) -> Answer {
    let all = state
        .stored_objects
        .templates(Provider::Ses, caller.access_key_id);
    match all.iter().find(|template| template["TemplateName"] == name) {
        Some(template) => reply::json(StatusCode::OK, template.to_string()),
        None => {
            let text = format!("Template {name} does not exist.");
            error(state, StatusCode::NOT_FOUND, "NotFoundException", &text)
        }
    }
}
