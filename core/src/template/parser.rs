//! Builds the syntax tree from the tokens of `lexer`: a recursive descent parser for the
//! grammar of handlebars.js (`productions_` in its `compiler/parser.js`). `names` resolves
//! the names of a tag.

use super::lexer::{Lexer, Strip, SyntaxError, TagOpening, Token};
use super::names::{NameRole, TagNames};
use super::source::{Block, BlockSubject, Expr, Program, TemplateNode, TextNode};

/// Tags of a template.
pub(super) const TAGS_MAX: usize = 20_000;
/// Path segments and values in the tags of a template.
pub(super) const VALUES_MAX: usize = 100_000;
/// Block parameters of all blocks around a tag. Each name in a tag is searched among them.
pub(super) const BLOCK_NAMES_MAX: usize = 100;
/// The deepest nesting of blocks. Each `else if` is one level enter_block than the previous.
pub(super) const DEPTH_MAX: usize = 100;

pub(super) struct Parser<'s> {
    lexer: Lexer<'s>,
    peeked: Option<(Token, usize)>,
    /// The block parameters in scope.
    pub(super) names: Vec<String>,
    depth: usize,
    tags: usize,
    values: usize,
    pub(super) weight: u64,
}

/// The tag that ends a program. The lexer is inside the tag, or after an `{{else}}`.
pub(super) enum Stop {
    End { at: usize, open: bool },
    Else { at: usize, strip: Strip },
    ElseIf { at: usize, open: bool },
}

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self {
            lexer: Lexer::new(source),
            peeked: None,
            names: Vec::new(),
            depth: 0,
            tags: 0,
            values: 0,
            weight: 0,
        }
    }
}

