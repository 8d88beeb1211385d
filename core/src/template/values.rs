//! JSON values with the semantics of JavaScript: properties, truthiness, equality and
//! conversion to text.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A value that is borrowed from the variables or the template, or computed: a number, a
/// boolean or a character.
pub(super) type Js<'a> = Cow<'a, Value>;

pub(super) const UNDEFINED: Js<'static> = Cow::Borrowed(&Value::Null);

/// The number of values in a value, including itself. Each 64 bytes of a string or a field
/// name count as one more.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| name.len() as u64 / 64 + size(value);
            1 + fields.iter().map(field).sum::<u64>()
        }
    }
}

/// A property of a value: a field, an item, a character or a length. Properties that
/// JavaScript objects inherit do not exist.
pub(super) fn property<'a>(value: &Js<'a>, name: &str) -> Js<'a> {
    let found = match value {
        Cow::Borrowed(Value::Object(fields)) => fields.get(name),
        Cow::Borrowed(Value::Array(items)) => match (index(name), name) {
            (Some(index), _) => items.get(index),
            (None, "length") => return Cow::Owned(Value::from(items.len())),
            (None, _) => None,
        },
        Cow::Borrowed(Value::String(text)) => return string_property(text, name),
        Cow::Owned(Value::String(text)) => return string_property(text, name),
        Cow::Borrowed(_) | Cow::Owned(_) => None,
    };
    found.map_or(UNDEFINED, Cow::Borrowed)
}

/// A property of a string. JavaScript counts UTF-16 code units.
fn string_property<'a>(text: &str, name: &str) -> Js<'a> {
    if name == "length" {
        return Cow::Owned(Value::from(text.encode_utf16().count()));
    }
    let unit = index(name).and_then(|index| text.encode_utf16().nth(index));
    unit.map_or(UNDEFINED, |unit| {
        Cow::Owned(String::from_utf16_lossy(&[unit]).into())
    })
}

/// Parses a name as an index: digits without a leading zero.
pub(super) fn index(name: &str) -> Option<usize> {
    let is_plain = name == "0" || !name.starts_with('0');
    let is_index = is_plain && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| is_index)
}

/// The fields of an object in JavaScript's order: first those that are indexes, by number,
/// then the others in their given order.
pub(super) fn fields(fields: &serde_json::Map<String, Value>) -> Vec<(&str, &Value)> {
    let rank = |name: &str| index(name).filter(|index| *index < u32::MAX as usize);
    let mut fields: Vec<(&str, &Value)> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    fields.sort_by_key(|(name, _)| rank(name).unwrap_or(usize::MAX));
    fields
}

/// `isEmpty` of handlebars.js. Zero is not empty.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    }
}

pub(super) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

/// Whether `if` treats a value as true.
pub(super) fn is_true(value: &Value) -> bool {
    !is_empty(value) && !is_zero(value)
}

/// Whether JavaScript treats a value as true. Unlike for `if`, an empty array is true.
pub(super) fn is_truthy(value: &Value) -> bool {
    is_true(value) || value.is_array()
}

/// JavaScript's `==`. handlebars.js uses it to detect whether a block has the same context
/// as its outer block.
pub(super) fn is_same(left: &Js<'_>, right: &Js<'_>) -> bool {
    match (left.as_ref(), right.as_ref()) {
        (Value::Null, Value::Null) => true,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(_) | Value::Object(_), Value::Array(_) | Value::Object(_)) => {
            std::ptr::eq(left.as_ref(), right.as_ref())
        }
        (Value::Array(_) | Value::Object(_), Value::String(text))
        | (Value::String(text), Value::Array(_) | Value::Object(_)) => {
            let other = if left.is_string() { right } else { left };
            to_text(other) == *text
        }
        (left, right) => match (to_number(left), to_number(right)) {
            (Some(left), Some(right)) => left.partial_cmp(&right).is_some_and(Ordering::is_eq),
            _ => false,
        },
    }
}

fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            let text = text.trim_matches(super::lexer::is_space);
            if text.is_empty() {
                Some(0.0)
            } else {
                text.parse().ok()
            }
        }
        Value::Array(_) => to_number(&Value::String(to_text(value))),
        Value::Null | Value::Object(_) => None,
    }
}

