//! Go.
//!
//! The zero of a type stands for "none" where zero is not a value of its own: an empty id, the time zero, a nil list. So
//! most fields are plain. In requests the others are an `Optional`, as are fields that null clears; in answers they are
//! pointers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::language::Language;
use crate::model::{Field, Method, Model, Resource, Schema, Shape, Type};
use crate::naming;
use crate::samples::Call;

mod sample;

const LINE_MAX: usize = 118;
const TAB: usize = 4;

/// Words that Go writes in capitals, in any name.
const INITIALISMS: [&str; 25] = [
    "api", "bcc", "cc", "cname", "csv", "dkim", "dmarc", "dns", "html", "http", "https", "id",
    "ip", "json", "mjml", "mx", "ses", "smtp", "spf", "ttl", "txt", "uri", "url", "utc", "uuid",
];

/// Names that a parameter of a method cannot have.
const TAKEN: [&str; 29] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
    "var",
    "ctx",
    "request",
    "params",
    "options",
];

/// Go spells open values as strings with constants, and unions of requests as interfaces.
pub(crate) struct Go;

impl Language for Go {
    fn directory(&self) -> &'static str {
        "go"
    }

    fn name(&self) -> &'static str {
        "Go"
    }

    fn spell(&self, ty: &Type, _input: bool) -> String {
        spell(ty)
    }

    fn member(&self, words: &[String]) -> String {
        pascal(words)
    }

    fn class(&self, words: &[String]) -> String {
        pascal(words)
    }

    fn field(&self, name: &str) -> String {
        pascal(&naming::words(name))
    }

    fn extend(&self, model: &Model, context: &mut Value) -> Result<(), String> {
        let schemas: Result<Vec<Value>, String> = model
            .schemas
            .iter()
            .map(|schema| {
                schema_context(schema, model).map_err(|error| format!("{}: {error}", schema.name))
            })
            .collect();
        context["schemas"] = schemas?.into();
        context["webhookEvent"] = type_name(&model.webhook_event).into();
        for (index, resource) in model.resources.iter().enumerate() {
            for (place, method) in resource.methods.iter().enumerate() {
                let parameters = &method.path_parameters;
                if parameters
                    .iter()
                    .any(|parameter| parameter.ty != Type::String)
                {
                    return Err(format!("{}: a parameter that is not a text", method.route));
                }
                extend_method(
                    &mut context["resources"][index]["methods"][place],
                    method,
                    resource,
                );
            }
        }
        Ok(())
    }

    fn comment(&self, text: &str, indent: usize) -> String {
        let margin = "\t".repeat(indent);
        let lines = wrap(text, LINE_MAX - indent * TAB - 3);
        lines
            .iter()
            .map(|line| match line.as_str() {
                "" => format!("{margin}//\n"),
                line => format!("{margin}// {line}\n"),
            })
            .collect()
    }

    fn sample(&self, call: &Call<'_>) -> Result<String, String> {
        Ok(sample::sample(call))
    }
}

fn spell(ty: &Type) -> String {
    match ty {
        Type::Boolean | Type::Literal(Value::Bool(_)) => "bool".to_owned(),
        Type::String | Type::Literal(_) => "string".to_owned(),
        Type::DateTime => "time.Time".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float64".to_owned(),
        // A field may not have a union: see `readable`.
        Type::Any | Type::Union(_) => "any".to_owned(),
        Type::Named(name) => type_name(name),
        Type::List(item) => format!("[]{}", spell(item)),
        Type::Map(value) => format!("map[string]{}", spell(value)),
        Type::Nullable(inner) => format!("*{}", spell(inner)),
    }
}

/// The name of a schema: `APIKey` for `ApiKey`.
fn type_name(name: &str) -> String {
    pascal(&naming::words(name))
}

/// `WebhookURL`
fn pascal(words: &[String]) -> String {
    let word = |word: &String| {
        let plural = word
            .strip_suffix('s')
            .filter(|singular| INITIALISMS.contains(singular));
        match plural {
            _ if INITIALISMS.contains(&word.as_str()) => word.to_uppercase(),
            Some(singular) => format!("{}s", singular.to_uppercase()),
            None => naming::pascal(std::slice::from_ref(word)),
        }
    };
    words.iter().map(word).collect()
}

