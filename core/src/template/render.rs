//! Renders bodies and subjects. Pure except for the time limit.
//!
//! Variables are escaped in HTML, but not in texts and subjects. A missing variable renders
//! as an empty string, as in all Handlebars implementations. An author who wants an error
//! instead requires the variable in the version's schema.

use serde_json::Value;

use super::compiled::CompiledVersion;
use super::run::{self, Escape};
use super::source::{self, ParsedTemplate};
use super::step_limit::{LimitExceeded, StepLimit};
use super::{RENDERED_BYTES_MAX, plain_text};
use crate::ids::{TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::{Subject, TextError};

/// The version that a message is rendered from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRef {
    pub template_id: TemplateId,
    pub version_id: TemplateVersionId,
}

/// Rendered bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub html: String,
    pub text: Option<String>,
}

/// Renders a version's bodies.
///
/// # Errors
/// The exceeded limit; completes "the template …".
pub(crate) fn bodies(compiled: &CompiledVersion, variables: &Value) -> Result<Rendered, String> {
    let mut steps = StepLimit::new();
    let mut body = |template: &ParsedTemplate, escape| {
        let rendered = run::render(template, variables, escape, RENDERED_BYTES_MAX, &mut steps);
        rendered.map_err(|exceeded| exceeded.to_string())
    };
    let html = body(&compiled.html, Escape::Html)?;
    let text = compiled.text.as_ref();
    let mut text = text.map(|text| body(text, Escape::Nothing)).transpose()?;
    if compiled.is_text_generated {
        text = text.map(|text| plain_text::tidy(&text));
    }
    Ok(Rendered { html, text })
}

/// Renders a body that a request contains as a template.
///
/// # Errors
/// The syntax error or the exceeded limit.
pub(crate) fn own_body(
    source: &str,
    variables: &Value,
    escape: Escape,
    steps: &mut StepLimit,
) -> Result<String, String> {
    let template = source::parse(source)?;
    run::render(&template, variables, escape, RENDERED_BYTES_MAX, steps)
        .map_err(|exceeded| exceeded.to_string())
}

/// Renders a subject that is a template. Control characters such as line breaks become a
/// space.
///
/// # Errors
/// The issue of the subject.
pub(crate) fn subject(source: &Subject, variables: &Value) -> Result<Subject, Issue> {
    let problem = |message: String| Issue::new("subject", message);
    let source = source.as_str();
    if !source.contains("{{") {
        // The parser would interpret backslashes.
        return Subject::parse(source.to_owned()).map_err(|error| problem(error.to_string()));
    }
    let template = source::parse(source).map_err(|found| found.issue("subject"))?;
    // Four bytes for each character, twice, so that a subject that is slightly too long gets
    // the error about its characters.
    let bytes_max = Subject::CHARS_MAX * 8;
    let mut steps = StepLimit::new();
    let rendered = run::render(&template, variables, Escape::Nothing, bytes_max, &mut steps)
        .map_err(|exceeded: LimitExceeded| problem(exceeded.to_string()))?;
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
