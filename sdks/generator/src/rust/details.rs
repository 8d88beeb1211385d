//! What the templates need to know of a schema for Rust: how a field is declared and set, what a union is made from.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Rust;
use crate::language::Language;
use crate::model::{Field, Model, Schema, Shape, Type};
use crate::naming;

/// The methods of a call that a parameter of the same name must not hide.
const CALL_METHODS: [&str; 7] = [
    "header",
    "idempotency_key",
    "into_future",
    "max_retries",
    "params",
    "stream",
    "timeout",
];

/// The schemas of the model, and one more for each union within them that has no name.
pub(super) fn schemas(model: &Model) -> Vec<Schema> {
    let mut found = Vec::new();
    for schema in &model.schemas {
        let mut schema = schema.clone();
        let mut made = Vec::new();
        match &mut schema.shape {
            Shape::Object(fields) => {
                for field in fields {
                    let name = naming::pascal(&naming::words(&field.name));
                    let owner = format!("{}{name}", schema.name);
                    name_unions(&mut field.ty, &owner, schema.input, &mut made);
                }
            }
            Shape::Union { variants, .. } => {
                for variant in variants {
                    name_unions(variant, &schema.name, schema.input, &mut made);
                }
            }
            Shape::Alias(ty) => name_unions(ty, &schema.name, schema.input, &mut made),
            Shape::Enum(_) => {}
        }
        found.push(schema);
        found.append(&mut made);
    }
    found
}

/// Gives the unions of a type names that begin with that of their owner.
fn name_unions(ty: &mut Type, owner: &str, input: bool, made: &mut Vec<Schema>) {
    match ty {
        Type::Union(variants) => {
            let schema = Schema {
                name: owner.to_owned(),
                description: "One of several forms of a value.".to_owned(),
                shape: Shape::Union {
                    variants: variants.clone(),
                    discriminator: None,
                },
                input,
            };
            made.push(schema);
            *ty = Type::Named(owner.to_owned());
        }
        Type::List(inner) | Type::Map(inner) => {
            name_unions(inner, &format!("{owner}Item"), input, made);
        }
        Type::Nullable(inner) => name_unions(inner, owner, input, made),
        Type::String
        | Type::DateTime
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Any
        | Type::Named(_)
        | Type::Literal(_) => {}
    }
}

/// What the templates see of a schema as `details`. The model has names for all unions ([`schemas`]).
pub(super) fn details(schema: &Schema, model: &Model) -> Value {
    let all = &model.schemas;
    let mut details = match &schema.shape {
        Shape::Object(fields) => object(schema, fields, model, all),
        Shape::Enum(values) => open_enum(values),
        Shape::Union {
            variants,
            discriminator,
        } => union(variants, discriminator.as_deref(), schema.input, all),
        Shape::Alias(_) => json!({}),
    };
    // Rust wants a description of everything, whether or not the document has one.
    details["description"] = match schema.description.as_str() {
        "" => format!("What is called `{}` in the API.", schema.name).into(),
        text => text.into(),
    };
    details
}

fn object(schema: &Schema, fields: &[Field], model: &Model, all: &[Schema]) -> Value {
    let mut methods = model.resources.iter().flat_map(|each| &each.methods);
    let params = methods.any(|method| method.query.as_ref() == Some(&schema.name));
    let fields_seen: Vec<Value> = fields
        .iter()
        .map(|field| field_details(field, schema.input, params, all))
        .collect();
    json!({
        "input": schema.input,
        "params": params,
        // What occurs in requests can be made by hand.
        "constructible": schema.input || in_requests(model, all).contains(&schema.name),
        "default": fields.iter().all(|field| !field.required || has_default(&field.ty, all)),
        "fields": fields_seen,
    })
}

