//! Parts of the document that have a name of their own: what is said in several places
//! stands once in `components`, and the places refer to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::bodies::{add_inner_names, collect_names};
use super::operations;

/// What belongs to the place where a schema is used, and not to the schema.
const OF_THE_PLACE: [&str; 3] = ["description", "nullable", "default"];

/// Gives every reference that may be null the type that OpenAPI asks for beside `nullable`.
pub(super) fn type_nullable(document: &mut Value) {
    let components = document["components"]["schemas"].clone();
    visit(document, &mut |schema| {
        if schema.get("nullable").is_none() || schema.get("type").is_some() {
            return;
        }
        let reference = schema["allOf"][0]["$ref"].as_str().unwrap_or_default();
        let name = reference.rsplit('/').next().unwrap_or_default();
        let kind = components[name].get("type");
        schema["type"] = kind.cloned().unwrap_or(json!("object"));
    });
}

/// Calls `change` for each object.
fn visit(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| visit(field, change));
            change(value);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| visit(item, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Makes a schema a reference to the named one. Its description and whether it may be null
/// stay with it.
pub(super) fn refer(schema: &mut Value, name: &str) {
    let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
    let kept: Map<String, Value> = OF_THE_PLACE
        .iter()
        .filter_map(|word| Some(((*word).to_owned(), schema.get(*word)?.clone())))
        .collect();
    *schema = if kept.is_empty() {
        reference
    } else {
        let mut place = Value::Object(kept);
        place["allOf"] = json!([reference]);
        place
    };
}

/// Gives each inline object and alternative with a `title` a place in `components`.
pub(super) fn name_schemas(document: &mut Value) {
    let mut named = BTreeMap::new();
    let schemas = document["components"]["schemas"].as_object_mut();
    for (_, schema) in schemas.into_iter().flatten() {
        // The schema's own title is its name.
        let parts = schema.as_object_mut().into_iter().flatten();
        parts.for_each(|(_, part)| collect_named(part, &mut named));
    }
    collect_named(&mut document["paths"], &mut named);
    for (name, schema) in named {
        document["components"]["schemas"][name] = schema;
    }
}

fn collect_named(value: &mut Value, named: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(fields) => {
            let children = fields.iter_mut().filter(|(name, _)| *name != "example");
            children.for_each(|(_, field)| collect_named(field, named));
            let is_compound = ["properties", "oneOf", "anyOf"]
                .iter()
                .any(|word| fields.contains_key(*word));
            if is_compound && let Some(Value::String(title)) = fields.remove("title") {
                let mut schema = value.clone();
                for word in OF_THE_PLACE {
                    schema
                        .as_object_mut()
                        .and_then(|schema| schema.remove(word));
                }
                named.entry(title.clone()).or_insert(schema);
                refer(value, &title);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| collect_named(item, named)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives generic schemas a plain name: `Data_list_ApiKey` becomes `ApiKeyList`,
/// `Paged_ApiKey` becomes `ApiKeyPage`, `Data_ApiKey` becomes `ApiKeyResponse`. Removes the
/// titles, which repeat the names.
pub(super) fn rename_schemas(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut();
    let schemas = schemas.expect("there are schemas");
    let mut renamed = Map::new();
    for (name, mut schema) in std::mem::take(schemas) {
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("title");
        }
        renamed.insert(plain_name(&name), schema);
    }
    *schemas = renamed;
    rename_references(document);
}

fn plain_name(name: &str) -> String {
    let suffixes = [
        ("Data_list_", "List"),
        ("Paged_", "Page"),
        ("Data_", "Response"),
    ];
    let found = suffixes.iter().find_map(|(prefix, suffix)| {
        let inner = name.strip_prefix(prefix)?;
        Some(format!("{inner}{suffix}"))
    });
    found.unwrap_or_else(|| name.to_owned())
}

fn rename_references(document: &mut Value) {
    visit(document, &mut |value| {
        if let Some(Value::String(reference)) = value.get_mut("$ref")
            && let Some(name) = reference.strip_prefix("#/components/schemas/")
        {
            *reference = format!("#/components/schemas/{}", plain_name(name));
        }
    });
}

/// Schemas that have the fields of another one and more.
const EXTENSIONS: [(&str, &str); 5] = [
    ("ApiKeyWithSecret", "ApiKey"),
    ("ConnectedProvider", "ProviderAccount"),
    ("InvitationWithUrl", "Invitation"),
    ("TemplateDetail", "Template"),
    ("WebhookEndpointWithSecret", "WebhookEndpoint"),
];

/// Lets schemas refer to those that they extend.
pub(super) fn extend_schemas(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    for (name, base_name) in EXTENSIONS {
        let base = schemas[base_name].clone();
        let mut own = schemas[name].take();
        let fields = own["properties"].as_object_mut().expect("it is an object");
        fields.retain(|field, schema| base["properties"][field] != *schema);
        let kept: Vec<String> = fields.keys().cloned().collect();
        let required = own["required"]
            .as_array_mut()
            .expect("it has required fields");
        required.retain(|field| kept.iter().any(|kept| field == kept));
        let description = own
            .as_object_mut()
            .and_then(|own| own.remove("description"));
        schemas[name] = json!({
            "description": description,
            "allOf": [{ "$ref": format!("#/components/schemas/{base_name}") }, own],
        });
    }
}

/// The name of an error response in `components`.
fn response_name(status: &str, response: &Value) -> Option<String> {
    let name = match status {
        "400" => "BadRequest",
        "401" => "Unauthorized",
        "403" => "Forbidden",
        "404" => "NotFound",
        "409" => "Conflict",
        "410" => "Gone",
        "413" => "PayloadTooLarge",
        "415" => "UnsupportedMediaType",
        "422" => "Unprocessable",
        "429" => "TooManyRequests",
        "500" => "InternalError",
        "503" => "ServiceUnavailable",
        _ => return None,
    };
    let is_page = response.pointer("/content/text~1html").is_some();
    Some(format!("{name}{}", if is_page { "Page" } else { "" }))
}

/// Moves the error responses that operations share to `components`.
pub(super) fn share_responses(document: &mut Value) {
    let mut shared = BTreeMap::new();
    for operation in operations(document) {
        let responses = operation["responses"].as_object_mut();
        for (status, response) in responses.into_iter().flatten() {
            if response["description"] == "" {
                response["description"] = json!("The request is done.");
            }
            let Some(name) = response_name(status, response) else {
                continue;
            };
            if shared
                .entry(name.clone())
                .or_insert_with(|| response.clone())
                == response
            {
                *response = json!({ "$ref": format!("#/components/responses/{name}") });
            }
        }
    }
    document["components"]["responses"] = json!(shared);
}

/// The fewest operations whose parameter is moved to `components`.
const SHARING_OPERATIONS_MIN: usize = 2;

/// Moves the parameters that operations share to `components`, and removes what only repeats
/// a default.
pub(super) fn share_parameters(document: &mut Value) {
    let mut uses: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for operation in operations(document) {
        let tag = operation["tags"][0].as_str().unwrap_or_default().to_owned();
        for parameter in parameters_mut(operation) {
            tidy(parameter);
            let name = in_capitals(parameter["name"].as_str().unwrap_or_default());
            uses.entry(name)
                .or_default()
                .push((tag.clone(), parameter.clone()));
        }
    }
    let mut shared: BTreeMap<String, Value> = BTreeMap::new();
    for (name, uses) in uses {
        for (tag, parameter) in &uses {
            let same = uses.iter().filter(|(_, other)| other == parameter);
            if same.clone().count() < SHARING_OPERATIONS_MIN
                || shared.values().any(|shared| shared == parameter)
            {
                continue;
            }
            // Of several parameters of one name, those of one tag are called after it.
            let is_of_tag = same.clone().all(|(other, _)| other == tag);
            let is_only_one = same.count() == uses.len();
            let prefix = if is_of_tag && !is_only_one {
                in_capitals(tag)
            } else {
                String::new()
            };
            shared
                .entry(format!("{prefix}{name}"))
                .or_insert_with(|| parameter.clone());
        }
    }
    for operation in operations(document) {
        for parameter in parameters_mut(operation) {
            let found = shared.iter().find(|(_, shared)| *shared == parameter);
            if let Some((name, _)) = found {
                *parameter = json!({ "$ref": format!("#/components/parameters/{name}") });
            }
        }
    }
    document["components"]["parameters"] = json!(shared);
}

fn parameters_mut(operation: &mut Map<String, Value>) -> impl Iterator<Item = &mut Value> {
    let parameters = operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut);
    parameters.into_iter().flatten()
}

/// Removes what OpenAPI assumes anyway.
fn tidy(parameter: &mut Value) {
    let is_list = parameter["schema"]["type"] == "array";
    let Some(parameter) = parameter.as_object_mut() else {
        return;
    };
    for word in ["required", "deprecated"] {
        if parameter.get(word) == Some(&Value::Bool(false)) {
            parameter.remove(word);
        }
    }
    if !is_list {
        parameter.remove("explode");
    }
}

/// `Idempotency-Key` becomes `IdempotencyKey`, `templateId` `TemplateId`, `API keys` `ApiKeys`.
fn in_capitals(words: &str) -> String {
    let words = words.split(['-', ' ', '_']);
    let words = words.map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        let is_initials = word.len() > 1 && word.chars().all(char::is_uppercase);
        let rest = if is_initials {
            rest.to_lowercase()
        } else {
            rest.to_owned()
        };
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect()
}

/// Removes the schemas that no operation and no webhook needs.
pub(super) fn remove_unused(document: &mut Value) {
    let mut used = BTreeSet::new();
    for part in ["paths", "x-webhooks"] {
        collect_names(&document[part], &mut used);
    }
    for kind in ["responses", "parameters"] {
        collect_names(&document["components"][kind], &mut used);
    }
    let schemas = &mut document["components"]["schemas"];
    add_inner_names(schemas, &mut used);
    let schemas = schemas.as_object_mut().expect("there are schemas");
    schemas.retain(|name, _| used.contains(name));
}

/// The POSTs that take no idempotency key, and whose repetition changes nothing more: a client
/// may repeat them when the answer was lost.
const REPEATABLE: [&str; 14] = [
    "cancel_message",
    "check_sender_domain",
    "erase_person",
    "import_provider_suppressions",
    "look_up_invitation",
    "look_up_password_reset",
    "preview_template",
    "preview_template_draft",
    "register_event_webhook",
    "resolve_route",
    "rollback_template",
    "simulate_routing_rules",
    "validate_provider",
    "verify_provider_domain",
];

/// Says what a client generator has to know of each operation: `x-pagination` for a list
/// with a cursor, `x-idempotent` for an operation that takes an idempotency key, `x-repeatable`
/// for a POST without a key that may be repeated all the same, and `x-internal` for what only
/// links, pixels and providers call.
pub(super) fn mark_operations(document: &mut Value) {
    for operation in operations(document) {
        let takes =
            |name: &str| super::parameters(operation).any(|parameter| parameter["name"] == name);
        let (is_paged, is_idempotent) =
            (takes("cursor"), takes(crate::request::idempotency_key::KEY));
        let is_public = !operation.contains_key("security");
        if is_paged {
            let pagination = json!({ "cursor": "cursor", "nextCursor": "pagination.nextCursor", "items": "data" });
            operation.insert("x-pagination".to_owned(), pagination);
        }
        if is_idempotent {
            operation.insert("x-idempotent".to_owned(), json!(true));
        }
        if REPEATABLE.iter().any(|id| operation["operationId"] == *id) {
            operation.insert("x-repeatable".to_owned(), json!(true));
        }
        if is_public {
            operation.insert("security".to_owned(), json!([]));
            operation.insert("x-internal".to_owned(), json!(true));
        }
    }
}
