//! Checks every response in a test against the OpenAPI document: the operation must list
//! its status, and its body must match the schema. So the whole suite proves that the
//! document is correct. The same holds for every webhook that a [`crate::Receiver`] gets.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use http::Method;
use http::header::CONTENT_TYPE;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

use crate::client::Reply;

/// The document with its schemas as JSON Schema.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = waypost_api::document().expect("the document can be written");
    translate(&mut document);
    document
});

static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// Checks a response.
///
/// # Panics
/// If the document does not describe it.
pub(crate) fn check(method: &Method, path: &str, reply: &Reply) {
    let path = path.split('?').next().unwrap_or_default();
    // The router also accepts a path in another spelling than the document's.
    let is_plain = path.starts_with("/v1/") && !path.contains("/.") && !path.contains('%');
    if !is_plain || method == Method::HEAD || method == Method::OPTIONS {
        return;
    }
    let what = || {
        let text: String = reply.text.chars().take(2_000).collect();
        format!("{method} {path} answered {} {text}", reply.status)
    };
    let Some((id, operation)) = operation(method, path) else {
        assert!(
            [404, 405, 429, 503].contains(&reply.status),
            "{}, which the document does not know",
            what()
        );
        return;
    };
    let Some(answer) = operation["responses"].get(reply.status.to_string()) else {
        panic!("{}, which the document does not list for {id}", what());
    };
    let answer = referred(answer);
    let common = &DOCUMENT["components"]["headers"];
    let common = common.as_object().into_iter().flatten();
    let common = common.filter(|(name, _)| *name != "Retry-After");
    let headers = answer["headers"].as_object().into_iter().flatten();
    let headers = headers.chain(common);
    let required = headers.filter(|(_, header)| is_required(header));
    for (name, _) in required {
        assert!(
            reply.headers.contains_key(name.as_str()),
            "{} without {name}",
            what()
        );
    }
    let content = answer["content"].as_object();
    let media_type = media_type(reply);
    assert!(
        content.is_none_or(|content| lists(content, media_type)),
        "{} as {media_type}, which the document does not list",
        what()
    );
    if [409, 422].contains(&reply.status) {
        let reason = &reply.json()["error"]["details"]["reason"];
        assert!(reason.is_string(), "{} without a reason", what());
    }
    if let Some(schema) = answer.pointer("/content/application~1json/schema") {
        let validator = validator(format!("{id} {}", reply.status), schema);
        let found = validator.iter_errors(&reply.json()).next().map(|error| {
            let place = error.instance_path().to_string();
            format!("{place}: {error}")
        });
        assert!(found.is_none(), "{}: {found:?}", what());
    }
}

/// The media type of a response, without parameters.
fn media_type(reply: &Reply) -> &str {
    let value = reply.headers.get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let value = value.unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

fn lists(content: &Map<String, Value>, media_type: &str) -> bool {
    content.contains_key(media_type) || content.contains_key("*/*") && media_type.contains('/')
}

/// Why a webhook is not as the document describes it.
pub(crate) fn find_webhook_problem(body: &[u8]) -> Option<String> {
    let event = &DOCUMENT["components"]["schemas"]["WebhookEvent"];
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return Some("a webhook is not JSON".to_owned());
    };
    let kind = body["event"].as_str().unwrap_or_default();
    let Some(reference) = event["discriminator"]["mapping"][kind].as_str() else {
        return Some(format!("the document has no type of webhook for {body}"));
    };
    let variant = DOCUMENT.pointer(reference.trim_start_matches('#'));
    let variant = variant.expect("the mapping leads to a schema");
    let variant = validator(format!("webhook {kind}"), variant);
    let error = variant.iter_errors(&body).next();
    error.map(|error| format!("{}: {error} in {body}", error.instance_path()))
}

/// The example of a type of webhook.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn webhook_example(event: &str) -> Value {
    let pointer = "/x-webhooks/event/post/requestBody/content/application~1json/examples";
    let examples = DOCUMENT.pointer(pointer).expect("webhooks have examples");
    examples[event]["value"].clone()
}

/// Adds the parts of an `allOf` to a schema: an object has the fields of all of them, and no
/// others.
fn extend(schema: &mut Map<String, Value>, parts: Vec<Value>) {
    for part in parts {
        let Value::Object(part) = part else {
            continue;
        };
        for (word, value) in part {
            match (schema.get_mut(&word), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
                (Some(_), _) => {}
                (None, value) => {
                    schema.insert(word, value);
                }
            }
        }
    }
}

fn is_required(header: &'static Value) -> bool {
    referred(header)["required"] == true
}

