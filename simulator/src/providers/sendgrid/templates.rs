//! Dynamic templates: a list in pages without contents, and single ones with them.

use http::StatusCode;
use http::header::HOST;
use serde_json::{Value, json};

use super::error;
use crate::credentials::CredentialKind;
use crate::providers::Provider;
use crate::reply::{self, Answer};
use crate::request::Request;
use crate::state::State;
use crate::stored_objects::only;

const PAGE_MAX: usize = 200;

/// `GET /v3/templates`. A page's token is the number of its first template.
pub(super) fn list(state: &State, request: &Request, key: &str) -> Answer {
    if CredentialKind::of(key) == CredentialKind::SendOnly {
        return error(StatusCode::FORBIDDEN, "access forbidden", None);
    }
    let size = request.query_number("page_size", 0, usize::MAX);
    if size == 0 || size > PAGE_MAX {
        let field = Some("page_size");
        return error(StatusCode::BAD_REQUEST, "page_size is out of range", field);
    }
    let generations = request.query("generations").unwrap_or_default();
    let mut all = state.stored_objects.templates(Provider::SendGrid, key);
    all.retain(|template| {
        let generation = template["generation"].as_str().unwrap_or("dynamic");
        generations.split(',').any(|asked| asked == generation)
    });
    let start = request.query_number("page_token", 0, usize::MAX);
    let page = all.iter().skip(start).take(size).map(summary);
    let page: Vec<Value> = page.collect();
    let host = request.header(HOST.as_str()).unwrap_or("api.sendgrid.com");
    let url = |token: usize| {
        format!(
            "https://{host}/v3/templates?page_token={token}&generations={generations}&page_size={size}"
        )
    };
    let mut metadata = json!({ "self": url(start), "count": all.len() });
    if start + size < all.len() {
        metadata["next"] = json!(url(start + size));
    }
    let body = json!({ "result": page, "_metadata": metadata });
    reply::json(StatusCode::OK, body.to_string())
}

fn summary(template: &Value) -> Value {
    let mut summary = only(template, &["id", "name", "generation", "updated_at"]);
    let versions = template["versions"].as_array().into_iter().flatten();
    let fields = [
        "id",
        "template_id",
        "active",
        "name",
        "subject",
        "updated_at",
        "editor",
    ];
    summary["versions"] = versions.map(|version| only(version, &fields)).collect();
    summary
}

/// `GET /v3/templates/{id}`.
pub(super) fn find(state: &State, key: &str, id: &str) -> Answer {
    let all = state.stored_objects.templates(Provider::SendGrid, key);
    match all.iter().find(|template| template["id"] == id) {
        Some(template) => reply::json(StatusCode::OK, template.to_string()),
        None => reply::json(
            StatusCode::NOT_FOUND,
            json!({ "error": "template not found" }).to_string(),
        ),
    }
}
