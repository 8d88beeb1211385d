//! The hash by which request bodies are compared. Two bodies are equal if they are the same
//! JSON: white space and the order of members do not count, because the client's serializer
//! may write a map in another order the next time.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The SHA-256 of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyHash(pub [u8; 32]);

/// The hash of a body.
#[must_use]
pub fn of(body: &Value) -> BodyHash {
    let mut hash = Sha256::new();
    add(&mut hash, body);
    BodyHash(hash.finalize().into())
}

/// The hash of a text that is not in a [`Value`].
#[must_use]
pub fn of_text(text: &str) -> BodyHash {
    let mut hash = Sha256::new();
    add_text(&mut hash, b"s", text);
    BodyHash(hash.finalize().into())
}

/// Every value begins with its kind, and every value of variable length with its length, so
/// different values never have the same encoding. The parser limits the depth of recursion to
/// 128 levels.
fn add(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Number(number) => add_text(hash, b"#", &number.to_string()),
        Value::String(text) => add_text(hash, b"s", text),
        Value::Array(items) => {
            add_length(hash, b"[", items.len());
            items.iter().for_each(|item| add(hash, item));
        }
        Value::Object(members) => add_members(hash, members),
    }
}

fn add_members(hash: &mut Sha256, members: &Map<String, Value>) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    add_length(hash, b"{", sorted.len());
    for (name, value) in sorted {
        add_text(hash, b"s", name);
        add(hash, value);
    }
}

fn add_text(hash: &mut Sha256, kind: &[u8], text: &str) {
    add_length(hash, kind, text.len());
    hash.update(text.as_bytes());
}

fn add_length(hash: &mut Sha256, kind: &[u8], length: usize) {
    hash.update(kind);
    hash.update(length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> BodyHash {
        of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn order_and_white_space_do_not_count() {
        let one = hash(r#"{"a": 1, "b": [true, {"x": null, "y": "z"}]}"#);
        assert_eq!(
            one,
            hash("{\"b\":[true,{\"y\":\"z\",\"x\":null}],\n\"a\":1}")
        );
    }

    #[test]
    fn everything_else_counts() {
        let texts = [
            "{}",
            "[]",
            "null",
            "false",
            "true",
            "0",
            r#""0""#,
            r#""""#,
            r#"["a","b"]"#,
            r#"["b","a"]"#,
            r#"["ab"]"#,
            r#"[["a"],"b"]"#,
            r#"[["a","b"]]"#,
            r#"{"a":"b"}"#,
            r#"{"a":null}"#,
            r#"{"ab":""}"#,
        ];
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[index + 1..] {
                assert_ne!(hash(one), hash(other), "{one} {other}");
            }
        }
    }
}
