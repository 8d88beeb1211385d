//! A message of Resend as one of Waypost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Map, Value};
use url::Url;
use waypost_core::clock::Timestamp;
use waypost_core::issue::Issue;

use super::fields::FIELDS;
use crate::compat::given::Given;
use crate::compat::translation::Translation;
use crate::fields::kind_of;

/// The most characters of the name of a tag, and of its value.
const TAG_CHARS_MAX: usize = 256;

/// The message. A time such as `in 5 minutes` is after `now`.
///
/// # Errors
/// It is no object. All other mistakes are in the translation.
pub(super) fn message(value: Value, now: Timestamp) -> Result<Translation, Vec<Issue>> {
    let mut given = Given::body(FIELDS, value)?;
    let mut message = Translation::default();
    let has_template = given.has("template");
    for name in ["from", "subject"] {
        if !given.has(name) && !has_template {
            message.refuse(name, "is required");
        }
        pass(&mut given, &mut message, name, name);
    }
    addresses(&mut given, &mut message);
    bodies(&mut given, &mut message);
    pass(&mut given, &mut message, "headers", "headers");
    pass(&mut given, &mut message, "topic_id", "unsubscribeGroupId");
    if let Some(time) = given.take("scheduled_at") {
        message.put("scheduledAt", "scheduled_at", scheduled_at(time, now));
    }
    template(&mut given, &mut message);
    attachments(&mut given, &mut message);
    tags(&mut given, &mut message);
    given.finish(&mut message.issues);
    Ok(message)
}

/// Moves a field as it is.
fn pass(given: &mut Given, message: &mut Translation, theirs: &str, ours: &str) {
    message.name(ours, given.place(theirs));
    if let Some(value) = given.take(theirs) {
        message.put(ours, given.place(theirs), value);
    }
}

fn addresses(given: &mut Given, message: &mut Translation) {
    if !given.has("to") {
        message.refuse("to", "is required");
    }
    let is_alone = !given.has("cc") && !given.has("bcc");
    for (theirs, ours) in [
        ("to", "to"),
        ("cc", "cc"),
        ("bcc", "bcc"),
        ("reply_to", "replyTo"),
    ] {
        message.name(ours, theirs);
        let Some(value) = given.take(theirs) else {
            continue;
        };
        let is_valid = match &value {
            Value::String(_) => true,
            Value::Array(items) => items.iter().all(Value::is_string),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        if !is_valid {
            message.refuse(theirs, "must be a string or an array of strings");
            continue;
        }
        // Resend sends one mail, whose recipients see each other.
        let is_shared = value.as_array().is_some_and(|to| to.len() > 1);
        if theirs == "to" && is_shared && is_alone {
            message.put("delivery", "to", Value::from("shared"));
        }
        message.put(ours, theirs, value);
    }
}

fn bodies(given: &mut Given, message: &mut Translation) {
    let has_template = given.has("template");
    for name in ["html", "text"] {
        if has_template && given.has(name) {
            message.refuse(name, "must not be given together with template");
        }
    }
    if !has_template && !given.has("html") && !given.has("text") {
        message.refuse("html", "is required unless text or template is given");
    }
    let has_html = given.has("html");
    pass(given, message, "html", "html");
    match given.take("text") {
        // With Resend, that is to say that no text is to be made of the HTML.
        Some(Value::String(text)) if text.is_empty() && has_html => {}
        Some(text) => message.put("text", "text", text),
        None => {}
    }
}

fn template(given: &mut Given, message: &mut Translation) {
    let Some(mut template) = given.object("template", &mut message.issues) else {
        return;
    };
    if !template.has("id") {
        message.refuse(template.place("id"), "is required");
    }
    pass(&mut template, message, "id", "templateId");
    pass(&mut template, message, "variables", "variables");
    template.finish(&mut message.issues);
}

/// A relative time as an absolute one; all else is left to the check.
pub(super) fn scheduled_at(time: Value, now: Timestamp) -> Value {
    let after = time.as_str().and_then(|text| relative(text, now));
    let text = after.map(|at| at.to_rfc3339_opts(SecondsFormat::Micros, true));
    text.map_or(time, Value::from)
}

/// `in 5 minutes`
fn relative(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim().to_lowercase();
    let mut words = text.split_whitespace();
    let (start, count, unit) = (words.next()?, words.next()?, words.next()?);
    if start != "in" || words.next().is_some() {
        return None;
    }
    let count = match count {
        "a" | "an" | "one" => 1,
        count => i64::from(count.parse::<u32>().ok()?),
    };
    let after = match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => TimeDelta::try_seconds(count),
        "m" | "min" | "mins" | "minute" | "minutes" => TimeDelta::try_minutes(count),
        "h" | "hr" | "hrs" | "hour" | "hours" => TimeDelta::try_hours(count),
        "d" | "day" | "days" => TimeDelta::try_days(count),
        "w" | "week" | "weeks" => TimeDelta::try_weeks(count),
        _ => None,
    };
    now.checked_add_signed(after?)
}

fn attachments(given: &mut Given, message: &mut Translation) {
    let Some(files) = given.objects("attachments", &mut message.issues) else {
        return;
    };
    let files = files.into_iter().enumerate();
    let files = files.map(|(index, file)| attachment(index, file, message));
    let files = files.collect();
    message.put("attachments", "attachments", Value::Array(files));
}

