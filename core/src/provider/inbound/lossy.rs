//! Repairs invalid JSON. Providers copy the replies of receiving servers into their
//! events, and those may hold invalid UTF-8, half a surrogate pair, or a NUL. An invalid
//! byte or escape becomes U+FFFD. An event that cannot be repaired is left out; the other
//! events of the post are read.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// How often the start of the next event is searched for behind broken ones.
const SEARCHES_MAX: usize = 1_000;

/// The body as text, without the byte order mark that some senders put before it.
fn text(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
}

/// The body as JSON, repaired as far as possible.
pub(super) fn document(body: &[u8]) -> Cow<'_, str> {
    let text = text(body);
    if serde_json::from_str::<IgnoredAny>(&text).is_ok() {
        return text;
    }
    Cow::Owned(repair(&text))
}

/// A document with the errors inside its strings repaired. Halves of surrogate pairs, and
/// NULs, which PostgreSQL cannot store, become U+FFFD; control characters become spaces;
/// the backslash of an unknown escape is dropped. Everything else stays byte by byte.
pub(super) fn repair(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    let mut in_text = false;
    while let Some(at) = rest.find(|c: char| matches!(c, '"' | '\\') || c.is_ascii_control()) {
        repaired.push_str(&rest[..at]);
        let found = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match found {
            b'"' => {
                in_text = !in_text;
                repaired.push('"');
            }
            b'\\' if in_text => rest = escape(rest, &mut repaired),
            control if in_text => {
                let kept = if control < b' ' {
                    ' '
                } else {
                    char::from(control)
                };
                repaired.push(kept);
            }
            other => repaired.push(char::from(other)),
        }
    }
    repaired.push_str(rest);
    repaired
}

/// Writes the escape whose backslash was read; returns the text after it.
fn escape<'a>(rest: &'a str, repaired: &mut String) -> &'a str {
    match rest.as_bytes().first() {
        Some(b'u') => {}
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
            repaired.push('\\');
            repaired.push_str(&rest[..1]);
            return &rest[1..];
        }
        // Not an escape: the backslash is dropped.
        Some(_) | None => return rest,
    }
    let Some(unit) = code_unit(&rest[1..]) else {
        return rest;
    };
    let after = &rest[5..];
    let low = after.strip_prefix("\\u").and_then(code_unit);
    let kept = match (unit, low) {
        (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => 11,
        (0 | 0xd800..=0xdfff, _) => 0,
        _ => 5,
    };
    if kept == 0 {
        repaired.push('\u{fffd}');
        return after;
    }
    repaired.push('\\');
    repaired.push_str(&rest[..kept]);
    &rest[kept..]
}

/// The value of four hexadecimal digits.
fn code_unit(digits: &str) -> Option<u16> {
    let digits = digits.get(..4)?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
}

/// The raw elements of an array, and the number of broken ones. `None` if the text is not
/// an array.
pub(super) fn elements(json: &str) -> Option<(Vec<&str>, usize)> {
    if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(json) {
        return Some((elements.into_iter().map(RawValue::get).collect(), 0));
    }
    let mut rest = json.trim_start().strip_prefix('[')?.trim_start();
    let (mut elements, mut broken, mut searches) = (Vec::new(), 0, 0);
    while !rest.is_empty() && !rest.starts_with(']') {
        if let Some((element, after)) = first_value(rest) {
            elements.push(element);
            rest = after;
        } else {
            broken += 1;
            rest = next_object(rest, &mut searches).unwrap_or_default();
        }
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    }
    let is_of_objects = elements.iter().any(|element| element.starts_with('{'));
    is_of_objects.then_some((elements, broken))
}

/// The value at the start of a text, if a comma or the end of the array follows it.
fn first_value(text: &str) -> Option<(&str, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next()?.ok()?.get();
    let after = text[values.byte_offset()..].trim_start();
    let is_whole = after.is_empty() || after.starts_with([',', ']', '{']);
    is_whole.then_some((value, after))
}