fn field_details(field: &Field, input: bool, params: bool, all: &[Schema]) -> Value {
    let member = Rust.member(&naming::words(&field.name));
    let (nullable, ty) = without_null(&field.ty);
    let spelled = Rust.spell(ty, input);
    // In a change, null clears what an absent field leaves as it is.
    let clears = !field.required && nullable && input && !params;
    let optional = !field.required || nullable;
    let (arg, value) = setter(ty, &member, input);
    let (declared, set) = match (optional, clears) {
        (false, _) => (spelled, value),
        (true, false) => (format!("Option<{spelled}>"), format!("Some({value})")),
        (true, true) => (
            format!("Option<Option<{spelled}>>"),
            format!("Some(Some({value}))"),
        ),
    };
    let description = describe(field, ty, all);
    json!({
        "member": member,
        "setter": if params && CALL_METHODS.contains(&member.as_str()) { format!("{member}_") } else { member.clone() },
        "wire": field.name,
        "renamed": member.trim_start_matches("r#") != field.name,
        "brief": first_sentence(&description),
        "description": description,
        "type": declared,
        "required": field.required,
        "clears": clears,
        "skip": optional && !field.required,
        "arg": arg,
        "set": set,
    })
}

/// Whether a type may be null, and what it is if it is not null.
fn without_null(ty: &Type) -> (bool, &Type) {
    if let Type::Nullable(inner) = ty {
        (true, inner)
    } else {
        (false, ty)
    }
}

/// What the method that sets a field takes, and what it makes of it.
fn setter(ty: &Type, name: &str, input: bool) -> (String, String) {
    match ty {
        Type::Integer | Type::Number | Type::Boolean | Type::Literal(_) => {
            (Rust.spell(ty, input), name.to_owned())
        }
        Type::List(item) => (
            format!(
                "impl IntoIterator<Item = impl Into<{}>>",
                Rust.spell(item, input)
            ),
            format!("{name}.into_iter().map(Into::into).collect()"),
        ),
        Type::Map(value) if **value != Type::Any => (
            format!(
                "impl IntoIterator<Item = (impl Into<String>, impl Into<{}>)>",
                Rust.spell(value, input)
            ),
            format!(
                "{name}.into_iter().map(|(name, value)| (name.into(), value.into())).collect()"
            ),
        ),
        Type::String
        | Type::DateTime
        | Type::Any
        | Type::Named(_)
        | Type::Map(_)
        | Type::Union(_)
        | Type::Nullable(_) => (
            format!("impl Into<{}>", Rust.spell(ty, input)),
            format!("{name}.into()"),
        ),
    }
}

/// The description of a field: its own, or that of its type, since Rust wants one for each.
fn describe(field: &Field, ty: &Type, all: &[Schema]) -> String {
    let of_type = || find(all, name_of(ty)?).map(|schema| schema.description.clone());
    match field.description.as_str() {
        "" => of_type()
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| format!("The {}.", naming::words(&field.name).join(" "))),
        text => text.to_owned(),
    }
}

fn first_sentence(text: &str) -> String {
    let text = text.split("\n\n").next().unwrap_or_default();
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    match text.find(". ") {
        Some(end) => text[..=end].to_owned(),
        None => text,
    }
}

/// The names of all schemas that requests need.
fn in_requests(model: &Model, all: &[Schema]) -> BTreeSet<String> {
    let mut open = Vec::new();
    let bodies = model.resources.iter().flat_map(|each| &each.methods);
    for body in bodies.filter_map(|method| method.body.as_ref()) {
        body.ty.names(&mut |name| open.push(name.to_owned()));
    }
    let mut found = BTreeSet::new();
    while let Some(name) = open.pop() {
        if let Some(schema) = find(all, &name).filter(|_| found.insert(name.clone())) {
            schema.names(&mut |name| open.push(name.to_owned()));
        }
    }
    found
}

/// The schema that a type is.
fn name_of(ty: &Type) -> Option<&str> {
    if let Type::Named(name) = ty {
        Some(name)
    } else {
        None
    }
}

