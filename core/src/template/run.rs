//! Renders a syntax tree. The renderer charges each step to the step limit. It borrows
//! values from the variables and never copies them.
//!
//! Contexts, `..`, `@index` and sections have the semantics of the handlebars.js 4.7 runtime
//! (`runtime.js`, `helpers/*.js`).

use std::sync::LazyLock;

use serde_json::Value;

use super::helpers::Helper;
use super::source::{
    Block, BlockSubject, Expr, HelperCall, ParsedTemplate, Path, PathBase, Program, TemplateNode,
};
use super::step_limit::{LimitExceeded, StepLimit};
use super::values::{self, Js, UNDEFINED};

/// The context of a helper's block if the current context is null: an empty object.
static NO_CONTEXT: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));

/// The values in a tag, path segments, and bytes of a string whose characters are counted
/// that each cost one step.
const VALUES_PER_STEP: u64 = 4;
const PARTS_PER_STEP: u64 = 16;
const BYTES_PER_STEP: u64 = 256;

/// How variables are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Html,
    Nothing,
}

/// Renders a template to at most `bytes_max` bytes.
///
/// # Errors
/// The limit that was exceeded.
pub(crate) fn render(
    template: &ParsedTemplate,
    variables: &Value,
    escape: Escape,
    bytes_max: usize,
    steps: &mut StepLimit,
) -> Result<String, LimitExceeded> {
    let this = Js::Borrowed(variables);
    let mut run = Renderer {
        source: &template.source,
        escape,
        bytes_max,
        steps,
        root: variables,
        contexts: vec![this.clone()],
        this,
        frames: Vec::new(),
        parameters: Vec::new(),
        out: String::with_capacity(template.source.len().min(bytes_max)),
    };
    run.program(&template.program)?;
    Ok(run.out)
}

struct Renderer<'a, 'b> {
    source: &'a str,
    escape: Escape,
    bytes_max: usize,
    steps: &'b mut StepLimit,
    root: &'a Value,
    /// The current context.
    this: Js<'a>,
    /// The contexts of this block and its outer blocks, without consecutive duplicates.
    contexts: Vec<Js<'a>>,
    frames: Vec<LoopFrame<'a>>,
    parameters: Vec<Js<'a>>,
    out: String,
}

/// The state of a loop: `@key`, `@index`, `@first`, `@last`.
struct LoopFrame<'a> {
    key: Js<'a>,
    index: usize,
    is_last: bool,
}