/// `webhookURL`
fn camel(words: &[String]) -> String {
    match words.split_first() {
        Some((first, rest)) => format!("{first}{}", pascal(rest)),
        None => String::new(),
    }
}

fn schema_context(schema: &Schema, model: &Model) -> Result<Value, String> {
    let name = type_name(&schema.name);
    let description = match schema.description.as_str() {
        "" => format!("{name} is a type of the API."),
        text => text.to_owned(),
    };
    let mut context = json!({"name": name, "description": description, "input": schema.input});
    match &schema.shape {
        Shape::Object(fields) => {
            let fields: Result<Vec<Value>, String> = fields
                .iter()
                .map(|field| field_context(field, schema, model))
                .collect();
            context["kind"] = "object".into();
            context["fields"] = fields?.into();
        }
        Shape::Enum(values) => {
            context["kind"] = "enum".into();
            context["values"] = constants(&name, values)?.into();
        }
        Shape::Union {
            variants,
            discriminator: Some(key),
        } => {
            context["kind"] = "tagged".into();
            context["key"] = key.clone().into();
            context["method"] = format!("{}Type", pascal(&naming::words(key))).into();
            context["variants"] = tagged(variants, key, model)?.into();
        }
        Shape::Union { .. } if !schema.input => {
            return Err("a union in an answer needs a discriminator".to_owned());
        }
        Shape::Union { variants, .. } => union_context(&mut context, &name, variants)?,
        Shape::Alias(ty) => {
            context["kind"] = "alias".into();
            context["type"] = spell(ty).into();
        }
    }
    Ok(context)
}

/// The constants of an enum, padded so that their types stand below each other.
fn constants(name: &str, values: &[String]) -> Result<Vec<Value>, String> {
    let names: Vec<String> = values
        .iter()
        .map(|value| format!("{name}{}", pascal(&naming::words(value))))
        .collect();
    let mut seen = BTreeSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(format!("two values are called {twice}"));
    }
    let width = names.iter().map(String::len).max().unwrap_or_default();
    Ok(names
        .iter()
        .zip(values)
        .map(|(name, value)| json!({"name": format!("{name:width$}"), "value": value}))
        .collect())
}

/// The variants of a union, each with the value of the field that tells them apart.
fn tagged(variants: &[Type], key: &str, model: &Model) -> Result<Vec<Value>, String> {
    let variant = |ty: &Type| {
        let Some(Shape::Object(fields)) = model.shape(ty) else {
            return Err("a variant is not an object".to_owned());
        };
        let found = fields.iter().find(|field| field.name == key);
        let Some(Type::Literal(Value::String(value))) = found.map(|field| &field.ty) else {
            return Err(format!("a variant has no single value of {key}"));
        };
        Ok(json!({"type": spell(ty), "value": value}))
    };
    variants.iter().map(variant).collect()
}

/// A union of a request. One thing or a list of things is a list. Other unions are interfaces that their variants
/// implement; texts are a `Text` there.
fn union_context(context: &mut Value, name: &str, variants: &[Type]) -> Result<(), String> {
    let list = variants.iter().find_map(|variant| {
        if let Type::List(items) = variant {
            Some(items.as_ref())
        } else {
            None
        }
    });
    let Some(items) = list else {
        context["kind"] = "interface".into();
        context["variants"] = interface(variants)?.into();
        return Ok(());
    };
    let items = if let Type::Union(items) = items {
        items.as_slice()
    } else {
        std::slice::from_ref(items)
    };
    let single = |variant: &&Type| !matches!(variant, Type::List(_));
    if variants.len() < 2
        || !variants
            .iter()
            .filter(single)
            .all(|one| items.contains(one))
    {
        return Err("a union of different things and lists".to_owned());
    }
    context["kind"] = "list".into();
    if let [only] = items {
        context["item"] = spell(only).into();
        context["variants"] = json!([]);
    } else {
        let item = name
            .strip_suffix('s')
            .map_or(format!("{name}Item"), str::to_owned);
        context["item"] = item.into();
        context["variants"] = interface(items)?.into();
    }
    Ok(())
}

