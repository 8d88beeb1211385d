//! Rejects unknown fields and query parameters: those that the document does not list for
//! the operation. To ignore them would mean to do something else than the client asked
//! for.
//!
//! The names come from the document, so no name is listed twice. [`wrap`] finds the
//! operation of a request and checks its query. The mistakes wait in [`QueryIssues`]
//! until `JsonBody` takes them or, without a body, `Requires::authorize` does: a caller
//! without the permission gets 403 first.

use std::sync::{Arc, Mutex, PoisonError};

use poem::{Endpoint, Request};
use serde_json::{Map, Value};
use waypost_core::issue::Issue;

use crate::middleware::methods::find_by_path;

/// The known names of all operations but those of links.
pub(crate) struct KnownFields(Vec<KnownOperation>);

struct KnownOperation {
    method: String,
    path: String,
    names: Arc<KnownNames>,
}

/// The known names of one operation.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    parameters: Vec<String>,
    takes_body: bool,
    body: KnownShape,
}

/// The fields that a value may have.
#[derive(Debug, Default, PartialEq)]
enum KnownShape {
    /// Any fields.
    #[default]
    Free,
    /// Only these fields.
    Object(Vec<(String, Self)>),
    /// A list whose items have this shape.
    List(Box<Self>),
}

/// Mistakes in a request's query that are not reported yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryIssues(Arc<Mutex<Vec<Issue>>>);

impl KnownFields {
    /// Reads the names from the document.
    pub(crate) fn of(document: &Value) -> Self {
        let paths = document["paths"].as_object().into_iter().flatten();
        let operations = paths.flat_map(|(path, operations)| {
            let operations = operations.as_object().into_iter().flatten();
            // Operations of links are not checked: mail clients append parameters of their
            // own to links.
            let own = operations.filter(|(_, operation)| operation["x-internal"] != true);
            own.map(|(method, operation)| KnownOperation {
                method: method.to_uppercase(),
                path: path.clone(),
                names: Arc::new(KnownNames::of(document, operation)),
            })
        });
        Self(operations.collect())
    }

    fn at(&self, method: &str, path: &str) -> Option<&Arc<KnownNames>> {
        let operations = self.0.iter().filter(|one| one.method == method);
        Some(&find_by_path(operations, path, |one| &one.path)?.names)
    }
}

/// What a reference leads to, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().unwrap_or_default();
    let referred = reference
        .strip_prefix('#')
        .and_then(|pointer| document.pointer(pointer));
    referred.unwrap_or(value)
}

impl KnownNames {
    fn of(document: &Value, operation: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters = parameters.map(|parameter| resolved(document, parameter));
        let parameters = parameters.filter(|parameter| parameter["in"] == "query");
        let parameters = parameters.filter_map(|parameter| parameter["name"].as_str());
        let body = operation.pointer("/requestBody/content/application~1json/schema");
        Self {
            parameters: parameters.map(str::to_owned).collect(),
            takes_body: operation.get("requestBody").is_some(),
            body: body.map_or(KnownShape::Free, |schema| KnownShape::of(document, schema)),
        }
    }

    /// The unknown fields of a body.
    pub(crate) fn body_issues(&self, body: &Value) -> Vec<Issue> {
        let mut issues = Vec::new();
        self.body.check("", body, &mut issues);
        issues
    }

    /// The unknown and repeated parameters of a query.
    fn query_issues(&self, query: &str) -> Vec<Issue> {
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
                issues.push(Issue::new(name, "must not be given more than once"));
            } else {
                seen.push(name.into_owned());
            }
        }
        issues
    }
}

impl KnownShape {
    fn of(document: &Value, schema: &Value) -> Self {
        let schema = resolved(document, schema);
        let variants = ["oneOf", "anyOf", "allOf"].map(|word| schema[word].as_array());
        if let Some(variants) = variants.into_iter().flatten().next() {
            let shapes = variants.iter().map(|one| Self::of(document, one));
            return shapes.fold(Self::Free, Self::or);
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

    /// The shape of a value that has one shape or the other: of two objects, the fields of both.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Object(mut fields), Self::Object(others)) => {
                let known: Vec<String> = fields.iter().map(|(name, _)| name.clone()).collect();
                fields.extend(others.into_iter().filter(|(name, _)| !known.contains(name)));
                Self::Object(fields)
            }
            (Self::Free, shape) | (shape, _) => shape,
        }
    }

    fn check(&self, path: &str, value: &Value, issues: &mut Vec<Issue>) {
        match (self, value) {
            (Self::Object(known), Value::Object(given)) => {
                check_fields(known, path, given, issues);
            }
            (Self::List(items), Value::Array(given)) => {
                for (index, item) in given.iter().enumerate().take(ITEMS_MAX) {
                    items.check(&below(path, &index.to_string()), item, issues);
                }
            }
            // A value of the wrong type; the field itself reports that.
            _ => {}
        }
    }
}