impl Parser<'_> {
    /// Parses nodes up to the end of the source or to a closing or `else` tag.
    pub(super) fn program(&mut self) -> Result<(Program, Option<Stop>), SyntaxError> {
        let mut body = Vec::new();
        loop {
            while let Some(text) = self.lexer.text() {
                body.push(TemplateNode::Text(TextNode::new(text)));
                self.weight += 1;
            }
            let at = self.lexer.at;
            if at == self.lexer.source.len() {
                break;
            }
            self.tags += 1;
            self.weight += 1;
            if self.tags > TAGS_MAX {
                return Err(SyntaxError::new(
                    at,
                    format!("there are more than {TAGS_MAX} tags"),
                ));
            }
            let open = self.lexer.source[at..].starts_with("{{~");
            let node = match self.lexer.opening()? {
                TagOpening::Comment(strip) => TemplateNode::Comment(strip),
                TagOpening::Partial => {
                    return Err(SyntaxError::new(
                        at,
                        "partials are only possible in the bodies of templates",
                    ));
                }
                TagOpening::Decorator => {
                    return Err(SyntaxError::new(at, "decorators are not supported"));
                }
                TagOpening::Unescaped => self.value(at, open, false, true)?,
                TagOpening::Ampersand => self.value(at, open, false, false)?,
                TagOpening::Plain => self.value(at, open, true, false)?,
                TagOpening::Raw => self.raw_block(at)?,
                TagOpening::Block => self.block(at, open, false)?,
                TagOpening::InvertedBlock => self.block(at, open, true)?,
                TagOpening::End => return Ok((Program::of(body), Some(Stop::End { at, open }))),
                TagOpening::Else(strip) => {
                    return Ok((Program::of(body), Some(Stop::Else { at, strip })));
                }
                TagOpening::ElseChain => {
                    return Ok((Program::of(body), Some(Stop::ElseIf { at, open })));
                }
            };
            body.push(node);
        }
        Ok((Program::of(body), None))
    }

    fn value(
        &mut self,
        at: usize,
        open: bool,
        is_escaped: bool,
        is_triple: bool,
    ) -> Result<TemplateNode, SyntaxError> {
        let tag = self.tag(at)?;
        let close = match self.next()? {
            (Token::CloseUnescaped(close), _) if is_triple => close,
            (Token::Close(close), _) if !is_triple => close,
            (_, at) => {
                let end = if is_triple { "}}}" } else { "}}" };
                return Err(SyntaxError::new(
                    at,
                    format!("expected {end} at the end of the tag"),
                ));
            }
        };
        let value = match self.subject(tag, NameRole::Value)? {
            BlockSubject::Section(value) => value,
            BlockSubject::HelperCall(call) => Expr::HelperCall(Box::new(call)),
        };
        Ok(TemplateNode::Value {
            value,
            is_escaped,
            strip: Strip { open, close },
        })
    }

    fn raw_block(&mut self, at: usize) -> Result<TemplateNode, SyntaxError> {
        let tag = self.tag(at)?;
        self.expect(&Token::CloseRaw, "}}}}")?;
        let name = tag.name.original.clone();
        let subject = self.subject(tag, NameRole::Block)?;
        let (texts, end) = self.lexer.raw()?;
        if end != name {
            return Err(SyntaxError::new(at, format!("{name} is closed by {end}")));
        }
        let body = texts
            .into_iter()
            .map(|text| TemplateNode::Text(TextNode::new(text)));
        Ok(TemplateNode::Block(Box::new(Block {
            subject,
            program: Some(Program::of(body.collect())),
            inverse: None,
            open: Strip::default(),
            otherwise: Strip::default(),
            close: Strip::default(),
        })))
    }

    fn block(
        &mut self,
        at: usize,
        open: bool,
        is_inverted: bool,
    ) -> Result<TemplateNode, SyntaxError> {
        self.enter_block(at)?;
        let (mut block, name, stop) = self.opened_block(at, open)?;
        let end = match stop {
            Some(Stop::Else { strip, .. }) => {
                block.otherwise = strip;
                let (inverse, stop) = self.program()?;
                block.inverse = Some(inverse);
                stop
            }
            Some(Stop::ElseIf { at, open }) if !is_inverted => {
                let (chain, strip, stop) = self.chain(at, open)?;
                block.otherwise = strip;
                block.inverse = Some(chain);
                stop
            }
            stop => stop,
        };
        let (at, open) = match end {
            Some(Stop::End { at, open }) => (at, open),
            Some(Stop::Else { at, .. } | Stop::ElseIf { at, .. }) => {
                return Err(SyntaxError::new(at, "unexpected else"));
            }
            None => {
                return Err(SyntaxError::new(
                    at,
                    format!("{name} is not closed by {{{{/{name}}}}}"),
                ));
            }
        };
        let closing = self.name()?;
        let close = self.close()?;
        if closing.original != name {
            let text = format!("{name} is closed by {}", closing.original);
            return Err(SyntaxError::new(at, text));
        }
        block.close = Strip { open, close };
        // The first `else if` shares the closing tag.
        if let Some(chain) = block.inverse.as_mut().filter(|inverse| inverse.is_chained)
            && let Some(TemplateNode::Block(first)) = chain.body.first_mut()
        {
            first.close = block.close;
        }
        if is_inverted {
            std::mem::swap(&mut block.program, &mut block.inverse);
        }
        self.depth -= 1;
        Ok(TemplateNode::Block(Box::new(block)))
    }

    /// Parses a block from its name to the tag that ends its first program.
    fn opened_block(
        &mut self,
        at: usize,
        open: bool,
    ) -> Result<(Block, String, Option<Stop>), SyntaxError> {
        let tag = self.tag(at)?;
        let names = self.block_names()?;
        let close = self.close()?;
        let name = tag.name.original.clone();
        let count = names.len();
        let role = if count > 0 {
            NameRole::NamingBlock
        } else {
            NameRole::Block
        };
        let subject = self.subject(tag, role)?;
        self.names.extend(names);
        let (mut program, stop) = self.program()?;
        self.names.truncate(self.names.len() - count);
        program.names = count;
        let block = Block {
            subject,
            program: Some(program),
            inverse: None,
            open: Strip { open, close },
            otherwise: Strip::default(),
            close: Strip::default(),
        };
        Ok((block, name, stop))
    }

    /// Parses an `else if` and the rest of its chain into a program of one block.
    fn chain(
        &mut self,
        at: usize,
        open: bool,
    ) -> Result<(Program, Strip, Option<Stop>), SyntaxError> {
        self.enter_block(at)?;
        let (mut block, _, stop) = self.opened_block(at, open)?;
        let strip = block.open;
        let stop = match stop {
            Some(Stop::Else { strip, .. }) => {
                block.otherwise = strip;
                block.close = strip;
                let (inverse, stop) = self.program()?;
                block.inverse = Some(inverse);
                stop
            }
            Some(Stop::ElseIf { at, open }) => {
                let (mut chain, strip, stop) = self.chain(at, open)?;
                block.otherwise = strip;
                block.close = strip;
                if let Some(TemplateNode::Block(next)) = chain.body.first_mut() {
                    next.close = strip;
                }
                block.inverse = Some(chain);
                stop
            }
            stop => stop,
        };
        self.depth -= 1;
        let program = Program {
            body: vec![TemplateNode::Block(Box::new(block))],
            names: 0,
            is_chained: true,
        };
        Ok((program, strip, stop))
    }

    /// Counts a path segment or a value.
    pub(super) fn count_value(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.values += 1;
        if self.values > VALUES_MAX {
            let text = format!("there are more than {VALUES_MAX} values and path segments");
            return Err(SyntaxError::new(at, text));
        }
        Ok(())
    }

    fn enter_block(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let text = format!("blocks are nested more than {DEPTH_MAX} deep");
            return Err(SyntaxError::new(at, text));
        }
        Ok(())
    }

    fn tag(&mut self, at: usize) -> Result<TagNames, SyntaxError> {
        let name = self.name()?;
        let mut tag = TagNames::new(at, name);
        self.arguments(&mut tag, 0)?;
        Ok(tag)
    }

    fn close(&mut self) -> Result<bool, SyntaxError> {
        match self.next()? {
            (Token::Close(close), _) => Ok(close),
            (_, at) => Err(SyntaxError::new(at, "expected }} at the end of the tag")),
        }
    }

    pub(super) fn expect(&mut self, expected: &Token, text: &str) -> Result<(), SyntaxError> {
        let (token, at) = self.next()?;
        if token == *expected {
            return Ok(());
        }
        Err(SyntaxError::new(at, format!("expected {text}")))
    }

    pub(super) fn next(&mut self) -> Result<(Token, usize), SyntaxError> {
        self.peek()?;
        let end = SyntaxError::new(self.lexer.at, "a tag is not closed by }}");
        self.peeked.take().ok_or(end)
    }

    pub(super) fn peek(&mut self) -> Result<&Token, SyntaxError> {
        if self.peeked.is_none() {
            self.lexer.skip_space();
            let at = self.lexer.at;
            self.peeked = Some((self.lexer.token()?, at));
        }
        let end = SyntaxError::new(self.lexer.at, "a tag is not closed by }}");
        self.peeked.as_ref().map(|(token, _)| token).ok_or(end)
    }

    pub(super) fn peeked_at(&self) -> usize {
        self.peeked.as_ref().map_or(self.lexer.at, |(_, at)| *at)
    }
}
