//! The schema of a version's variables: JSON Schema (drafts 7, 2019-09 and
//! 2020-12). It is foreign code too, so references stay within the schema and
//! never lead back to themselves, what they expand to is bounded, and patterns are
//! matched in linear time.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::values::size;
use crate::issue::Issue;

/// Bytes of a schema, as JSON.
const BYTES_MAX: usize = 64 << 10;
/// Values in a schema, with every reference written out.
const VALUES_MAX: usize = 4_000;
/// How deep it may nest, with every reference written out.
const DEPTH_MAX: usize = 64;
/// Bytes that one compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// Patterns in a schema.
const PATTERNS_MAX: usize = 100;
/// The most that a schema may cost (see [`Extent::cost`]): by values alone it is twice
/// [`VALUES_MAX`] at the most.
const COST_MAX: u64 = 100_000;
/// The most work that checking variables may be: the schema's cost times their size, as
/// [`size`] counts it. Each is a step, at the most, and may be an error that holds a copy
/// of the values.
const STEPS_MAX: u64 = 4_000_000;
/// Beyond so much it is only said whether they match.
const LISTED_STEPS_MAX: u64 = 500_000;
/// Findings that are reported of one message's variables.
const ISSUES_MAX: usize = 100;

const DRAFTS: [&str; 3] = [
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// A schema, ready to be used.
pub(crate) struct VariablesSchema {
    validator: Validator,
    /// What it takes to check one value against all of it.
    cost: u64,
}

impl VariablesSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// What is wrong with it; paths are relative to the schema.
    pub(crate) fn compile(schema: &Value) -> Result<Self, Issue> {
        if schema.to_string().len() > BYTES_MAX {
            let message = format!("must not be larger than {BYTES_MAX} bytes");
            return Err(Issue::new("", message));
        }
        let cost = Survey::of(schema).map_err(|problem| Issue::new("", problem))?;
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

    /// Everything that is wrong with the variables, by paths from `variables` on.
    pub(crate) fn check(&self, variables: &Value) -> Vec<Issue> {
        let of_all = |message: &str| vec![Issue::new("variables", message)];
        let steps = size(variables).saturating_mul(self.cost);
        if steps > STEPS_MAX {
            return of_all("hold too much to be checked by the template's variablesSchema");
        }
        if steps > LISTED_STEPS_MAX {
            return if self.validator.is_valid(variables) {
                Vec::new()
            } else {
                of_all(
                    "do not match the template's variablesSchema, and hold too much to say where",
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

/// The findings behind an error. What is missing and what is too much is named by
/// its own path.
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
                .map(|name| Issue::new(at(name), "is not known to the schema"))
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

/// The keywords that ask what the others have looked at.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// The keywords whose schemas are held against the same value as the one they stand in, or
/// again for those above.
const IN_PLACE: [&str; 11] = [
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
/// The keywords that hold schemas by names.
const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
];
/// The keywords that check nothing themselves.
const SILENT: [&str; 10] = [
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

/// What a value stands for in a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPosition {
    /// A schema, a list of schemas, or what a keyword says.
    VariablesSchema,
    Map,
    /// A value like those that are checked.
    Data,
}

impl SchemaPosition {
    /// That of a field.
    fn of(self, key: &str) -> Self {
        match self {
            Self::Map => Self::VariablesSchema,
            Self::Data => Self::Data,
            Self::VariablesSchema if MAPS.contains(&key) => Self::Map,
            Self::VariablesSchema if ["enum", "const", "default", "examples"].contains(&key) => {
                Self::Data
            }
            Self::VariablesSchema => Self::VariablesSchema,
        }
    }
}

/// What a part of a schema amounts to, references written out.
#[derive(Clone, Copy, Default)]
struct Extent {
    values: usize,
    depth: usize,
    /// The checks that it makes of one value. For a keyword of [`UNEVALUATED`] the validator
    /// goes through all that stands beside it once more for each of [`IN_PLACE`] on the way
    /// (jsonschema 0.60, `mark_evaluated_properties_inner`), which those below pay too.
    cost: u64,
    /// How many of [`IN_PLACE`] stand within each other.
    in_place: usize,
}

/// The look at a schema before it is compiled.
struct Survey<'a> {
    root: &'a Value,
    /// What references lead to; nothing while it is being looked at.
    targets: HashMap<&'a str, Option<Extent>>,
    patterns: usize,
}

impl<'a> Survey<'a> {
    /// What a schema costs.
    fn of(schema: &'a Value) -> Result<u64, String> {
        if let Some(draft) = schema.get("$schema") {
            let draft = draft.as_str().unwrap_or_default().trim_end_matches('#');
            if !DRAFTS.contains(&draft) {
                return Err(format!(
                    "has a $schema that is not served; it may be one of {}",
                    DRAFTS.join(", ")
                ));
            }
        }
        let mut survey = Self {
            root: schema,
            targets: HashMap::new(),
            patterns: 0,
        };
        let cost = survey
            .value(schema, 0, SchemaPosition::VariablesSchema)?
            .cost;
        if cost > COST_MAX {
            return Err(format!(
                "would take too long to check: {} stand within each other too often",
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
    ) -> Result<Extent, String> {
        if depth > DEPTH_MAX {
            return Err(format!(
                "must not nest more than {DEPTH_MAX} deep, references included"
            ));
        }
        let mut whole = Extent {
            values: 1,
            depth: 1,
            cost: u64::from(position == SchemaPosition::VariablesSchema),
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
                let asks = UNEVALUATED.iter().any(|key| fields.contains_key(*key));
                if asks && position == SchemaPosition::VariablesSchema {
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
    ) -> Result<Extent, String> {
        match (key, field) {
            ("$ref", Value::String(target)) => {
                let mut extent = self.target(target, depth)?;
                extent.in_place += 1;
                return Ok(extent);
            }
            ("$dynamicRef" | "$recursiveRef" | "$anchor" | "$dynamicAnchor", Value::String(_)) => {
                return Err(format!(
                    "must not use {key}; a $ref to #/$defs/… does the same"
                ));
            }
            ("$id", Value::String(_)) if depth > 0 => {
                return Err("must not have an $id within".to_owned());
            }
            ("pattern", Value::String(_)) => self.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
            _ => {}
        }
        if self.patterns > PATTERNS_MAX {
            return Err(format!("must not hold more than {PATTERNS_MAX} patterns"));
        }
        let mut extent = self.value(field, depth + 1, position.of(key))?;
        if position == SchemaPosition::VariablesSchema {
            if SILENT.contains(&key) {
                extent.cost = 0;
            } else {
                extent.cost = extent.cost.max(1);
            }
            extent.in_place = if IN_PLACE.contains(&key) {
                extent.in_place + 1
            } else {
                0
            };
        }
        Ok(extent)
    }

    fn target(&mut self, reference: &'a str, depth: usize) -> Result<Extent, String> {
        let shown: String = reference.chars().take(100).collect();
        let known = self.targets.get(reference).copied();
        let extent = match known {
            Some(Some(extent)) => extent,
            Some(None) => return Err(format!("must not refer to itself, as $ref {shown} does")),
            None => {
                let pointer = reference
                    .strip_prefix('#')
                    .filter(|rest| rest.starts_with('/'));
                let found = pointer.and_then(|pointer| self.root.pointer(pointer));
                let found = found.ok_or_else(|| {
                    format!("has a $ref that leads nowhere within the schema: {shown}")
                })?;
                self.targets.insert(reference, None);
                let extent = self.value(found, depth + 1, SchemaPosition::VariablesSchema)?;
                self.targets.insert(reference, Some(extent));
                extent
            }
        };
        if depth + extent.depth > DEPTH_MAX {
            return Err(format!(
                "must not nest more than {DEPTH_MAX} deep, references included"
            ));
        }
        Ok(extent)
    }
}

fn sum(whole: Extent, part: Extent) -> Result<Extent, String> {
    let values = whole.values + part.values;
    if values > VALUES_MAX {
        return Err(format!(
            "must not hold more than {VALUES_MAX} values, references written out"
        ));
    }
    Ok(Extent {
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

    fn refusal(schema: &Value) -> Issue {
        match VariablesSchema::compile(schema) {
            Ok(_) => panic!("{schema} was taken"),
            Err(issue) => issue,
        }
    }

    #[test]
    fn what_is_wrong_with_variables_is_named_by_its_path() {
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
    fn schemas_that_cannot_be_trusted_are_refused() {
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
            assert!(!refusal(&schema).message.is_empty());
        }
        assert_eq!(
            refusal(&json!({ "properties": { "a": { "type": 1 } } })).path,
            "properties.a.type"
        );
    }

    #[test]
    fn what_takes_too_long_to_check_is_refused_and_what_takes_long_is_not_explained() {
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
        assert!(many.contains("too much to be checked"), "{many}");
        let some = message(json!({ "x": vec![0; 500] }));
        assert!(some.contains("do not match"), "{some}");
        assert!(schema.check(&json!({ "x": "a".repeat(20_000) })).is_empty());
        assert_eq!(schema.check(&json!({ "x": 1 }))[0].path, "variables.x");
    }

    #[test]
    fn strict_and_well_described_schemas_cost_what_they_check() {
        let mut strict = json!({ "type": "string" });
        for _ in 0..12 {
            strict = json!({
                "type": "object",
                "properties": { "a": strict, "title": { "type": "string", "description": "x" } },
                "unevaluatedProperties": false,
            });
        }
        assert!(Survey::of(&strict).unwrap() < 200);
        let countries: Vec<String> = (0..249).map(|n| format!("C{n}")).collect();
        let country = json!({ "enum": countries, "description": "Where it goes." });
        assert!(Survey::of(&json!({ "properties": { "country": country } })).unwrap() < 10);
        // A property may have any name.
        let hidden = json!({ "anyOf": vec![json!({ "type": "string" }); 1_000] });
        for name in ["description", "enum", "$defs", "examples"] {
            let schema = json!({ "properties": { name: hidden } });
            assert!(Survey::of(&schema).unwrap() > 1_000, "{name}");
        }
    }

    #[test]
    fn patterns_that_backtrack_elsewhere_are_matched_at_once() {
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
