//! Splits a Handlebars template into the texts between tags, the openings of tags and the
//! tokens inside them, as the lexer of handlebars.js 4.7 does (`lexer.rules` in its
//! `compiler/parser.js`).

use std::ops::Range;

/// Bytes of a string or a bracketed name inside a tag. Only these tokens can extend over the
/// ends of tags, so this limit keeps the lexer linear.
const TOKEN_BYTES_MAX: usize = 4_096;

/// A syntax error and its byte offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: usize,
    pub(super) text: String,
}

impl SyntaxError {
    pub(super) fn new(at: usize, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { at, text }
    }
}

/// Whether white space before and after a tag is removed: `{{~` and `~}}`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Strip {
    pub(super) open: bool,
    pub(super) close: bool,
}

/// The opening of a tag. Comments and `{{else}}` are complete tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagOpening {
    Comment(Strip),
    Partial,
    Decorator,
    Block,
    InvertedBlock,
    End,
    Else(Strip),
    ElseChain,
    Unescaped,
    Ampersand,
    Plain,
    Raw,
}

/// A token within a tag.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name. In brackets, `this` and `..` have no special meaning.
    Name {
        text: String,
        is_bracketed: bool,
    },
    Separator(char),
    Text(String),
    Number(String),
    Bool(bool),
    Undefined,
    Null,
    Data,
    Equals,
    OpenCall,
    CloseCall,
    OpenParams,
    Pipe,
    /// `}}`, and whether `~` precedes it.
    Close(bool),
    CloseUnescaped(bool),
    CloseRaw,
}

/// The white space of JavaScript's `\s`.
pub(super) fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202f}'
                | '\u{205f}'
                | '\u{3000}'
                | '\u{feff}'
    )
}

fn is_name_char(character: char) -> bool {
    let is_punctuation = character.is_ascii_punctuation();
    !is_space(character) && (!is_punctuation || matches!(character, '$' | '-' | ':' | '?' | '_'))
}

/// Whether a character may follow a name.
fn ends_name(character: char) -> bool {
    is_space(character) || matches!(character, '=' | '~' | '}' | '/' | '.' | ')' | '|')
}

/// Whether a character may follow a literal.
fn ends_literal(character: char) -> bool {
    is_space(character) || matches!(character, '~' | '}' | ')')
}

/// Reads a template from an offset on.
pub(super) struct Lexer<'s> {
    pub(super) source: &'s str,
    pub(super) at: usize,
    /// Whether the next tag has a backslash before it and is therefore text.
    is_escaped: bool,
    /// Whether the last token was a separator. The next token is then always a name.
    is_in_path: bool,
}

