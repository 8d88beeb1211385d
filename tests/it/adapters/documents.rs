//! The providers' official descriptions, read from the shared folder.

use std::path::PathBuf;

use jsonschema::Draft;
use serde_json::{Map, Value};

/// A file of the shared folder; `None`, with a printed line, if the folder is missing.
pub(crate) fn shared(path: &str) -> Option<Value> {
    Some(serde_json::from_slice(&shared_bytes(path)?).unwrap())
}

/// The same, as bytes.
pub(super) fn shared_bytes(path: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("WAYPOST_SHARED_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared")),
        PathBuf::from,
    );
    if !folder.is_dir() {
        eprintln!("skipped: {} is not there", folder.display());
        return None;
    }
    Some(std::fs::read(folder.join(path)).unwrap())
}

/// An OpenAPI or Swagger document.
pub(super) struct Document(Value);

impl Document {
    pub(super) fn open(name: &str) -> Option<Self> {
        let mut document = shared(&format!("providers/specs/{name}"))?;
        prepare(&mut document);
        Some(Self(document))
    }

    /// The operation at `template`, which must exist.
    pub(super) fn operation(&self, method: &str, template: &str) -> &Value {
        let operation = &self.0["paths"][template][method];
        assert!(
            operation.is_object(),
            "{method} {template} is not described"
        );
        operation
    }

    /// Checks that the operation documents each of these query parameters.
    pub(super) fn assert_query(&self, method: &str, template: &str, query: &[&str]) {
        let own = self.operation(method, template)["parameters"].as_array();
        let shared = self.0["paths"][template]["parameters"].as_array();
        let all = own
            .into_iter()
            .chain(shared)
            .flatten()
            .map(|parameter| self.resolve(parameter));
        let known: Vec<&str> = all
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        for name in query {
            assert!(
                known.contains(name),
                "{template} has no {name}, only {known:?}"
            );
        }
    }

    /// The schema of an operation's request body in this media type.
    pub(super) fn request_schema(&self, method: &str, template: &str, media: &str) -> Value {
        let operation = self.operation(method, template);
        let body = self.resolve(&operation["requestBody"]);
        let schema = &body["content"][media]["schema"];
        if schema.is_object() {
            return self.resolve(schema).clone();
        }
        // Swagger 2 lists the body among the parameters.
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let mut parameters = parameters.map(|parameter| self.resolve(parameter));
        let body = parameters.find(|parameter| parameter["in"] == "body");
        self.resolve(&body.expect("the operation has a body")["schema"])
            .clone()
    }

    /// Checks a request body against the schema of its operation.
    pub(super) fn assert_json_request(&self, method: &str, template: &str, body: &Value) {
        let errors = self.json_request_errors(method, template, body);
        assert!(
            errors.is_empty(),
            "{method} {template}: {errors:#?}\n{body:#}"
        );
    }

    /// The violations of a request body against the schema of its operation.
    pub(super) fn json_request_errors(
        &self,
        method: &str,
        template: &str,
        body: &Value,
    ) -> Vec<String> {
        let mut schema = self.request_schema(method, template, "application/json");
        for shared in ["components", "definitions"] {
            if let Some(shared_schemas) = self.0.get(shared) {
                schema[shared] = shared_schemas.clone();
            }
        }
        let validator = jsonschema::options()
            .with_draft(Draft::Draft4)
            .build(&schema)
            .expect("the description is a schema");
        let errors = validator.iter_errors(body);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        match node["$ref"].as_str() {
            Some(pointer) => {
                let target = self.0.pointer(pointer.trim_start_matches('#'));
                self.resolve(target.expect("references resolve"))
            }
            None => node,
        }
    }
}

/// Converts the dialects to JSON Schema as far as these documents need it: a `nullable`
/// type may be null, and an object with named properties allows no others unless its
/// schema mentions them (the documents leave objects open, so a misspelt field would
/// pass).
fn prepare(node: &mut Value) {
    match node {
        Value::Object(object) => {
            object.values_mut().for_each(prepare);
            if object.remove("nullable") == Some(Value::Bool(true))
                && let Some(kind) = object.get_mut("type")
            {
                *kind = Value::Array(vec![kind.take(), Value::String("null".to_owned())]);
            }
            if is_open(object) {
                object.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(prepare),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_open(schema: &Map<String, Value>) -> bool {
    schema.get("type") == Some(&Value::String("object".to_owned()))
        && schema.get("properties").is_some_and(Value::is_object)
        && !schema.contains_key("additionalProperties")
}