fn attachment(index: usize, mut file: Given, message: &mut Translation) -> Value {
    let mut ours = Map::new();
    let content = file.take("content");
    let path = file.take("path");
    let name = file
        .take("filename")
        .filter(|name| *name != Value::Bool(false));
    if content.is_none() && path.is_none() {
        message.refuse(file.place("content"), "is required unless path is given");
    }
    let name = name.or_else(|| path.as_ref().and_then(file_name));
    if name.is_none() {
        message.refuse(file.place("filename"), "is required");
    }
    let old_id = file.take("inline_content_id");
    let id = file.take("content_id").or(old_id);
    for (theirs, our_name, value) in [
        ("filename", "filename", name),
        ("content", "content", content.map(in_base64)),
        ("path", "url", path),
        ("content_type", "contentType", file.take("content_type")),
        ("content_id", "contentId", id),
    ] {
        message.name(
            format!("attachments.{index}.{our_name}"),
            file.place(theirs),
        );
        if let Some(value) = value {
            ours.insert(our_name.to_owned(), value);
        }
    }
    file.finish(&mut message.issues);
    Value::Object(ours)
}

/// The last part of a URL's path.
fn file_name(path: &Value) -> Option<Value> {
    let url = Url::parse(path.as_str()?).ok()?;
    let name = url.path_segments()?.next_back()?;
    let name = percent_encoding::percent_decode_str(name)
        .decode_utf8()
        .ok()?;
    (!name.is_empty()).then(|| Value::from(name.into_owned()))
}

/// Bytes in base64. Clients send them as an array of numbers, or as Node.js writes a Buffer; a
/// text is in base64.
fn in_base64(content: Value) -> Value {
    let bytes = match &content {
        Value::Array(items) => bytes_of(items),
        Value::Object(buffer) if buffer.get("type").is_some_and(|name| *name == "Buffer") => {
            let items = buffer.get("data").and_then(Value::as_array);
            items.and_then(|items| bytes_of(items))
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            None
        }
    };
    match bytes {
        Some(bytes) => Value::from(STANDARD.encode(bytes)),
        None => content,
    }
}

fn bytes_of(items: &[Value]) -> Option<Vec<u8>> {
    let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
    items.iter().map(byte).collect()
}

/// Waypost's tags have no values. The metadata has them too, for webhooks and for
/// `GET /emails/{id}`.
fn tags(given: &mut Given, message: &mut Translation) {
    let Some(items) = given.objects("tags", &mut message.issues) else {
        return;
    };
    let (mut tags, mut metadata) = (Vec::new(), Map::new());
    for mut item in items {
        let name = tag_text(&mut item, "name", message);
        if name.is_none() && !item.has("name") {
            message.refuse(item.place("name"), "is required");
        }
        let value = tag_text(&mut item, "value", message).unwrap_or_default();
        if let Some(name) = name {
            if metadata.contains_key(&name) {
                message.refuse(item.place("name"), "must not be that of another tag");
            }
            tags.push(Value::from(match value.as_str() {
                "" => name.clone(),
                value => format!("{name}:{value}"),
            }));
            metadata.insert(name, Value::from(value));
        }
        item.finish(&mut message.issues);
    }
    message.put("tags", "tags", Value::Array(tags));
    if !metadata.is_empty() {
        message.put("metadata", "tags", Value::Object(metadata));
    }
}

/// The name or the value of a tag.
fn tag_text(item: &mut Given, field: &str, message: &mut Translation) -> Option<String> {
    let value = item.take(field)?;
    let place = item.place(field);
    let Value::String(text) = value else {
        message.refuse(place, format!("must be a string, not {}", kind_of(&value)));
        return None;
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.is_empty() && field == "name" {
        message.refuse(place, "must not be empty");
    } else if !text.chars().all(is_plain) {
        let rule = "must have only ASCII letters, digits, underscores and hyphens";
        message.refuse(place, rule);
    } else if text.len() > TAG_CHARS_MAX {
        let rule = format!("must not be longer than {TAG_CHARS_MAX} characters");
        message.refuse(place, rule);
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_relative_time_is_after_now() {
        let now: Timestamp = "2036-11-20T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("in 1 min", "2036-11-20T12:01:00.000000Z"),
            ("In 90 Minutes", "2036-11-20T13:30:00.000000Z"),
            (" in an hour ", "2036-11-20T13:00:00.000000Z"),
            ("in 10 sec", "2036-11-20T12:00:10.000000Z"),
            ("in 2 days", "2036-11-22T12:00:00.000000Z"),
            ("in 1 week", "2036-11-27T12:00:00.000000Z"),
        ] {
            assert_eq!(scheduled_at(json!(text), now), expected, "{text}");
        }
        for text in [
            "in min",
            "1 min",
            "in -1 min",
            "in 1 month",
            "in 1 min x",
            "in 5000000000 weeks",
            "in 4000000000 weeks",
            "tomorrow",
            "",
        ] {
            assert_eq!(scheduled_at(json!(text), now), text);
        }
    }

    #[test]
    fn bytes_become_base64_and_all_else_stays() {
        for (given, expected) in [
            (json!([65, 66, 67]), json!("QUJD")),
            (json!({ "type": "Buffer", "data": [65] }), json!("QQ==")),
            (json!("QUJD"), json!("QUJD")),
            (json!([65, 256]), json!([65, 256])),
            (
                json!({ "type": "x", "data": [65] }),
                json!({ "type": "x", "data": [65] }),
            ),
        ] {
            assert_eq!(in_base64(given), expected);
        }
    }

    #[test]
    fn a_file_is_named_by_its_url() {
        for (url, expected) in [
            (
                "https://example.com/a/b%20c.pdf?x=1",
                Some(json!("b c.pdf")),
            ),
            ("https://example.com/", None),
            ("https://example.com/%FF", None),
            ("no url", None),
        ] {
            assert_eq!(file_name(&json!(url)), expected, "{url}");
        }
    }
}
