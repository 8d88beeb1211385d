//! The helpers that templates may call. Those that loop, copy or compare values
//! are our own: they pay for their work from the `budget`. The others are
//! Handlebars' own. `log` does not exist here, since it would write what callers
//! send into our log.

use std::cmp::Ordering;

use handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult,
    JsonTruthy as _, Output, PathAndJson, RenderContext, RenderError, RenderErrorReason,
    Renderable as _, ScopedJson, Template,
};
use serde_json::Value;

use super::budget::charge;
use super::source::weight;

/// Every helper and how many values it takes at the least.
const HELPERS: [(&str, usize); 16] = [
    ("if", 1),
    ("unless", 1),
    ("each", 1),
    ("with", 1),
    ("lookup", 2),
    ("raw", 0),
    ("eq", 2),
    ("ne", 2),
    ("gt", 2),
    ("gte", 2),
    ("lt", 2),
    ("lte", 2),
    ("and", 2),
    ("or", 2),
    ("not", 1),
    ("len", 1),
];

/// How many values a helper takes at the least; nothing where there is no such
/// helper.
pub(super) fn parameters_of(name: &str) -> Option<usize> {
    let found = HELPERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, count)| *count)
}

/// Puts our helpers in place of Handlebars' own.
pub(super) fn install(engine: &mut Handlebars<'_>) {
    engine.unregister_helper("log");
    engine.register_helper("each", Box::new(Each));
    engine.register_helper("with", Box::new(With));
    engine.register_helper("lookup", Box::new(Lookup));
    let comparisons: [(&str, Relation); 6] = [
        ("eq", |left, right| left == right),
        ("ne", |left, right| left != right),
        ("gt", |left, right| {
            order(left, right) == Some(Ordering::Greater)
        }),
        ("gte", |left, right| {
            order(left, right).is_some_and(Ordering::is_ge)
        }),
        ("lt", |left, right| {
            order(left, right) == Some(Ordering::Less)
        }),
        ("lte", |left, right| {
            order(left, right).is_some_and(Ordering::is_le)
        }),
    ];
    for (name, holds) in comparisons {
        engine.register_helper(name, Box::new(Comparison(holds)));
    }
}

/// How many values a value holds, itself included. A text, and the name of a field, is one
/// more for each 64 bytes.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() as u64 / 64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| name.len() as u64 / 64 + size(value);
            1 + fields.iter().map(field).sum::<u64>()
        }
    }
}

/// Pays for rendering `block` once over `value`. Where the value comes from a
/// helper and not from the variables, every mention of it copies it.
fn charge_block(
    block: &Template,
    parameter: &PathAndJson<'_>,
    value: &Value,
) -> Result<(), RenderError> {
    let copied = if parameter.context_path().is_some() {
        1
    } else {
        size(value)
    };
    charge(weight(block).saturating_add(1).saturating_mul(copied))
}

fn required<'a, 'rc>(
    helper: &'a Helper<'rc>,
    index: usize,
) -> Result<&'a PathAndJson<'rc>, RenderError> {
    helper
        .param(index)
        .ok_or_else(|| RenderErrorReason::Other(format!("{} lacks a value", helper.name())).into())
}

/// `{{#each items}}…{{else}}…{{/each}}` over arrays and objects.
struct Each;

