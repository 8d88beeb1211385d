//! Flat templates: those of texts, variables and branches alone, as most are that are sent
//! by the thousand. Handlebars keeps a tree of some 100 KB for a template of 4 KB, and
//! passes through all of it whenever it renders; with many templates in use that is memory
//! that no cache holds. What is here is the text in one piece and a list of a few bytes a
//! tag: rendering it took a third of the time (`make bench ONLY=accept`, row 17).
//!
//! Parsing, escaping, and what a value looks like are Handlebars'. So is whatever is the
//! least out of the ordinary: then there is no flat form, or it gives up, and the tree is
//! rendered.

use std::collections::HashMap;

use handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use handlebars::{JsonRender as _, JsonTruthy as _, Path, PathSeg, Template};
use serde_json::Value;

use super::helpers;

/// A template without loops and calls.
pub(super) struct Flat {
    /// All texts, one after the other.
    text: String,
    steps: Vec<Step>,
    /// The names that lead to each variable.
    paths: Vec<Vec<String>>,
}

/// One thing to do; the next one follows unless it says otherwise.
#[derive(Clone, Copy)]
enum Step {
    /// Writes a part of the text.
    Text { from: u32, to: u32 },
    /// Writes a variable.
    Value { path: u32, is_escaped: bool },
    /// Goes on at a step unless a variable is true, or unless it is not.
    Unless {
        path: u32,
        is_true: bool,
        go_to: u32,
    },
    /// Goes on at a step.
    GoTo(u32),
}

/// A variable, looked up once in a rendering, and as it is written.
#[derive(Clone, Default)]
struct Found<'a> {
    value: Option<Option<&'a Value>>,
    plain: Option<String>,
    escaped: Option<String>,
}

impl Flat {
    /// The flat form of a template, where it has one.
    pub(super) fn of(template: &Template) -> Option<Self> {
        let mut writer = Writer::default();
        writer.add_all(template)?;
        let Writer { text, steps, known } = writer;
        let mut paths = vec![Vec::new(); known.len()];
        for (path, nth) in known {
            paths[nth as usize] = path;
        }
        Some(Self { text, steps, paths })
    }

    /// How much memory it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let names = self.paths.iter().flatten().map(|name| name.len() + 24);
        self.text.len() + self.steps.len() * size_of::<Step>() + names.sum::<usize>()
    }

    /// Renders it; nothing where Handlebars has to say what comes of it, and where there
    /// would be more than `bytes_max`.
    pub(super) fn render(
        &self,
        variables: &Value,
        escape: fn(&str) -> String,
        bytes_max: usize,
    ) -> Option<String> {
        let mut found = vec![Found::default(); self.paths.len()];
        let mut out = String::with_capacity(self.text.len().min(bytes_max));
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at += 1;
            let written = match *step {
                Step::Text { from, to } => self.text.get(from as usize..to as usize)?,
                Step::Value { path, is_escaped } => {
                    let found = found.get_mut(path as usize)?;
                    let value = found.value(variables, self.paths.get(path as usize)?)?;
                    let plain = || value.map(Value::render).unwrap_or_default();
                    if is_escaped {
                        found.escaped.get_or_insert_with(|| escape(&plain()))
                    } else {
                        found.plain.get_or_insert_with(plain)
                    }
                }
                Step::Unless {
                    path,
                    is_true,
                    go_to,
                } => {
                    let found = found.get_mut(path as usize)?;
                    let value = found.value(variables, self.paths.get(path as usize)?)?;
                    if value.is_some_and(|value| value.is_truthy(false)) != is_true {
                        at = go_to as usize;
                    }
                    continue;
                }
                Step::GoTo(step) => {
                    at = step as usize;
                    continue;
                }
            };
            if out.len() + written.len() > bytes_max {
                return None;
            }
            out.push_str(written);
        }
        Some(out)
    }
}

impl<'a> Found<'a> {
    /// The value at a path, if there is one; nothing where Handlebars has to say.
    fn value(&mut self, variables: &'a Value, path: &[String]) -> Option<Option<&'a Value>> {
        if self.value.is_none() {
            self.value = Some(look_up(variables, path)?);
        }
        self.value
    }
}

fn look_up<'a>(variables: &'a Value, path: &[String]) -> Option<Option<&'a Value>> {
    let mut value = Some(variables);
    for name in path {
        value = match value {
            Some(Value::Object(fields)) => fields.get(name),
            // An index, or a mistake.
            Some(Value::Array(_)) => return None,
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => None,
        };
    }
    Some(value)
}

