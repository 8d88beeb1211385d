//! Templates: subjects and bodies written once, in Handlebars or in MJML with
//! Handlebars in it, and filled in for each message.
//!
//! A *template* has a name and *versions*; a version never changes, and one of
//! them is current. A message is rendered when it is accepted, and its bodies are
//! stored with it, so it stays on the version that it was accepted with.
//!
//! Handlebars is what handlebars.js 4.7 makes of it: `tags`, `parser` and
//! `names` read it into a `source`, `spacing` trims its white space, `run` renders it over `values`.
//!
//! Templates are foreign code. What they may do is bounded four times: `source`
//! counts how deep it is and `mjml` looks at a text before its parser does, since a
//! parser that recurses too deeply ends the process; parsers, and renderings that are not known to be
//! little work, run in the `workshop`, on threads whose stack is known; `budget`
//! counts the work of a rendering; the output is written into a bounded text. There are no partials, no includes, and
//! no helpers that read files, call anyone or write to the log.

pub mod catalog;
pub(crate) mod compiled;
#[cfg(fuzzing)]
pub mod fuzzing;
mod helpers;
mod mjml;
mod names;
mod parser;
pub mod render;
pub(crate) mod render_pool;
pub(crate) mod run;
pub(crate) mod schema;
mod source;
mod spacing;
pub(crate) mod step_limit;
pub mod store;
mod tags;
mod values;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::idempotency::single::Failed;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::{Description, Name, Tag};
pub use catalog::Templates;

/// Tags of one template at the most.
pub const TAGS_MAX: usize = 20;
/// Bytes of each of a version's sources, and of the HTML that its MJML becomes.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a rendered body.
pub const RENDERED_BYTES_MAX: usize = 2 << 20;
/// Bytes of a message's variables, as JSON.
pub const VARIABLES_BYTES_MAX: usize = 256 << 10;

/// A template.
#[derive(Debug, Clone)]
pub struct Template {
    pub id: TemplateId,
    pub organization_id: OrganizationId,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// The version that is rendered; nothing until there is one.
    pub current_version_id: Option<TemplateVersionId>,
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A version of a template, with its content.
#[derive(Debug, Clone)]
pub struct TemplateVersion {
    pub id: TemplateVersionId,
    pub template_id: TemplateId,
    /// Its number, from 1.
    pub version_number: i32,
    /// The MJML that it was compiled from.
    pub mjml_source: Option<String>,
    pub html_content: String,
    pub text_content: Option<String>,
    /// What its variables must look like.
    pub variables_schema: Option<Value>,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// A version of a template in a list.
#[derive(Debug, Clone)]
pub struct VersionSummary {
    pub id: TemplateVersionId,
    pub template_id: TemplateId,
    /// Its number, from 1.
    pub version_number: i32,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// A template to create.
#[derive(Debug)]
pub struct NewTemplate {
    pub name: Name,
    pub description: Option<Description>,
    /// Up to [`TAGS_MAX`], each once.
    pub tags: Vec<Tag>,
}

/// What of a template a caller wants changed; what is absent stays.
#[derive(Debug, Default)]
pub struct TemplateChange {
    pub name: Option<Name>,
    /// A new description, or none.
    pub description: Option<Option<Description>>,
    /// New tags in place of the old.
    pub tags: Option<Vec<Tag>>,
}

impl TemplateChange {
    /// The names of the fields that are to change, for the audit log.
    fn fields(&self) -> Vec<&'static str> {
        [
            self.name.is_some().then_some("name"),
            self.description.is_some().then_some("description"),
            self.tags.is_some().then_some("tags"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The content of a version, each text within [`SOURCE_BYTES_MAX`].
#[derive(Debug, Clone)]
pub struct VersionContent {
    /// MJML; what it compiles to takes the place of the HTML.
    pub mjml_source: Option<String>,
    pub html_content: String,
    pub text_content: Option<String>,
    /// A JSON Schema of the variables.
    pub variables_schema: Option<Value>,
}

/// Why something was not done with a template.
#[derive(Debug, Clone)]
pub enum TemplateRefusal {
    /// There is no such template.
    NotFound,
    /// The template has no such version.
    VersionNotFound,
    /// The template has no version yet.
    WithoutVersion,
    /// The content of a version, or the values for one, are wrong.
    Invalid(Vec<Issue>),
    /// The template cannot be rendered with these values. Completes "the template
    /// …".
    Unrenderable(String),
    Fault(Fault),
}

impl From<Fault> for TemplateRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<TemplateRefusal> for Failed<TemplateRefusal> {
    fn from(refusal: TemplateRefusal) -> Self {
        Self::Refused(refusal)
    }
}
