//! The Handlebars tags of a source as markers: two noncharacters of Unicode around a number.
//! Equal tags have the same number.

use std::collections::HashMap;

use super::super::pieces::{self, Piece, TagPiece};

/// The ends of a marker. HTML reads them as text.
pub(super) const MARK_BEGIN: char = '\u{fdd0}';
pub(super) const MARK_END: char = '\u{fdd1}';

/// HTML with markers for its tags.
pub(super) struct MarkedSource {
    pub(super) html: String,
    tags: Vec<KeptTag>,
}

struct KeptTag {
    text: String,
    role: TagRole,
}

/// What a tag is for the lines of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TagRole {
    /// It renders as a value.
    Value,
    BlockBegin,
    /// An `else`.
    BlockMiddle,
    BlockEnd,
}

impl MarkedSource {
    /// `None` if the source has a syntax error.
    pub(super) fn of(source: &str) -> Option<Self> {
        let pieces = pieces::split(source).ok()?;
        let mut marked = Self {
            html: String::with_capacity(source.len()),
            tags: Vec::new(),
        };
        let mut known: HashMap<String, usize> = HashMap::new();
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Text(range) => {
                    let before = index.checked_sub(1).and_then(|index| pieces.get(index));
                    let mut text = &source[range.clone()];
                    if strips(before, |tag| tag.strip.close) {
                        text = text.trim_start();
                    }
                    if strips(pieces.get(index + 1), |tag| tag.strip.open) {
                        text = text.trim_end();
                    }
                    marked.push_text(text);
                }
                Piece::Raw(_, texts) => {
                    for range in texts {
                        marked.push_text(&source[range.clone()]);
                    }
                }
                Piece::Tag(tag) => {
                    if let Some(role) = role(tag) {
                        let text = without_strip(&source[tag.range.clone()], tag);
                        let number = *known.entry(text).or_insert_with_key(|text| {
                            let text = text.clone();
                            marked.tags.push(KeptTag { text, role });
                            marked.tags.len() - 1
                        });
                        let mark = format!("{MARK_BEGIN}{number}{MARK_END}");
                        marked.html.push_str(&mark);
                    }
                }
            }
        }
        Some(marked)
    }

    fn push_text(&mut self, text: &str) {
        let is_mark = |c: char| matches!(c, MARK_BEGIN | MARK_END);
        self.html.extend(text.split(is_mark));
    }

    /// The role of the tag with this number.
    pub(super) fn role(&self, number: usize) -> TagRole {
        self.tags.get(number).map_or(TagRole::Value, |tag| tag.role)
    }

    /// Puts the tags back into a text, and a backslash before braces that are none. `None`
    /// if the text shows nothing.
    pub(super) fn restore(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len());
        let mut shows = false;
        for (index, part) in text.split(MARK_BEGIN).enumerate() {
            let (number, literal) = match part.split_once(MARK_END) {
                Some((number, literal)) if index > 0 => (number.parse::<usize>().ok(), literal),
                Some(_) | None => (None, part),
            };
            if let Some(tag) = number.and_then(|number| self.tags.get(number)) {
                // A brace or a backslash before a tag would be a part of it.
                if out.ends_with('{') {
                    out.push(' ');
                } else if out.ends_with('\\') {
                    out.push('\\');
                }
                out.push_str(&tag.text);
                shows |= tag.role == TagRole::Value;
                if literal.starts_with('}') {
                    out.push(' ');
                }
            }
            shows |= literal.chars().any(|c| !c.is_whitespace());
            push_literal(literal, &mut out);
        }
        shows.then_some(out)
    }
}

/// Writes text that is no tag, whatever it looks like.
fn push_literal(literal: &str, out: &mut String) {
    let mut parts = literal.split("{{");
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        if out.ends_with('\\') {
            out.push(' ');
        }
        out.push_str("\\{{");
        out.push_str(part);
    }
}

fn strips(piece: Option<&Piece>, does: impl Fn(&TagPiece) -> bool) -> bool {
    match piece {
        Some(Piece::Tag(tag)) => does(tag),
        Some(Piece::Text(_) | Piece::Raw(..)) | None => false,
    }
}

/// The role of a tag; `None` for comments.
fn role(tag: &TagPiece) -> Option<TagRole> {
    use super::super::lexer::TagOpening;
    match tag.opening {
        TagOpening::Comment(_) => None,
        TagOpening::Block | TagOpening::InvertedBlock => Some(TagRole::BlockBegin),
        TagOpening::Else(_) | TagOpening::ElseChain => Some(TagRole::BlockMiddle),
        TagOpening::End => Some(TagRole::BlockEnd),
        TagOpening::Partial
        | TagOpening::Decorator
        | TagOpening::Unescaped
        | TagOpening::Ampersand
        | TagOpening::Plain
        | TagOpening::Raw => Some(TagRole::Value),
    }
}

/// A tag without its `~`: white space means other things in HTML than in a text.
fn without_strip(text: &str, tag: &TagPiece) -> String {
    let text = match text.strip_prefix("{{~") {
        Some(rest) if tag.strip.open => format!("{{{{{rest}"),
        Some(_) | None => text.to_owned(),
    };
    if !tag.strip.close {
        return text;
    }
    if let Some(rest) = text.strip_suffix("}~}}") {
        return format!("{rest}}}}}}}");
    }
    match text.strip_suffix("~}}") {
        Some(rest) => format!("{rest}}}}}"),
        None => text,
    }
}
