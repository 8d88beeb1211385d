//! The templates of Amazon SES: Handlebars without escaping, with inline partials.

use std::collections::HashMap;

use super::expression::{TagWord, words};
use super::handlebars::{self, Dialect};
use super::tags::{SourcePiece, SourceTag, split};
use super::{Finder, TranslatedPart};

/// The most inline partials within each other, and the most bytes of a part with all of them.
const DEPTH_MAX: usize = 5;
const BYTES_MAX: usize = 1 << 20;

/// What SES replaces in the finished mail.
const REPLACED: [(&str, &str); 1] = [(
    "{{amazonSESUnsubscribeUrl}}",
    "SES puts its link of a contact list there; write {{unsubscribeUrl}} and send with an unsubscribe group",
)];

struct SesDialect;

pub(super) fn translate(finder: &mut Finder<'_>) -> String {
    finder.refuse_texts(&REPLACED);
    let source = match expand(finder.source) {
        Ok(source) => source,
        Err((offset, sentence)) => return finder.problem(offset, sentence),
    };
    let mut inner = Finder {
        part: finder.part,
        source: &source,
        problems: finder.problems,
    };
    handlebars::translate(&mut inner, &SesDialect)
}

impl Dialect for SesDialect {
    fn call(&self, _name: &str, _values: &[TagWord]) -> Option<Result<TagWord, String>> {
        None
    }

    /// SES escapes no values ("Amazon SES doesn't escape HTML content when rendering").
    fn value(&self, tag: &SourceTag<'_>, inner: &str, part: TranslatedPart) -> String {
        let raw = SourceTag {
            is_triple: part == TranslatedPart::Html || tag.is_triple,
            ..tag.clone()
        };
        raw.with(inner)
    }
}

type Inline<'a> = HashMap<String, Vec<SourcePiece<'a>>>;

/// Puts the content of inline partials into their places.
fn expand(source: &str) -> Result<String, (usize, String)> {
    let pieces = split(source, true).map_err(|(at, sentence)| (at, sentence.to_owned()))?;
    let mut inline = Inline::new();
    let mut rest = Vec::new();
    let mut open: Option<(String, Vec<SourcePiece<'_>>, usize)> = None;
    for piece in pieces {
        let inner = match &piece {
            SourcePiece::SourceTag(tag) => tag.inner,
            SourcePiece::Text(_) => "",
        };
        match (inline_name(inner), &mut open) {
            (Some(name), None) => open = Some((name, Vec::new(), offset(&piece))),
            (Some(_), Some(_)) => {
                let sentence = "an inline partial stands in another one".to_owned();
                return Err((offset(&piece), sentence));
            }
            (None, Some(_)) if inner == "/inline" => {
                if let Some((name, content, _)) = open.take() {
                    inline.insert(name, content);
                }
            }
            (None, Some((_, content, _))) => content.push(piece),
            (None, None) => rest.push(piece),
        }
    }
    if let Some((_, _, at)) = open {
        return Err((at, "the inline partial is not closed".to_owned()));
    }
    let mut out = String::with_capacity(source.len());
    write(&rest, &inline, 0, &mut out)?;
    Ok(out)
}

fn offset(piece: &SourcePiece<'_>) -> usize {
    match piece {
        SourcePiece::SourceTag(tag) => tag.offset,
        SourcePiece::Text(_) => 0,
    }
}

/// The name in `#* inline "name"`.
fn inline_name(inner: &str) -> Option<String> {
    let rest = inner.strip_prefix('#')?.trim_start().strip_prefix('*')?;
    match words(rest)?.as_slice() {
        [TagWord::Plain(inline), TagWord::Quoted(name)] if inline == "inline" => Some(name.clone()),
        _ => None,
    }
}

fn write(
    pieces: &[SourcePiece<'_>],
    inline: &Inline<'_>,
    depth: usize,
    out: &mut String,
) -> Result<(), (usize, String)> {
    for piece in pieces {
        match piece {
            SourcePiece::Text(text) => out.push_str(text),
            SourcePiece::SourceTag(tag) if tag.inner.starts_with('>') => {
                let name = words(&tag.inner[1..]);
                let content = match name.as_deref() {
                    Some([TagWord::Plain(name) | TagWord::Quoted(name)]) => inline.get(name),
                    Some(_) | None => None,
                };
                let Some(content) = content.filter(|_| depth < DEPTH_MAX) else {
                    let sentence = "no inline partial has this name alone, or too many stand within each other".to_owned();
                    return Err((tag.offset, sentence));
                };
                write(content, inline, depth + 1, out)?;
            }
            SourcePiece::SourceTag(tag) => out.push_str(tag.source),
        }
        if out.len() > BYTES_MAX {
            return Err((
                offset(piece),
                "the inline partials make it too large".to_owned(),
            ));
        }
    }
    Ok(())
}
