//! What an operation knows: the fields of its body and its query parameters, as the
//! document lists them. Whatever else a request says is refused, since it would be done
//! without what its sender asked for.
//!
//! The names are read from the document, so none is listed twice. [`wrap`] finds the
//! operation of a request. What its query says too much waits in [`Surplus`] for the body
//! (`body`) or, where there is none, for the caller's permission (`auth`): whoever may
//! not do a thing is told that first.

use std::sync::{Arc, Mutex, PoisonError};

use poem::{Endpoint, Request};
use serde_json::{Map, Value};
use waypost_core::issue::Issue;

use crate::openapi::methods::at_path;

/// All operations that take a key.
pub(crate) struct KnownFields(Vec<KnownOperation>);

struct KnownOperation {
    method: String,
    path: String,
    names: Arc<Names>,
}

/// What one operation knows.
#[derive(Debug, Default)]
pub(crate) struct Names {
    parameters: Vec<String>,
    takes_body: bool,
    body: KnownShape,
}

/// Which fields a value may have.
#[derive(Debug, Default, PartialEq)]
enum KnownShape {
    /// Whatever it likes, or none.
    #[default]
    Free,
    /// These and no others.
    Object(Vec<(String, Self)>),
    /// Each item of a list the same.
    List(Box<Self>),
}

/// What is wrong with a request's query, before anybody has taken it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surplus(Arc<Mutex<Vec<Issue>>>);

impl KnownFields {
    /// Reads them from the document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            // Links and providers' posts take no key; clients of mail add parameters of
            // their own to links.
            let keyed = operations.filter(|(_, operation)| operation.get("security").is_some());
            keyed.map(|(method, operation)| KnownOperation {
                method: method.to_uppercase(),
                path: path.clone(),
                names: Arc::new(Names::of(document, operation)),
            })
        });
        Self(operations.collect())
    }

    fn at(&self, method: &str, path: &str) -> Option<&Arc<Names>> {
        let operations = self.0.iter().filter(|one| one.method == method);
        Some(&at_path(operations, path, |one| &one.path)?.names)
    }
}

impl Names {
    fn of(document: &Value, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.filter(|parameter| parameter["in"] == "query");
        let parameters = parameters.filter_map(|parameter| parameter["name"].as_str());
        let body = operation.pointer("/requestBody/content/application~1json/schema");
        Self {
            parameters: parameters.map(str::to_owned).collect(),
            takes_body: operation.get("requestBody").is_some(),
            body: body.map_or(KnownShape::Free, |schema| KnownShape::of(document, schema)),
        }
    }

    /// What a body says too much.
    pub(crate) fn surplus_of(&self, body: &Value) -> Vec<Issue> {
        let mut issues = Vec::new();
        self.body.look("", body, &mut issues);
        issues
    }

    /// What a query says too much, or twice.
    fn surplus_of_query(&self, query: &str) -> Vec<Issue> {
        let mut issues = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            if issues.len() > Issue::SHOWN_MAX {
                break;
            }
            let known = self.parameters.iter().map(String::as_str);
            if !self.parameters.iter().any(|known| *known == name) {
                let message = unknown("is not a parameter of this operation", &name, known);
                issues.push(Issue::new(shortened(&name), message));
            } else if seen.iter().any(|seen| *seen == name) {
                issues.push(Issue::new(name, "must not be there more than once"));
            } else {
                seen.push(name.into_owned());
            }
        }
        issues
    }
}

