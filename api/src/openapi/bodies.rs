//! Request bodies in the document: an example of each, which can be sent as it is except
//! for its ids, and `additionalProperties: false` on each object with listed fields.
//! `middleware::unknown_fields` reads from here which fields to reject.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{id, operations};

/// A complete body for each operation that takes one.
const EXAMPLES: &str = include_str!("examples.json");

/// Removes `nullable` from what only requests that create something have: null means the
/// same as an absent field there. In a change, null clears the field.
pub(super) fn remove_idle_nulls(document: &mut Value) {
    let (mut created, mut others) = (BTreeSet::new(), BTreeSet::new());
    for operation in operations(document) {
        let is_change = id(operation).starts_with("update_");
        for (part, value) in operation.iter_mut() {
            if part == "requestBody" && !is_change {
                strip_nulls(value);
                super::simplify(value);
                collect_names(value, &mut created);
            } else {
                collect_names(value, &mut others);
            }
        }
    }
    let schemas = &mut document["components"]["schemas"];
    for names in [&mut created, &mut others] {
        add_inner_names(schemas, names);
    }
    for name in created.difference(&others) {
        strip_nulls(&mut schemas[name]);
    }
}

/// Adds the names of the schemas that named schemas refer to.
pub(super) fn add_inner_names(schemas: &Value, names: &mut BTreeSet<String>) {
    let mut open: Vec<String> = names.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let mut inner = BTreeSet::new();
        collect_names(&schemas[&name], &mut inner);
        open.extend(
            inner
                .iter()
                .filter(|name| names.insert((*name).clone()))
                .cloned(),
        );
    }
}

/// Collects the names of the schemas that a value refers to.
pub(super) fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                names.extend(reference.rsplit('/').next().map(str::to_owned));
            }
            members.values().for_each(|part| collect_names(part, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if members.remove("nullable").is_some()
                && let Some(Value::Array(words)) = members.get_mut("enum")
            {
                words.retain(|word| !word.is_null());
            }
            if members.get("example") == Some(&Value::Null) {
                members.remove("example");
            }
            let parts = members.iter_mut().filter(|(name, _)| *name != "example");
            parts.for_each(|(_, part)| strip_nulls(part));
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

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
            close(body);
            collect_names(body, &mut names);
            let content = body.pointer_mut("/content/application~1json");
            if let (Some(content), Some(example)) = (content, example) {
                content["example"] = example.clone();
            }
        }
    }
    let schemas = &mut document["components"]["schemas"];
    add_inner_names(schemas, &mut names);
    for name in names {
        if let Some(schema) = schemas.get_mut(&name) {
            close(schema);
        }
    }
}

/// Closes the objects in `value`.
fn close(value: &mut Value) {
    match value {
        Value::Object(members) => {
            // A free-form object has its own `additionalProperties`.
            if members.get("properties").is_some_and(Value::is_object) {
                let rest = members.entry("additionalProperties");
                rest.or_insert(json!(false));
            }
            let parts = members.iter_mut();
            parts
                .filter(|(name, _)| *name != "example")
                .for_each(|(_, part)| close(part));
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