fn check_fields(
    known: &[(String, KnownShape)],
    path: &str,
    given: &Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    let mut found = 0;
    for (name, value) in given {
        match known.iter().find(|(known, _)| known == name) {
            Some((_, KnownShape::Free)) => {}
            Some((_, shape)) => shape.check(&below(path, name), value, issues),
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

/// The most bytes read of a body that the operation does not take.
const UNWANTED_BYTES_MAX: usize = 64 << 10;

/// Items of a list that are checked. No list of objects may be longer.
const ITEMS_MAX: usize = 10_000;

/// Characters of an unknown name that an error message repeats.
const NAME_CHARS_MAX: usize = 100;

/// A name as an error message repeats it.
pub(crate) fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// That a name is unknown, and which known one was probably meant.
pub(crate) fn unknown<'a>(
    problem: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> String {
    match nearest(name, known) {
        Some(near) => format!("{problem}; did you mean `{near}`?"),
        None => problem.to_owned(),
    }
}

/// The largest edit distance between an unknown name and a suggestion.
const EDITS_MAX: usize = 2;

/// The known name that the client probably meant: equal except for case, hyphens and
/// underscores, or within a few edits. Short names must be nearer; otherwise every name
/// would be near them.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() > NAME_CHARS_MAX {
        return None;
    }
    let plain = |name: &str| name.replace(['_', '-', ' '], "").to_lowercase();
    let given = plain(name);
    let distances = known.filter_map(|known| {
        let candidate = plain(known);
        let length = candidate.chars().count().min(given.chars().count());
        let distance = strsim::osa_distance(&given, &candidate);
        (distance <= EDITS_MAX.min(length / 2)).then_some((distance, known))
    });
    let (_, name) = distances.min_by_key(|(distance, _)| *distance)?;
    Some(name)
}

impl QueryIssues {
    /// Adds more mistakes.
    pub(crate) fn add(&self, issues: Vec<Issue>) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(issues);
    }

    /// Takes the mistakes found so far; a second call returns none.
    pub(crate) fn take(&self) -> Vec<Issue> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes the mistakes in a request's query.
pub(crate) fn take_query_issues(request: &Request) -> Vec<Issue> {
    let issues = request.data::<QueryIssues>();
    issues.map(QueryIssues::take).unwrap_or_default()
}

/// The mistakes in a body that the operation does not take. An empty object counts as no
/// body.
async fn unwanted_body_issues(request: &mut Request) -> Vec<Issue> {
    let unwanted = || {
        vec![Issue::new(
            "",
            "must have no body: this operation takes none",
        )]
    };
    let is_present = |name| request.header(name).is_some_and(|value| value != "0");
    if !is_present("content-length") && !is_present("transfer-encoding") {
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
            check_fields(&[], "", &given, &mut issues);
            issues
        }
        Ok(_) | Err(_) => unwanted(),
    }
}

/// Serves a request through `next`, with the known names of its operation and the
/// mistakes in its query as request data.
pub(crate) async fn wrap<E: Endpoint>(
    next: Arc<E>,
    mut request: Request,
    known: Arc<KnownFields>,
) -> poem::Result<E::Output> {
    if let Some(names) = known.at(request.method().as_str(), request.uri().path()) {
        let query = request.uri().query();
        let mut issues = query.map_or_else(Vec::new, |query| names.query_issues(query));
        if !names.takes_body {
            issues.extend(unwanted_body_issues(&mut request).await);
        }
        if !issues.is_empty() {
            request.set_data(QueryIssues(Arc::new(Mutex::new(issues))));
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
        let issues = names.body_issues(body).into_iter();
        issues.map(|issue| (issue.path, issue.message)).collect()
    }

    #[test]
    fn unknown_fields_are_found_at_any_depth() {
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
    fn unknown_and_repeated_query_parameters_are_reported() {
        let known = KnownFields::of(&document());
        let names = known.at("POST", "/v1/things/7").unwrap();
        let issues = names.query_issues("limit=1&Limit=2&id=3&limit=4&%6cimit=5");
        let paths: Vec<&str> = issues.iter().map(|issue| issue.path.as_str()).collect();
        assert_eq!(paths, ["Limit", "id", "limit", "limit"]);
        assert!(names.query_issues("").is_empty());
    }

    #[test]
    fn a_similar_name_is_suggested() {
        let known = [
            "to",
            "from",
            "replyTo",
            "templateId",
            "text",
            "html",
            "tags",
        ];
        for (given, suggested) in [
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
            assert_eq!(nearest(given, known.into_iter()), suggested, "{given}");
        }
        assert_eq!(nearest(&"t".repeat(5_000), known.into_iter()), None);
    }
}