impl KnownShape {
    fn of(document: &Value, schema: &Value) -> Self {
        if let Some(reference) = schema["$ref"].as_str() {
            let referred = document.pointer(reference.trim_start_matches('#'));
            return referred.map_or(Self::Free, |schema| Self::of(document, schema));
        }
        let variants = ["oneOf", "allOf"].map(|word| schema[word].as_array());
        if let Some(variants) = variants.into_iter().flatten().next() {
            let mut shapes = variants.iter().map(|one| Self::of(document, one));
            return shapes.find(|one| *one != Self::Free).unwrap_or_default();
        }
        if let Some(items) = schema.get("items") {
            return match Self::of(document, items) {
                Self::Free => Self::Free,
                items @ (Self::Object(_) | Self::List(_)) => Self::List(Box::new(items)),
            };
        }
        match schema["properties"].as_object() {
            Some(fields) if schema["additionalProperties"] == false => {
                let fields = fields.iter();
                let fields = fields.map(|(name, field)| (name.clone(), Self::of(document, field)));
                Self::Object(fields.collect())
            }
            _ => Self::Free,
        }
    }

    fn look(&self, path: &str, value: &Value, issues: &mut Vec<Issue>) {
        match (self, value) {
            (Self::Object(known), Value::Object(given)) => {
                look_at_fields(known, path, given, issues);
            }
            (Self::List(items), Value::Array(given)) => {
                for (place, item) in given.iter().enumerate().take(ITEMS_MAX) {
                    items.look(&below(path, &place.to_string()), item, issues);
                }
            }
            // Of another type than it should be, which is told elsewhere.
            _ => {}
        }
    }
}

fn look_at_fields(
    known: &[(String, KnownShape)],
    path: &str,
    given: &Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    let mut found = 0;
    for (name, value) in given {
        match known.iter().find(|(known, _)| known == name) {
            Some((_, KnownShape::Free)) => {}
            Some((_, shape)) => shape.look(&below(path, name), value, issues),
            None if found > Issue::SHOWN_MAX => {}
            None => {
                found += 1;
                let known = known.iter().map(|(known, _)| known.as_str());
                let message = unknown("is not a known field", name, known);
                issues.push(Issue::new(below(path, &shortened(name)), message));
            }
        }
    }
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Bytes that are read of a body that its operation does not take.
const UNWANTED_BYTES_MAX: usize = 64 << 10;

/// Items of one list that are looked at. No list of objects may be longer.
const ITEMS_MAX: usize = 10_000;

/// Characters of a name that are repeated to its sender.
const NAME_CHARS_MAX: usize = 100;

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn unknown<'a>(problem: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("{problem}; did you mean `{near}`?"),
        None => problem.to_owned(),
    }
}

/// How many letters a name may be away from the one that is meant.
const EDITS_MAX: usize = 2;

/// The known name that was meant: the same but for its case, hyphens and underscores, or
/// a few letters away. A short name must be nearer, or everything would be near it.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let plain = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
    let given = plain(name);
    let distances = known.filter_map(|known| {
        let wanted = plain(known);
        let length = wanted.chars().count().min(given.chars().count());
        let distance = strsim::osa_distance(&given, &wanted);
        (distance <= EDITS_MAX.min(length / 2)).then_some((distance, known))
    });
    let (_, name) = distances.min_by_key(|(distance, _)| *distance)?;
    Some(name)
}

impl Surplus {
    /// Adds what else is wrong with the query.
    pub(crate) fn add(&self, issues: Vec<Issue>) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(issues);
    }

    /// What was found so far, which nobody takes again.
    pub(crate) fn take(&self) -> Vec<Issue> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes what is wrong with a request's query.
pub(crate) fn take_surplus(request: &Request) -> Vec<Issue> {
    let surplus = request.data::<Surplus>();
    surplus.map(Surplus::take).unwrap_or_default()
}

/// What the body of a request says whose operation takes none: it would be done without
/// that. An empty object is as good as nothing.
async fn surplus_of_no_body(request: &mut Request) -> Vec<Issue> {
    let unwanted = || vec![Issue::new("", "this operation takes no body")];
    let is_announced = |name| request.header(name).is_some_and(|value| value != "0");
    if !is_announced("content-length") && !is_announced("transfer-encoding") {
        return Vec::new();
    }
    let body = request.take_body().into_bytes_limit(UNWANTED_BYTES_MAX);
    let Ok(bytes) = body.await else {
        return unwanted();
    };
    if bytes.trim_ascii().is_empty() {
        return Vec::new();
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Null) => Vec::new(),
        Ok(Value::Object(given)) => {
            let mut issues = Vec::new();
            look_at_fields(&[], "", &given, &mut issues);
            issues
        }
        Ok(_) | Err(_) => unwanted(),
    }
}

