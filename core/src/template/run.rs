//! Rendering a parsed source: its program is walked, and what it writes and does is
//! charged. Values are borrowed from the variables, never copied.
//!
//! What a block is about, and what `..`, `@index` and a section mean, is what the
//! runtime of handlebars.js 4.7 makes of it (`runtime.js`, `helpers/*.js`).

use std::sync::LazyLock;

use serde_json::Value;

use super::helpers::Helper;
use super::source::{
    Block, BlockSubject, Expr, HelperCall, ParsedTemplate, Path, PathBase, Program, TemplateNode,
};
use super::step_limit::{Excess, StepLimit};
use super::values::{self, Js, NOTHING};

/// What a helper's block is about where no value is: an empty object.
static NO_CONTEXT: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));

/// Values in a tag, parts of a path, and bytes of a text whose characters are counted, that
/// are a step's work.
const VALUES_A_STEP: u64 = 4;
const PARTS_A_STEP: u64 = 16;
const BYTES_A_STEP: u64 = 256;

/// How variables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    Html,
    Nothing,
}

/// Renders a source to so many bytes at the most.
///
/// # Errors
/// What ran out.
pub(crate) fn render(
    template: &ParsedTemplate,
    variables: &Value,
    escape: Escape,
    bytes_max: usize,
    budget: &mut StepLimit,
) -> Result<String, Excess> {
    let this = Js::Borrowed(variables);
    let mut run = Run {
        source: &template.source,
        escape,
        bytes_max,
        budget,
        root: variables,
        around: vec![this.clone()],
        this,
        rows: Vec::new(),
        parameters: Vec::new(),
        out: String::with_capacity(template.source.len().min(bytes_max)),
    };
    run.program(&template.program)?;
    Ok(run.out)
}

struct Run<'a, 'b> {
    source: &'a str,
    escape: Escape,
    bytes_max: usize,
    budget: &'b mut StepLimit,
    root: &'a Value,
    /// What the block is about that is rendered.
    this: Js<'a>,
    /// What the blocks around are about, each where it is another value.
    around: Vec<Js<'a>>,
    rows: Vec<LoopRow<'a>>,
    parameters: Vec<Js<'a>>,
    out: String,
}

/// Where a loop is: `@key`, `@index`, `@first`, `@last`.
struct LoopRow<'a> {
    key: Js<'a>,
    index: usize,
    is_last: bool,
}

