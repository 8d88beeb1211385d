//! Reads the schemas of the document. It fails on what it does not know: a construct that is passed over would be a field
//! with a wrong type in four languages.

use serde_json::{Map, Value};

use crate::model::{Field, Schema, Shape, Type};

/// How deep `allOf` may refer to another `allOf`.
const DEPTH_MAX: usize = 16;

/// Keywords that say something about values but nothing about types.
const CONSTRAINTS: [&str; 20] = [
    "description",
    "example",
    "examples",
    "title",
    "default",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "pattern",
    "uniqueItems",
    "multipleOf",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "x-ms-enum",
];

/// Keywords that make a type.
const KEYWORDS: [&str; 12] = [
    "type",
    "format",
    "$ref",
    "enum",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "allOf",
    "oneOf",
    "anyOf",
    "discriminator",
];

/// The schemas of a document, as they are there.
pub(crate) struct Schemas<'a> {
    raw: &'a Map<String, Value>,
}

impl<'a> Schemas<'a> {
    /// Takes `components.schemas` of the document.
    pub(crate) fn of(document: &'a Value) -> Result<Self, String> {
        let raw = document["components"]["schemas"]
            .as_object()
            .ok_or("the document has no components.schemas")?;
        Ok(Self { raw })
    }

    /// The names of all schemas, in the order of the document.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a String> {
        self.raw.keys()
    }

    /// Reads the schema of this name.
    pub(crate) fn schema(&self, name: &str) -> Result<Schema, String> {
        let raw = self.raw(name)?;
        let shape = if let Some(values) = raw.get("enum") {
            known(raw, name)?;
            Shape::Enum(strings(values, name)?)
        } else if raw.get("properties").is_some() || self.is_extension(raw) {
            Shape::Object(self.fields(raw, name, DEPTH_MAX)?)
        } else if let Some(variants) = raw.get("oneOf").or(raw.get("anyOf")) {
            known(raw, name)?;
            let discriminator = raw
                .get("discriminator")
                .map(|found| text(found, "propertyName"));
            Shape::Union {
                variants: types(variants, name)?,
                discriminator,
            }
        } else {
            Shape::Alias(parse_type(raw, name)?)
        };
        Ok(Schema {
            name: name.to_owned(),
            description: text(raw, "description"),
            shape,
            input: false,
        })
    }

    fn raw(&self, name: &str) -> Result<&'a Value, String> {
        self.raw
            .get(name)
            .ok_or_else(|| format!("there is no schema {name}"))
    }

    /// Whether an `allOf` adds fields to another schema, rather than a description to a reference.
    fn is_extension(&self, raw: &Value) -> bool {
        raw["allOf"]
            .as_array()
            .is_some_and(|parts| parts.iter().any(|part| part.get("properties").is_some()))
    }

    /// The fields of an object, those of `allOf` included. A later field replaces one of the same name.
    fn fields(&self, raw: &Value, at: &str, depth: usize) -> Result<Vec<Field>, String> {
        known(raw, at)?;
        if depth == 0 {
            return Err(format!("{at}: allOf refers to itself, or too deep"));
        }
        let mut fields: Vec<Field> = Vec::new();
        for part in raw["allOf"].as_array().into_iter().flatten() {
            let inherited = match reference(part) {
                Some(name) => self.fields(self.raw(name)?, name, depth - 1)?,
                None => self.fields(part, at, depth - 1)?,
            };
            inherited
                .into_iter()
                .for_each(|field| replace_or_push(&mut fields, field));
        }
        let required = raw
            .get("required")
            .map_or(Ok(Vec::new()), |names| strings(names, at))?;
        for (name, property) in raw["properties"].as_object().into_iter().flatten() {
            let ty = parse_type(property, &format!("{at}.{name}"))?;
            let field = Field {
                name: name.clone(),
                description: described(property),
                required: required.contains(name),
                ty,
                example: property["example"].clone(),
                zero: zero_is_a_value(property),
                base64: property["format"] == "byte",
            };
            replace_or_push(&mut fields, field);
        }
        Ok(fields)
    }
}

