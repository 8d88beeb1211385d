//! Composes sources: puts partials where `{{> name}}` stands, the content of a template where
//! its layout has `{{{@content}}}`, and the preheader at the beginning of the body. This
//! happens in the sources, before they are compiled, so that MJML is compiled as a whole and
//! the limits of a version hold for all of it.
//!
//! A partial stands where its tag is, as if its source were written there. White space goes
//! by handlebars.js (with `preventIndent`): a tag alone on its line takes the line break with
//! it. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::lexer::{Strip, SyntaxError, TagOpening, Token};
use super::super::pieces::{self, Piece, TagPiece};
use super::super::problem::Problem;
use super::super::source::locate;
use super::super::{PartRef, SOURCE_BYTES_MAX, TemplateType};
use crate::ids::{TemplateId, TemplateVersionId};

/// How deep partials may be in partials.
pub(super) const DEPTH_MAX: usize = 5;
/// Characters of a partial's name.
const NAME_CHARS_MAX: usize = 100;

/// A layout or partial, in the version that is composed in.
#[derive(Debug, Clone)]
pub(super) struct TemplatePart {
    pub(super) id: TemplateId,
    pub(super) version_id: TemplateVersionId,
    pub(super) version_number: i32,
    pub(super) name: String,
    pub(super) part_type: TemplateType,
    pub(super) html: String,
    pub(super) mjml: Option<String>,
    pub(super) text: Option<String>,
}

/// Partials by their names.
pub(super) type Partials = HashMap<String, Arc<TemplatePart>>;

/// What a source is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceMarkup {
    Html,
    Mjml,
    Text,
}

impl TemplatePart {
    /// The source of a part for a source in `markup`.
    ///
    /// # Errors
    /// That it has none.
    pub(super) fn source(&self, markup: SourceMarkup) -> Result<&str, String> {
        let name = &self.name;
        match (markup, &self.mjml) {
            (SourceMarkup::Html, None) => Ok(&self.html),
            (SourceMarkup::Mjml, Some(mjml)) => Ok(mjml),
            (SourceMarkup::Html, Some(_)) => {
                Err(format!("{name} is MJML and cannot stand in HTML"))
            }
            (SourceMarkup::Mjml, None) => Err(format!("{name} is HTML and cannot stand in MJML")),
            (SourceMarkup::Text, _) => match &self.text {
                Some(text) => Ok(text),
                None => Err(format!("{name} has no textContent to stand in a text")),
            },
        }
    }

    /// The bytes of its sources.
    pub(super) fn bytes(&self) -> usize {
        let others = self.mjml.iter().chain(&self.text).map(String::len);
        self.html.len() + others.sum::<usize>()
    }

    pub(super) fn reference(&self) -> PartRef {
        PartRef {
            template_id: self.id,
            part_type: self.part_type,
            name: self.name.clone(),
            version_id: self.version_id,
            version_number: self.version_number,
        }
    }

    /// The names of the partials in its sources.
    pub(super) fn names(&self) -> Vec<String> {
        let sources = [Some(&self.html), self.mjml.as_ref(), self.text.as_ref()];
        let names = sources.into_iter().flatten();
        names.flat_map(|source| names_in(source)).collect()
    }
}

/// Whether a partial can have this name: `{{> name}}` must be able to say it.
pub(in super::super) fn is_partial_name(name: &str) -> bool {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(is_name_char)
        && !["true", "false", "null", "undefined", "this"].contains(&name)
}

/// The names of the partials in a source. None of a source with a syntax error, which its
/// parser reports.
pub(super) fn names_in(source: &str) -> Vec<String> {
    if !may_include(source) {
        return Vec::new();
    }
    let pieces = pieces::split(source).unwrap_or_default();
    let names = pieces.iter().filter_map(|piece| match piece {
        Piece::Tag(tag) if tag.opening == TagOpening::Partial => {
            partial_name(source, tag).ok().map(str::to_owned)
        }
        Piece::Tag(_) | Piece::Text(_) | Piece::Raw(..) => None,
    });
    names.collect()
}

/// Whether a source may have tags of partials. Most have none, and are not split.
pub(super) fn may_include(source: &str) -> bool {
    let tags = ["{{>", "{{~>", "{{#>", "{{~#>"];
    tags.iter().any(|tag| source.contains(tag))
}

/// How often a layout's source has the place for the content.
pub(super) fn content_places(source: &str) -> usize {
    let pieces = pieces::split(source).unwrap_or_default();
    let is_content = |piece: &&Piece| matches!(piece, Piece::Tag(tag) if tag.is_content());
    pieces.iter().filter(is_content).count()
}

/// A source with spaces in place of the tags of partials, in which everything else is where it
/// was.
pub(super) fn without_partials(source: &str) -> String {
    let mut out = source.to_owned();
    if !may_include(source) {
        return out;
    }
    for piece in pieces::split(source).unwrap_or_default() {
        if let Piece::Tag(tag) = piece
            && tag.opening == TagOpening::Partial
        {
            let spaces = " ".repeat(tag.range.len());
            out.replace_range(tag.range, &spaces);
        }
    }
    out
}