/// Converts a value to text as JavaScript does.
pub(super) fn to_text(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

/// Writes a value as JavaScript does. Writes nothing for null.
pub(super) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(number, out),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
        }
        Value::Object(_) => out.push_str("[object Object]"),
    }
}

/// ECMAScript's Number::toString (6.1.6.1.20). Unlike in JavaScript, integers of more than
/// 53 bits keep all digits.
fn write_number(number: &Number, out: &mut String) {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else {
        let _infallible = write!(out, "{number}");
        return;
    };
    if float == 0.0 {
        out.push('0');
        return;
    }
    // Rust and JavaScript write the same digits: the fewest that parse to the same number.
    let shortest = format!("{:e}", float.abs());
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = digits.replace('.', "");
    let count = digits.len();
    // Digits before the decimal point.
    let whole = exponent.parse::<i32>().unwrap_or(0) + 1;
    if float < 0.0 {
        out.push('-');
    }
    match usize::try_from(whole) {
        Ok(whole) if count <= whole && whole <= 21 => {
            out.push_str(&digits);
            out.push_str(&"0".repeat(whole - count));
        }
        Ok(whole) if 0 < whole && whole <= 21 => {
            out.push_str(&digits[..whole]);
            out.push('.');
            out.push_str(&digits[whole..]);
        }
        _ if -6 < whole && whole <= 0 => {
            out.push_str("0.");
            out.push_str(&"0".repeat(whole.unsigned_abs() as usize));
            out.push_str(&digits);
        }
        _ => {
            out.push_str(&digits[..1]);
            if count > 1 {
                out.push('.');
                out.push_str(&digits[1..]);
            }
            let _infallible = write!(out, "e{:+}", whole - 1);
        }
    }
}

/// `Utils.escapeExpression` of handlebars.js.
pub(super) fn write_escaped(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'', '`', '=']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            b'\'' => "&#x27;",
            b'`' => "&#x60;",
            _ => "&#x3D;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_javascript_writes_them() {
        for (value, written) in [
            ("1.0", "1"),
            ("-0.0", "0"),
            ("0.1", "0.1"),
            ("-1.50", "-1.5"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1.25e22", "1.25e+22"),
            ("123456789.125", "123456789.125"),
            ("0.000001", "0.000001"),
            ("0.00000123", "0.00000123"),
            ("0.0000001", "1e-7"),
            ("1.5e-9", "1.5e-9"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740993", "9007199254740993"),
            ("true", "true"),
            ("false", "false"),
            ("null", ""),
            ("[]", ""),
            ("[1, [2, null], {}, \"a\"]", "1,2,,[object Object],a"),
            ("{}", "[object Object]"),
        ] {
            let parsed: Value = serde_json::from_str(value).unwrap();
            assert_eq!(to_text(&parsed), written, "{value}");
        }
    }

    #[test]
    fn only_own_properties_exist() {
        let value = json!({ "a": [1, 2], "t": "a😀", "length": "own", "n": 5 });
        let value = Cow::Borrowed(&value);
        let at = |path: &[&str]| {
            path.iter()
                .fold(value.clone(), |value, name| property(&value, name))
                .into_owned()
        };
        assert_eq!(at(&["a", "length"]), json!(2));
        assert_eq!(at(&["a", "1"]), json!(2));
        assert_eq!(at(&["a", "01"]), json!(null));
        assert_eq!(at(&["t", "length"]), json!(3));
        assert_eq!(at(&["t", "0", "length"]), json!(1));
        assert_eq!(at(&["length"]), json!("own"));
        for name in ["constructor", "__proto__", "toString", "map", "length"] {
            assert_eq!(at(&["n", name]), json!(null), "{name}");
        }
        assert_eq!(at(&["constructor"]), json!(null));
    }

    #[test]
    fn fields_that_are_indexes_come_first() {
        let value: Value =
            serde_json::from_str(r#"{"b":1,"10":2,"a":3,"2":4,"01":5,"-1":6}"#).unwrap();
        let names: Vec<_> = fields(value.as_object().unwrap())
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["2", "10", "b", "a", "01", "-1"]);
    }
}