impl<'a> Run<'a, '_> {
    fn program(&mut self, program: &'a Program) -> Result<(), Excess> {
        for node in &program.body {
            self.budget.charge(1)?;
            match node {
                TemplateNode::Comment(_) => {}
                TemplateNode::TextNode(text) => self.write(&self.source[text.kept.clone()])?,
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

    fn write(&mut self, text: &str) -> Result<(), Excess> {
        self.out.push_str(text);
        self.bounded()
    }

    fn bounded(&self) -> Result<(), Excess> {
        if self.out.len() > self.bytes_max {
            return Err(Excess::Output(self.bytes_max));
        }
        Ok(())
    }

    fn write_value(&mut self, value: &Value, is_escaped: bool) -> Result<(), Excess> {
        match value {
            Value::String(text) if is_escaped => values::write_escaped(text, &mut self.out),
            Value::Array(_) => {
                self.budget.charge(values::size(value))?;
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
        self.bounded()
    }

    fn block(&mut self, block: &'a Block) -> Result<(), Excess> {
        let call = match &block.subject {
            BlockSubject::Section(value) => {
                let value = self.value(value)?;
                return self.section(block, value);
            }
            BlockSubject::HelperCall(call) => call,
        };
        let values = self.values(call)?;
        let Some(first) = values.first().cloned() else {
            // `raw`, and a `log` of nothing.
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
            Helper::With => self.about(block.program.as_ref(), first.clone(), &[first]),
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
            | Helper::Length => match call.helper.holds(&values) {
                Some(holds) => self.branch(block, holds),
                None => {
                    let value = call.helper.value(&values);
                    self.write_value(&value, false)
                }
            },
        }
    }

    fn is_true(&mut self, call: &'a HelperCall, value: &Value) -> Result<bool, Excess> {
        let takes_zero = match &call.include_zero {
            Some(option) => values::is_truthy(&*self.value(option)?),
            None => false,
        };
        Ok(values::is_true(value) || (takes_zero && values::is_zero(value)))
    }

    /// `blockHelperMissing`: `{{#name}}…{{/name}}`.
    fn section(&mut self, block: &'a Block, value: Js<'a>) -> Result<(), Excess> {
        match value.as_ref() {
            Value::Bool(true) => self.part_about_this(block.program.as_ref()),
            Value::Null | Value::Bool(false) => self.part_about_this(block.inverse.as_ref()),
            Value::Array(items) if items.is_empty() => self.part_about_this(block.inverse.as_ref()),
            Value::Array(_) => self.each(block, &value).map(|_| ()),
            Value::Number(_) | Value::String(_) | Value::Object(_) => {
                self.about(block.program.as_ref(), value.clone(), &[value])
            }
        }
    }

    /// The part of a block for yes or for no, as a helper renders it.
    fn branch(&mut self, block: &'a Block, holds: bool) -> Result<(), Excess> {
        let part = if holds {
            &block.program
        } else {
            &block.inverse
        };
        self.part(part.as_ref())
    }

    fn part(&mut self, program: Option<&'a Program>) -> Result<(), Excess> {
        if self.this.is_null() {
            return self.about(program, Js::Borrowed(&NO_CONTEXT), &[]);
        }
        self.part_about_this(program)
    }

    fn part_about_this(&mut self, program: Option<&'a Program>) -> Result<(), Excess> {
        self.about(program, self.this.clone(), &[])
    }

    /// Renders a part of a block about a value, and with values for its parameters.
    fn about(
        &mut self,
        program: Option<&'a Program>,
        value: Js<'a>,
        given: &[Js<'a>],
    ) -> Result<(), Excess> {
        let Some(program) = program else {
            return Ok(());
        };
        let is_no_context = std::ptr::eq(value.as_ref(), &raw const *NO_CONTEXT);
        let is_other = self.around.last().is_none_or(|around| {
            !(values::is_same(around, &value) || (is_no_context && around.is_null()))
        });
        if is_other {
            self.around.push(value.clone());
        }
        self.budget.charge(program.names as u64 / VALUES_A_STEP)?;
        let this = std::mem::replace(&mut self.this, value);
        for place in 0..program.names {
            self.parameters
                .push(given.get(place).cloned().unwrap_or(NOTHING));
        }
        self.program(program)?;
        self.parameters
            .truncate(self.parameters.len() - program.names);
        self.this = this;
        if is_other {
            self.around.pop();
        }
        Ok(())
    }

    /// Renders a block for each item or field; says whether there was one.
    fn each(&mut self, block: &'a Block, rows: &Js<'a>) -> Result<bool, Excess> {
        let rows: Vec<(Js<'a>, &'a Value)> = match rows {
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
        self.budget.charge(rows.len() as u64)?;
        let count = rows.len();
        for (index, (key, value)) in rows.into_iter().enumerate() {
            self.budget.charge(1)?;
            let value = Js::Borrowed(value);
            self.rows.push(LoopRow {
                key: key.clone(),
                index,
                is_last: index + 1 == count,
            });
            self.about(block.program.as_ref(), value.clone(), &[value, key])?;
            self.rows.pop();
        }
        Ok(count > 0)
    }

    fn values(&mut self, call: &'a HelperCall) -> Result<Vec<Js<'a>>, Excess> {
        self.budget
            .charge(call.values.len() as u64 / VALUES_A_STEP)?;
        let values = call.values.iter().map(|value| self.value(value));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        if matches!(call.helper, Helper::Equal | Helper::NotEqual) {
            let sizes = values.iter().map(|value| values::size(value));
            self.budget.charge(sizes.min().unwrap_or(0))?;
        }
        Ok(values)
    }

    fn value(&mut self, value: &'a Expr) -> Result<Js<'a>, Excess> {
        match value {
            Expr::Literal(literal) => Ok(Js::Borrowed(literal)),
            Expr::Path(path) => self.look_up(path),
            Expr::HelperCall(call) => {
                self.budget.charge(1)?;
                let values = self.values(call)?;
                let holds = match (call.helper, values.first()) {
                    (Helper::If | Helper::Unless, Some(first)) => {
                        let _evaluated = self.is_true(call, first)?;
                        None
                    }
                    _ => call.helper.holds(&values),
                };
                Ok(holds.map_or_else(
                    || call.helper.value(&values),
                    |holds| Js::Owned(Value::Bool(holds)),
                ))
            }
        }
    }

    fn look_up(&mut self, path: &'a Path) -> Result<Js<'a>, Excess> {
        self.budget.charge(path.names.len() as u64 / PARTS_A_STEP)?;
        let mut names = path.names.iter();
        let start = match path.base {
            PathBase::Context(0) => self.this.clone(),
            PathBase::Context(depth) => {
                let place = self.around.len().checked_sub(depth + 1);
                place.map_or(NOTHING, |place| self.around[place].clone())
            }
            PathBase::Parameter(place) => self.parameters.get(place).cloned().unwrap_or(NOTHING),
            PathBase::Data(depth) => names.next().map_or(NOTHING, |name| self.data(depth, name)),
        };
        names.try_fold(start, |value, name| {
            // The characters of a text are counted each time.
            if let Value::String(text) = value.as_ref() {
                self.budget.charge(text.len() as u64 / BYTES_A_STEP)?;
            }
            Ok(values::property(&value, name))
        })
    }

    fn data(&self, depth: usize, name: &str) -> Js<'a> {
        if depth > self.rows.len() {
            return NOTHING;
        }
        if name == "root" {
            return Js::Borrowed(self.root);
        }
        let row = self
            .rows
            .len()
            .checked_sub(depth + 1)
            .map(|place| &self.rows[place]);
        match (row, name) {
            (Some(row), "key") => row.key.clone(),
            (Some(row), "index") => Js::Owned(row.index.into()),
            (Some(row), "first") => Js::Owned((row.index == 0).into()),
            (Some(row), "last") => Js::Owned(row.is_last.into()),
            _ => NOTHING,
        }
    }
}
