//! Compiles versions: once when a version is created, to find its errors, and once in each
//! process that renders it.

use serde_json::Value;

use super::schema::VariablesSchema;
use super::source::ParsedTemplate;
use super::{TemplateVersion, VersionContent, mjml, source, values};
use crate::ids::{OrganizationId, TemplateId};
use crate::issue::Issue;

/// Bytes of memory of an element or a parameter, roughly.
const ELEMENT_BYTES: u64 = 150;
/// The most work of a rendering that runs on the request's thread. The work is the number
/// of elements plus the source bytes divided by [`BYTES_PER_ELEMENT`], times the size of the
/// variables. The maximum takes about a millisecond: 128 KB of output, or 32,000 path
/// segments.
const INLINE_WORK_MAX: u64 = 2_000;
/// Source bytes that count as one element, because each path segment takes time.
const BYTES_PER_ELEMENT: u64 = 32;

/// A version that can be rendered.
pub(crate) struct CompiledVersion {
    pub(crate) html: ParsedTemplate,
    pub(crate) text: Option<ParsedTemplate>,
    pub(crate) schema: Option<VariablesSchema>,
    owner: (OrganizationId, TemplateId),
    bytes: u64,
    /// The work of a rendering for variables of size 1. `None` if it cannot be estimated: the
    /// version has a schema, loops or helper calls.
    weight: Option<u64>,
}

impl CompiledVersion {
    /// Whether this is a version of the given template.
    pub(crate) fn belongs_to(&self, organization_id: OrganizationId, id: TemplateId) -> bool {
        self.owner == (organization_id, id)
    }

    /// Whether rendering with these variables needs so little work and stack that it can run
    /// on the request's thread.
    pub(crate) fn is_cheap(&self, variables: &Value) -> bool {
        let work = |weight: u64| weight.saturating_mul(values::size(variables));
        self.weight
            .is_some_and(|weight| work(weight) <= INLINE_WORK_MAX)
    }

    /// Whether a body contains the name of a variable. A body that only lists all variables
    /// does not get the variable.
    pub(crate) fn mentions(&self, variable: &str) -> bool {
        let mut bodies = [&self.html].into_iter().chain(&self.text);
        bodies.any(|body| body.source.contains(variable))
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }
}

/// Validates the content of a new version and compiles its MJML to HTML.
///
/// # Errors
/// All issues of the content.
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

/// Compiles a stored version, which has passed [`check`].
///
/// # Errors
/// The error in the content, if an earlier release accepted it and this one does not.
pub(crate) fn compile(
    organization_id: OrganizationId,
    version: &TemplateVersion,
) -> Result<CompiledVersion, String> {
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
    let is_simple = version.variables_schema.is_none() && sources().all(ParsedTemplate::is_simple);
    let texts = version.html_content.len() + version.text_content.as_ref().map_or(0, String::len);
    let schema_bytes = version
        .variables_schema
        .as_ref()
        .map_or(0, |schema| schema.to_string().len() * 20);
    Ok(CompiledVersion {
        html,
        text,
        schema: schema.map_err(|issue| issue.message)?,
        owner: (organization_id, version.template_id),
        bytes: elements * ELEMENT_BYTES + (texts + schema_bytes) as u64,
        weight: is_simple.then_some(elements + texts as u64 / BYTES_PER_ELEMENT),
    })
}
