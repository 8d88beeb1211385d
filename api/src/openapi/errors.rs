//! Errors in the document: the list of reasons, and an example for each error status of
//! each operation.

use std::time::Duration;

use serde_json::{Map, Value, json};
use waypost_core::fault::Fault;
use waypost_core::idempotency::KeyConflict;
use waypost_core::issue::Issue;

use super::responses::{CONFLICTS, UNPROCESSABLE, find};
use super::{operations, parameters};
use crate::error::{Failure, Reason};
use crate::middleware::auth::PERMISSION;
use crate::request::body::OTHER_BYTES_MAX;
use crate::request::idempotency_key::KEY;

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
        let described = operation.clone();
        let responses = operation["responses"].as_object_mut();
        for (status, response) in responses.into_iter().flatten() {
            let content = response.pointer_mut("/content/application~1json");
            if let (Some(content), Some(failure)) = (content, failure(status, &described)) {
                content["example"] = failure.body();
            }
        }
    }
}

/// The failure that serves as the example of a status; `None` if the status has none.
fn failure(status: &str, operation: &Map<String, Value>) -> Option<Failure> {
    let is_keyed = operation.contains_key("security");
    let has_key = parameters(operation).any(|parameter| parameter["name"] == KEY);
    match status {
        "400" if is_keyed => {
            let message = if operation.contains_key("requestBody") {
                "is not a known field"
            } else {
                "is not a parameter of this operation"
            };
            Some(Failure::Invalid(vec![Issue::new("colour", message)]))
        }
        "401" if is_keyed => Some(Failure::Unauthenticated),
        "401" => Some(Failure::Unverified),
        "403" => {
            let permission = operation.get(PERMISSION)?.as_str()?;
            Some(Failure::Forbidden(permission.parse().ok()?))
        }
        "404" => Some(Failure::NotFound("record")),
        "409" if has_key => Some(KeyConflict::OtherBody.into()),
        "409" => find(&CONFLICTS, operation).map(|example| example()),
        "413" => Some(Failure::TooLarge(OTHER_BYTES_MAX)),
        "415" => Some(Failure::NotJson),
        "422" => find(&UNPROCESSABLE, operation).map(|example| example()),
        "429" => Some(Failure::RateLimited(Duration::from_secs(1))),
        "500" => Some(Fault::internal("show", "an example").into()),
        "503" => Some(Fault::unavailable("show", "an example").into()),
        _ => None,
    }
}