/// What a reference leads to, or the value itself.
fn referred(value: &'static Value) -> &'static Value {
    let reference = value["$ref"].as_str().unwrap_or_default();
    let referred = reference.strip_prefix('#');
    let referred = referred.and_then(|pointer| DOCUMENT.pointer(pointer));
    referred.unwrap_or(value)
}

/// A document in which every reference is replaced by what it refers to, and every `allOf` by
/// one schema.
///
/// # Panics
/// If a reference leads nowhere.
#[must_use]
pub fn without_references(document: &Value) -> Value {
    let mut resolved = document.clone();
    resolve(document, &mut resolved);
    resolved
}

/// The operation of a path; a path without parameters has precedence.
fn operation(method: &Method, path: &str) -> Option<(String, &'static Value)> {
    let method = method.as_str().to_ascii_lowercase();
    let paths = DOCUMENT["paths"].as_object()?;
    let mut candidates: Vec<&String> = paths
        .keys()
        .filter(|template| matches_template(template, path))
        .collect();
    candidates.sort_by_key(|template| template.matches('{').count());
    let operation = paths.get(*candidates.first()?)?.get(&method)?;
    let id = operation["operationId"].as_str()?.to_owned();
    Some((id, operation))
}

fn matches_template(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) => {
                let is_parameter = wanted.starts_with('{') && !given.is_empty();
                if !is_parameter && wanted != given {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn validator(key: String, schema: &Value) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    let validator = validators.entry(key).or_insert_with(|| {
        let mut schema = schema.clone();
        resolve(&DOCUMENT, &mut schema);
        let options = jsonschema::options().should_validate_formats(true);
        Arc::new(
            options
                .build(&schema)
                .expect("the document's schemas are schemas"),
        )
    });
    Arc::clone(validator)
}

/// Replaces references with what they refer to. No schema contains itself.
fn resolve(document: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get("$ref") {
                let pointer = reference.trim_start_matches('#');
                let referred = document.pointer(pointer);
                *value = referred.expect("a reference leads somewhere").clone();
                return resolve(document, value);
            }
            for field in fields.values_mut() {
                resolve(document, field);
            }
            if let Some(Value::Array(parts)) = fields.remove("allOf") {
                extend(fields, parts);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| resolve(document, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// OpenAPI 3.0 uses `nullable`, where JSON Schema lists the type null, and says of `minimum`
/// whether it is exclusive, where JSON Schema has a number.
fn translate(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.remove("exclusiveMinimum") == Some(Value::Bool(true))
                && let Some(minimum) = fields.remove("minimum")
            {
                fields.insert("exclusiveMinimum".to_owned(), minimum);
            }
            if fields.remove("nullable") == Some(Value::Bool(true)) {
                let own = std::mem::take(fields);
                fields.insert("anyOf".to_owned(), json!([{ "type": "null" }, own]));
            }
            if is_plain_object(fields) {
                // A field that the schema does not list must be absent.
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            fields.values_mut().for_each(translate);
        }
        Value::Array(items) => items.iter_mut().for_each(translate),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_plain_object(fields: &Map<String, Value>) -> bool {
    fields.get("type").is_some_and(|kind| kind == "object")
        && fields.get("properties").is_some_and(Value::is_object)
        && !fields.contains_key("additionalProperties")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every example below a part of the document against its own schema.
    fn check_examples(place: &str, part: &Value, wrong: &mut Vec<String>) {
        match part {
            Value::Array(items) => {
                for (nth, item) in items.iter().enumerate() {
                    check_examples(&format!("{place}/{nth}"), item, wrong);
                }
            }
            Value::Object(fields) => {
                // The null alternative of a nullable type (`translate`).
                let example = fields.get("example").filter(|example| !example.is_null());
                if let Some(example) = example
                    && !validator(place.to_owned(), part).is_valid(example)
                {
                    wrong.push(format!("{place}: {example}"));
                }
                for (name, field) in fields {
                    check_examples(&format!("{place}/{name}"), field, wrong);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    #[tokio::test]
    async fn every_example_of_a_webhook_is_of_exactly_one_type() {
        let event = &DOCUMENT["components"]["schemas"]["WebhookEvent"];
        let types = event["discriminator"]["mapping"].as_object().unwrap();
        let validator = validator("webhook".to_owned(), event);
        for kind in types.keys() {
            let mut body = webhook_example(kind);
            assert!(validator.is_valid(&body), "{body}");
            body["event"] = json!("NONE");
            assert!(!validator.is_valid(&body), "{body}");
        }
    }

    #[tokio::test]
    async fn every_example_is_one_of_its_schema() {
        let mut wrong = Vec::new();
        check_examples("", &DOCUMENT["components"]["schemas"], &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
