//! Compiles versions, once in each process that renders them. What can be wrong with them is
//! found when they are created, by `composition`.

use serde_json::Value;

use super::schema::VariablesSchema;
use super::source::ParsedTemplate;
use super::{TemplateVersion, source, values};
use crate::address::Mailbox;
use crate::ids::{OrganizationId, TemplateId};
use crate::issue::Issue;
use crate::text::Subject;
use crate::unsubscribe::link_insertion;

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
    /// What a message has that brings none of its own.
    pub(crate) subject: Option<Subject>,
    pub(crate) from: Option<Mailbox>,
    pub(crate) reply_to: Vec<Mailbox>,
    /// Whether the text is made from the HTML.
    pub(super) is_text_generated: bool,
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

    /// Gives variables an example of the unsubscribe link, if a body mentions it.
    pub(crate) fn add_example_link(&self, variables: &mut Value) {
        if let Some(given) = variables.as_object_mut()
            && self.mentions(link_insertion::VARIABLE)
        {
            let link = given.entry(link_insertion::VARIABLE);
            link.or_insert_with(|| link_insertion::EXAMPLE_URL.into());
        }
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }
}

/// The issues of what a version has besides its bodies: lines that are templates, and its
/// schema.
pub(super) fn check_fields(lines: &[(&str, Option<String>)], schema: Option<&Value>) -> Vec<Issue> {
    let lines = lines.iter().filter_map(|(path, line)| {
        let line = line.as_deref().filter(|line| line.contains("{{"))?;
        let problem = source::parse(line).err()?;
        Some(problem.issue(*path))
    });
    let mut issues: Vec<Issue> = lines.collect();
    if let Some(Err(issue)) = schema.map(VariablesSchema::compile) {
        issues.push(issue.under("variablesSchema"));
    }
    issues
}

/// Compiles a stored version.
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
    let addresses = version.from_mailbox.iter().chain(&version.reply_to);
    let lines = version.subject.iter().chain(addresses).map(String::len);
    let lines: usize = lines.sum();
    let mailbox = |text: &String| Mailbox::parse(text).map_err(|error| error.to_string());
    let subject = version.subject.clone().map(Subject::parse).transpose();
    Ok(CompiledVersion {
        subject: subject.map_err(|error| error.to_string())?,
        from: version.from_mailbox.as_ref().map(mailbox).transpose()?,
        reply_to: version
            .reply_to
            .iter()
            .map(mailbox)
            .collect::<Result<_, _>>()?,
        is_text_generated: version.is_text_generated,
        html,
        text,
        schema: schema.map_err(|issue| issue.message)?,
        owner: (organization_id, version.template_id),
        bytes: elements * ELEMENT_BYTES + (texts + schema_bytes + lines) as u64,
        weight: is_simple.then_some(elements + texts as u64 / BYTES_PER_ELEMENT),
    })
}
