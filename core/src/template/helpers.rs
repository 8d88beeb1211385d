//! The helpers of templates: those of handlebars.js, and a few for comparing and counting.
//! This file computes the values of helpers; `run` renders the blocks of block helpers.

use std::cmp::Ordering;

use serde_json::Value;

use super::values::{self, Js, UNDEFINED};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    If,
    Unless,
    Each,
    With,
    Lookup,
    /// Does nothing, because logs must not contain customers' data.
    Log,
    /// A block whose content is not parsed.
    Raw,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    And,
    Or,
    Not,
    Length,
}

impl Helper {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "if" => Self::If,
            "unless" => Self::Unless,
            "each" => Self::Each,
            "with" => Self::With,
            "lookup" => Self::Lookup,
            "log" => Self::Log,
            "raw" => Self::Raw,
            "eq" => Self::Equal,
            "ne" => Self::NotEqual,
            "gt" => Self::Greater,
            "gte" => Self::GreaterOrEqual,
            "lt" => Self::Less,
            "lte" => Self::LessOrEqual,
            "and" => Self::And,
            "or" => Self::Or,
            "not" => Self::Not,
            "len" => Self::Length,
            _ => return None,
        })
    }

    /// Whether the name alone calls the helper, as for the helpers of handlebars.js. The name
    /// of another helper without arguments stands for a variable.
    pub(super) fn is_always_called(self) -> bool {
        match self {
            Self::If | Self::Unless | Self::Each | Self::With | Self::Lookup | Self::Log => true,
            Self::Raw
            | Self::Equal
            | Self::NotEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::And
            | Self::Or
            | Self::Not
            | Self::Length => false,
        }
    }

    /// The least and largest number of arguments.
    pub(super) fn values(self) -> (usize, usize) {
        match self {
            Self::If | Self::Unless | Self::Each | Self::With | Self::Not | Self::Length => (1, 1),
            Self::Lookup
            | Self::Equal
            | Self::NotEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual => (2, 2),
            Self::And | Self::Or => (2, usize::MAX),
            Self::Log => (0, usize::MAX),
            Self::Raw => (0, 0),
        }
    }

    /// The result of a helper that returns a boolean. Its block is then a branch. `None` for
    /// other helpers, and for `if` and `unless`, which also have an option.
    pub(super) fn condition(self, values: &[Js<'_>]) -> Option<bool> {
        let mut truths = values.iter().map(|value| values::is_true(value));
        let (left, right) = (values.first(), values.get(1));
        let order = || order(left?, right?);
        Some(match self {
            Self::Equal => is_equal(left?, right?),
            Self::NotEqual => !is_equal(left?, right?),
            Self::Greater => order() == Some(Ordering::Greater),
            Self::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrEqual => order().is_some_and(Ordering::is_le),
            Self::And => truths.all(|is_true| is_true),
            Self::Or => truths.any(|is_true| is_true),
            Self::Not => !values::is_true(left?),
            Self::If
            | Self::Unless
            | Self::Each
            | Self::With
            | Self::Lookup
            | Self::Log
            | Self::Raw
            | Self::Length => return None,
        })
    }

    /// The value of the helper outside a block.
    pub(super) fn value<'a>(self, values: &[Js<'a>]) -> Js<'a> {
        if let Some(condition) = self.condition(values) {
            return Js::Owned(Value::Bool(condition));
        }
        match self {
            Self::Lookup => lookup(values),
            Self::Length => Js::Owned(values.first().map_or(0, |value| length(value)).into()),
            Self::If | Self::Unless | Self::Each | Self::With => {
                Js::Owned(Value::String(String::new()))
            }
            Self::Log
            | Self::Raw
            | Self::Equal
            | Self::NotEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::And
            | Self::Or
            | Self::Not => UNDEFINED,
        }
    }
}

/// `{{lookup prices plan}}`: the property of a value whose name is another value. A falsy
/// value is returned itself.
fn lookup<'a>(values: &[Js<'a>]) -> Js<'a> {
    match values {
        [value, name] if values::is_truthy(value) => {
            let name = if name.is_null() {
                "null".to_owned()
            } else {
                values::to_text(name)
            };
            values::property(value, &name)
        }
        [value, ..] => value.clone(),
        [] => UNDEFINED,
    }
}

/// The number of items, fields or characters.
fn length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::String(text) => text.chars().count(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn is_equal(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(a), Some(b)) => {
            left == right || (a.total_cmp(&b).is_eq() && (left.is_f64() || right.is_f64()))
        }
        _ => left == right,
    }
}

/// Compares numbers by value and texts by characters. `None` for other values.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
