//! Samples of Rust: a program for each operation.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::details::{schemas, variant_of};
use super::{Rust, rustfmt};
use crate::language::Language as _;
use crate::model::{Answer, Field, Model, Shape, Type};
use crate::samples::Call;

const LINE_MAX: usize = 90;

pub(super) fn sample(call: &Call<'_>) -> Result<String, String> {
    // With names for the unions that have none in the document, as the SDK has them.
    let model = Model {
        schemas: schemas(call.model),
        ..call.model.clone()
    };
    let mut writer = Writer {
        model: &model,
        types: BTreeSet::new(),
    };
    let mut arguments: Vec<String> = call.path().map(|id| format!("{id:?}")).collect();
    let mut request = String::new();
    if let Some(body) = &call.method.body {
        request = format!("let request = {};\n", writer.value(&body.example, &body.ty));
        arguments.push(
            if body.required {
                "&request"
            } else {
                "Some(&request)"
            }
            .to_owned(),
        );
    }
    let path: Vec<String> = call
        .resource
        .path
        .iter()
        .map(|words| format!("{}()", Rust.member(words)))
        .collect();
    let made = format!(
        "waypost.{}.{}({})",
        path.join("."),
        Rust.member(&call.method.name),
        arguments.join(", ")
    );
    let statement = match &call.method.answer {
        Answer::Page(_) => format!(
            "let mut items = {made}.stream();\nwhile let Some(item) = items.try_next().await? {{ println!(\"{{item:?}}\"); }}\n"
        ),
        Answer::Raw => format!(
            "let content = {made}.await?.bytes().await?;\nprintln!(\"{{}} bytes\", content.len());\n"
        ),
        Answer::Whole(_) | Answer::Data(_) => {
            let variable = Rust.member(&call.variable());
            format!("let {variable} = {made}.await?;\nprintln!(\"{{{variable}:?}}\");\n")
        }
    };
    let body = format!("{request}{statement}");
    let mut imports = String::new();
    if statement.contains("try_next") {
        imports.push_str("use futures_util::TryStreamExt;\n");
    }
    for (word, import) in [
        ("DateTime::", "chrono::DateTime"),
        ("json!", "serde_json::json"),
    ] {
        if body.contains(word) {
            imports.push_str(&format!("use waypost::{import};\n"));
        }
    }
    let types: Vec<String> = writer.types.into_iter().collect();
    imports.push_str(&match types.as_slice() {
        [] => "use waypost::Waypost;\n".to_owned(),
        types => format!(
            "use waypost::{{Waypost, types::{{{}}}}};\n",
            types.join(", ")
        ),
    });
    let program = format!(
        "{imports}\n#[tokio::main]\nasync fn main() -> Result<(), Box<dyn std::error::Error>> {{\nlet waypost = Waypost::from_env()?;\n{body}Ok(())\n}}\n"
    );
    rustfmt(program, LINE_MAX)
}

struct Writer<'a> {
    model: &'a Model,
    /// The types that the program names.
    types: BTreeSet<String>,
}

impl Writer<'_> {
    /// An expression that what takes this type takes.
    fn value(&mut self, value: &Value, ty: &Type) -> String {
        match (ty, value) {
            (Type::Nullable(inner), _) => self.value(value, inner),
            (Type::DateTime, Value::String(text)) => {
                format!("DateTime::parse_from_rfc3339({text:?})?")
            }
            (Type::Number, Value::Number(number)) if number.is_i64() => format!("{number}.0"),
            (Type::List(item), Value::Array(items)) => self.list(items, item),
            (Type::Map(inner), Value::Object(fields)) if **inner != Type::Any => {
                let pairs: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("({name:?}, {})", self.value(value, inner)))
                    .collect();
                format!("[{}]", pairs.join(", "))
            }
            (Type::Named(name), _) => self.named(value, name),
            (_, Value::String(text)) => format!("{text:?}"),
            (_, Value::Number(_) | Value::Bool(_)) => value.to_string(),
            (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
                format!("json!({})", spaced(value))
            }
        }
    }

    fn named(&mut self, value: &Value, name: &str) -> String {
        let model = self.model;
        match (model.shape(&Type::Named(name.to_owned())), value) {
            (Some(Shape::Alias(ty)), _) => self.value(value, ty),
            (Some(Shape::Object(fields)), Value::Object(given)) => self.object(name, fields, given),
            (Some(Shape::Enum(_)), Value::String(text)) => {
                self.types.insert(name.to_owned());
                format!("{name}::{}", variant_of(text))
            }
            (Some(Shape::Union { variants, .. }), _) => {
                let found = model.variant_of(value, variants);
                self.value(value, found.unwrap_or(&Type::Any))
            }
            _ => self.value(value, &Type::Any),
        }
    }

    /// `new` takes what is required; a method sets each other field.
    fn object(&mut self, name: &str, fields: &[Field], given: &Map<String, Value>) -> String {
        self.types.insert(name.to_owned());
        let (mut required, mut set) = (Vec::new(), String::new());
        for field in fields {
            let Some(value) = given.get(&field.name) else {
                continue;
            };
            let member = Rust.field(&field.name);
            if value.is_null() {
                set.push_str(&format!(".clear_{}()", member.trim_start_matches("r#")));
            } else if field.required {
                required.push(self.value(value, &field.ty));
            } else {
                set.push_str(&format!(".{member}({})", self.value(value, &field.ty)));
            }
        }
        format!("{name}::new({}){set}", required.join(", "))
    }

    /// An array. Items of several kinds are converted to the union that they are of.
    fn list(&mut self, items: &[Value], ty: &Type) -> String {
        let union = match (ty, self.model.shape(ty)) {
            (Type::Named(name), Some(Shape::Union { .. }))
                if items.iter().any(|item| !item.is_string()) =>
            {
                Some(name)
            }
            _ => None,
        };
        let items: Vec<String> = items
            .iter()
            .map(|item| match (union, self.value(item, ty)) {
                (Some(name), value) => {
                    self.types.insert(name.clone());
                    format!("{name}::from({value})")
                }
                (None, value) => value,
            })
            .collect();
        format!("[{}]", items.join(", "))
    }
}

/// JSON with spaces, as one writes it.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(spaced).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{name:?}: {}", spaced(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
