//! Parses and resolves the names in a tag. A name is a helper, a block parameter or a
//! variable, by the rules of the handlebars.js compiler (`compiler/compiler.js`,
//! `compiler/helpers.js`).

use serde_json::Value;

use super::helpers::Helper;
use super::lexer::{SyntaxError, Token};
use super::parser::{BLOCK_NAMES_MAX, Parser};
use super::source::{BlockSubject, Expr, HelperCall, Path, PathBase};
use super::values;

/// The deepest nesting of calls in a tag.
pub(super) const CALL_DEPTH_MAX: usize = 32;

/// The content of a tag: a name, positional and named arguments.
pub(super) struct TagNames {
    at: usize,
    pub(super) name: Name,
    values: Vec<Expr>,
    include_zero: Option<Expr>,
    has_named: bool,
}

impl TagNames {
    pub(super) fn new(at: usize, name: Name) -> Self {
        Self {
            at,
            name,
            values: Vec::new(),
            include_zero: None,
            has_named: false,
        }
    }
}

/// A name that is not resolved yet.
pub(super) struct Name {
    pub(super) original: String,
    is_data: bool,
    depth: usize,
    parts: Vec<String>,
    /// The value of a literal. `None` for a path.
    literal: Option<Value>,
}

impl Name {
    /// Whether the name is explicitly a variable of the context: `this.name`, `./name`. Uses
    /// the expression of handlebars.js, `/^\.|this\b/`.
    fn is_scoped(&self) -> bool {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut uses = self.original.match_indices("this");
        self.original.starts_with('.')
            || uses.any(|(at, word)| !self.original[at + word.len()..].starts_with(is_word))
    }

    /// The name, if it is a single segment.
    fn simple(&self) -> Option<&str> {
        let is_simple = self.parts.len() == 1 && self.depth == 0 && !self.is_scoped();
        self.parts.first().map(String::as_str).filter(|_| is_simple)
    }
}

/// The syntactic position of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRole {
    Value,
    Block,
    /// A block with parameters: `as |item|`.
    NamingBlock,
    HelperCall,
}

