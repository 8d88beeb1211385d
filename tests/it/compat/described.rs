//! What tests of the tables of fields share: the fields of a description, and those of a table.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use waypost_tests::TestApp;

/// Puts members into an object, in place of those with the same names.
pub(super) fn merge(into: &mut Value, more: &Value) {
    for (name, value) in more.as_object().expect("members") {
        into[name] = value.clone();
    }
}

/// The paths of a schema's fields, with `[]` for the items of lists.
pub(super) fn fields(document: &Value, schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_fields(document, schema, "", &mut found);
    found
}

fn add_fields(document: &Value, schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let referred = document.pointer(reference.trim_start_matches('#'));
        add_fields(document, referred.expect("a definition"), path, found);
    }
    for word in ["allOf", "oneOf"] {
        for variant in schema[word].as_array().into_iter().flatten() {
            add_fields(document, variant, path, found);
        }
    }
    if schema["items"].is_object() {
        let path = format!("{path}[]");
        add_fields(document, &schema["items"], &path, found);
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        found.insert(path.clone());
        add_fields(document, field, &path, found);
    }
}

/// The fields of a vendor's table.
pub(super) fn shown(vendor: &str) -> BTreeSet<String> {
    let tables = waypost_api::compatibility_tables();
    let (_, table) = tables.iter().find(|(name, _)| *name == vendor).unwrap();
    let lines = table.lines().skip(2);
    lines
        .map(|line| line.split('`').nth(1).unwrap().to_owned())
        .collect()
}

/// Adds a template and an unsubscribe group; returns what puts their ids in place of `TEMPLATE`
/// and `GROUP`.
pub(super) async fn with_ids(app: &TestApp) -> impl Fn(&Value) -> Value + use<> {
    let template = template(
        app,
        &json!({ "subject": "Hello {{name}}", "htmlContent": "<p>Hi {{name}}!</p>" }),
    )
    .await;
    let group = app
        .post("/v1/unsubscribe-groups", &json!({ "name": "News" }))
        .await
        .data(201);
    let group = group["id"].as_str().unwrap().to_owned();
    move |members| {
        let text = members.to_string();
        let text = text.replace("TEMPLATE", &template).replace("GROUP", &group);
        serde_json::from_str(&text).unwrap()
    }
}

/// Adds a template with this version; returns its id.
pub(super) async fn template(app: &TestApp, version: &Value) -> String {
    let template = app
        .post("/v1/templates", &json!({ "name": "Welcome" }))
        .await
        .data(201);
    let template = template["id"].as_str().unwrap().to_owned();
    let versions = format!("/v1/templates/{template}/versions");
    app.post(&versions, version).await.expect(201);
    template
}
