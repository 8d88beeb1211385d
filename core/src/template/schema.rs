//! The schema of a version's variables: JSON Schema (drafts 7, 2019-09 and 2020-12). A
//! schema is untrusted, so references must stay within the schema and must not be
//! recursive, the expanded size is bounded, and patterns match in linear time.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::values::size;
use crate::issue::Issue;

/// Bytes of a schema, as JSON.
const BYTES_MAX: usize = 64 << 10;
/// Values in a schema with all references expanded.
const VALUES_MAX: usize = 4_000;
/// The deepest nesting of a schema with all references expanded.
const DEPTH_MAX: usize = 64;
/// Bytes of one compiled pattern.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Patterns in a schema.
const PATTERNS_MAX: usize = 100;
/// The highest cost of a schema (see [`SchemaSize::cost`]). The values alone cost at most
/// twice [`VALUES_MAX`].
const COST_MAX: u64 = 100_000;
/// The most work for checking variables: the schema's cost times their [`size`]. That is
/// the maximum number of steps, and each step may produce an error with a copy of the
/// values.
const STEPS_MAX: u64 = 4_000_000;
/// With more work, the result is only whether the variables match.
const LISTED_STEPS_MAX: u64 = 500_000;
/// Issues reported for the variables of one message.
const ISSUES_MAX: usize = 100;

const DRAFTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// A compiled schema.
pub(crate) struct VariablesSchema {
    validator: Validator,
    /// The cost of checking one value against the whole schema.
    cost: u64,
}

impl VariablesSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The issue of the schema, with a path relative to the schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, Issue> {
        if schema.to_string().len() > BYTES_MAX {
            let message = format!("must not be larger than {BYTES_MAX} bytes");
            return Err(Issue::new("", message));
        }
        let cost = SchemaAnalysis::of(schema).map_err(|problem| Issue::new("", problem))?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES_MAX)
            .dfa_size_limit(PATTERN_BYTES_MAX);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(schema)
            .map_err(|error| {
                let message = format!(
                    "is not a valid JSON Schema: {}",
                    error.masked_with("the value")
                );
                Issue::new(dotted(error.instance_path()), message)
            })?;
        Ok(Self { validator, cost })
    }

    /// The issues of the variables, with paths that start with `variables`.
    pub(crate) fn check(&self, variables: &Value) -> Vec<Issue> {
        let overall = |message: &str| vec![Issue::new("variables", message)];
        let steps = size(variables).saturating_mul(self.cost);
        if steps > STEPS_MAX {
            return overall("are too large to be checked against the template's variablesSchema");
        }
        if steps > LISTED_STEPS_MAX {
            return if self.validator.is_valid(variables) {
                Vec::new()
            } else {
                overall(
                    "do not match the template's variablesSchema and are too large to list the issues",
                )
            };
        }
        let issues = self
            .validator
            .iter_errors(variables)
            .flat_map(|error| issues_of(&error));
        issues
            .take(ISSUES_MAX)
            .map(|issue| issue.under("variables"))
            .collect()
    }
}

/// The issues of an error. A missing or unexpected property gets its own path.
fn issues_of(error: &ValidationError<'_>) -> Vec<Issue> {
    let at = |name: &str| {
        Issue::new(name, "")
            .under(&dotted(error.instance_path()))
            .path
    };
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other kinds are about the value itself"
    )]
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![Issue::new(at(name), "is required")]
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let unexpected = unexpected.iter();
            unexpected
                .map(|name| Issue::new(at(name), "is not defined in the schema"))
                .collect()
        }
        _ => {
            let message = error.masked_with("the value").to_string();
            vec![Issue::new(dotted(error.instance_path()), message)]
        }
    }
}

fn dotted(location: &Location) -> String {
    let segments = location.segments().map(|segment| match segment {
        LocationSegment::Property(name) => name.into_owned(),
        LocationSegment::Index(index) => index.to_string(),
    });
    segments.collect::<Vec<_>>().join(".")
}