impl HelperDef for Each {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        engine: &'reg Handlebars<'reg>,
        context: &'rc Context,
        state: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let collection = required(helper, 0)?;
        let rows: Vec<(Value, &Value)> = match collection.value() {
            Value::Array(items) => (0..)
                .map(|index: u64| Value::from(index))
                .zip(items)
                .collect(),
            Value::Object(fields) => {
                let keys = fields.keys().map(|key| Value::from(key.as_str()));
                keys.zip(fields.values()).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        charge(rows.len() as u64)?;
        let Some(block) = helper.template().filter(|_| !rows.is_empty()) else {
            let otherwise = helper.inverse().filter(|_| rows.is_empty());
            return otherwise.map_or(Ok(()), |block| block.render(engine, context, state, out));
        };
        let last = rows.len() - 1;
        for (index, (key, value)) in rows.iter().enumerate() {
            charge_block(block, collection, value)?;
            let mut scope = scope_of(helper, collection, key, value)?;
            scope.set_local_var("first", Value::from(index == 0));
            scope.set_local_var("last", Value::from(index == last));
            scope.set_local_var("index", Value::from(index));
            if key.is_string() {
                scope.set_local_var("key", key.clone());
            }
            state.push_block(scope);
            block.render(engine, context, state, out)?;
            state.pop_block();
        }
        Ok(())
    }
}

/// What the names in the block of an `each` stand for at one of the rows.
fn scope_of<'rc>(
    helper: &Helper<'rc>,
    collection: &PathAndJson<'rc>,
    key: &Value,
    value: &Value,
) -> Result<BlockContext<'rc>, RenderError> {
    let mut scope = BlockContext::new();
    let path = collection.context_path();
    match path {
        Some(path) => {
            let own = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            *scope.base_path_mut() = path.iter().cloned().chain([own]).collect();
        }
        None => scope.set_base_value(value.clone()),
    }
    let names = match helper.block_param_pair() {
        Some((name, key_name)) => Some((name, Some(key_name))),
        None => helper.block_param().map(|name| (name, None)),
    };
    if let Some((name, key_name)) = names {
        let mut params = BlockParams::new();
        match path {
            // Relative to the row itself.
            Some(_) => params.add_path(name, Vec::new())?,
            None => params.add_value(name, value.clone())?,
        }
        if let Some(key_name) = key_name {
            params.add_value(key_name, key.clone())?;
        }
        scope.set_block_params(params);
    }
    Ok(scope)
}

/// `{{#with user}}…{{else}}…{{/with}}`.
struct With;

impl HelperDef for With {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        engine: &'reg Handlebars<'reg>,
        context: &'rc Context,
        state: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let parameter = required(helper, 0)?;
        let value = parameter.value();
        if !value.is_truthy(false) {
            let otherwise = helper.inverse();
            return otherwise.map_or(Ok(()), |block| block.render(engine, context, state, out));
        }
        let Some(block) = helper.template() else {
            return Ok(());
        };
        charge_block(block, parameter, value)?;
        let mut scope = BlockContext::new();
        match parameter.context_path() {
            Some(path) => scope.base_path_mut().clone_from(path),
            None => scope.set_base_value(value.clone()),
        }
        if let Some(name) = helper.block_param() {
            let mut params = BlockParams::new();
            match parameter.context_path() {
                Some(_) => params.add_path(name, Vec::new())?,
                None => params.add_value(name, value.clone())?,
            }
            scope.set_block_params(params);
        }
        state.push_block(scope);
        block.render(engine, context, state, out)?;
        state.pop_block();
        Ok(())
    }
}

/// `{{lookup prices plan}}`: an item by its index or a field by its name.
struct Lookup;

impl HelperDef for Lookup {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let key = required(helper, 1)?.value();
        let found = match required(helper, 0)?.value() {
            Value::Array(items) => {
                let index = key.as_u64().and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| items.get(index))
            }
            Value::Object(fields) => key.as_str().and_then(|key| fields.get(key)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        let found = found.unwrap_or(&Value::Null);
        charge(size(found))?;
        Ok(ScopedJson::Derived(found.clone()))
    }
}

/// `(eq a b)` and its like, as a value and as a block.
struct Comparison(Relation);

type Relation = fn(&Value, &Value) -> bool;

impl Comparison {
    fn holds(&self, helper: &Helper<'_>) -> Result<bool, RenderError> {
        let (left, right) = (required(helper, 0)?.value(), required(helper, 1)?.value());
        charge(size(left))?;
        Ok((self.0)(left, right))
    }
}

impl HelperDef for Comparison {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        _: &'reg Handlebars<'reg>,
        _: &'rc Context,
        _: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        Ok(ScopedJson::Derived(Value::Bool(self.holds(helper)?)))
    }

    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        engine: &'reg Handlebars<'reg>,
        context: &'rc Context,
        state: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let holds = self.holds(helper)?;
        if !helper.is_block() {
            out.write(if holds { "true" } else { "false" })?;
            return Ok(());
        }
        let block = if holds {
            helper.template()
        } else {
            helper.inverse()
        };
        block.map_or(Ok(()), |block| block.render(engine, context, state, out))
    }
}

/// Numbers by their value, texts by their characters; nothing else has an order.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}
