//! The text form of the document in the repository: a value stands on one line if it fits,
//! so that a change of one field is a change of one line.

use std::fmt::Write as _;

use serde_json::Value;

/// The longest line of a list or an object.
const LINE_MAX: usize = 100;
const INDENT: usize = 2;

/// Writes a value, with a line break at the end.
pub(crate) fn write(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value that begins in this column.
fn write_value(value: &Value, indent: usize, column: usize, text: &mut String) {
    let line = on_one_line(value);
    let is_short = column + line.len() <= LINE_MAX;
    match value {
        Value::Object(members) if !is_short && !members.is_empty() => {
            let members = members.iter().map(|(name, value)| {
                let name = format!("{}: ", Value::from(name.as_str()));
                (name, value)
            });
            write_parts(['{', '}'], members, indent, text);
        }
        Value::Array(items) if !is_short && !items.is_empty() => {
            let items = items.iter().map(|item| (String::new(), item));
            write_parts(['[', ']'], items, indent, text);
        }
        Value::Object(_)
        | Value::Array(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => text.push_str(&line),
    }
}

fn write_parts<'a>(
    brackets: [char; 2],
    parts: impl Iterator<Item = (String, &'a Value)>,
    indent: usize,
    text: &mut String,
) {
    let inner = indent + INDENT;
    text.push(brackets[0]);
    for (nth, (name, value)) in parts.enumerate() {
        let separator = if nth == 0 { "\n" } else { ",\n" };
        write!(text, "{separator}{:inner$}{name}", "").expect("a string can be written to");
        // One more for the comma.
        write_value(value, inner, inner + name.len() + 1, text);
    }
    write!(text, "\n{:indent$}{}", "", brackets[1]).expect("a string can be written to");
}

fn on_one_line(value: &Value) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(name, value)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(value))
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items = items.iter().map(on_one_line);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            value.to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_values_stand_on_one_line_and_the_text_is_the_value() {
        let long = "x".repeat(LINE_MAX);
        let value = json!({ "a": { "b": [1, 2, {}], "c": null }, "d": [long, "\"\n"], "e": [] });
        let text = write(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(
            text.lines().nth(1),
            Some(r#"  "a": { "b": [1, 2, {}], "c": null },"#)
        );
    }
}