/// Puts partials into sources of one markup.
pub(super) struct Composer<'p> {
    partials: &'p Partials,
    markup: SourceMarkup,
    done: HashMap<&'p str, Included>,
    /// The partials that are being composed, from the outermost.
    open: Vec<&'p str>,
}

struct Included {
    source: String,
    /// How deep partials are in it.
    depth: usize,
}

impl<'p> Composer<'p> {
    pub(super) fn new(partials: &'p Partials, markup: SourceMarkup) -> Self {
        Self {
            partials,
            markup,
            done: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The names of the partials that were put in.
    pub(super) fn used(&self) -> impl Iterator<Item = &'p str> {
        self.done.keys().copied()
    }

    /// A source with the partials in it.
    ///
    /// # Errors
    /// Why a partial cannot be put in, with the line and column of its tag.
    pub(super) fn source(&mut self, source: &str) -> Result<String, Problem> {
        self.include(source).map(|included| included.source)
    }

    fn include(&mut self, source: &str) -> Result<Included, Problem> {
        let whole = || Included {
            source: source.to_owned(),
            depth: 0,
        };
        if !may_include(source) {
            return Ok(whole());
        }
        // A syntax error is reported by the parser.
        let Ok(pieces) = pieces::split(source) else {
            return Ok(whole());
        };
        let mut out = String::new();
        let (mut copied, mut depth) = (0, 0);
        for (index, piece) in pieces.iter().enumerate() {
            let Piece::Tag(tag) = piece else {
                continue;
            };
            if tag.opening != TagOpening::Partial {
                continue;
            }
            let at = |text: String| locate(source, &SyntaxError::new(tag.range.start, text));
            let name = partial_name(source, tag).map_err(at)?;
            let (end, next) = around(source, &pieces, index, tag);
            push(&mut out, source.get(copied..end).unwrap_or_default()).map_err(at)?;
            let included = self.partial(name).map_err(at)?;
            depth = depth.max(included.depth + 1);
            push(&mut out, &included.source).map_err(at)?;
            copied = next;
        }
        push(&mut out, &source[copied..])?;
        Ok(Included { source: out, depth })
    }

    fn partial(&mut self, name: &str) -> Result<&Included, String> {
        let Some((name, part)) = self.partials.get_key_value(name) else {
            return Err(format!("there is no partial {name} that has a version"));
        };
        if self.open.contains(&&**name) {
            let path = self.open.join(" > ");
            return Err(format!(
                "the partial {name} includes itself: {path} > {name}"
            ));
        }
        let too_deep = || format!("partials are included more than {DEPTH_MAX} deep");
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep());
        }
        if !self.done.contains_key(&**name) {
            let source = part.source(self.markup)?;
            self.open.push(name);
            let included = self.include(source);
            self.open.pop();
            let included = included.map_err(|text| format!("in the partial {name}, {text}"))?;
            self.done.insert(name, included);
        }
        let included = &self.done[&**name];
        if self.open.len() + 1 + included.depth > DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(included)
    }
}

/// A layout with content in its place.
///
/// # Errors
/// That the layout does not have one place for it.
pub(super) fn wrap(layout: &str, content: &str) -> Result<String, String> {
    let pieces = pieces::split(layout).map_err(|error| locate(layout, &error).to_string())?;
    let mut places = pieces.iter().filter_map(|piece| match piece {
        Piece::Tag(tag) if tag.is_content() => Some(&tag.range),
        Piece::Tag(_) | Piece::Text(_) | Piece::Raw(..) => None,
    });
    let (Some(place), None) = (places.next(), places.next()) else {
        return Err("the layout does not have {{{@content}}} exactly once".to_owned());
    };
    let mut out = String::with_capacity(layout.len() + content.len());
    push(&mut out, &layout[..place.start])?;
    push(&mut out, content)?;
    push(&mut out, &layout[place.end..])?;
    Ok(out)
}

/// Puts a preheader at the beginning of the body of HTML, hidden: mail programs show it
/// beside the subject.
///
/// # Errors
/// That the result is too large.
pub(super) fn insert_preheader(html: &str, preheader: &str) -> Result<String, String> {
    let hidden = format!(
        "<div style=\"display:none;font-size:1px;line-height:1px;max-height:0;max-width:0;opacity:0;overflow:hidden;mso-hide:all\">{}</div>",
        escaped(preheader)
    );
    let at = body_start(html);
    let mut out = String::with_capacity(html.len() + hidden.len());
    push(&mut out, &html[..at])?;
    push(&mut out, &hidden)?;
    push(&mut out, &html[at..])?;
    Ok(out)
}

/// A text with tags as HTML.
fn escaped(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let escape = |text: &str, out: &mut String| {
        for c in text.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                c => out.push(c),
            }
        }
    };
    let mut copied = 0;
    for piece in pieces::split(source).unwrap_or_default() {
        if let Piece::Tag(TagPiece { range, .. }) | Piece::Raw(range, _) = piece {
            escape(&source[copied..range.start], &mut out);
            out.push_str(&source[range.clone()]);
            copied = range.end;
        }
    }
    escape(&source[copied..], &mut out);
    out
}

