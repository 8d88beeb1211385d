//! From the words of a source to its tree: the grammar of handlebars.js
//! (`productions_` in its `compiler/parser.js`), by descent. What a tag's names stand
//! for is decided in `names`.

use super::names::{Role, TagNames};
use super::source::{Block, BlockSubject, Expr, Program, TemplateNode, TextNode};
use super::tags::{Lexer, Problem, Strip, TagOpening, Token};

/// Tags of a source.
pub(super) const TAGS_MAX: usize = 20_000;
/// Parts of paths, and values in tags, of a source.
pub(super) const VALUES_MAX: usize = 100_000;
/// Names that blocks around a tag may give, all together. Each name in a tag is looked for
/// among them.
pub(super) const BLOCK_NAMES_MAX: usize = 100;
/// How deep blocks may nest, each `else if` one deeper than the one before.
pub(super) const DEPTH_MAX: usize = 100;

pub(super) struct Parser<'s> {
    lexer: Lexer<'s>,
    peeked: Option<(Token, usize)>,
    /// The block parameters that are known here.
    pub(super) names: Vec<String>,
    depth: usize,
    tags: usize,
    values: usize,
    pub(super) weight: u64,
}

/// The tag that ends a program; the lexer stands in it, or behind an `{{else}}`.
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
    /// The nodes up to the end, or to a tag that ends a block or goes on with it.
    pub(super) fn program(&mut self) -> Result<(Program, Option<Stop>), Problem> {
        let mut body = Vec::new();
        loop {
            while let Some(text) = self.lexer.text() {
                body.push(TemplateNode::TextNode(TextNode::new(text)));
                self.weight += 1;
            }
            let at = self.lexer.at;
            if at == self.lexer.source.len() {
                break;
            }
            self.tags += 1;
            self.weight += 1;
            if self.tags > TAGS_MAX {
                return Err(Problem::new(
                    at,
                    format!("there are more than {TAGS_MAX} tags"),
                ));
            }
            let open = self.lexer.source[at..].starts_with("{{~");
            let node = match self.lexer.opening()? {
                TagOpening::Comment(strip) => TemplateNode::Comment(strip),
                TagOpening::Partial => return Err(Problem::new(at, "partials are not served")),
                TagOpening::Decorator => return Err(Problem::new(at, "decorators are not served")),
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
    ) -> Result<TemplateNode, Problem> {
        let tag = self.tag(at)?;
        let close = match self.next()? {
            (Token::CloseUnescaped(close), _) if is_triple => close,
            (Token::Close(close), _) if !is_triple => close,
            (_, at) => {
                let end = if is_triple { "}}}" } else { "}}" };
                return Err(Problem::new(
                    at,
                    format!("the tag is to end with {end} here"),
                ));
            }
        };
        let value = match self.subject(tag, Role::Value)? {
            BlockSubject::Section(value) => value,
            BlockSubject::HelperCall(call) => Expr::HelperCall(Box::new(call)),
        };
        Ok(TemplateNode::Value {
            value,
            is_escaped,
            strip: Strip { open, close },
        })
    }

    fn raw_block(&mut self, at: usize) -> Result<TemplateNode, Problem> {
        let tag = self.tag(at)?;
        self.expect(&Token::CloseRaw, "}}}}")?;
        let name = tag.name.original.clone();
        let subject = self.subject(tag, Role::Block)?;
        let (texts, end) = self.lexer.raw()?;
        if end != name {
            return Err(Problem::new(at, format!("{name} is closed by {end}")));
        }
        let body = texts
            .into_iter()
            .map(|text| TemplateNode::TextNode(TextNode::new(text)));
        Ok(TemplateNode::Block(Box::new(Block {
            subject,
            program: Some(Program::of(body.collect())),
            inverse: None,
            open: Strip::default(),
            otherwise: Strip::default(),
            close: Strip::default(),
        })))
    }

    fn block(&mut self, at: usize, open: bool, is_inverted: bool) -> Result<TemplateNode, Problem> {
        self.deeper(at)?;
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
                return Err(Problem::new(at, "no else is expected here"));
            }
            None => {
                return Err(Problem::new(
                    at,
                    format!("{name} is not closed by {{{{/{name}}}}}"),
                ));
            }
        };
        let closing = self.name()?;
        let close = self.close()?;
        if closing.original != name {
            let text = format!("{name} is closed by {}", closing.original);
            return Err(Problem::new(at, text));
        }
        block.close = Strip { open, close };
        // The closing tag is that of the first `else if`, too.
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

    /// A block from its name to the tag that ends its first part.
    fn opened_block(
        &mut self,
        at: usize,
        open: bool,
    ) -> Result<(Block, String, Option<Stop>), Problem> {
        let tag = self.tag(at)?;
        let names = self.block_names()?;
        let close = self.close()?;
        let name = tag.name.original.clone();
        let count = names.len();
        let role = if count > 0 {
            Role::NamingBlock
        } else {
            Role::Block
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

    /// An `else if` and what follows it: a program of that one block.
    fn chain(&mut self, at: usize, open: bool) -> Result<(Program, Strip, Option<Stop>), Problem> {
        self.deeper(at)?;
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

    /// Counts a part of a path, or a value.
    pub(super) fn count_value(&mut self, at: usize) -> Result<(), Problem> {
        self.values += 1;
        if self.values > VALUES_MAX {
            let text = format!("there are more than {VALUES_MAX} values and parts of paths");
            return Err(Problem::new(at, text));
        }
        Ok(())
    }

    fn deeper(&mut self, at: usize) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let text = format!("blocks are nested more than {DEPTH_MAX} deep");
            return Err(Problem::new(at, text));
        }
        Ok(())
    }

    fn tag(&mut self, at: usize) -> Result<TagNames, Problem> {
        let name = self.name()?;
        let mut tag = TagNames::new(at, name);
        self.arguments(&mut tag, 0)?;
        Ok(tag)
    }

    fn close(&mut self) -> Result<bool, Problem> {
        match self.next()? {
            (Token::Close(close), _) => Ok(close),
            (_, at) => Err(Problem::new(at, "the tag is to end with }} here")),
        }
    }

    pub(super) fn expect(&mut self, wanted: &Token, written: &str) -> Result<(), Problem> {
        let (token, at) = self.next()?;
        if token == *wanted {
            return Ok(());
        }
        Err(Problem::new(at, format!("{written} is expected here")))
    }

    pub(super) fn next(&mut self) -> Result<(Token, usize), Problem> {
        self.peek()?;
        let end = Problem::new(self.lexer.at, "a tag is not closed by }}");
        self.peeked.take().ok_or(end)
    }

    pub(super) fn peek(&mut self) -> Result<&Token, Problem> {
        if self.peeked.is_none() {
            self.lexer.skip_space();
            let at = self.lexer.at;
            self.peeked = Some((self.lexer.token()?, at));
        }
        let end = Problem::new(self.lexer.at, "a tag is not closed by }}");
        self.peeked.as_ref().map(|(token, _)| token).ok_or(end)
    }

    pub(super) fn peeked_at(&self) -> usize {
        self.peeked.as_ref().map_or(self.lexer.at, |(_, at)| *at)
    }
}