impl Parser<'_> {
    /// Parses the positional and then the named arguments of a tag or call.
    pub(super) fn arguments(
        &mut self,
        tag: &mut TagNames,
        depth: usize,
    ) -> Result<(), SyntaxError> {
        loop {
            let starts = matches!(
                self.peek()?,
                Token::Name { .. }
                    | Token::Text(_)
                    | Token::Number(_)
                    | Token::Bool(_)
                    | Token::Undefined
                    | Token::Null
                    | Token::Data
                    | Token::OpenCall
            );
            if !starts {
                return Ok(());
            }
            let at = self.peeked_at();
            self.count_value(at)?;
            if let Token::Name { text, .. } = self.peek()?.clone() {
                let name = self.name_from_peeked()?;
                if name.parts.len() + name.depth <= 1 && *self.peek()? == Token::Equals {
                    self.next()?;
                    let value = self.argument(depth)?;
                    tag.has_named = true;
                    if text == "includeZero" {
                        tag.include_zero = Some(value);
                    }
                    continue;
                }
                self.refuse_after_named(tag, at)?;
                let value = self.resolve(name);
                tag.values.push(value);
            } else {
                self.refuse_after_named(tag, at)?;
                let value = self.argument(depth)?;
                tag.values.push(value);
            }
            self.weight += 1;
        }
    }

    fn refuse_after_named(&self, tag: &TagNames, at: usize) -> Result<(), SyntaxError> {
        if tag.has_named {
            return Err(SyntaxError::new(
                at,
                "positional values must come before the named ones",
            ));
        }
        Ok(())
    }

    fn argument(&mut self, depth: usize) -> Result<Expr, SyntaxError> {
        if *self.peek()? != Token::OpenCall {
            let name = self.name()?;
            return Ok(self.resolve(name));
        }
        let (_, at) = self.next()?;
        if depth == CALL_DEPTH_MAX {
            let text = format!("calls are nested more than {CALL_DEPTH_MAX} deep");
            return Err(SyntaxError::new(at, text));
        }
        let name = self.name()?;
        let mut tag = TagNames::new(at, name);
        self.arguments(&mut tag, depth + 1)?;
        self.expect(&Token::CloseCall, ")")?;
        Ok(match self.subject(tag, NameRole::HelperCall)? {
            BlockSubject::Section(value) => value,
            BlockSubject::HelperCall(call) => Expr::HelperCall(Box::new(call)),
        })
    }

    pub(super) fn block_names(&mut self) -> Result<Vec<String>, SyntaxError> {
        let mut names = Vec::new();
        if *self.peek()? != Token::OpenParams {
            return Ok(names);
        }
        self.next()?;
        loop {
            match self.next()? {
                (Token::Name { .. }, at) if self.names.len() + names.len() == BLOCK_NAMES_MAX => {
                    let text = format!("blocks define more than {BLOCK_NAMES_MAX} names here");
                    return Err(SyntaxError::new(at, text));
                }
                (Token::Name { text, .. }, _) => names.push(text),
                (Token::Pipe, _) if !names.is_empty() => return Ok(names),
                (_, at) => {
                    return Err(SyntaxError::new(
                        at,
                        "expected names of block parameters and then |",
                    ));
                }
            }
        }
    }

    pub(super) fn name(&mut self) -> Result<Name, SyntaxError> {
        self.peek()?;
        self.name_from_peeked()
    }

    fn name_from_peeked(&mut self) -> Result<Name, SyntaxError> {
        let (token, at) = self.next()?;
        let literal = |original: String, literal: Value| Name {
            parts: vec![original.clone()],
            original,
            is_data: false,
            depth: 0,
            literal: Some(literal),
        };
        Ok(match token {
            Token::Name { text, is_bracketed } => self.path(false, text, is_bracketed, at)?,
            Token::Data => match self.next()? {
                (Token::Name { text, is_bracketed }, at) => {
                    self.path(true, text, is_bracketed, at)?
                }
                (_, at) => return Err(SyntaxError::new(at, "expected a name after @")),
            },
            Token::Text(text) => literal(text.clone(), Value::String(text)),
            Token::Number(text) => {
                let number = number(&text);
                literal(values::to_text(&number), number)
            }
            Token::Bool(is_true) => literal(is_true.to_string(), Value::Bool(is_true)),
            Token::Undefined => literal("undefined".to_owned(), Value::Null),
            Token::Null => literal("null".to_owned(), Value::Null),
            Token::Separator(_)
            | Token::Equals
            | Token::OpenCall
            | Token::CloseCall
            | Token::OpenParams
            | Token::Pipe
            | Token::Close(_)
            | Token::CloseUnescaped(_)
            | Token::CloseRaw => return Err(SyntaxError::new(at, "expected a name")),
        })
    }

    fn path(
        &mut self,
        is_data: bool,
        first: String,
        is_bracketed: bool,
        at: usize,
    ) -> Result<Name, SyntaxError> {
        let mut name = Name {
            original: if is_data {
                "@".to_owned()
            } else {
                String::new()
            },
            is_data,
            depth: 0,
            parts: Vec::new(),
            literal: None,
        };
        let (mut part, mut is_bracketed) = (first, is_bracketed);
        loop {
            self.count_value(at)?;
            name.original.push_str(&part);
            match part.as_str() {
                ".." | "." | "this" if !is_bracketed => {
                    if !name.parts.is_empty() {
                        let text = format!(
                            "{} is not a valid path: this, . and .. are only allowed at its start",
                            name.original
                        );
                        return Err(SyntaxError::new(at, text));
                    }
                    name.depth += usize::from(part == "..");
                }
                _ => name.parts.push(part),
            }
            let &Token::Separator(separator) = self.peek()? else {
                return Ok(name);
            };
            self.next()?;
            name.original.push(separator);
            let (
                Token::Name {
                    text,
                    is_bracketed: next,
                },
                _,
            ) = self.next()?
            else {
                return Err(SyntaxError::new(
                    at,
                    format!("expected a name after {}", name.original),
                ));
            };
            (part, is_bracketed) = (text, next);
        }
    }

    /// Resolves a name in the position of a value.
    fn resolve(&mut self, name: Name) -> Expr {
        match name.literal {
            Some(literal) => Expr::Literal(Box::new(literal)),
            None => Expr::Path(self.variable(name)),
        }
    }

    fn variable(&self, name: Name) -> Path {
        let first = name
            .parts
            .first()
            .filter(|_| name.depth == 0 && !name.is_scoped());
        let parameter = first.and_then(|first| self.parameter(first));
        let base = match parameter {
            Some(index) => PathBase::Parameter(index),
            None if name.is_data && !name.parts.is_empty() => PathBase::Data(name.depth),
            None => PathBase::Context(name.depth),
        };
        let known = usize::from(parameter.is_some());
        let names = name
            .parts
            .into_iter()
            .skip(known)
            .map(String::into_boxed_str);
        Path {
            base,
            names: names.collect(),
        }
    }

    fn parameter(&self, name: &str) -> Option<usize> {
        self.names.iter().rposition(|known| known == name)
    }

    /// Decides whether a tag calls a helper or is a section or value, by the rules of
    /// handlebars.js.
    pub(super) fn subject(
        &self,
        tag: TagNames,
        role: NameRole,
    ) -> Result<BlockSubject, SyntaxError> {
        let is_call = role == NameRole::HelperCall || !tag.values.is_empty() || tag.has_named;
        let name = tag.name.simple();
        let is_parameter = name.is_some_and(|name| self.parameter(name).is_some());
        let original = &tag.name.original;
        let helper = name.filter(|_| !tag.name.is_data).and_then(Helper::named);
        let helper = helper.filter(|helper| {
            !is_parameter
                && (is_call
                    || helper.is_always_called()
                    || (*helper == Helper::Raw && role != NameRole::Value))
        });
        let error = |text: String| Err(SyntaxError::new(tag.at, text));
        let Some(helper) = helper else {
            if is_call && !is_parameter {
                return error(format!("there is no helper {original}"));
            }
            return Ok(BlockSubject::Section(Expr::Path(self.variable(tag.name))));
        };
        if role == NameRole::NamingBlock && !matches!(helper, Helper::Each | Helper::With) {
            return error(format!(
                "{original} has no block parameters; only each and with have them"
            ));
        }
        let (least, most) = helper.values();
        if tag.values.len() < least || tag.values.len() > most {
            let values = if least == 1 { "value" } else { "values" };
            return error(format!(
                "the helper {original} takes {least} {values}; a variable of that name is written this.{original}"
            ));
        }
        Ok(BlockSubject::HelperCall(HelperCall {
            helper,
            values: tag.values,
            include_zero: tag.include_zero,
        }))
    }
}

/// Parses a number literal.
fn number(text: &str) -> Value {
    text.parse::<i64>().map_or_else(
        |_| text.parse::<f64>().map_or(Value::Null, Value::from),
        Value::from,
    )
}
