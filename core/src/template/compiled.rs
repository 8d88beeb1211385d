//! A version, compiled: done once when it is created, to find its mistakes, and
//! once more in each process that renders it.

use serde_json::Value;

use super::schema::VariablesSchema;
use super::source::ParsedTemplate;
use super::{TemplateVersion, VersionContent, mjml, source, values};
use crate::ids::{OrganizationId, TemplateId};
use crate::issue::Issue;

/// Bytes of memory, roughly, that an element or a parameter takes.
const ELEMENT_BYTES: u64 = 150;
/// Work of a rendering that is done where it is asked for: the elements of the template
/// and its bytes by [`LIGHT_BYTES`], times the size of the variables. About a millisecond at
/// the most: 128 KB of output, or 32,000 parts of paths.
const LIGHT_MAX: u64 = 2_000;
/// Bytes of a source that count as an element does: the parts of a path take their time.
const LIGHT_BYTES: u64 = 32;

/// A version that can be rendered.
pub(crate) struct Compiled {
    pub(crate) html: ParsedTemplate,
    pub(crate) text: Option<ParsedTemplate>,
    pub(crate) schema: Option<VariablesSchema>,
    owner: (OrganizationId, TemplateId),
    bytes: u64,
    /// How much work it is to render, where that can be told beforehand: not where a
    /// schema has to be held against the variables.
    weight: Option<u64>,
}

impl Compiled {
    /// Whether it is a version of this template.
    pub(crate) fn belongs_to(&self, organization_id: OrganizationId, id: TemplateId) -> bool {
        self.owner == (organization_id, id)
    }

    /// Whether rendering it with these variables is so little work, and takes so little
    /// stack, that any thread may do it.
    pub(crate) fn is_light(&self, variables: &Value) -> bool {
        let work = |weight: u64| weight.saturating_mul(values::size(variables));
        self.weight.is_some_and(|weight| work(weight) <= LIGHT_MAX)
    }

    /// Whether a body may ask for a variable by its name. Others do not get it, not even
    /// those that list all variables.
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        let mut bodies = [&self.html].into_iter().chain(&self.text);
        bodies.any(|body| body.source.contains(variable))
    }

    /// How much memory it takes, roughly.
    pub(crate) fn bytes(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }
}

/// Compiles MJML into the HTML of the same content, and checks that all of it can
/// be used.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn check(mut content: VersionContent) -> Result<VersionContent, Vec<Issue>> {
    let mut issues = Vec::new();
    let html = match &content.mjml_source {
        None => source::parse(&content.html_content)
            .map_err(|problem| Issue::new("htmlContent", problem))
            .map(|_| None),
        Some(mjml) => mjml::compile(mjml)
            .and_then(|html| match source::parse(&html) {
                Ok(_) => Ok(Some(html)),
                Err(problem) => Err(format!("its HTML cannot be rendered: {problem}")),
            })
            .map_err(|problem| Issue::new("mjmlSource", problem)),
    };
    match html {
        Ok(Some(html)) => content.html_content = html,
        Ok(None) => {}
        Err(issue) => issues.push(issue),
    }
    if let Some(Err(problem)) = content.text_content.as_deref().map(source::parse) {
        issues.push(Issue::new("textContent", problem));
    }
    if let Some(Err(issue)) = content
        .variables_schema
        .as_ref()
        .map(VariablesSchema::compile)
    {
        issues.push(issue.under("variablesSchema"));
    }
    if issues.is_empty() {
        Ok(content)
    } else {
        Err(issues)
    }
}

/// Compiles a stored version, which [`check`] let through.
///
/// # Errors
/// What is wrong with it all the same.
pub(crate) fn compile(
    organization_id: OrganizationId,
    version: &TemplateVersion,
) -> Result<Compiled, String> {
    let html = source::parse(&version.html_content)?;
    let text = version.text_content.as_deref().map(source::parse);
    let text = text.transpose()?;
    let schema = version
        .variables_schema
        .as_ref()
        .map(VariablesSchema::compile)
        .transpose();
    let sources = || [&html].into_iter().chain(&text);
    let elements: u64 = sources().map(ParsedTemplate::weight).sum();
    let is_straight =
        version.variables_schema.is_none() && sources().all(ParsedTemplate::is_straight);
    let texts = version.html_content.len() + version.text_content.as_ref().map_or(0, String::len);
    let schema_bytes = version
        .variables_schema
        .as_ref()
        .map_or(0, |schema| schema.to_string().len() * 20);
    Ok(Compiled {
        html,
        text,
        schema: schema.map_err(|issue| issue.message)?,
        owner: (organization_id, version.template_id),
        bytes: elements * ELEMENT_BYTES + (texts + schema_bytes) as u64,
        weight: is_straight.then_some(elements + texts as u64 / LIGHT_BYTES),
    })
}
