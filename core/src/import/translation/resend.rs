//! Resend's templates: `{{{NAME}}}` for declared variables, and nothing else.

use serde_json::{Map, Value, json};

use super::Finder;
use super::handlebars::shown;
use super::tags::{SourcePiece, SourceTag, split};
use crate::provider::inventory::StoredVariable;

/// What Resend itself gives.
const UNSUBSCRIBE: [&str; 2] = ["UNSUBSCRIBE_URL", "RESEND_UNSUBSCRIBE_URL"];

pub(super) fn translate(finder: &mut Finder<'_>, variables: Option<&[StoredVariable]>) -> String {
    let pieces = match split(finder.source, false) {
        Ok(pieces) => pieces,
        Err((offset, sentence)) => return finder.problem(offset, sentence),
    };
    let mut out = String::with_capacity(finder.source.len());
    for piece in &pieces {
        match piece {
            SourcePiece::Text(text) => out.push_str(text),
            SourcePiece::SourceTag(tag) => {
                let translated = variable(tag, variables.unwrap_or_default());
                let text = translated.unwrap_or_else(|sentence| {
                    finder.problem(tag.offset, format!("{}: {sentence}", shown(tag)))
                });
                out.push_str(&text);
            }
        }
    }
    out
}

fn variable(tag: &SourceTag<'_>, variables: &[StoredVariable]) -> Result<String, String> {
    let name = tag.inner;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !tag.is_triple || tag.trims_before || tag.trims_after {
        return Err("a variable of Resend has three braces".to_owned());
    }
    if !begins || !name.chars().all(is_name) {
        return Err("it names more than a variable".to_owned());
    }
    if UNSUBSCRIBE.contains(&name) {
        return Ok("{{{unsubscribeUrl}}}".to_owned());
    }
    let known = variables.iter().find(|variable| variable.key == name);
    let fallback = known.and_then(|variable| variable.fallback.as_deref());
    match fallback {
        None => Ok(format!("{{{{{{{name}}}}}}}")),
        Some(fallback) if fallback.contains(['{', '}', '\\', '\n']) => {
            Err("its fallback has braces or line breaks".to_owned())
        }
        Some("") => Ok(format!("{{{{{{{name}}}}}}}")),
        Some(fallback) => Ok(format!(
            "{{{{#if {name} includeZero=true}}}}{{{{{{{name}}}}}}}{{{{else}}}}{fallback}{{{{/if}}}}"
        )),
    }
}

/// The JSON Schema of declared variables: those without a fallback are required, as at Resend.
pub(super) fn schema(variables: &[StoredVariable]) -> Option<Value> {
    if variables.is_empty() {
        return None;
    }
    let properties: Map<String, Value> = variables
        .iter()
        .map(|variable| {
            let name = if variable.is_number {
                "number"
            } else {
                "string"
            };
            (variable.key.clone(), json!({ "type": name }))
        })
        .collect();
    let required = variables
        .iter()
        .filter(|variable| variable.fallback.is_none());
    let required: Vec<&str> = required.map(|variable| variable.key.as_str()).collect();
    Some(json!({ "type": "object", "properties": properties, "required": required }))
}
