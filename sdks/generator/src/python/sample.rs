//! Samples of Python: a program for each operation.

use serde_json::Value;

use super::Python;
use crate::language::Language as _;
use crate::layout::{Node, Style};
use crate::model::{Answer, Model, Shape, Type};
use crate::samples::Call;

const STYLE: Style = Style {
    indent: "    ",
    padding: "",
    width: 88,
    hugs: false,
    aligns: false,
};

pub(super) fn sample(call: &Call<'_>) -> String {
    let path: Vec<String> = call
        .resource
        .path
        .iter()
        .map(|words| Python.member(words))
        .collect();
    let method = format!(
        "waypost.{}.{}(",
        path.join("."),
        Python.member(&call.method.name)
    );
    let mut arguments: Vec<Node> = call
        .path()
        .map(|id| Node::text(format!("{id:?}")))
        .collect();
    if let Some(body) = &call.method.body
        && let (Some(Shape::Object(fields)), Some(given)) =
            (call.model.shape(&body.ty), body.example.as_object())
    {
        let values = fields
            .iter()
            .filter_map(|field| Some((field, given.get(&field.name)?)));
        arguments.extend(values.map(|(field, value)| {
            literal(value, &field.ty, call.model).after(&format!("{}=", Python.field(&field.name)))
        }));
    }
    let made = Node::list(method, arguments, ")");
    let statement = match &call.method.answer {
        Answer::Page(_) => {
            let open = made.after("for item in ").before(":");
            format!("{}\n    print(item)", open.render(STYLE, 0))
        }
        Answer::Raw => {
            let response = made.after("response = ");
            format!("{}\ncontent = response.read()", response.render(STYLE, 0))
        }
        Answer::Whole(_) | Answer::Data(_) => {
            let variable = Python.member(&call.variable());
            let answer = made.after(&format!("{variable} = "));
            format!("{}\nprint({variable})", answer.render(STYLE, 0))
        }
    };
    format!("from waypost import Waypost\n\nwaypost = Waypost()\n{statement}\n")
}

/// A value of this type. The keys of a described object are in snake case.
fn literal(value: &Value, ty: &Type, model: &Model) -> Node {
    let ty = described(value, ty, model);
    match value {
        Value::Object(given) => {
            let fields = match model.shape(ty) {
                Some(Shape::Object(fields)) => fields.as_slice(),
                Some(Shape::Enum(_) | Shape::Union { .. } | Shape::Alias(_)) | None => &[],
            };
            let item = |(key, value): (&String, &Value)| match fields
                .iter()
                .find(|field| field.name == *key)
            {
                Some(field) => {
                    literal(value, &field.ty, model).after(&format!("{:?}: ", Python.field(key)))
                }
                None => literal(value, &Type::Any, model).after(&format!("{key:?}: ")),
            };
            Node::list("{", given.iter().map(item).collect(), "}")
        }
        Value::Array(items) => {
            let of = if let Type::List(item) = ty {
                item.as_ref()
            } else {
                &Type::Any
            };
            Node::list(
                "[",
                items
                    .iter()
                    .map(|value| literal(value, of, model))
                    .collect(),
                "]",
            )
        }
        Value::Bool(true) => Node::text("True"),
        Value::Bool(false) => Node::text("False"),
        Value::Null => Node::text("None"),
        Value::Number(_) | Value::String(_) => Node::text(value.to_string()),
    }
}

/// The part of a type that describes the value: of a union, the list or the object with its fields.
fn described<'a>(value: &Value, ty: &'a Type, model: &'a Model) -> &'a Type {
    match ty {
        Type::Nullable(inner) => described(value, inner, model),
        Type::Union(variants) => model.variant_of(value, variants).unwrap_or(&Type::Any),
        Type::Named(_) => match model.shape(ty) {
            Some(Shape::Union { variants, .. }) => {
                model.variant_of(value, variants).unwrap_or(&Type::Any)
            }
            Some(Shape::Alias(inner)) => described(value, inner, model),
            Some(Shape::Object(_) | Shape::Enum(_)) | None => ty,
        },
        Type::String
        | Type::DateTime
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Any
        | Type::List(_)
        | Type::Map(_)
        | Type::Literal(_) => ty,
    }
}