/// What a list is a list of.
fn item_of(ty: &Type) -> Option<&Type> {
    if let Type::List(item) = ty {
        Some(item)
    } else {
        None
    }
}

fn find<'a>(all: &'a [Schema], name: &str) -> Option<&'a Schema> {
    all.iter().find(|schema| schema.name == name)
}

/// Whether an empty value says nothing wrong: text, lists and what is made of them, but no choice and no time.
fn has_default(ty: &Type, all: &[Schema]) -> bool {
    match ty {
        Type::String
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Any
        | Type::List(_)
        | Type::Map(_)
        | Type::Nullable(_) => true,
        Type::DateTime | Type::Literal(_) | Type::Union(_) => false,
        Type::Named(name) => find(all, name).is_some_and(|schema| match &schema.shape {
            Shape::Object(fields) => fields
                .iter()
                .all(|field| !field.required || has_default(&field.ty, all)),
            Shape::Union { variants, .. } => {
                variants.iter().any(|variant| item_of(variant).is_some())
            }
            Shape::Alias(ty) => has_default(ty, all),
            Shape::Enum(_) => false,
        }),
    }
}

fn open_enum(values: &[String]) -> Value {
    let variants: Vec<Value> = values
        .iter()
        .map(|value| json!({"name": variant_of(value), "value": value}))
        .collect();
    json!({"variants": variants})
}

/// The variant of a value: `RecipientDomain` for `recipientDomain`. `Other` is the one for what is not known.
pub(super) fn variant_of(value: &str) -> String {
    match naming::pascal(&naming::words(value)) {
        name if name == "Other" || name == "Self" => format!("{name}Value"),
        name if name.starts_with(|first: char| first.is_ascii_digit()) => format!("N{name}"),
        name => name,
    }
}

fn union(variants: &[Type], discriminator: Option<&str>, input: bool, all: &[Schema]) -> Value {
    let ending = common_ending(variants);
    let seen: Vec<Value> = variants
        .iter()
        .map(|variant| {
            let item = item_of(variant).map(|item| Rust.spell(item, input));
            let kind = match (&item, variant == &Type::String) {
                (Some(_), _) => "list",
                (None, true) => "text",
                (None, false) => "value",
            };
            json!({
                "name": union_variant(variant, ending),
                "type": Rust.spell(variant, input),
                "kind": kind,
                "item": item,
                "tag": discriminator.and_then(|name| tag_of(variant, name, all)),
            })
        })
        .collect();
    json!({"variants": seen, "lifted": lifted(variants, input, all), "input": input})
}

/// How many words all variants end with: they say nothing about a single one.
fn common_ending(variants: &[Type]) -> usize {
    let names: Vec<Vec<String>> = variants
        .iter()
        .map(|variant| name_of(variant).map_or(Vec::new(), naming::words))
        .collect();
    let Some((first, rest)) = names.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return 0;
    };
    (0..first.len())
        .take_while(|place| {
            let word = first.iter().rev().nth(*place);
            rest.iter()
                .all(|name| name.len() > place + 1 && name.iter().rev().nth(*place) == word)
        })
        .count()
        .min(first.len().saturating_sub(1))
}

fn union_variant(variant: &Type, ending: usize) -> String {
    match variant {
        Type::Named(name) => {
            let words = naming::words(name);
            naming::pascal(&words[..words.len() - ending])
        }
        Type::String => "Text".to_owned(),
        Type::List(_) => "List".to_owned(),
        Type::Map(_) | Type::Any => "Object".to_owned(),
        Type::Integer => "Integer".to_owned(),
        Type::Number => "Number".to_owned(),
        Type::Boolean => "Boolean".to_owned(),
        Type::DateTime => "Time".to_owned(),
        Type::Literal(value) => variant_of(&value.to_string()),
        Type::Union(_) => "Union".to_owned(),
        Type::Nullable(inner) => union_variant(inner, ending),
    }
}

