//! Request bodies in the document: an example of each, which can be sent as it is except
//! for its ids, and `additionalProperties: false` on each object with listed fields.
//! `middleware::unknown_fields` reads from here which fields to reject.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{id, operations};

/// A complete body for each operation that takes one.
const EXAMPLES: &str = include_str!("examples.json");

/// Adds the examples and closes every object of a request body. Public operations are not
/// changed.
pub(super) fn complete(document: &mut Value) {
    let examples: Map<String, Value> =
        serde_json::from_str(EXAMPLES).expect("examples.json is an object");
    let mut names = BTreeSet::new();
    for operation in operations(document) {
        let example = examples.get(id(operation));
        if operation.contains_key("security")
            && let Some(body) = operation.get_mut("requestBody")
        {
            close(body, &mut names);
            let content = body.pointer_mut("/content/application~1json");
            if let (Some(content), Some(example)) = (content, example) {
                content["example"] = example.clone();
            }
        }
    }
    let schemas = &mut document["components"]["schemas"];
    let mut closed = BTreeSet::new();
    while let Some(name) = names.pop_first() {
        if closed.insert(name.clone())
            && let Some(schema) = schemas.get_mut(&name)
        {
            close(schema, &mut names);
        }
    }
}

/// Closes the objects in `value`. The names of the schemas that it references go to
/// `names`.
fn close(value: &mut Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                let name = reference.rsplit('/').next();
                names.extend(name.map(str::to_owned));
            }
            // A free-form object has its own `additionalProperties`.
            if members.get("properties").is_some_and(Value::is_object) {
                let rest = members.entry("additionalProperties");
                rest.or_insert(json!(false));
            }
            let parts = members.iter_mut();
            parts
                .filter(|(name, _)| *name != "example")
                .for_each(|(_, part)| close(part, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