/// The offset at which the body of HTML begins: after `<body>`, or else after the head.
fn body_start(html: &str) -> usize {
    let lower = html.to_ascii_lowercase();
    for tag in ["<body", "</head", "<html", "<!doctype"] {
        let mut found = lower.match_indices(tag);
        let start = found.find_map(|(at, _)| {
            let rest = &lower[at + tag.len()..];
            let is_whole = rest.starts_with(|c: char| c == '>' || c.is_ascii_whitespace());
            is_whole.then(|| tag_end(rest).map(|end| at + tag.len() + end))?
        });
        if let Some(start) = start {
            return start;
        }
    }
    0
}

/// The length of the rest of an HTML tag: to its `>` outside of quotes and Handlebars.
fn tag_end(rest: &str) -> Option<usize> {
    let mut quote = None;
    let mut braces = 0_usize;
    for (at, byte) in rest.bytes().enumerate() {
        match (byte, quote) {
            (b'{', _) => braces += 1,
            (b'}', _) => braces = braces.saturating_sub(1),
            (b'>', None) if braces == 0 => return Some(at + 1),
            (b'"' | b'\'', None) if braces == 0 => quote = Some(byte),
            (byte, Some(open)) if byte == open && braces == 0 => quote = None,
            _ => {}
        }
    }
    None
}

/// Writes a part of a source after another.
///
/// # Errors
/// That they would make a tag together, or that they are too large together.
fn push(out: &mut String, part: &str) -> Result<(), String> {
    let makes_tag = (out.ends_with(['{', '\\']) && part.starts_with('{'))
        || (out.ends_with('}') && part.starts_with('}'));
    if makes_tag {
        return Err("braces or a backslash beside an included source would make a tag".to_owned());
    }
    if out.len() + part.len() > SOURCE_BYTES_MAX {
        return Err(format!(
            "is larger than {SOURCE_BYTES_MAX} bytes when it is composed"
        ));
    }
    out.push_str(part);
    Ok(())
}

/// The name in the tag of a partial.
fn partial_name<'s>(source: &'s str, tag: &'s TagPiece) -> Result<&'s str, String> {
    let text = &source[tag.range.clone()];
    let error = |text: &str| Err(text.to_owned());
    if text.trim_start_matches(['{', '~']).starts_with('#') {
        return error("partials with a block are not supported; a version has a layoutId instead");
    }
    if text.ends_with("}}}") {
        return error("the tag of a partial ends with }}");
    }
    if source[..tag.range.start].ends_with('\\') {
        return error("partials are not included after a backslash");
    }
    match &tag.tokens[..] {
        [Token::Name { text, .. }] if is_partial_name(text) => Ok(text),
        [Token::Name { text, .. }, Token::Separator(_), ..] | [Token::Name { text, .. }] => {
            Err(format!("{text} is not the name of a partial"))
        }
        [Token::Name { .. }, ..] => error("partials take no values"),
        [Token::OpenCall, ..] => error("partials whose name is a value are not supported"),
        [Token::Data, ..] => error("partials have no blocks; a layout has {{{@content}}} instead"),
        _ => error("partials have a name of letters, digits, - and _"),
    }
}

/// The end of the source before a partial's tag, and the beginning of that after it, without
/// the white space that goes with the tag.
fn around(source: &str, pieces: &[Piece], index: usize, tag: &TagPiece) -> (usize, usize) {
    let text = |index: Option<usize>| match index.and_then(|index| pieces.get(index)) {
        Some(Piece::Text(range)) => Some(range.clone()),
        Some(Piece::Tag(_) | Piece::Raw(..)) | None => None,
    };
    let before = text(index.checked_sub(1));
    let after = text(Some(index + 1));
    let Strip { open, close } = tag.strip;
    let (mut end, mut next) = (tag.range.start, tag.range.end);
    let is_space = super::super::lexer::is_space;
    let begins_line = match &before {
        Some(range) => {
            let text = &source[range.clone()];
            let rest = text.trim_end_matches(is_space);
            text[rest.len()..].contains('\n') || (range.start == 0 && rest.is_empty())
        }
        None => index == 0,
    };
    let ends_line = match &after {
        Some(range) => {
            let text = &source[range.clone()];
            let rest = text.trim_start_matches(is_space);
            text[..text.len() - rest.len()].contains('\n')
                || (range.end == source.len() && rest.is_empty())
        }
        None => index + 1 == pieces.len(),
    };
    if let Some(range) = before.filter(|_| open) {
        end = range.start + source[range].trim_end_matches(is_space).len();
    }
    if let Some(range) = after {
        let text = &source[range];
        let rest = if close {
            text.trim_start_matches(is_space)
        } else if begins_line && ends_line {
            let rest = text.trim_start_matches([' ', '\t']);
            let rest = rest.strip_prefix('\r').unwrap_or(rest);
            rest.strip_prefix('\n').unwrap_or(rest)
        } else {
            text
        };
        next += text.len() - rest.len();
    }
    (end, next)
}