/// What the discriminator says where this variant is meant.
fn tag_of(variant: &Type, discriminator: &str, all: &[Schema]) -> Option<String> {
    let schema = find(all, name_of(variant)?)?;
    let Shape::Object(fields) = &schema.shape else {
        return None;
    };
    let field = fields.iter().find(|field| field.name == discriminator)?;
    let Type::Literal(value) = &field.ty else {
        return None;
    };
    value.as_str().map(str::to_owned)
}

/// The types of single items that stand for a list of one: those that are no variants themselves.
fn lifted(variants: &[Type], input: bool, all: &[Schema]) -> Vec<String> {
    let forms = |item: &Type| {
        let schema = name_of(item).and_then(|name| find(all, name));
        if let Some(Shape::Union { variants, .. }) = schema.map(|schema| &schema.shape) {
            variants.clone()
        } else {
            vec![item.clone()]
        }
    };
    let items = variants.iter().filter_map(item_of).flat_map(forms);
    items
        .filter(|item| !variants.contains(item))
        .map(|item| Rust.spell(&item, input))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, shape: Shape) -> Schema {
        Schema {
            name: name.to_owned(),
            description: String::new(),
            shape,
            input: true,
        }
    }

    fn named(name: &str) -> Type {
        Type::Named(name.to_owned())
    }

    fn recipients() -> Model {
        let item = Type::Union(vec![Type::String, named("Person")]);
        let union = Shape::Union {
            variants: vec![Type::String, Type::List(Box::new(item))],
            discriminator: None,
        };
        Model {
            version: String::new(),
            schemas: vec![schema("Recipients", union)],
            resources: Vec::new(),
            webhook_event: String::new(),
        }
    }

    #[test]
    fn a_union_within_a_schema_gets_a_name_and_one_item_stands_for_a_list() {
        let model = Model {
            schemas: schemas(&recipients()),
            ..recipients()
        };
        let all = &model.schemas;
        let names: Vec<&str> = all.iter().map(|schema| schema.name.as_str()).collect();
        assert_eq!(names, ["Recipients", "RecipientsItem"]);
        let seen = details(&all[0], &model);
        assert_eq!(seen["variants"][1]["type"], "Vec<RecipientsItem>");
        assert_eq!(seen["lifted"], json!(["Person"]));
    }

    #[test]
    fn variants_leave_out_what_all_end_with() {
        let variants = [named("SesCredentials"), named("SmtpCredentials")];
        let ending = common_ending(&variants);
        assert_eq!(union_variant(&variants[1], ending), "Smtp");
        assert_eq!(common_ending(&[named("Sent"), named("Sent")]), 0);
        assert_eq!(common_ending(&[Type::String, named("SmtpCredentials")]), 0);
    }

    #[test]
    fn an_absent_field_is_not_a_cleared_one() {
        let field = |required, ty| Field {
            zero: false,
            base64: false,
            example: Value::Null,
            name: "endsAt".to_owned(),
            description: "When. Else never.".to_owned(),
            required,
            ty,
        };
        let cleared = field(false, Type::Nullable(Box::new(Type::DateTime)));
        let seen = field_details(&cleared, true, false, &[]);
        assert_eq!(seen["type"], "Option<Option<DateTime<Utc>>>");
        assert_eq!(seen["brief"], "When.");
        assert_eq!(
            field_details(&cleared, false, false, &[])["type"],
            "Option<DateTime<Utc>>"
        );
        assert_eq!(
            field_details(&field(true, Type::Boolean), true, false, &[])["type"],
            "bool"
        );
    }

    #[test]
    fn a_value_that_is_called_other_is_not_the_unknown_one() {
        assert_eq!(variant_of("OTHER"), "OtherValue");
        assert_eq!(variant_of("recipientDomain"), "RecipientDomain");
        assert_eq!(variant_of("5xx"), "N5xx");
    }
}
