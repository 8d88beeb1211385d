//! JSON whose large texts stay where they are: in the body. The content of an attachment is
//! most of its request, and a copy of it in the parsed JSON would double what the request
//! takes.
//!
//! [`parse`] puts a short text in the place of each large content. It names the content by its
//! hash, so that equal requests remain equal for idempotency keys. A client may write such a
//! text itself; it can only name a content of its own request.
//! While a request is converted ([`LargeTexts::scope`]), [`take`] finds the content again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use waypost_core::idempotency::fingerprint;
use waypost_core::issue::Issue;

use crate::fields::string;

/// Contents up to this length are copied.
const SMALL_BYTES_MAX: usize = 64 << 10;

/// The beginning of the text in the place of a large content. Base64 has no NUL.
const MARK: &str = "\0content:";

tokio::task_local! {
    static CURRENT: LargeTexts;
}

/// The large contents of a request, by the text in their place.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargeTexts(Arc<HashMap<String, Bytes>>);

impl LargeTexts {
    /// Runs `convert` so that [`take`] finds these contents.
    pub(crate) fn scope<T>(self, convert: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, convert)
    }
}

/// The content of an attachment: the text of a JSON string, which may be large.
///
/// # Errors
/// The value is not a string.
pub(crate) fn take(value: Value) -> Result<Bytes, Vec<Issue>> {
    let text = string(value)?;
    let large = text.starts_with(MARK).then(|| {
        let find = |texts: &LargeTexts| texts.0.get(&text).cloned();
        CURRENT.try_with(find).ok().flatten()
    });
    Ok(large.flatten().unwrap_or_else(|| text.into()))
}

/// Parses a JSON text without repeated members; the second of two equal members of an object
/// is an error.
///
/// # Errors
/// It is not JSON, or an object has a member twice.
pub(crate) fn parse(json: &Bytes) -> serde_json::Result<(Value, LargeTexts)> {
    let texts = RefCell::new(HashMap::new());
    let mut reader = serde_json::Deserializer::from_slice(json);
    let whole = JsonNode {
        place: TextPlace::Body,
        json,
        texts: &texts,
    };
    let value = whole.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, LargeTexts(Arc::new(texts.into_inner()))))
}

/// Rewrites escapes in strings that a serializer need not make, such as `\/` and `\u002b`: a
/// content with such escapes cannot stay in the body.
pub(super) fn unescape(json: &mut Vec<u8>) {
    let (mut from, mut to) = (0, 0);
    while from < json.len() {
        let escape = &json[from..json.len().min(from + 6)];
        let (byte, length) = match escape {
            [b'\\', b'/', ..] => (b'/', 2),
            [b'\\', b'u', b'0', b'0', high, low] => match plain(*high, *low) {
                Some(byte) => (byte, 6),
                None => (b'\\', 1),
            },
            // The second backslash does not begin an escape.
            [b'\\', b'\\', ..] => {
                json[to] = b'\\';
                to += 1;
                (b'\\', 2)
            }
            _ => (json[from], 1),
        };
        json[to] = byte;
        from += length;
        to += 1;
    }
    json.truncate(to);
}

/// The ASCII character of two hexadecimal digits, if it needs no escape.
fn plain(high: u8, low: u8) -> Option<u8> {
    let digit = |c: u8| {
        char::from(c)
            .to_digit(16)
            .and_then(|c| u8::try_from(c).ok())
    };
    let byte = digit(high)? << 4 | digit(low)?;
    let is_plain = matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    is_plain.then_some(byte)
}

/// Where a value is in a request: in one of Waypost's, or in a vendor's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    /// The whole body, or a message of a batch.
    Body,
    /// `messages`
    Messages,
    /// `attachments`
    Attachments,
    /// An item of `attachments`.
    Attachment,
    /// `attachments.N.content`
    Content,
    Elsewhere,
}

impl TextPlace {
    fn of_member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Body, "messages" | "Messages") => Self::Messages,
            (Self::Body, "attachments" | "Attachments") => Self::Attachments,
            (Self::Attachment, "content" | "Content") => Self::Content,
            _ => Self::Elsewhere,
        }
    }

    fn of_item(self) -> Self {
        match self {
            // A body that is an array is a vendor's batch.
            Self::Messages | Self::Body => Self::Body,
            Self::Attachments => Self::Attachment,
            Self::Attachment | Self::Content | Self::Elsewhere => Self::Elsewhere,
        }
    }
}

/// A value that is being parsed.
#[derive(Clone, Copy)]
struct JsonNode<'a> {
    place: TextPlace,
    json: &'a Bytes,
    texts: &'a RefCell<HashMap<String, Bytes>>,
}

impl JsonNode<'_> {
    fn at(self, place: TextPlace) -> Self {
        Self { place, ..self }
    }

    fn keeps(self, text: &str) -> bool {
        self.place == TextPlace::Content && text.len() > SMALL_BYTES_MAX
    }

    /// Keeps a large text, and returns the value in its place.
    fn keep(self, text: &str, content: Bytes) -> Value {
        let hash = fingerprint::of_text(text).0;
        let digits = hash.iter().map(|byte| format!("{byte:02x}"));
        let mark: String = std::iter::once(MARK.to_owned()).chain(digits).collect();
        self.texts.borrow_mut().insert(mark.clone(), content);
        Value::String(mark)
    }
}