/// The keywords that depend on which properties or items other keywords evaluated.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// The keywords that apply their subschemas to the same value as their parent schema, and
/// `contains`, whose evaluations count for the parent.
const IN_PLACE_APPLICATORS: [&str; 11] = [
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "dependentSchemas",
    "dependencies",
];
/// The keywords whose value is an object of schemas by name.
const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];
/// The keywords that check nothing.
const ANNOTATIONS: [&str; 10] = [
    "$defs",
    "definitions",
    "$schema",
    "$id",
    "$comment",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
];

/// The meaning of a JSON value inside a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    /// A schema, an array of schemas, or the value of a keyword.
    Schema,
    /// An object of schemas by name.
    Map,
    /// Example or constant data.
    Data,
}

impl SchemaPosition {
    /// The position of a field of this value.
    fn of(self, key: &str) -> Self {
        match self {
            Self::Map => Self::Schema,
            Self::Data => Self::Data,
            Self::Schema if MAPS.contains(&key) => Self::Map,
            Self::Schema if ["enum", "const", "default", "examples"].contains(&key) => Self::Data,
            Self::Schema => Self::Schema,
        }
    }
}

/// The size of a part of a schema with all references expanded.
#[derive(Clone, Copy, Default)]
struct SchemaSize {
    values: usize,
    depth: usize,
    /// The checks that it performs for one value. For a keyword of [`UNEVALUATED`] the
    /// validator repeats all sibling keywords for each level of [`IN_PLACE_APPLICATORS`]
    /// (jsonschema 0.60, `mark_evaluated_properties_inner`), and nested ones multiply.
    cost: u64,
    /// The nesting depth of [`IN_PLACE_APPLICATORS`].
    in_place: usize,
}

/// Measures a schema before it is compiled.
struct SchemaAnalysis<'a> {
    root: &'a Value,
    /// The sizes of the targets of references. `None` while a target is being measured.
    targets: HashMap<&'a str, Option<SchemaSize>>,
    patterns: usize,
}

impl<'a> SchemaAnalysis<'a> {
    /// The cost of a schema.
    fn of(schema: &'a Value) -> Result<u64, String> {
        if let Some(draft) = schema.get("$schema") {
            let draft = draft.as_str().unwrap_or_default().trim_end_matches('#');
            if !DRAFTS.contains(&draft) {
                return Err(format!(
                    "has an unsupported $schema; supported are {}",
                    DRAFTS.join(", ")
                ));
            }
        }
        let mut analysis = Self {
            root: schema,
            targets: HashMap::new(),
            patterns: 0,
        };
        let cost = analysis.value(schema, 0, SchemaPosition::Schema)?.cost;
        if cost > COST_MAX {
            return Err(format!(
                "would take too long to check: {} are nested too deeply",
                UNEVALUATED.join(" and ")
            ));
        }
        Ok(cost)
    }