impl<'s> Lexer<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            source,
            at: 0,
            is_escaped: false,
            is_in_path: false,
        }
    }

    pub(super) fn error<T>(&self, text: impl Into<String>) -> Result<T, SyntaxError> {
        let text = text.into();
        Err(SyntaxError { at: self.at, text })
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    /// The next text before a tag. `None` if a tag or the end is next.
    pub(super) fn text(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        if self.is_escaped {
            self.is_escaped = false;
            self.at = self.end_of_escaped(start);
            return Some(start..self.at);
        }
        let Some(length) = self.rest().find("{{") else {
            self.at = self.source.len();
            return (start < self.at).then_some(start..self.at);
        };
        self.at += length;
        let text = &self.source[start..self.at];
        let mut end = self.at;
        if text.ends_with("\\\\") {
            end -= 1;
        } else if text.ends_with('\\') {
            end -= 1;
            self.is_escaped = true;
        }
        if start < end {
            return Some(start..end);
        }
        if self.is_escaped { self.text() } else { None }
    }

    /// The end of the text of an escaped tag: before the next tag and its backslashes.
    fn end_of_escaped(&self, start: usize) -> usize {
        let from = start + "{{".len();
        let Some(length) = self.source[from..].find("{{") else {
            return self.source.len();
        };
        let text = &self.source[from..from + length];
        let backslashes = text.bytes().rev().take(2).take_while(|byte| *byte == b'\\');
        from + length - backslashes.count()
    }

    /// The opening of the tag at the current offset.
    pub(super) fn opening(&mut self) -> Result<TagOpening, SyntaxError> {
        let start = self.at;
        if self.take("{{{{") {
            return Ok(TagOpening::Raw);
        }
        self.at += "{{".len();
        let open = self.take("~");
        let tag = self.at;
        if self.take(">") || self.take("#>") {
            return Ok(TagOpening::Partial);
        }
        if self.take("#") {
            return Ok(if self.take("*") {
                TagOpening::Decorator
            } else {
                TagOpening::Block
            });
        }
        if self.take("/") {
            return Ok(TagOpening::End);
        }
        if self.take("^") {
            return Ok(self.else_end(open).unwrap_or(TagOpening::InvertedBlock));
        }
        self.skip_space();
        if self.take("else") {
            if let Some(opening) = self.else_end(open) {
                return Ok(opening);
            }
            let is_word = |next: char| next.is_ascii_alphanumeric() || next == '_';
            if !self.rest().starts_with(is_word) {
                return Ok(TagOpening::ElseChain);
            }
        }
        self.at = tag;
        if self.take("{") {
            return Ok(TagOpening::Unescaped);
        }
        if self.take("&") {
            return Ok(TagOpening::Ampersand);
        }
        if self.rest().starts_with('!') {
            return self.comment(start, open);
        }
        Ok(if self.take("*") {
            TagOpening::Decorator
        } else {
            TagOpening::Plain
        })
    }

    /// The rest of an `{{else}}` or `{{^}}`. `None` if the tag continues.
    fn else_end(&mut self, open: bool) -> Option<TagOpening> {
        let at = self.at;
        self.skip_space();
        let close = self.take("~");
        if self.take("}}") {
            return Some(TagOpening::Else(Strip { open, close }));
        }
        self.at = at;
        None
    }

    fn comment(&mut self, start: usize, open: bool) -> Result<TagOpening, SyntaxError> {
        let text = self.rest();
        let is_long = text.starts_with("!--");
        // One search for both end marks. A second search would read the whole source for
        // each comment.
        let mut ends = text.match_indices("}}").map(|(at, _)| at);
        let end = ends.find(|at| {
            let before = &text[..*at];
            !is_long || before.ends_with("--") || before.ends_with("--~")
        });
        let Some(length) = end else {
            self.at = start;
            return self.error("a comment is not closed");
        };
        self.at += length + "}}".len();
        let close = self.source[start..self.at - "}}".len()].ends_with('~');
        Ok(TagOpening::Comment(Strip { open, close }))
    }

    /// The texts of a raw block up to its closing tag, and the name in that tag.
    pub(super) fn raw(&mut self) -> Result<(Vec<Range<usize>>, &'s str), SyntaxError> {
        let mut texts = Vec::new();
        let mut depth = 0_usize;
        loop {
            let start = self.at;
            let Some(length) = self.rest().find("{{{{") else {
                return self.error("a raw block is not closed");
            };
            if length > 0 {
                self.at += length;
                texts.push(start..self.at);
                continue;
            }
            self.at += "{{{{".len();
            if !self.take("/") {
                depth += 1;
                texts.push(start..self.at);
                continue;
            }
            let name = self.rest();
            let name = &name[..name.find(|c| !is_name_char(c)).unwrap_or(name.len())];
            self.at += name.len();
            if name.is_empty() || !self.take("}}}}") {
                return self.error("a raw block must be closed by {{{{/name}}}}");
            }
            if depth == 0 {
                return Ok((texts, name));
            }
            depth -= 1;
            texts.push(start..self.at);
        }
    }

    /// The next token of a tag.
    pub(super) fn token(&mut self) -> Result<Token, SyntaxError> {
        self.skip_space();
        let is_in_path = std::mem::take(&mut self.is_in_path);
        let Some(next) = self.rest().chars().next() else {
            return self.error("a tag is not closed by }}");
        };
        let after = self.rest()[next.len_utf8()..].chars().next();
        for (word, token) in [
            ("(", Token::OpenCall),
            (")", Token::CloseCall),
            ("}}}}", Token::CloseRaw),
            ("=", Token::Equals),
            ("}~}}", Token::CloseUnescaped(true)),
            ("}}}", Token::CloseUnescaped(false)),
            ("~}}", Token::Close(true)),
            ("}}", Token::Close(false)),
            ("@", Token::Data),
            ("|", Token::Pipe),
        ] {
            if self.take(word) {
                return Ok(token);
            }
        }
        match next {
            '.' | '/' => Ok(self.dots(next, after)),
            '"' | '\'' => self.quoted(next).map(Token::Text),
            '[' => Ok(Token::Name {
                text: self.quoted(']')?,
                is_bracketed: true,
            }),
            _ => self.word(is_in_path),
        }
    }

    fn dots(&mut self, next: char, after: Option<char>) -> Token {
        let name = |text: &str| Token::Name {
            text: text.to_owned(),
            is_bracketed: false,
        };
        if self.take("..") {
            return name("..");
        }
        self.at += next.len_utf8();
        if next == '.' && after.is_some_and(ends_name) {
            return name(".");
        }
        self.is_in_path = true;
        Token::Separator(next)
    }

    /// A quoted string or bracketed name, up to the first `end` without a backslash before it.
    /// If there is none, up to the first `end` with one.
    fn quoted(&mut self, end: char) -> Result<String, SyntaxError> {
        let inner = &self.rest()[1..];
        let mut ends = inner.match_indices(end).map(|(at, _)| at);
        let mut ends = ends
            .by_ref()
            .take_while(|at| *at <= TOKEN_BYTES_MAX)
            .peekable();
        let first = ends.peek().copied();
        let plain = ends.find(|at| !inner[..*at].ends_with('\\'));
        let Some(length) = plain.or(first) else {
            return self.error(format!(
                "a string or name is not closed by {end} within {TOKEN_BYTES_MAX} bytes"
            ));
        };
        self.at += 1 + length + 1;
        let text = inner[..length].replace(&format!("\\{end}"), &end.to_string());
        Ok(if end == ']' {
            text.replace("\\\\", "\\")
        } else {
            text
        })
    }

    fn word(&mut self, is_in_path: bool) -> Result<Token, SyntaxError> {
        let rest = self.rest();
        if !is_in_path && let Some((token, length)) = literal(rest) {
            self.at += length;
            return Ok(token);
        }
        if let Some(after) = rest.strip_prefix("as") {
            let params = after.trim_start_matches(is_space);
            if params.len() < after.len() && params.starts_with('|') {
                self.at += rest.len() - params.len() + 1;
                return Ok(Token::OpenParams);
            }
        }
        let length = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        if length == 0 || !rest[length..].starts_with(ends_name) {
            self.at += length;
            return match self.rest().chars().next() {
                Some(next) => self.error(format!("unexpected {next:?}")),
                None => self.error("a tag is not closed by }}"),
            };
        }
        self.at += length;
        Ok(Token::Name {
            text: rest[..length].to_owned(),
            is_bracketed: false,
        })
    }

    pub(super) fn skip_space(&mut self) {
        self.at = self.source.len() - self.rest().trim_start_matches(is_space).len();
    }

    fn take(&mut self, word: &str) -> bool {
        let is_here = self.rest().starts_with(word);
        if is_here {
            self.at += word.len();
        }
        is_here
    }
}

/// The literal at the start of a text, and its length.
fn literal(text: &str) -> Option<(Token, usize)> {
    for (word, token) in [
        ("true", Token::Bool(true)),
        ("false", Token::Bool(false)),
        ("undefined", Token::Undefined),
        ("null", Token::Null),
    ] {
        if text
            .strip_prefix(word)
            .is_some_and(|rest| rest.starts_with(ends_literal))
        {
            return Some((token, word.len()));
        }
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with('-'));
    let whole = digits(&text[sign..]);
    let mut length = sign + whole;
    if let Some(fraction) = text[length..]
        .strip_prefix('.')
        .map(digits)
        .filter(|count| *count > 0)
    {
        length += 1 + fraction;
    }
    let is_number = whole > 0 && text[length..].starts_with(ends_literal);
    is_number.then(|| (Token::Number(text[..length].to_owned()), length))
}