fn interface(variants: &[Type]) -> Result<Vec<String>, String> {
    let variant = |ty: &Type| {
        if let Type::Named(name) = ty {
            Ok(type_name(name))
        } else if *ty == Type::String {
            Ok("Text".to_owned())
        } else {
            Err(format!("a union with {ty:?}"))
        }
    };
    variants.iter().map(variant).collect()
}

fn field_context(field: &Field, schema: &Schema, model: &Model) -> Result<Value, String> {
    let (nullable, ty) = if let Type::Nullable(inner) = &field.ty {
        (true, inner.as_ref())
    } else {
        (false, &field.ty)
    };
    if !readable(ty, schema.input, model) {
        return Err(format!("{}: a union that cannot be told apart", field.name));
    }
    let plain = if field.base64 && schema.input {
        "[]byte".to_owned()
    } else {
        spell(ty)
    };
    let shape = model.shape(ty);
    let none = nullable || !field.required;
    let object = matches!(shape, Some(Shape::Object(_)));
    let scalar = matches!(ty, Type::Integer | Type::Number | Type::Boolean);
    let spelled = if !none {
        plain
    } else if schema.input {
        // An empty filter filters nothing.
        let text = *ty == Type::String && field.zero && !field.base64 && !is_query(schema, model);
        let number = scalar && (field.zero || *ty == Type::Boolean);
        match nullable || text || number {
            true => format!("Optional[{plain}]"),
            false if object => format!("*{plain}"),
            false => plain,
        }
    } else if scalar || object {
        format!("*{plain}")
    } else {
        plain
    };
    // The service says that a required time is missing, rather than that the year 1 is wrong.
    let omit = !field.required || (schema.input && *ty == Type::DateTime);
    let tag = format!(
        "`json:\"{}{}\"`",
        field.name,
        if omit { ",omitzero" } else { "" }
    );
    let description = match (field.description.as_str(), ty) {
        ("", Type::Named(name)) => format!("See [{}].", type_name(name)),
        (text, _) => text.to_owned(),
    };
    Ok(
        json!({"name": Go.field(&field.name), "wire": field.name, "type": spelled, "tag": tag, "description": description}),
    )
}

/// Whether values of the type can be read and written. A union needs a name, and only requests may have fields of one.
fn readable(ty: &Type, input: bool, model: &Model) -> bool {
    match ty {
        Type::Union(_) => false,
        Type::List(inner) | Type::Map(inner) | Type::Nullable(inner) => {
            readable(inner, input, model)
        }
        Type::Named(_) => input || !matches!(model.shape(ty), Some(Shape::Union { .. })),
        Type::String
        | Type::DateTime
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Any
        | Type::Literal(_) => true,
    }
}

fn is_query(schema: &Schema, model: &Model) -> bool {
    let mut methods = model
        .resources
        .iter()
        .flat_map(|resource| &resource.methods);
    methods.any(|method| method.query.as_ref() == Some(&schema.name))
}

/// Adds the names of the parameters, and that of a second method for a body that is a text.
fn extend_method(context: &mut Value, method: &Method, resource: &Resource) {
    for (index, parameter) in method.path_parameters.iter().enumerate() {
        let mut name = camel(&naming::parameter_of(&parameter.name, &resource.path));
        if TAKEN.contains(&name.as_str()) {
            name.push('_');
        }
        context["parameters"][index]["member"] = name.into();
    }
    let text = method.body.as_ref().and_then(|body| body.text.as_ref());
    if let Some((_, subtype)) = text.and_then(|text| text.split_once('/')) {
        context["textName"] =
            pascal(&[method.name.clone(), naming::words(subtype)].concat()).into();
    }
}