    fn value(
        &mut self,
        value: &'a Value,
        depth: usize,
        position: SchemaPosition,
    ) -> Result<SchemaSize, String> {
        if depth > DEPTH_MAX {
            return Err(format!(
                "must not nest more than {DEPTH_MAX} deep, references included"
            ));
        }
        let mut whole = SchemaSize {
            values: 1,
            depth: 1,
            cost: u64::from(position == SchemaPosition::Schema),
            in_place: 0,
        };
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            Value::Array(items) => {
                for item in items {
                    whole = sum(whole, self.value(item, depth + 1, position)?)?;
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    whole = sum(whole, self.field(key, field, (depth, position))?)?;
                }
                let has_unevaluated = UNEVALUATED.iter().any(|key| fields.contains_key(*key));
                if has_unevaluated && position == SchemaPosition::Schema {
                    whole.cost = whole.cost.saturating_mul(1 + whole.in_place as u64);
                }
            }
        }
        Ok(whole)
    }

    fn field(
        &mut self,
        key: &str,
        field: &'a Value,
        (depth, position): (usize, SchemaPosition),
    ) -> Result<SchemaSize, String> {
        match (key, field) {
            ("$ref", Value::String(target)) => {
                let mut part = self.target(target, depth)?;
                part.in_place += 1;
                return Ok(part);
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                return Err(format!(
                    "must not use {key}; a $ref to #/$defs/… does the same"
                ));
            }
            ("$id", Value::String(_)) if depth > 0 => {
                return Err("must not have a nested $id".to_owned());
            }
            ("pattern", Value::String(_)) => self.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
            _ => {}
        }
        if self.patterns > PATTERNS_MAX {
            return Err(format!("must not have more than {PATTERNS_MAX} patterns"));
        }
        let mut part = self.value(field, depth + 1, position.of(key))?;
        if position == SchemaPosition::Schema {
            if ANNOTATIONS.contains(&key) {
                part.cost = 0;
            } else {
                part.cost = part.cost.max(1);
            }
            part.in_place = if IN_PLACE_APPLICATORS.contains(&key) {
                part.in_place + 1
            } else {
                0
            };
        }
        Ok(part)
    }

    fn target(&mut self, reference: &'a str, depth: usize) -> Result<SchemaSize, String> {
        let excerpt: String = reference.chars().take(100).collect();
        let known = self.targets.get(reference).copied();
        let part = match known {
            Some(Some(part)) => part,
            Some(None) => {
                return Err(format!("must not be recursive, as $ref {excerpt} is"));
            }
            None => {
                let pointer = reference
                    .strip_prefix('#')
                    .filter(|rest| rest.starts_with('/'));
                let found = pointer.and_then(|pointer| self.root.pointer(pointer));
                let found = found.ok_or_else(|| {
                    format!("has a $ref without a target in the schema: {excerpt}")
                })?;
                self.targets.insert(reference, None);
                let part = self.value(found, depth + 1, SchemaPosition::Schema)?;
                self.targets.insert(reference, Some(part));
                part
            }
        };
        if depth + part.depth > DEPTH_MAX {
            return Err(format!(
                "must not nest more than {DEPTH_MAX} deep, references included"
            ));
        }
        Ok(part)
    }
}

