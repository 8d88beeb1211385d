//! Postmark's templates: Mustachio, which differs from Handlebars in its blocks.
//!
//! `{{#name}}` enters a value that is neither missing, false, 0 nor empty, and repeats nothing;
//! `{{#each name}}` repeats; `{{^name}}` is for a value that is missing, false, 0 or empty, and
//! enters it. Names are looked up in the innermost value alone; `../` leaves one. Blocks that
//! stand alone on a line leave the line as it is. Each block becomes two, because Handlebars
//! removes the line of a block that stands alone.

use super::Finder;
use super::handlebars::shown;
use super::tags::{SourcePiece, SourceTag, split};

/// Names that Handlebars reads otherwise.
const RESERVED: [&str; 11] = [
    "if",
    "unless",
    "each",
    "with",
    "lookup",
    "log",
    "else",
    "true",
    "false",
    "null",
    "undefined",
];
const BRACES: &str = "it is no tag of Postmark's templates";

/// A block that is open.
struct OpenBlock {
    /// What closes it.
    name: String,
    /// Whether `../` of Handlebars leaves it.
    enters: bool,
    close: &'static str,
}

pub(super) fn translate(finder: &mut Finder<'_>, is_layout: bool) -> String {
    let source = finder.source;
    let pieces = match split(source, false) {
        Ok(pieces) => pieces,
        Err((offset, sentence)) => return finder.problem(offset, sentence),
    };
    let mut blocks: Vec<OpenBlock> = Vec::new();
    let mut out = String::with_capacity(source.len());
    for piece in &pieces {
        match piece {
            SourcePiece::Text(text) => out.push_str(text),
            SourcePiece::SourceTag(tag) => {
                let translated = if tag.trims_before || tag.trims_after {
                    Err(BRACES.to_owned())
                } else if let Some(link) = special(tag, is_layout, &out) {
                    link
                } else {
                    translate_tag(tag, &mut blocks)
                };
                let text = translated.unwrap_or_else(|sentence| {
                    finder.problem(tag.offset, format!("{}: {sentence}", shown(tag)))
                });
                out.push_str(&text);
            }
        }
    }
    if !blocks.is_empty() {
        finder.problem(source.len(), "a block is not closed");
    }
    out
}

/// What Postmark itself fills in.
fn special(tag: &SourceTag<'_>, is_layout: bool, before: &str) -> Option<Result<String, String>> {
    let is_value = before.ends_with(['"', '\'']);
    match tag.inner {
        "@content" if is_layout && tag.is_triple => Some(Ok("{{{@content}}}".to_owned())),
        "pm:unsubscribe_url" => Some(Ok("{{{unsubscribeUrl}}}".to_owned())),
        "pm:unsubscribe" if is_value => Some(Ok("{{{unsubscribeUrl}}}".to_owned())),
        "pm:unsubscribe" => Some(Err(
            "Postmark makes a link here; write one to {{unsubscribeUrl}}".to_owned(),
        )),
        _ => None,
    }
}

fn translate_tag(tag: &SourceTag<'_>, blocks: &mut Vec<OpenBlock>) -> Result<String, String> {
    if tag.is_comment {
        return Ok(String::new());
    }
    let sign = tag.inner.chars().next().unwrap_or_default();
    let rest = tag.inner.get(1..).unwrap_or_default().trim();
    match sign {
        '#' if rest.starts_with("each ") => {
            let path = path(rest["each ".len()..].trim(), blocks);
            blocks.push(OpenBlock {
                name: "each".to_owned(),
                enters: true,
                close: "{{/each}}{{/if}}",
            });
            let path = path?;
            Ok(format!("{{{{#if {path}}}}}{{{{#each {path}}}}}"))
        }
        '#' => {
            let path = path(rest, blocks);
            blocks.push(OpenBlock {
                name: rest.to_owned(),
                enters: true,
                close: "{{/with}}{{/if}}",
            });
            let path = path?;
            Ok(format!("{{{{#if {path}}}}}{{{{#with {path}}}}}"))
        }
        '^' => {
            let path = path(rest, blocks);
            blocks.push(OpenBlock {
                name: rest.to_owned(),
                enters: false,
                close: "{{/if}}{{/unless}}",
            });
            Ok(format!("{{{{#unless {}}}}}{{{{#if true}}}}", path?))
        }
        '/' => match blocks.pop() {
            Some(block) if block.name == rest => Ok(block.close.to_owned()),
            Some(_) | None => Err("it closes nothing that is open".to_owned()),
        },
        '&' => Ok(format!("{{{{{{{}}}}}}}", path(rest, blocks)?)),
        _ => Ok(tag.with(&path(tag.inner, blocks)?)),
    }
}

/// A path of Mustachio as one of Handlebars.
fn path(text: &str, blocks: &[OpenBlock]) -> Result<String, String> {
    let mut rest = text;
    let mut left = blocks.iter().rev();
    let mut ups = 0;
    while let Some(after) = rest.strip_prefix("../") {
        rest = after;
        match left.next() {
            Some(block) if block.enters => ups += 1,
            Some(_) => {}
            None => return Err("../ leaves more blocks than there are".to_owned()),
        }
    }
    if left.next().is_some_and(|block| !block.enters) {
        return Err(
            "names in a block for a missing value are looked up in that value; write ../ before the name".to_owned(),
        );
    }
    let up = "../".repeat(ups);
    if rest == "." {
        return Ok(format!("{up}this"));
    }
    let is_name = |part: &str| {
        let all = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        !part.is_empty() && part.chars().all(all)
    };
    let mut parts = rest.split('.');
    if !parts.all(is_name) {
        return Err(BRACES.to_owned());
    }
    let is_number = rest.parse::<f64>().is_ok();
    if is_number || RESERVED.contains(&rest) {
        return Err("Waypost reads this name as something else; choose another".to_owned());
    }
    Ok(format!("{up}{rest}"))
}