/// Reads the type of a field, parameter or answer; `at` says where it stands, for errors.
pub(crate) fn parse_type(raw: &Value, at: &str) -> Result<Type, String> {
    known(raw, at)?;
    let ty = if let Some(name) = reference(raw) {
        Type::Named(name.to_owned())
    } else if let Some(parts) = raw["allOf"].as_array() {
        let mut parts = parts.iter().filter(|part| !is_description(part));
        match (parts.next(), parts.next()) {
            (Some(only), None) => parse_type(only, at)?,
            _ => {
                return Err(format!(
                    "{at}: an allOf of several types needs a schema of its own"
                ));
            }
        }
    } else if let Some(variants) = raw.get("oneOf").or(raw.get("anyOf")) {
        Type::Union(types(variants, at)?)
    } else if let Some(values) = raw["enum"].as_array() {
        match values.as_slice() {
            [only] => Type::Literal(only.clone()),
            _ => {
                return Err(format!(
                    "{at}: an enum of several values needs a schema of its own"
                ));
            }
        }
    } else {
        parse_plain(raw, at)?
    };
    Ok(if raw["nullable"] == true {
        Type::Nullable(Box::new(ty))
    } else {
        ty
    })
}

fn parse_plain(raw: &Value, at: &str) -> Result<Type, String> {
    match raw.get("type").map(|ty| ty.as_str().unwrap_or_default()) {
        None => Ok(Type::Any),
        Some("string") if raw["format"] == "date-time" => Ok(Type::DateTime),
        Some("string") => Ok(Type::String),
        Some("integer") => Ok(Type::Integer),
        Some("number") => Ok(Type::Number),
        Some("boolean") => Ok(Type::Boolean),
        Some("array") => Ok(Type::List(Box::new(parse_type(
            &raw["items"],
            &format!("{at}[]"),
        )?))),
        Some("object") if raw.get("properties").is_some() => {
            Err(format!("{at}: an object needs a schema of its own"))
        }
        Some("object") => match raw.get("additionalProperties") {
            None | Some(Value::Bool(true)) => Ok(Type::Map(Box::new(Type::Any))),
            Some(values @ Value::Object(_)) => Ok(Type::Map(Box::new(parse_type(
                values,
                &format!("{at}{{}}"),
            )?))),
            Some(other) => Err(format!(
                "{at}: additionalProperties is {other}, and there are no properties"
            )),
        },
        Some(other) => Err(format!("{at}: {other} is not a type")),
    }
}

/// Whether an empty text, or 0, is a value of its own. An address, for instance, is never empty.
pub(crate) fn zero_is_a_value(raw: &Value) -> bool {
    let never_empty = ["uuid", "email", "uri", "date-time"].map(Some);
    let positive = |limit: &str| raw[limit].as_f64().is_some_and(|limit| limit > 0.0);
    let is_above_zero = raw["exclusiveMinimum"] == true;
    let has_none = positive("minLength") || positive("minimum") || is_above_zero;
    !(never_empty.contains(&raw["format"].as_str()) || has_none)
}