/// Serves a request through `next`, with what its operation knows.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
    known: Arc<KnownFields>,
) -> poem::Result<E::Output> {
    if let Some(names) = known.at(request.method().as_str(), request.uri().path()) {
        let query = request.uri().query();
        let mut issues = query.map_or_else(Vec::new, |query| names.surplus_of_query(query));
        if !names.takes_body {
            issues.extend(surplus_of_no_body(&mut request).await);
        }
        if !issues.is_empty() {
            request.set_data(Surplus(Arc::new(Mutex::new(issues))));
        }
        request.set_data(Arc::clone(names));
    }
    next.call(request).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "components": { "schemas": { "Item": {
                "properties": { "replyTo": {}, "metadata": { "type": "object", "additionalProperties": {} } },
                "additionalProperties": false,
            } } },
            "paths": { "/v1/things/{id}": { "post": {
                "security": [{ "ApiKey": [] }],
                "parameters": [{ "name": "limit", "in": "query" }, { "name": "id", "in": "path" }],
                "requestBody": { "content": { "application/json": { "schema": {
                    "properties": {
                        "name": {},
                        "items": { "items": { "$ref": "#/components/schemas/Item" } },
                        "one": { "$ref": "#/components/schemas/Item" },
                    },
                    "additionalProperties": false,
                } } } },
            } } },
        })
    }

    fn found(body: &Value) -> Vec<(String, String)> {
        let known = KnownFields::of(&document());
        let names = known.at("POST", "/v1/things/7").unwrap();
        let issues = names.surplus_of(body).into_iter();
        issues.map(|issue| (issue.path, issue.message)).collect()
    }

    #[test]
    fn what_the_document_does_not_list_is_found_at_any_depth() {
        let body = json!({
            "name": { "any": 1 },
            "nam": 1,
            "items": [{ "replyTo": 1, "metadata": { "any": 1 } }, { "reply_to": 1 }, 3],
            "one": { "what": 1 },
        });
        let near = |name| format!("is not a known field; did you mean `{name}`?");
        assert_eq!(
            found(&body),
            [
                ("nam".to_owned(), near("name")),
                ("items.1.reply_to".to_owned(), near("replyTo")),
                ("one.what".to_owned(), "is not a known field".to_owned()),
            ]
        );
        assert!(found(&json!([1])).is_empty());
    }

    #[test]
    fn of_a_query_names_are_told_that_are_unknown_or_there_twice() {
        let known = KnownFields::of(&document());
        let names = known.at("POST", "/v1/things/7").unwrap();
        let issues = names.surplus_of_query("limit=1&Limit=2&id=3&limit=4&%6cimit=5");
        let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
        assert_eq!(paths, ["Limit", "id", "limit", "limit"]);
        assert!(names.surplus_of_query("").is_empty());
    }

    #[test]
    fn a_near_name_is_the_one_that_was_meant() {
        let known = [
            "to",
            "from",
            "replyTo",
            "templateId",
            "text",
            "html",
            "tags",
        ];
        for (given, meant) in [
            ("reply_to", Some("replyTo")),
            ("reply-to", Some("replyTo")),
            ("ReplyTo", Some("replyTo")),
            ("REPLY_TO", Some("replyTo")),
            ("repyTo", Some("replyTo")),
            ("template_id", Some("templateId")),
            ("templateld", Some("templateId")),
            ("tag", Some("tags")),
            ("form", Some("from")),
            ("TO", Some("to")),
            ("cc", None),
            ("bcc", None),
            ("id", None),
            ("attachments", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, known.into_iter()), meant, "{given}");
        }
        assert_eq!(nearest(&"t".repeat(5_000), known.into_iter()), None);
    }
}