impl<'a> Renderer<'a, '_> {
    fn program(&mut self, program: &'a Program) -> Result<(), LimitExceeded> {
        for node in &program.body {
            self.steps.charge(1)?;
            match node {
                TemplateNode::Comment(_) => {}
                TemplateNode::Text(text) => self.write(&self.source[text.trimmed.clone()])?,
                TemplateNode::Value {
                    value, is_escaped, ..
                } => {
                    let value = self.value(value)?;
                    self.write_value(&value, *is_escaped && self.escape == Escape::Html)?;
                }
                TemplateNode::Block(block) => self.block(block)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), LimitExceeded> {
        self.out.push_str(text);
        self.check_size()
    }

    fn check_size(&self) -> Result<(), LimitExceeded> {
        if self.out.len() > self.bytes_max {
            return Err(LimitExceeded::Output(self.bytes_max));
        }
        Ok(())
    }

    fn write_value(&mut self, value: &Value, is_escaped: bool) -> Result<(), LimitExceeded> {
        match value {
            Value::String(text) if is_escaped => values::write_escaped(text, &mut self.out),
            Value::Array(_) => {
                self.steps.charge(values::size(value))?;
                let text = values::to_text(value);
                if is_escaped {
                    values::write_escaped(&text, &mut self.out);
                } else {
                    self.out.push_str(&text);
                }
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => {
                values::write(value, &mut self.out);
            }
        }
        self.check_size()
    }

    fn block(&mut self, block: &'a Block) -> Result<(), LimitExceeded> {
        let call = match &block.subject {
            BlockSubject::Section(value) => {
                let value = self.value(value)?;
                return self.section(block, value);
            }
            BlockSubject::HelperCall(call) => call,
        };
        let values = self.values(call)?;
        let Some(first) = values.first().cloned() else {
            // `raw`, or `log` without arguments.
            return if call.helper == Helper::Raw {
                self.part(block.program.as_ref())
            } else {
                Ok(())
            };
        };
        match call.helper {
            Helper::If => {
                let is_true = self.is_true(call, &first)?;
                self.branch(block, is_true)
            }
            Helper::Unless => {
                let is_true = self.is_true(call, &first)?;
                self.branch(block, !is_true)
            }
            Helper::With if values::is_empty(&first) => self.branch(block, false),
            Helper::With => self.render_with(block.program.as_ref(), first.clone(), &[first]),
            Helper::Each => {
                if !self.each(block, &first)? {
                    return self.branch(block, false);
                }
                Ok(())
            }
            Helper::Lookup
            | Helper::Log
            | Helper::Raw
            | Helper::Equal
            | Helper::NotEqual
            | Helper::Greater
            | Helper::GreaterOrEqual
            | Helper::Less
            | Helper::LessOrEqual
            | Helper::And
            | Helper::Or
            | Helper::Not
            | Helper::Length => match call.helper.condition(&values) {
                Some(condition) => self.branch(block, condition),
                None => {
                    let value = call.helper.value(&values);
                    self.write_value(&value, false)
                }
            },
        }
    }

    fn is_true(&mut self, call: &'a HelperCall, value: &Value) -> Result<bool, LimitExceeded> {
        let takes_zero = match &call.include_zero {
            Some(option) => values::is_truthy(&*self.value(option)?),
            None => false,
        };
        Ok(values::is_true(value) || (takes_zero && values::is_zero(value)))
    }

    /// `blockHelperMissing`: `{{#name}}…{{/name}}`.
    fn section(&mut self, block: &'a Block, value: Js<'a>) -> Result<(), LimitExceeded> {
        match value.as_ref() {
            Value::Bool(true) => self.part_with_this(block.program.as_ref()),
            Value::Null | Value::Bool(false) => self.part_with_this(block.inverse.as_ref()),
            Value::Array(items) if items.is_empty() => self.part_with_this(block.inverse.as_ref()),
            Value::Array(_) => self.each(block, &value).map(|_| ()),
            Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.render_with(block.program.as_ref(), value.clone(), &[value])
            }
        }
    }

    /// Renders the program or the `else` of a block.
    fn branch(&mut self, block: &'a Block, condition: bool) -> Result<(), LimitExceeded> {
        let part = if condition {
            &block.program
        } else {
            &block.inverse
        };
        self.part(part.as_ref())
    }

    fn part(&mut self, program: Option<&'a Program>) -> Result<(), LimitExceeded> {
        if self.this.is_null() {
            return self.render_with(program, Js::Borrowed(&NO_CONTEXT), &[]);
        }
        self.part_with_this(program)
    }

    fn part_with_this(&mut self, program: Option<&'a Program>) -> Result<(), LimitExceeded> {
        self.render_with(program, self.this.clone(), &[])
    }

    /// Renders a program with a context and with values for its block parameters.
    fn render_with(
        &mut self,
        program: Option<&'a Program>,
        value: Js<'a>,
        given: &[Js<'a>],
    ) -> Result<(), LimitExceeded> {
        let Some(program) = program else {
            return Ok(());
        };
        let is_no_context = std::ptr::eq(value.as_ref(), &raw const *NO_CONTEXT);
        let is_other = self.contexts.last().is_none_or(|contexts| {
            !(values::is_same(contexts, &value) || (is_no_context && contexts.is_null()))
        });
        if is_other {
            self.contexts.push(value.clone());
        }
        self.steps.charge(program.names as u64 / VALUES_PER_STEP)?;
        let this = std::mem::replace(&mut self.this, value);
        for index in 0..program.names {
            self.parameters
                .push(given.get(index).cloned().unwrap_or(UNDEFINED));
        }
        self.program(program)?;
        self.parameters
            .truncate(self.parameters.len() - program.names);
        self.this = this;
        if is_other {
            self.contexts.pop();
        }
        Ok(())
    }

    /// Renders a block for each item or field. False if there is none.
    fn each(&mut self, block: &'a Block, value: &Js<'a>) -> Result<bool, LimitExceeded> {
        let entries: Vec<(Js<'a>, &'a Value)> = match value {
            Js::Borrowed(Value::Array(items)) => {
                let keys = (0..items.len()).map(|key| Js::Owned(Value::from(key)));
                keys.zip(items).collect()
            }
            Js::Borrowed(Value::Object(fields)) => values::fields(fields)
                .into_iter()
                .map(|(key, value)| (Js::Owned(Value::from(key)), value))
                .collect(),
            Js::Borrowed(_) | Js::Owned(_) => Vec::new(),
        };
        self.steps.charge(entries.len() as u64)?;
        let count = entries.len();
        for (index, (key, value)) in entries.into_iter().enumerate() {
            self.steps.charge(1)?;
            let value = Js::Borrowed(value);
            self.frames.push(LoopFrame {
                key: key.clone(),
                index,
                is_last: index + 1 == count,
            });
            self.render_with(block.program.as_ref(), value.clone(), &[value, key])?;
            self.frames.pop();
        }
        Ok(count > 0)
    }

    fn values(&mut self, call: &'a HelperCall) -> Result<Vec<Js<'a>>, LimitExceeded> {
        self.steps
            .charge(call.values.len() as u64 / VALUES_PER_STEP)?;
        let values = call.values.iter().map(|value| self.value(value));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if matches!(call.helper, Helper::Equal | Helper::NotEqual) {
            let sizes = values.iter().map(|value| values::size(value));
            self.steps.charge(sizes.min().unwrap_or(0))?;
        }
        Ok(values)
    }

    fn value(&mut self, value: &'a Expr) -> Result<Js<'a>, LimitExceeded> {
        match value {
            Expr::Literal(literal) => Ok(Js::Borrowed(literal)),
            Expr::Path(path) => self.lookup(path),
            Expr::HelperCall(call) => {
                self.steps.charge(1)?;
                let values = self.values(call)?;
                let condition = match (call.helper, values.first()) {
                    (Helper::If | Helper::Unless, Some(first)) => {
                        let _evaluated = self.is_true(call, first)?;
                        None
                    }
                    _ => call.helper.condition(&values),
                };
                Ok(condition.map_or_else(
                    || call.helper.value(&values),
                    |condition| Js::Owned(Value::Bool(condition)),
                ))
            }
        }
    }

    fn lookup(&mut self, path: &'a Path) -> Result<Js<'a>, LimitExceeded> {
        self.steps
            .charge(path.names.len() as u64 / PARTS_PER_STEP)?;
        let mut names = path.names.iter();
        let start = match path.base {
            PathBase::Context(0) => self.this.clone(),
            PathBase::Context(depth) => {
                let index = self.contexts.len().checked_sub(depth + 1);
                index.map_or(UNDEFINED, |index| self.contexts[index].clone())
            }
            PathBase::Parameter(index) => self.parameters.get(index).cloned().unwrap_or(UNDEFINED),
            PathBase::Data(depth) => names
                .next()
                .map_or(UNDEFINED, |name| self.data(depth, name)),
        };
        names.try_fold(start, |value, name| {
            // Each access counts the characters of a string.
            if let Value::String(text) = value.as_ref() {
                self.steps.charge(text.len() as u64 / BYTES_PER_STEP)?;
            }
            Ok(values::property(&value, name))
        })
    }

    fn data(&self, depth: usize, name: &str) -> Js<'a> {
        if depth > self.frames.len() {
            return UNDEFINED;
        }
        if name == "root" {
            return Js::Borrowed(self.root);
        }
        let frame = self
            .frames
            .len()
            .checked_sub(depth + 1)
            .map(|index| &self.frames[index]);
        match (frame, name) {
            (Some(frame), "key") => frame.key.clone(),
            (Some(frame), "index") => Js::Owned(frame.index.into()),
            (Some(frame), "first") => Js::Owned((frame.index == 0).into()),
            (Some(frame), "last") => Js::Owned(frame.is_last.into()),
            _ => UNDEFINED,
        }
    }
}
