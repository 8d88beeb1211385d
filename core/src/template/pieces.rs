//! Splits a Handlebars source into its texts and tags, without building a tree: for what
//! works on the source itself, such as including partials.

use std::ops::Range;

use super::lexer::{Lexer, Strip, SyntaxError, TagOpening, Token};
use super::parser::TAGS_MAX;

/// Tokens of a tag that a [`TagPiece`] keeps.
const TOKENS_KEPT: usize = 4;

/// A part of a source.
#[derive(Debug)]
pub(super) enum Piece {
    /// A text that is not interpreted, without the backslash of an escaped tag.
    Text(Range<usize>),
    Tag(TagPiece),
    /// A raw block: its whole range, and the texts in it.
    Raw(Range<usize>, Vec<Range<usize>>),
}

/// A tag.
#[derive(Debug)]
pub(super) struct TagPiece {
    pub(super) range: Range<usize>,
    pub(super) opening: TagOpening,
    pub(super) strip: Strip,
    /// The first tokens after the opening, without the end of the tag.
    pub(super) tokens: Vec<Token>,
}

impl TagPiece {
    /// Whether the tag is `{{{@content}}}`.
    pub(super) fn is_content(&self) -> bool {
        self.opening == TagOpening::Unescaped
            && matches!(&self.tokens[..], [Token::Data, Token::Name { text, .. }] if text == "content")
    }
}

/// Splits a source.
///
/// # Errors
/// The first syntax error within a tag. Blocks are not checked.
pub(super) fn split(source: &str) -> Result<Vec<Piece>, SyntaxError> {
    let mut lexer = Lexer::new(source);
    let mut pieces = Vec::new();
    let mut tags = 0;
    loop {
        while let Some(text) = lexer.text() {
            pieces.push(Piece::Text(text));
        }
        let at = lexer.at;
        if at == source.len() {
            return Ok(pieces);
        }
        tags += 1;
        if tags > TAGS_MAX {
            let text = format!("there are more than {TAGS_MAX} tags");
            return Err(SyntaxError::new(at, text));
        }
        let opening = lexer.opening()?;
        let open = source[at..].starts_with("{{~");
        let mut tag = TagPiece {
            range: at..lexer.at,
            opening,
            strip: Strip { open, close: false },
            tokens: Vec::new(),
        };
        let piece = match opening {
            TagOpening::Comment(strip) | TagOpening::Else(strip) => {
                tag.strip = strip;
                Piece::Tag(tag)
            }
            TagOpening::Partial
            | TagOpening::Decorator
            | TagOpening::Block
            | TagOpening::InvertedBlock
            | TagOpening::End
            | TagOpening::ElseChain
            | TagOpening::Unescaped
            | TagOpening::Ampersand
            | TagOpening::Plain
            | TagOpening::Raw => {
                if read_tokens(&mut lexer, &mut tag)? {
                    let (texts, _name) = lexer.raw()?;
                    Piece::Raw(at..lexer.at, texts)
                } else {
                    Piece::Tag(tag)
                }
            }
        };
        pieces.push(piece);
    }
}

/// Reads a tag to its end. Answers whether a raw block begins.
fn read_tokens(lexer: &mut Lexer<'_>, tag: &mut TagPiece) -> Result<bool, SyntaxError> {
    loop {
        let token = lexer.token()?;
        match token {
            Token::Close(close) | Token::CloseUnescaped(close) => {
                tag.strip.close = close;
                tag.range.end = lexer.at;
                return Ok(false);
            }
            Token::CloseRaw => {
                if tag.opening != TagOpening::Raw {
                    return Err(SyntaxError::new(tag.range.start, "is closed by }}}}"));
                }
                return Ok(true);
            }
            Token::Name { .. }
            | Token::Separator(_)
            | Token::Text(_)
            | Token::Number(_)
            | Token::Bool(_)
            | Token::Undefined
            | Token::Null
            | Token::Data
            | Token::Equals
            | Token::OpenCall
            | Token::CloseCall
            | Token::OpenParams
            | Token::Pipe => {
                if tag.tokens.len() < TOKENS_KEPT {
                    tag.tokens.push(token);
                }
            }
        }
    }
}
