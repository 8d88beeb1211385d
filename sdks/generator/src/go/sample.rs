//! Samples of Go: a program for each operation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Go, constants, field_context, pascal, spell, type_name};
use crate::language::Language as _;
use crate::layout::{Node, Style};
use crate::model::{Answer, Field, Model, Schema, Shape, Type};
use crate::samples::Call;

const STYLE: Style = Style {
    indent: "\t",
    padding: "",
    width: 100,
    hugs: true,
    aligns: true,
};
const FAILED: &str = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n";

pub(super) fn sample(call: &Call<'_>) -> String {
    let path: Vec<String> = call
        .resource
        .path
        .iter()
        .map(|words| pascal(words))
        .collect();
    let method = format!("client.{}.{}(", path.join("."), pascal(&call.method.name));
    let is_list = matches!(call.method.answer, Answer::Page(_));
    let mut arguments = Vec::new();
    if !is_list {
        arguments.push(Node::text("context.Background()"));
    }
    arguments.extend(call.path().map(|id| Node::text(format!("{id:?}"))));
    arguments.extend(
        call.method
            .body
            .as_ref()
            .map(|body| literal(&body.example, &body.ty, call.model).after("&")),
    );
    arguments.extend(call.method.query.as_ref().map(|_| Node::text("nil")));
    let made = Node::list(method, arguments, ")");
    let statement = match &call.method.answer {
        Answer::Page(_) => {
            let open = made
                .after("for item, err := range ")
                .before(".All(context.Background()) {");
            format!(
                "{}\n\t\tif err != nil {{\n\t\t\tlog.Fatal(err)\n\t\t}}\n\t\tfmt.Println(item)\n\t}}\n",
                open.render(STYLE, 1)
            )
        }
        Answer::Raw => {
            let response = made.after("response, err := ").render(STYLE, 1);
            format!(
                "{response}\n{FAILED}\tdefer response.Body.Close()\n\t_, err = io.Copy(os.Stdout, response.Body)\n{FAILED}"
            )
        }
        Answer::Whole(_) | Answer::Data(_) => {
            let words = call.variable();
            let variable = super::camel(&words);
            let variable = if super::TAKEN.contains(&variable.as_str()) {
                "answer".to_owned()
            } else {
                variable
            };
            let answer = made.after(&format!("{variable}, err := ")).render(STYLE, 1);
            format!("{answer}\n{FAILED}\tfmt.Println({variable})\n")
        }
    };
    let imports: String = ["context", "fmt", "io", "log", "os", "time"]
        .iter()
        .filter(|package| **package == "log" || statement.contains(&format!("{package}.")))
        .map(|package| format!("\t\"{package}\"\n"))
        .collect();
    format!(
        "package main\n\nimport (\n{imports}\n\t\"waypost\"\n)\n\nfunc main() {{\n\tclient, err := waypost.New()\n{FAILED}\t{statement}}}\n"
    )
}

/// A value of this type.
fn literal(value: &Value, ty: &Type, model: &Model) -> Node {
    match (ty, value) {
        (Type::Nullable(inner), _) => literal(value, inner, model),
        (Type::DateTime, Value::String(text)) => Node::text(time(text)),
        (Type::Number, Value::Number(number)) if number.is_i64() => {
            Node::text(format!("{number}.0"))
        }
        (Type::List(item), Value::Array(items)) => {
            let items = items
                .iter()
                .map(|value| untyped(literal(value, item, model)));
            Node::list(format!("[]{}{{", qualified(item)), items.collect(), "}")
        }
        (Type::Map(inner), Value::Object(fields)) => map(&qualified(inner), fields, |value| {
            literal(value, inner, model)
        }),
        (Type::Named(name), _) => {
            let found = model.schemas.iter().find(|schema| schema.name == *name);
            found.map_or_else(|| any(value), |schema| named(value, schema, model))
        }
        _ => any(value),
    }
}

/// An item of a list, whose type the list says.
fn untyped(node: Node) -> Node {
    match node {
        Node::List { open, items, close }
            if open.starts_with("waypost.") && open.ends_with('{') =>
        {
            Node::list("{", items, close)
        }
        other @ (Node::Text(_) | Node::List { .. }) => other,
    }
}

/// A value of a named type.
fn named(value: &Value, schema: &Schema, model: &Model) -> Node {
    let name = type_name(&schema.name);
    match (&schema.shape, value) {
        (Shape::Alias(ty), _) => literal(value, ty, model),
        (Shape::Object(fields), Value::Object(given)) => {
            object(&name, given, fields, schema, model)
        }
        (Shape::Enum(values), Value::String(text)) => {
            let constants = constants(&name, values).unwrap_or_default();
            let found = constants
                .iter()
                .find(|constant| constant["value"] == **text);
            let constant = found
                .and_then(|constant| constant["name"].as_str())
                .map(str::trim);
            constant.map_or_else(
                || any(value),
                |constant| Node::text(format!("waypost.{constant}")),
            )
        }
        (Shape::Union { variants, .. }, _) => union(&name, value, variants, model),
        (Shape::Object(_) | Shape::Enum(_), _) => any(value),
    }
}

