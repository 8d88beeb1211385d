//! SendGrid's dynamic templates: handlebars.js with helpers of its own.

use super::expression::TagWord;
use super::handlebars::{self, Dialect, TagResult, call, loosely_equal};
use super::tags::SourceTag;
use super::{Finder, TranslatedPart};

/// What SendGrid replaces in the finished mail.
const REPLACED: [(&str, &str); 2] = [
    (
        "<%asm_",
        "SendGrid puts a link of an unsubscribe group there; write {{unsubscribeUrl}} and send with an unsubscribe group",
    ),
    (
        "[%unsubscribe",
        "SendGrid puts its unsubscribe link there; write {{unsubscribeUrl}} and send with an unsubscribe group",
    ),
];

struct SendgridDialect;

pub(super) fn translate(finder: &mut Finder<'_>) -> String {
    finder.refuse_texts(&REPLACED);
    handlebars::translate(finder, &SendgridDialect)
}

impl Dialect for SendgridDialect {
    fn call(&self, name: &str, values: &[TagWord]) -> Option<Result<TagWord, String>> {
        let both = || match values {
            [left, right] => Ok((left.clone(), right.clone())),
            _ => Err(format!("{name} takes two values")),
        };
        let equal = || {
            let (left, right) = both()?;
            loosely_equal(&left, &right).ok_or_else(|| {
                format!("{name} of two variables converts their types, which Waypost's eq does not")
            })
        };
        Some(match name {
            "equals" => equal(),
            "notEquals" => equal().map(|equal| call("not", [equal])),
            "greaterThan" => both().map(|(left, right)| call("gt", [left, right])),
            "lessThan" => both().map(|(left, right)| call("lt", [left, right])),
            "and" | "or" if values.len() > 1 => Ok(call(name, values.to_vec())),
            "length" => match values {
                [value] => Ok(call("len", [value.clone()])),
                _ => Err("length takes one value".to_owned()),
            },
            "formatDate" => Err(
                "Waypost formats no dates; give the date as a text that is formatted".to_owned(),
            ),
            "insert" => Err("insert stands in a tag of its own".to_owned()),
            _ => return None,
        })
    }

    fn tag(
        &self,
        tag: &SourceTag<'_>,
        words: &[TagWord],
        part: TranslatedPart,
    ) -> Option<TagResult> {
        match words {
            [TagWord::Plain(name), values @ ..] if name == "insert" => {
                Some(insert(tag, values, part))
            }
            [TagWord::Plain(name)] => match name.as_str() {
                "unsubscribe" => Some(Ok("{{{unsubscribeUrl}}}".to_owned())),
                "unsubscribe_preferences" | "weblink" => Some(Err(
                    "SendGrid puts a link to a page of its own there".to_owned(),
                )),
                _ => None,
            },
            _ => None,
        }
    }
}

/// `{{insert name "default=value"}}`
fn insert(tag: &SourceTag<'_>, values: &[TagWord], part: TranslatedPart) -> TagResult {
    let (path, default) = match values {
        [TagWord::Plain(path)] => return Ok(tag.with(path)),
        [TagWord::Plain(path), TagWord::Quoted(default)] => (path, default.as_str()),
        _ => return Err("insert takes a variable and \"default=…\"".to_owned()),
    };
    let default = default.strip_prefix("default=").unwrap_or(default);
    if default.contains(['{', '}', '\\']) {
        return Err("the default of insert has braces".to_owned());
    }
    let escaped = match (part, tag.is_triple) {
        (TranslatedPart::Html, false) => escape(default),
        (TranslatedPart::Html | TranslatedPart::Subject | TranslatedPart::Text, _) => {
            default.to_owned()
        }
    };
    let value = SourceTag {
        trims_before: false,
        trims_after: false,
        ..tag.clone()
    };
    let outer = SourceTag {
        is_triple: false,
        ..tag.clone()
    };
    let open = SourceTag {
        trims_after: false,
        ..outer.clone()
    }
    .with(&format!("#if {path}"));
    let close = SourceTag {
        trims_before: false,
        ..outer
    }
    .with("/if");
    let value = value.with(path);
    Ok(if default.is_empty() {
        format!("{open}{value}{close}")
    } else {
        format!("{open}{value}{{{{else}}}}{escaped}{close}")
    })
}

/// Escapes a text as a value is escaped.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            '`' => out.push_str("&#x60;"),
            '=' => out.push_str("&#x3D;"),
            c => out.push(c),
        }
    }
    out
}
