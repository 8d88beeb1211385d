//! Rendering: from a compiled version and variables to bodies. Pure but for the
//! clock that bounds it.
//!
//! Variables are escaped in HTML, and not in texts and subjects. A variable that
//! is not there renders as nothing, as in every other Handlebars; who wants it
//! refused says so in the version's schema.

use serde_json::Value;

use super::RENDERED_BYTES_MAX;
use super::compiled::Compiled;
use super::run::{self, Escape};
use super::source::{self, ParsedTemplate};
use super::step_limit::{Excess, StepLimit};
use crate::ids::{TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::{Subject, TextError};

/// The version that a message is rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionUse {
    pub template_id: TemplateId,
    pub version_id: TemplateVersionId,
}

/// Rendered bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub html: String,
    /// The text, where the version has one.
    pub text: Option<String>,
}

/// Renders a version's bodies.
///
/// # Errors
/// Why it cannot be; completes "the template …".
pub(crate) fn bodies(compiled: &Compiled, variables: &Value) -> Result<Rendered, String> {
    let mut budget = StepLimit::new();
    let mut body = |template: &ParsedTemplate, escape| {
        let rendered = run::render(template, variables, escape, RENDERED_BYTES_MAX, &mut budget);
        rendered.map_err(|excess| excess.to_string())
    };
    let html = body(&compiled.html, Escape::Html)?;
    let text = compiled.text.as_ref();
    let text = text.map(|text| body(text, Escape::Nothing)).transpose()?;
    Ok(Rendered { html, text })
}

/// Renders a body that came with its variables.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn own_body(
    source: &str,
    variables: &Value,
    escape: Escape,
    budget: &mut StepLimit,
) -> Result<String, String> {
    let template = source::parse(source)?;
    run::render(&template, variables, escape, RENDERED_BYTES_MAX, budget)
        .map_err(|excess| excess.to_string())
}

/// Renders a subject that is a template itself. Line breaks and their like become
/// a space.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn subject(source: &Subject, variables: &Value) -> Result<Subject, Issue> {
    let problem = |message: String| Issue::new("subject", message);
    let source = source.as_str();
    if !source.contains("{{") {
        // Parsing it would only take backslashes for more than they are.
        return Subject::parse(source.to_owned()).map_err(|error| problem(error.to_string()));
    }
    let template = source::parse(source).map_err(problem)?;
    // Characters of four bytes, and room to tell "too long" from "cut off".
    let bytes_max = Subject::CHARS_MAX * 8;
    let mut budget = StepLimit::new();
    let rendered = run::render(
        &template,
        variables,
        Escape::Nothing,
        bytes_max,
        &mut budget,
    )
    .map_err(|excess: Excess| problem(excess.to_string()))?;
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