fn object(
    name: &str,
    given: &Map<String, Value>,
    fields: &[Field],
    schema: &Schema,
    model: &Model,
) -> Node {
    let field = |field: &Field| {
        let value = given.get(&field.name)?;
        let context = field_context(field, schema, model).ok()?;
        let ty = context["type"].as_str().unwrap_or_default();
        let plain = if let (Value::String(text), "[]byte") = (value, ty) {
            bytes(text)
        } else {
            literal(value, &field.ty, model)
        };
        let node = match (ty.strip_prefix("Optional["), value) {
            (Some(of), Value::Null) => {
                Node::text(format!("waypost.Null[{}]()", of.trim_end_matches(']')))
            }
            (Some(_), _) => plain.after("waypost.Value(").before(")"),
            (None, _) if ty.starts_with('*') => plain.after("&"),
            (None, _) => plain,
        };
        Some(node.after(&format!("{}: ", Go.field(&field.name))))
    };
    Node::list(
        format!("waypost.{name}{{"),
        fields.iter().filter_map(field).collect(),
        "}",
    )
}

/// A list of one thing or several, or what has the fields of the value.
fn union(name: &str, value: &Value, variants: &[Type], model: &Model) -> Node {
    let list = variants.iter().find_map(|variant| {
        if let Type::List(items) = variant {
            Some(items.as_ref())
        } else {
            None
        }
    });
    let Some(items) = list else {
        let found = model.variant_of(value, variants);
        return found.map_or_else(|| any(value), |variant| literal(value, variant, model));
    };
    let values = value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice);
    let is_text = |value: &&Value| value.is_string();
    let variants = if let Type::Union(items) = items {
        items.as_slice()
    } else {
        std::slice::from_ref(items)
    };
    // A list of texts, or of an interface, which texts implement as `Text`.
    let of_texts = matches!(variants, [_]);
    if !of_texts && name == RECIPIENTS && values.iter().all(|value| is_text(&value)) {
        return Node::list("waypost.To(", values.iter().map(any).collect(), ")");
    }
    let item = |value: &Value| {
        let named = variants
            .iter()
            .find(|variant| matches!(variant, Type::Named(_)));
        match named {
            Some(variant) if value.is_object() => literal(value, variant, model),
            _ if of_texts => any(value),
            _ => any(value).after("waypost.Text(").before(")"),
        }
    };
    Node::list(
        format!("waypost.{name}{{"),
        values.iter().map(item).collect(),
        "}",
    )
}

/// The type whose values the function `To` of the runtime makes.
const RECIPIENTS: &str = "Recipients";

fn map(of: &str, fields: &Map<String, Value>, item: impl Fn(&Value) -> Node) -> Node {
    let items = fields
        .iter()
        .map(|(key, value)| item(value).after(&format!("{key:?}: ")));
    Node::list(format!("map[string]{of}{{"), items.collect(), "}")
}

fn any(value: &Value) -> Node {
    match value {
        Value::Null => Node::text("nil"),
        Value::Array(items) => Node::list("[]any{", items.iter().map(any).collect(), "}"),
        Value::Object(fields) => map("any", fields, any),
        simple @ (Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Node::text(simple.to_string())
        }
    }
}

/// The type as a program outside of the package writes it.
fn qualified(ty: &Type) -> String {
    match ty {
        Type::Named(_) => format!("waypost.{}", spell(ty)),
        Type::List(item) => format!("[]{}", qualified(item)),
        Type::Map(item) => format!("map[string]{}", qualified(item)),
        plain @ (Type::String
        | Type::DateTime
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Any
        | Type::Literal(_)
        | Type::Union(_)
        | Type::Nullable(_)) => spell(plain),
    }
}

/// The bytes of a text in base64.
fn bytes(text: &str) -> Node {
    let bytes = STANDARD.decode(text).unwrap_or_default();
    let escaped: String = bytes
        .iter()
        .map(|byte| match byte {
            b'"' | b'\\' => format!("\\{}", *byte as char),
            b' '..=b'~' => (*byte as char).to_string(),
            byte => format!("\\x{byte:02x}"),
        })
        .collect();
    Node::text(format!("[]byte(\"{escaped}\")"))
}

/// A time such as `2027-03-01T09:00:00+01:00`.
fn time(text: &str) -> String {
    let number = |range: std::ops::Range<usize>| {
        text.get(range)
            .and_then(|digits| digits.parse::<i64>().ok())
            .unwrap_or_default()
    };
    let zone = match text.get(19..20) {
        Some(sign @ ("+" | "-")) => {
            let minus = if sign == "-" { "-" } else { "" };
            format!(
                "time.FixedZone(\"\", {minus}{})",
                number(20..22) * 3600 + number(23..25) * 60
            )
        }
        _ => "time.UTC".to_owned(),
    };
    let parts = [
        number(0..4),
        number(5..7),
        number(8..10),
        number(11..13),
        number(14..16),
        number(17..19),
    ];
    let parts: Vec<String> = parts.iter().map(i64::to_string).collect();
    format!("time.Date({}, 0, {zone})", parts.join(", "))
}
