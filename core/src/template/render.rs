//! Rendering: from a compiled version and variables to bodies. Pure but for the
//! budget of the thread that it runs on.
//!
//! Variables are escaped in HTML, and not in texts and subjects. A variable that
//! is not there renders as nothing, as in every other Handlebars; who wants it
//! refused says so in the version's schema.

use std::io;
use std::sync::LazyLock;

use handlebars::{Context, Handlebars, Output, RenderContext, Renderable as _, Template};
use serde_json::Value;

use super::budget::{self, Excess};
use super::compiled::{Compiled, CompiledSource};
use super::{RENDERED_BYTES_MAX, helpers, source};
use crate::ids::{TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::{Subject, TextError};

/// Handlebars, and how it escapes variables.
struct Engine {
    handlebars: Handlebars<'static>,
    escape: fn(&str) -> String,
}

impl Engine {
    fn new(escape: fn(&str) -> String) -> Self {
        let mut handlebars = Handlebars::new();
        helpers::install(&mut handlebars);
        handlebars.register_escape_fn(escape);
        Self { handlebars, escape }
    }
}

static HTML: LazyLock<Engine> = LazyLock::new(|| Engine::new(handlebars::html_escape));

static PLAIN: LazyLock<Engine> = LazyLock::new(|| Engine::new(handlebars::no_escape));

/// The version that a message is rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionUse {
    /// The template.
    pub template_id: TemplateId,
    /// Its version.
    pub version_id: TemplateVersionId,
}

/// Rendered bodies.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The HTML.
    pub html: String,
    /// The text, where the version has one.
    pub text: Option<String>,
}

/// Variables, ready to render with.
pub(super) fn context(variables: Value) -> Context {
    let mut context = Context::null();
    *context.data_mut() = variables;
    context
}

/// Renders a version's bodies.
///
/// # Errors
/// Why it cannot be; completes "the template …".
pub(super) fn bodies(compiled: &Compiled, context: &Context) -> Result<Rendered, String> {
    budget::begin();
    let html = body(&HTML, &compiled.html, context)?;
    let text = compiled.text.as_ref();
    let text = text.map(|text| body(&PLAIN, text, context));
    Ok(Rendered {
        html,
        text: text.transpose()?,
    })
}

fn body(
    engine: &'static Engine,
    source: &CompiledSource,
    context: &Context,
) -> Result<String, String> {
    match flat(engine, source, context) {
        Some(rendered) => Ok(rendered),
        None => tree(engine, source, context),
    }
}

/// Renders the flat form of a source, if it has one that renders.
fn flat(engine: &Engine, source: &CompiledSource, context: &Context) -> Option<String> {
    let flat = source.flat.as_ref()?;
    flat.render(context.data(), engine.escape, RENDERED_BYTES_MAX)
}

/// Renders a source as the tree that Handlebars keeps.
fn tree(
    engine: &'static Engine,
    source: &CompiledSource,
    context: &Context,
) -> Result<String, String> {
    let (engine, bytes_max) = (&engine.handlebars, RENDERED_BYTES_MAX);
    render(engine, &source.template, context, bytes_max)
}

/// Renders a subject that is a template itself. Line breaks and their like become
/// a space.
///
/// # Errors
/// What is wrong with it.
pub(super) fn subject(source: &Subject, context: &Context) -> Result<Subject, Issue> {
    let problem = |message: String| Issue::new("subject", message);
    let source = source.as_str();
    if !source.contains("{{") {
        // Parsing it would only take backslashes for more than they are.
        return Subject::parse(source.to_owned()).map_err(|error| problem(error.to_string()));
    }
    let template = source::parse(source).map_err(problem)?;
    budget::begin();
    // Characters of four bytes, and room to tell "too long" from "cut off".
    let bytes_max = Subject::CHARS_MAX * 8;
    let rendered = render(&PLAIN.handlebars, &template, context, bytes_max).map_err(problem)?;
    let visible = rendered
        .split(char::is_control)
        .filter(|part| !part.is_empty());
    let visible = visible.collect::<Vec<_>>();
    Subject::parse(visible.join(" ")).map_err(|error| {
        problem(match error {
            TextError::Empty => "is empty when it is rendered with these variables".to_owned(),
            TextError::TooLong(_) | TextError::Control | TextError::Nul => {
                format!("{error} when it is rendered")
            }
        })
    })
}

fn render(
    engine: &'static Handlebars<'static>,
    template: &Template,
    context: &Context,
    bytes_max: usize,
) -> Result<String, String> {
    let mut out = Bounded {
        text: String::new(),
        bytes_max,
    };
    let mut state = RenderContext::new(None);
    let rendered = template.render(engine, context, &mut state, &mut out);
    match rendered {
        Ok(()) => Ok(out.text),
        Err(error) => Err(match (budget::excess(), error.line_no) {
            (Some(excess), _) => excess.to_string(),
            (None, Some(line)) => {
                format!(
                    "cannot be rendered with these variables: line {line}: {}",
                    error.reason()
                )
            }
            (None, None) => format!(
                "cannot be rendered with these variables: {}",
                error.reason()
            ),
        }),
    }
}

/// Checks that the flat form of a source, where it renders, renders what the tree does,
/// and says whether it did.
///
/// # Panics
/// Where it does not.
#[cfg(any(test, fuzzing))]
pub(super) fn is_the_same(source: &CompiledSource, variables: Value, plain: bool) -> bool {
    let engine = if plain { &PLAIN } else { &HTML };
    let context = context(variables);
    let Some(flat) = flat(engine, source, &context) else {
        return false;
    };
    budget::begin();
    assert_eq!(tree(engine, source, &context), Ok(flat));
    true
}

/// A text that takes so much and no more.
struct Bounded {
    text: String,
    bytes_max: usize,
}

impl Output for Bounded {
    fn write(&mut self, segment: &str) -> Result<(), io::Error> {
        if self.text.len() + segment.len() > self.bytes_max {
            let ended = budget::end(Excess::Output(self.bytes_max));
            return Err(io::Error::other(ended.to_string()));
        }
        self.text.push_str(segment);
        budget::charge(1).map_err(|ended| io::Error::other(ended.to_string()))
    }
}
