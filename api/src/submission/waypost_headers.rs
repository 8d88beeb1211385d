//! The headers that are fields of the request: `X-Waypost-Tags` and others.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use waypost_core::acceptance::headers::path_of;
use waypost_core::issue::Issue;
use waypost_core::submission::mail::HeaderField;

use crate::middleware::unknown_fields;
use crate::request::large_text;

/// The beginning of their names, in lower case.
const PREFIX: &str = "x-waypost-";
/// The header with the idempotency key.
pub(super) const IDEMPOTENCY_KEY: &str = "X-Waypost-Idempotency-Key";

/// How the text of a header becomes a value.
#[derive(Debug, Clone, Copy)]
enum HeaderForm {
    Text,
    /// Texts, separated by commas.
    List,
    Json,
    /// `true` or `false`.
    Flag,
    /// `opens`, `clicks`, both, or `off`.
    Tracking,
}

/// The headers, with their fields in the request.
const HEADERS: [(&str, &str, HeaderForm); 14] = [
    ("X-Waypost-Tags", "tags", HeaderForm::List),
    ("X-Waypost-Class", "messageClass", HeaderForm::Text),
    ("X-Waypost-Metadata", "metadata", HeaderForm::Json),
    ("X-Waypost-Template", "templateId", HeaderForm::Text),
    ("X-Waypost-Locale", "locale", HeaderForm::Text),
    ("X-Waypost-Variables", "variables", HeaderForm::Json),
    ("X-Waypost-Group", "unsubscribeGroupId", HeaderForm::Text),
    ("X-Waypost-Scheduled-At", "scheduledAt", HeaderForm::Text),
    ("X-Waypost-Expires-At", "expiresAt", HeaderForm::Text),
    ("X-Waypost-Account", "providerAccountId", HeaderForm::Text),
    ("X-Waypost-Tracking", "tracking", HeaderForm::Tracking),
    ("X-Waypost-Test", "test", HeaderForm::Flag),
    ("X-Waypost-Test-Outcome", "testOutcome", HeaderForm::Text),
    (IDEMPOTENCY_KEY, "", HeaderForm::Text),
];

/// Whether a header is one of these, known or not.
pub(super) fn is_one(field: &HeaderField<'_>) -> bool {
    let start = field.name.get(..PREFIX.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}

/// Puts the field of such a header into the request, if it is no idempotency key. Mistakes go to
/// `issues`.
pub(super) fn add(
    field: &HeaderField<'_>,
    request: &mut Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    let known = HEADERS.iter().find(|(name, _, _)| field.is(name));
    let Some((name, member, form)) = known else {
        let names = HEADERS.iter().map(|(name, _, _)| *name);
        let message = unknown_fields::unknown("is not a header of Waypost", field.name, names);
        issues.push(Issue::new(path_of(field.name), message));
        return;
    };
    if member.is_empty() {
        return;
    }
    let text = field.text();
    if text.is_empty() {
        issues.push(Issue::new(*name, "must not be empty"));
        return;
    }
    match value_of(text, *form) {
        Ok(value) => {
            request.insert((*member).to_owned(), value);
        }
        Err(message) => issues.push(Issue::new(*name, message)),
    }
}

fn value_of(text: String, form: HeaderForm) -> Result<Value, &'static str> {
    match form {
        HeaderForm::Text => Ok(Value::String(text)),
        HeaderForm::List => Ok(text.split(',').map(str::trim).collect()),
        HeaderForm::Flag => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => Err("must be true or false"),
        },
        HeaderForm::Json => match large_text::parse(&Bytes::from(text)) {
            Ok((value, _)) if value.is_object() => Ok(value),
            Ok(_) | Err(_) => Err("must be a JSON object, in which no name is repeated"),
        },
        HeaderForm::Tracking => {
            let lower = text.to_ascii_lowercase();
            let words: Vec<&str> = lower.split(',').map(str::trim).collect();
            let is_known = |word: &&str| matches!(*word, "opens" | "clicks");
            if words != ["off"] && !words.iter().all(is_known) {
                return Err("must be opens, clicks, both separated by a comma, or off");
            }
            Ok(json!({ "opens": words.contains(&"opens"), "clicks": words.contains(&"clicks") }))
        }
    }
}