/// Writes the flat form. Nothing, wherever there is none.
#[derive(Default)]
struct Writer {
    text: String,
    steps: Vec<Step>,
    known: HashMap<Vec<String>, u32>,
}

impl Writer {
    fn add_all(&mut self, template: &Template) -> Option<()> {
        template
            .elements
            .iter()
            .try_for_each(|element| self.add(element))
    }

    fn add(&mut self, element: &TemplateElement) -> Option<()> {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "the enum may grow: what is not known has no flat form"
        )]
        match element {
            TemplateElement::Comment(_) => Some(()),
            TemplateElement::RawString(text) => {
                let from = u32::try_from(self.text.len()).ok()?;
                self.text.push_str(text);
                let to = u32::try_from(self.text.len()).ok()?;
                self.steps.push(Step::Text { from, to });
                Some(())
            }
            TemplateElement::Expression(tag) => self.add_value(tag, true),
            TemplateElement::HtmlExpression(tag) => self.add_value(tag, false),
            TemplateElement::HelperBlock(tag) => self.add_branch(tag),
            _ => None,
        }
    }

    fn add_value(&mut self, tag: &HelperTemplate, is_escaped: bool) -> Option<()> {
        let is_alone = !tag.block && tag.params.is_empty() && tag.hash.is_empty();
        let Parameter::Path(Path::Relative((_, name))) = &tag.name else {
            return None;
        };
        // A helper's name calls it.
        let is_variable = is_alone && helpers::parameters_of(name).is_none();
        let path = self.path(&tag.name).filter(|_| is_variable)?;
        self.steps.push(Step::Value { path, is_escaped });
        Some(())
    }

    fn add_branch(&mut self, tag: &HelperTemplate) -> Option<()> {
        let is_true = match tag.name.as_name()? {
            "if" => true,
            "unless" => false,
            _ => return None,
        };
        let [condition] = tag.params.as_slice() else {
            return None;
        };
        if !tag.hash.is_empty() || tag.block_param.is_some() {
            return None;
        }
        let path = self.path(condition)?;
        let branch = self.hold_place();
        self.add_block(tag.template.as_ref())?;
        let end = self.hold_place();
        let go_to = self.here()?;
        self.steps[branch] = Step::Unless {
            path,
            is_true,
            go_to,
        };
        self.add_block(tag.inverse.as_ref())?;
        self.steps[end] = Step::GoTo(self.here()?);
        Some(())
    }

    fn add_block(&mut self, block: Option<&Template>) -> Option<()> {
        block.map_or(Some(()), |block| self.add_all(block))
    }

    /// The place of a step that is not known yet.
    fn hold_place(&mut self) -> usize {
        self.steps.push(Step::GoTo(0));
        self.steps.len() - 1
    }

    fn here(&self) -> Option<u32> {
        u32::try_from(self.steps.len()).ok()
    }

    /// The number of a path of plain names.
    fn path(&mut self, parameter: &Parameter) -> Option<u32> {
        let Parameter::Path(Path::Relative((segments, _))) = parameter else {
            return None;
        };
        let names = segments.iter().map(|segment| {
            if let PathSeg::Named(name) = segment {
                Some(name.clone())
            } else {
                None
            }
        });
        let names = names.collect::<Option<Vec<String>>>()?;
        let next = u32::try_from(self.known.len()).ok()?;
        (!names.is_empty()).then(|| *self.known.entry(names).or_insert(next))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::template::compiled::CompiledSource;
    use crate::template::{render, source};

    fn parsed(source: &str) -> Template {
        let source = source.to_owned();
        let thread = std::thread::Builder::new().stack_size(32 << 20);
        let parse = move || source::parse(&source).unwrap();
        thread.spawn(parse).unwrap().join().unwrap()
    }

    #[test]
    fn texts_variables_and_branches_render_as_handlebars_renders_them() {
        let sources = [
            "",
            "plain { text } \\{{name}} ✓",
            "{{name}} {{{name}}} {{& name}} {{~name~}} | {{ user.name }}",
            "{{user.address.city}}{{user.missing.deeper}}{{missing}}{{user}}{{list}}{{{user}}}",
            "{{number}} {{float}} {{yes}} {{no}} {{null}} {{text.length}} {{number.x}}",
            "{{[two words]}} {{user.[two words]}} {{user/name}} {{äöü}} {{a-b}}",
            "{{this.name}} {{this.len}} {{this.user.name}}",
            "a{{! a comment }}b{{!-- {{name}} --}}c",
            "{{#if name}}yes {{name}}{{/if}}!",
            "{{#if missing}}a{{else if nothing}}b{{else if number}}c{{number}}{{else}}d{{/if}}",
            "{{#unless zero}}a{{else}}b{{/unless}}{{#if empty}}c{{else}}d{{/if}}",
            "{{#if yes}}{{#unless no}}{{#if user.name}}deep {{user.name}}{{/if}}{{/unless}}{{/if}}",
            "\n{{#if yes}}\n  lines {{name}}\n{{else}}\n  others\n{{/if}}\nend {{name}}\n",
            "{{#if yes}}{{/if}}{{#if no}}{{else}}{{/if}}{{#unless yes}}a{{/unless}}z",
        ];
        let all = [
            json!({
                "name": "Ada <\"&'`=>", "number": 7, "float": 1.5, "yes": true, "no": false, "zero": 0,
                "null": null, "nothing": null, "empty": "", "text": "abc", "list": [], "two words": "2", "äöü": "ä",
                "a-b": "dash", "len": "long", "if": "an if",
                "user": { "name": "Bob", "address": { "city": "Łódź" }, "two words": "two" },
            }),
            json!({ "name": ["a", { "b": 1 }], "user": "text", "yes": {}, "number": -0.0, "text": [] }),
            json!({ "name": {}, "user": { "name": [1, [2, null]] }, "yes": [0], "no": "no" }),
            json!({}),
        ];
        for text in sources {
            let source = CompiledSource {
                flat: Flat::of(&parsed(text)),
                template: parsed(text),
            };
            assert!(source.flat.is_some(), "{text}");
            for (variables, has_indexes) in all.iter().zip([false, true, true, false]) {
                for plain in [false, true] {
                    let rendered = render::is_the_same(&source, variables.clone(), plain);
                    let is_deep = ["user", "this", ".length", ".x"];
                    let may_give_up = has_indexes && is_deep.iter().any(|part| text.contains(part));
                    assert!(rendered || may_give_up, "{text} with {variables}");
                }
            }
        }
    }

    #[test]
    fn whatever_loops_calls_or_looks_around_has_no_flat_form() {
        for source in [
            "{{#each items}}{{this}}{{/each}}",
            "{{#with user}}{{name}}{{/with}}",
            "{{#if (eq a b)}}c{{/if}}",
            "{{#if a includeZero=true}}b{{/if}}",
            "{{#if \"a\"}}b{{/if}}",
            "{{#if a b}}c{{/if}}",
            "{{len a}}",
            "{{raw}}",
            "{{this}}",
            "{{../name}}",
            "{{@root.name}}",
            "{{@index}}",
            "{{#if a}}{{lookup b c}}{{/if}}",
            "{{{{raw}}}}{{name}}{{{{/raw}}}}",
        ] {
            assert!(Flat::of(&parsed(source)).is_none(), "{source}");
        }
    }

    #[test]
    fn it_gives_up_before_indexes_and_beyond_the_most_bytes() {
        let flat = |source: &str| Flat::of(&parsed(source)).unwrap();
        let variables = json!({ "items": ["a"], "name": "1234" });
        let render = |source: &str, bytes_max: usize| {
            flat(source).render(&variables, handlebars::no_escape, bytes_max)
        };
        assert_eq!(render("{{items.[0]}}", 100), None);
        assert_eq!(render("{{items.length}}", 100), None);
        assert_eq!(render("{{name}}{{name}}", 8).as_deref(), Some("12341234"));
        assert_eq!(render("{{name}}{{name}}", 7), None);
    }
}