/// The text from the next readable object on that starts after a comma, a brace or the end
/// of a line.
fn next_object<'a>(text: &'a str, searches: &mut usize) -> Option<&'a str> {
    let mut at = 1;
    while let Some(found) = text.get(at..)?.find('{') {
        at += found;
        let before = text[..at].trim_end_matches([' ', '\t']);
        let begins = before.ends_with([',', '}', '\n', '\r']);
        if begins {
            *searches += 1;
            if *searches > SEARCHES_MAX {
                return None;
            }
            let is_object = |(value, _): (&str, &str)| value.starts_with("{\"");
            if first_value(&text[at..]).is_some_and(is_object) {
                return text.get(at..);
            }
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_parts_are_replaced_and_the_rest_stays() {
        for (json, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#""\ud83d\ude00 \u00e9""#, r#""\ud83d\ude00 \u00e9""#),
            (r#""x\ud800y""#, "\"x\u{fffd}y\""),
            (r#""x\udc00y""#, "\"x\u{fffd}y\""),
            (r#""\ud800\ud83d\ude00""#, "\"\u{fffd}\\ud83d\\ude00\""),
            (r#""\ud800\u0041""#, "\"\u{fffd}\\u0041\""),
            (r#""\uD800\n""#, "\"\u{fffd}\\n\""),
            (r#""a\u0000b""#, "\"a\u{fffd}b\""),
            // The backslash itself is escaped.
            (r#""a\\u0000b\\ud800""#, r#""a\\u0000b\\ud800""#),
            (r#""a\x41 \' \u12""#, r#""ax41 ' u12""#),
            ("\"a\nb\tc\0d\"", "\"a b c d\""),
            ("{\r\n\"a\":\t1}", "{\r\n\"a\":\t1}"),
            (r#""\"\ud800""#, "\"\\\"\u{fffd}\""),
            (r#""\"#, "\""),
            (r#""\ud800"#, "\"\u{fffd}"),
        ] {
            assert_eq!(repair(json), expected, "{json}");
        }
    }

    #[test]
    fn one_broken_element_does_not_hide_the_others() {
        for (json, whole, broken) in [
            (r#"[{"a":1},{"b":2}]"#, &[r#"{"a":1}"#, r#"{"b":2}"#][..], 0),
            ("[]", &[], 0),
            (
                r#"[{"a":1},{"b":oops},{"c":3}]"#,
                &[r#"{"a":1}"#, r#"{"c":3}"#],
                1,
            ),
            (
                r#"[{"a":1},{"b":"x"y"},{"c":3}]"#,
                &[r#"{"a":1}"#, r#"{"c":3}"#],
                1,
            ),
            (
                r#"[{"a":1},{"b":"open},{"c":3}]"#,
                &[r#"{"a":1}"#, r#"{"c":3}"#],
                1,
            ),
            (r#"[{"a":1},{"c":3},]"#, &[r#"{"a":1}"#, r#"{"c":3}"#], 0),
            (r#"[{"a":1},{"c":3}"#, &[r#"{"a":1}"#, r#"{"c":3}"#], 0),
            (r#"[{"a":1},{"b":2"#, &[r#"{"a":1}"#], 1),
            ("[{\"a\":1}\r\n{\"c\":3}]", &[r#"{"a":1}"#, r#"{"c":3}"#], 0),
            ("[{bad},\r\n{\"c\":3}]\r\n", &[r#"{"c":3}"#], 1),
            (r#"[{"a":{"x":[{"y":1},2}},{"c":3}]"#, &[r#"{"c":3}"#], 1),
        ] {
            let found = elements(json).unwrap();
            assert_eq!(found.0, whole, "{json}");
            assert_eq!(found.1, broken, "{json}");
        }
        for none in ["", "{}", "[", "null", "[1] [2]", "[oops]", "]"] {
            assert_eq!(elements(none), None, "{none}");
        }
    }
}