/// The name of the schema that a `$ref` refers to.
pub(crate) fn reference(raw: &Value) -> Option<&str> {
    raw["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// A text of an object, or nothing.
pub(crate) fn text(raw: &Value, key: &str) -> String {
    raw[key].as_str().unwrap_or_default().to_owned()
}

/// The description of a field. That of a reference may stand beside it in an `allOf`.
fn described(raw: &Value) -> String {
    let beside = || {
        raw["allOf"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|part| is_description(part))
    };
    match text(raw, "description") {
        empty if empty.is_empty() => beside().map_or(empty, |part| text(part, "description")),
        description => description,
    }
}

fn is_description(part: &Value) -> bool {
    part.as_object().is_some_and(|keys| {
        !keys.is_empty() && keys.keys().all(|key| CONSTRAINTS.contains(&key.as_str()))
    })
}

fn types(variants: &Value, at: &str) -> Result<Vec<Type>, String> {
    let variants = variants
        .as_array()
        .ok_or_else(|| format!("{at}: a union needs a list of variants"))?;
    variants
        .iter()
        .map(|variant| parse_type(variant, at))
        .collect()
}

fn strings(values: &Value, at: &str) -> Result<Vec<String>, String> {
    let values = values
        .as_array()
        .ok_or_else(|| format!("{at}: a list was expected"))?;
    let text = |value: &Value| {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| format!("{at}: {value} is not a string"))
    };
    values.iter().map(text).collect()
}

fn replace_or_push(fields: &mut Vec<Field>, field: Field) {
    match fields.iter_mut().find(|other| other.name == field.name) {
        Some(other) => *other = field,
        None => fields.push(field),
    }
}

fn known(raw: &Value, at: &str) -> Result<(), String> {
    let keys = raw
        .as_object()
        .ok_or_else(|| format!("{at}: a schema was expected, not {raw}"))?;
    let unknown = keys
        .keys()
        .find(|key| !KEYWORDS.contains(&key.as_str()) && !CONSTRAINTS.contains(&key.as_str()));
    unknown.map_or(Ok(()), |key| {
        Err(format!("{at}: the generator does not know `{key}`"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({"components": {"schemas": {
            "Key": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "string"}, "endsAt": {"type": "string", "format": "date-time", "nullable": true}}},
            "KeyWithSecret": {"allOf": [{"$ref": "#/components/schemas/Key"},
                {"type": "object", "required": ["secret"], "properties": {"secret": {"type": "string"}}}]},
            "Colour": {"type": "string", "enum": ["RED", "BLUE"]},
            "Odd": {"type": "object", "properties": {"a": {"not": {}}}},
        }}})
    }

    #[test]
    fn an_extension_has_the_fields_of_what_it_extends() {
        let document = document();
        let schema = Schemas::of(&document)
            .unwrap()
            .schema("KeyWithSecret")
            .unwrap();
        let Shape::Object(fields) = schema.shape else {
            panic!("{schema:?}")
        };
        let names: Vec<(&str, bool)> = fields
            .iter()
            .map(|field| (field.name.as_str(), field.required))
            .collect();
        assert_eq!(names, [("id", true), ("endsAt", false), ("secret", true)]);
        assert_eq!(fields[1].ty, Type::Nullable(Box::new(Type::DateTime)));
    }

    #[test]
    fn an_enum_keeps_its_values() {
        let document = document();
        let schema = Schemas::of(&document).unwrap().schema("Colour").unwrap();
        assert_eq!(
            schema.shape,
            Shape::Enum(vec!["RED".to_owned(), "BLUE".to_owned()])
        );
    }

    #[test]
    fn a_reference_with_a_description_is_a_reference() {
        let raw = json!({"allOf": [{"$ref": "#/components/schemas/Colour"}, {"description": "The colour."}]});
        assert_eq!(
            parse_type(&raw, "x").unwrap(),
            Type::Named("Colour".to_owned())
        );
        assert_eq!(described(&raw), "The colour.");
    }

    #[test]
    fn limits_and_formats_say_whether_zero_is_a_value() {
        assert!(zero_is_a_value(&json!({"type": "string"})));
        assert!(zero_is_a_value(&json!({"type": "integer", "minimum": 0.0})));
        for raw in [
            json!({"type": "string", "minLength": 1}),
            json!({"type": "string", "format": "uuid"}),
            json!({"type": "integer", "minimum": 1.0}),
        ] {
            assert!(!zero_is_a_value(&raw), "{raw}");
        }
    }

    #[test]
    fn an_unknown_construct_is_an_error_that_says_where() {
        let document = document();
        let error = Schemas::of(&document).unwrap().schema("Odd").unwrap_err();
        assert_eq!(error, "Odd.a: the generator does not know `not`");
        assert!(
            parse_type(&json!({"type": "object", "properties": {}}), "X.y")
                .unwrap_err()
                .contains("X.y")
        );
        assert!(
            parse_type(&json!({"enum": ["A", "B"]}), "X.y")
                .unwrap_err()
                .contains("schema of its own")
        );
    }
}