/// Fills the lines of each paragraph anew, as gofmt has them: lists are indented, with an empty line around them.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let (mut open, mut in_list) = (false, false);
    for source in text.lines().map(str::trim) {
        let item = source.strip_prefix("- ");
        // An empty line ends a paragraph; a list begins and ends one.
        let apart = source.is_empty() || (item.is_some() != in_list && !(in_list && open));
        if apart && lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(String::new());
        }
        open &= !apart && item.is_none();
        in_list = item.is_some() || (in_list && open);
        let (mut lead, next) = if in_list { ("  - ", "    ") } else { ("", "") };
        for word in item.unwrap_or(source).split_whitespace() {
            match lines.last_mut() {
                Some(line) if open && line.chars().count() + 1 + word.chars().count() <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => {
                    if open {
                        lead = next;
                    }
                    lines.push(format!("{lead}{word}"));
                }
            }
            open = true;
        }
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(ty: Type, required: bool, zero: bool) -> Field {
        Field {
            name: "userIds".to_owned(),
            description: String::new(),
            required,
            ty,
            zero,
            base64: false,
            example: Value::Null,
        }
    }

    fn spelled(field: &Field, input: bool) -> String {
        let shape = Shape::Object(vec![field.clone()]);
        let schema = Schema {
            name: "Thing".to_owned(),
            description: String::new(),
            shape,
            input,
        };
        let model = Model {
            version: String::new(),
            schemas: vec![schema.clone()],
            resources: Vec::new(),
            webhook_event: String::new(),
        };
        let context = field_context(field, &schema, &model).unwrap();
        format!(
            "{} {}",
            context["type"].as_str().unwrap(),
            context["tag"].as_str().unwrap()
        )
    }

    #[test]
    fn names_are_in_the_style_of_go() {
        assert_eq!(type_name("ApiKey"), "APIKey");
        assert_eq!(
            Go.field("fallbackProviderAccountIds"),
            "FallbackProviderAccountIDs"
        );
        assert_eq!(
            camel(&naming::words("webhookEndpointId")),
            "webhookEndpointID"
        );
        assert_eq!(camel(&naming::words("id")), "id");
    }

    #[test]
    fn a_field_is_plain_unless_its_zero_is_a_value() {
        let tag = "`json:\"userIds,omitzero\"`";
        let optional = |ty, zero| spelled(&field(ty, false, zero), true);
        assert_eq!(optional(Type::String, false), format!("string {tag}"));
        assert_eq!(
            optional(Type::String, true),
            format!("Optional[string] {tag}")
        );
        assert_eq!(optional(Type::Integer, false), format!("int {tag}"));
        assert_eq!(
            optional(Type::Boolean, true),
            format!("Optional[bool] {tag}")
        );
        let nullable = Type::Nullable(Box::new(Type::DateTime));
        assert_eq!(
            optional(nullable.clone(), false),
            format!("Optional[time.Time] {tag}")
        );
        assert_eq!(
            spelled(&field(nullable, true, false), false),
            "time.Time `json:\"userIds\"`"
        );
        let number = Type::Nullable(Box::new(Type::Integer));
        assert_eq!(
            spelled(&field(number, true, true), false),
            "*int `json:\"userIds\"`"
        );
    }

    #[test]
    fn a_field_with_a_union_is_refused() {
        let model = Model {
            version: String::new(),
            schemas: Vec::new(),
            resources: Vec::new(),
            webhook_event: String::new(),
        };
        let union = Type::Union(vec![Type::String, Type::Integer]);
        assert!(!readable(&Type::List(Box::new(union)), true, &model));
        assert!(readable(&Type::List(Box::new(Type::String)), false, &model));
    }

    #[test]
    fn one_thing_or_a_list_is_a_list() {
        let items = Type::Union(vec![Type::String, Type::Named("Person".to_owned())]);
        let mut context = json!({});
        union_context(
            &mut context,
            "People",
            &[Type::String, Type::List(Box::new(items))],
        )
        .unwrap();
        let expected =
            json!({"kind": "list", "item": "PeopleItem", "variants": ["Text", "Person"]});
        assert_eq!(context, expected);
        let wrong = [Type::Integer, Type::List(Box::new(Type::String))];
        assert!(union_context(&mut json!({}), "Odd", &wrong).is_err());
    }

    #[test]
    fn values_of_one_name_are_refused() {
        let values = ["A_B".to_owned(), "a-b".to_owned()];
        assert_eq!(
            constants("X", &values).unwrap_err(),
            "two values are called XAB"
        );
    }

    #[test]
    fn comments_are_as_gofmt_has_them() {
        assert_eq!(Go.comment("", 1), "");
        assert_eq!(
            Go.comment("a\nb\n\n\n- c\n  d\n- e\n\nf", 1),
            "\t// a b\n\t//\n\t//   - c d\n\t//   - e\n\t//\n\t// f\n"
        );
    }
}