impl<'de> DeserializeSeed<'de> for JsonNode<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonNode<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value, E> {
        if self.keeps(text) {
            let content = self.json.slice_ref(text.as_bytes());
            return Ok(self.keep(text, content));
        }
        Ok(Value::String(text.to_owned()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        if self.keeps(text) {
            let content = Bytes::copy_from_slice(text.as_bytes());
            return Ok(self.keep(text, content));
        }
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self.at(self.place.of_item()))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom("an object has a field twice"));
            }
            let value = members.next_value_seed(self.at(self.place.of_member(&name)))?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> serde_json::Result<(Value, LargeTexts)> {
        parse(&Bytes::copy_from_slice(json.as_bytes()))
    }

    #[test]
    fn json_without_repeated_members_is_read_unchanged() {
        for json in [
            r#"{"a":1,"b":-2,"c":1.5,"d":[null,true,{"a":"x\u00e9"}],"e":18446744073709551615,"f":{}}"#,
            "[]",
            "null",
            r#"{"attachments":[{"content":"QUJD"}]}"#,
        ] {
            let (value, texts) = read(json).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(json).unwrap());
            assert!(texts.0.is_empty());
        }
    }

    #[test]
    fn a_repeated_member_is_rejected_with_its_position() {
        for json in [
            r#"{"to":"a","to":"b"}"#,
            r#"{"a":[{"b":{"c":1,"\u0063":1}}]}"#,
        ] {
            let error = read(json).unwrap_err();
            assert!(error.to_string().contains("twice at line 1"), "{error}");
        }
        for json in ["", "{} {}", "[1,]", "{\"a\":\"\u{1}\"}"] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_large_content_stays_in_the_body_wherever_an_attachment_may_be() {
        let large = "QUJD".repeat(20 << 10);
        let escaped = large.replacen('Q', r"\u0051", 1);
        let texts: Vec<(Value, Value)> = [&large, &escaped]
            .map(|text| {
                let file = format!(r#"{{"content":"{text}"}}"#);
                let message = format!(r#"{{"attachments":[{{}},{file}],"html":"{text}"}}"#);
                let (value, texts) = read(&message).unwrap();
                assert_eq!(value["html"], large);
                let place = value["attachments"][1]["content"].clone();
                assert!(place.as_str().unwrap().len() < 100);
                let found = texts.scope(|| take(place.clone())).unwrap();
                assert_eq!(found, large.as_bytes());
                let batch = format!(r#"{{"messages":[{message}],"content":"{text}"}}"#);
                let (value, _) = read(&batch).unwrap();
                assert_eq!(value["content"], large);
                (
                    value["messages"][0]["attachments"][1]["content"].clone(),
                    place,
                )
            })
            .into();
        // However it is escaped, and in whatever request: for idempotency keys.
        assert_eq!(texts[0].0, texts[0].1);
        assert_eq!(texts[0], texts[1]);
    }

    #[test]
    fn a_large_content_stays_in_the_bodies_of_vendors_too() {
        let large = "QUJD".repeat(20 << 10);
        for (json, pointer) in [
            (
                format!(r#"[{{"attachments":[{{"content":"{large}"}}]}}]"#),
                "/0/attachments/0/content",
            ),
            (
                format!(r#"{{"Messages":[{{"Attachments":[{{"Content":"{large}"}}]}}]}}"#),
                "/Messages/0/Attachments/0/Content",
            ),
        ] {
            let (value, texts) = read(&json).unwrap();
            let place = value.pointer(pointer).unwrap().clone();
            assert!(place.as_str().unwrap().len() < 100);
            assert_eq!(texts.scope(|| take(place)).unwrap(), large.as_bytes());
        }
    }

    #[test]
    fn a_forged_place_is_an_ordinary_text() {
        let forged = Value::from(format!("{MARK}{}", "0".repeat(64)));
        let (_, texts) = read("{}").unwrap();
        let taken = texts.scope(|| take(forged.clone())).unwrap();
        assert_eq!(taken, forged.as_str().unwrap().as_bytes());
        assert_eq!(take(forged.clone()).unwrap(), taken);
    }

    #[test]
    fn escapes_that_need_not_be_are_removed_and_no_others() {
        for (json, expected) in [
            (r#""a\/b\/""#, r#""a/b/""#),
            (r#""\u002b\u002F\u003d""#, r#""+/=""#),
            (r#""\\/\\u002b""#, r#""\\/\\u002b""#),
            (r#""\\\/""#, r#""\\/""#),
            (
                r#""\u0022\u005c\u0000\u00e9\u0130\n\"""#,
                r#""\u0022\u005c\u0000\u00e9\u0130\n\"""#,
            ),
            (r#""\u00"#, r#""\u00"#),
            (r"\", r"\"),
        ] {
            let mut bytes = json.as_bytes().to_vec();
            unescape(&mut bytes);
            assert_eq!(std::str::from_utf8(&bytes).unwrap(), expected);
            if let Ok(value) = serde_json::from_str::<Value>(json) {
                assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
            }
        }
    }
}
