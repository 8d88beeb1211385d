//! Errors in the document: the list of reasons, and an example for each error status of
//! each operation.

use std::time::Duration;

use serde_json::{Value, json};
use waypost_core::auth::Permission;
use waypost_core::fault::Fault;
use waypost_core::idempotency::KeyConflict;
use waypost_core::issue::Issue;

use super::responses::{CONFLICTS, OperationFailure, UNPROCESSABLE};
use crate::error::{Failure, Reason};
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
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (_, operations) in paths {
        for (_, operation) in operations.as_object_mut().into_iter().flatten() {
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
}

/// The failure that serves as the example of a status; `None` if the status has none.
fn failure(status: &str, operation: &Value) -> Option<Failure> {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let in_table = |table: &[OperationFailure]| {
        let row = table.iter().find(|(known, _)| *known == id)?;
        Some(row.1())
    };
    let is_keyed = operation.get("security").is_some();
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let has_key = parameters.into_iter().any(|one| one["name"] == KEY);
    match status {
        "400" if is_keyed => {
            let message = if operation.get("requestBody").is_some() {
                "is not a known field"
            } else {
                "is not a parameter of this operation"
            };
            Some(Failure::Invalid(vec![Issue::new("colour", message)]))
        }
        "401" if is_keyed => Some(Failure::Unauthenticated),
        "401" => Some(Failure::Unverified),
        "403" => {
            let name = operation["x-required-permission"].as_str()?;
            let mut all = Permission::ALL.into_iter();
            let permission = all.find(|one| one.as_str() == name)?;
            Some(Failure::Forbidden(permission))
        }
        "404" => Some(Failure::NotFound("record")),
        "409" if has_key => Some(KeyConflict::OtherBody.into()),
        "409" => in_table(&CONFLICTS),
        "413" => Some(Failure::TooLarge(OTHER_BYTES_MAX)),
        "415" => Some(Failure::NotJson),
        "422" => in_table(&UNPROCESSABLE),
        "429" => Some(Failure::RateLimited(Duration::from_secs(1))),
        "500" => Some(Fault::internal("show", "an example").into()),
        "503" => Some(Fault::unavailable("show", "an example").into()),
        _ => None,
    }
}
