//! Errors in the document: the list of reasons, and examples for each error status.

use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::fault::Fault;
use waypost_core::idempotency::KeyConflict;
use waypost_core::issue::Issue;

use super::operations;
use super::responses::{CONFLICTS, UNPROCESSABLE};
use crate::error::{Failure, Reason};
use crate::request::body::OTHER_BYTES_MAX;

/// Adds the reasons and the examples.
pub(super) fn complete(document: &mut Value) {
    let words: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    let meanings = Reason::ALL
        .iter()
        .map(|reason| format!("- `{}` - {}\n", reason.as_str(), reason.meaning()));
    let meanings: String = meanings.collect();
    let schemas = &mut document["components"]["schemas"];
    schemas["ErrorReason"] = json!({
        "type": "string",
        "description": format!("Why a valid request was not done: `details.reason` of every 409 and 422, with the status of each reason.\n\n{meanings}"),
        "enum": words,
        "example": Reason::IdempotencyKeyReused,
    });
    schemas["Error"]["properties"]["details"]["properties"]["reason"] =
        json!({ "$ref": "#/components/schemas/ErrorReason" });
    for operation in operations(document) {
        let is_keyed = operation.contains_key("security");
        let responses = operation["responses"].as_object_mut();
        for (status, response) in responses.into_iter().flatten() {
            if let Some(content) = response.pointer_mut("/content/application~1json") {
                add_examples(status, is_keyed, content);
            }
        }
    }
}

/// Adds the examples of a status: one for each reason of a 409 and a 422.
fn add_examples(status: &str, is_keyed: bool, content: &mut Value) {
    let table = match status {
        "409" => CONFLICTS.as_slice(),
        "422" => UNPROCESSABLE.as_slice(),
        _ => {
            if let Some(failure) = failure(status, is_keyed) {
                content["example"] = failure.body();
            }
            return;
        }
    };
    let key_reused: fn() -> Failure = || KeyConflict::OtherBody.into();
    let failures = table.iter().map(|(_, failure)| *failure);
    let failures = failures.chain((status == "409").then_some(key_reused));
    for failure in failures {
        let body = failure().body();
        let reason = body["error"]["details"]["reason"].as_str();
        let reason = reason.unwrap_or_default().to_owned();
        content["examples"][reason] = json!({ "value": body });
    }
}

/// The failure that serves as the example of a status; `None` if the status has none.
fn failure(status: &str, is_keyed: bool) -> Option<Failure> {
    match status {
        "400" if is_keyed => {
            let message = "is not a known field";
            Some(Failure::Invalid(vec![Issue::new("colour", message)]))
        }
        "401" if is_keyed => Some(Failure::Unauthenticated),
        "401" => Some(Failure::Unverified),
        "403" => Some(Failure::Forbidden(Permission::Send)),
        "404" => Some(Failure::NotFound("record")),
        "413" => Some(Failure::TooLarge(OTHER_BYTES_MAX)),
        "415" => Some(Failure::NotJson),
        "429" => Some(Failure::RateLimited(Duration::from_secs(1))),
        "500" => Some(Fault::internal("show", "an example").into()),
        "503" => Some(Fault::unavailable("show", "an example").into()),
        _ => None,
    }
}