fn sum(whole: SchemaSize, part: SchemaSize) -> Result<SchemaSize, String> {
    let values = whole.values + part.values;
    if values > VALUES_MAX {
        return Err(format!(
            "must not have more than {VALUES_MAX} values with all references expanded"
        ));
    }
    Ok(SchemaSize {
        values,
        depth: whole.depth.max(part.depth + 1),
        cost: whole.cost.saturating_add(part.cost),
        in_place: whole.in_place.max(part.in_place),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compile_error(schema: &Value) -> Issue {
        match VariablesSchema::compile(schema) {
            Ok(_) => panic!("{schema} was accepted"),
            Err(issue) => issue,
        }
    }

    #[test]
    fn issues_of_variables_have_their_path() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["name", "items"],
            "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "pattern": "^[A-Z]" },
                "items": { "type": "array", "items": { "$ref": "#/$defs/item" } },
            },
            "$defs": { "item": { "type": "object", "required": ["sku"], "properties": { "price": { "type": "number" } } } },
        });
        let schema = VariablesSchema::compile(&schema).ok().unwrap();
        let paths = |variables: &Value| {
            let issues = schema.check(variables);
            let mut paths: Vec<String> = issues.into_iter().map(|issue| issue.path).collect();
            paths.sort();
            paths
        };
        assert_eq!(paths(&json!({})), ["variables.items", "variables.name"]);
        let wrong = json!({ "name": "ada", "items": [{ "sku": 1 }, {}, { "sku": 1, "price": "2" }], "more": 1 });
        assert_eq!(
            paths(&wrong),
            [
                "variables.items.1.sku",
                "variables.items.2.price",
                "variables.more",
                "variables.name"
            ]
        );
        assert!(paths(&json!({ "name": "Ada", "items": [] })).is_empty());
    }

    #[test]
    fn unsafe_and_invalid_schemas_are_refused() {
        let mut doubling = json!({ "$defs": { "d0": { "type": "string" } } });
        for level in 1..40 {
            let inner = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
            doubling["$defs"][format!("d{level}")] = json!({ "anyOf": [inner, inner] });
        }
        let mut deep = json!({});
        for _ in 0..70 {
            deep = json!({ "not": deep });
        }
        let mut marked = json!({ "properties": { "a": true } });
        for _ in 0..20 {
            marked = json!({ "anyOf": [marked], "unevaluatedProperties": false });
        }
        let patterns: Vec<Value> = (0..101)
            .map(|n| json!({ "pattern": format!("a{n}") }))
            .collect();
        for schema in [
            json!({ "$ref": "#" }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } } }),
            json!({ "properties": { "a": { "$ref": "http://127.0.0.1:1/schema.json" } } }),
            json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
            json!({ "properties": { "a": { "$ref": "other.json" } } }),
            json!({ "properties": { "a": { "$ref": "#/nowhere" } } }),
            json!({ "$schema": "http://127.0.0.1:1/meta.json" }),
            json!({ "properties": { "a": { "$id": "http://example.com/a" } } }),
            json!({ "$dynamicRef": "#x" }),
            json!({ "pattern": "(a{1000}){1000}" }),
            json!({ "pattern": "(?=a)b" }),
            json!({ "pattern": "(" }),
            json!({ "type": "nothing" }),
            json!({ "required": "name" }),
            json!({ "enum": vec![0; 5_000] }),
            json!({ "description": "x".repeat(70_000) }),
            json!({ "allOf": patterns }),
            doubling,
            deep,
            marked,
        ] {
            assert!(!compile_error(&schema).message.is_empty());
        }
        assert_eq!(
            compile_error(&json!({ "properties": { "a": { "type": 1 } } })).path,
            "properties.a.type"
        );
    }

    #[test]
    fn expensive_checks_are_refused_or_reported_without_details() {
        let branches = vec![json!({ "type": "string" }); 1_990];
        let schema = json!({ "properties": { "x": { "anyOf": branches } } });
        let schema = VariablesSchema::compile(&schema).ok().unwrap();
        let message = |variables: Value| {
            let issues = schema.check(&variables);
            let [issue] = issues.as_slice() else {
                panic!("{issues:?}");
            };
            assert_eq!(issue.path, "variables");
            issue.message.clone()
        };
        let many = message(json!({ "x": vec![0; 130_000] }));
        assert!(many.contains("too large to be checked"), "{many}");
        let some = message(json!({ "x": vec![0; 500] }));
        assert!(some.contains("do not match"), "{some}");
        assert!(schema.check(&json!({ "x": "a".repeat(20_000) })).is_empty());
        assert_eq!(schema.check(&json!({ "x": 1 }))[0].path, "variables.x");
    }

    #[test]
    fn the_cost_of_a_schema_is_proportional_to_its_checks() {
        let mut strict = json!({ "type": "string" });
        for _ in 0..12 {
            strict = json!({
                "type": "object",
                "properties": { "a": strict, "title": { "type": "string", "description": "x" } },
                "unevaluatedProperties": false,
            });
        }
        assert!(SchemaAnalysis::of(&strict).unwrap() < 200);
        let countries: Vec<String> = (0..249).map(|n| format!("C{n}")).collect();
        let country = json!({ "enum": countries, "description": "Where it goes." });
        assert!(SchemaAnalysis::of(&json!({ "properties": { "country": country } })).unwrap() < 10);
        // A property may have any name.
        let hidden = json!({ "anyOf": vec![json!({ "type": "string" }); 1_000] });
        for name in ["description", "enum", "$defs", "examples"] {
            let schema = json!({ "properties": { name: hidden } });
            assert!(SchemaAnalysis::of(&schema).unwrap() > 1_000, "{name}");
        }
    }

    #[test]
    fn patterns_match_in_linear_time() {
        let schema =
            VariablesSchema::compile(&json!({ "properties": { "a": { "pattern": "^(a+)+$" } } }));
        let issues = schema
            .ok()
            .unwrap()
            .check(&json!({ "a": format!("{}!", "a".repeat(100_000)) }));
        assert_eq!(issues[0].path, "variables.a");
        assert!(issues[0].message.len() < 200, "{}", issues[0].message.len());
    }
}
