//! Templates: bodies in Handlebars, or in MJML with Handlebars, that are rendered with the
//! variables of each message.
//!
//! A *template* has a name and *versions*. A version is immutable, and one version is
//! current. A message is rendered when it is accepted and its bodies are stored, so a later
//! version does not change it.
//!
//! Handlebars behaves like handlebars.js 4.7: `lexer`, `parser` and `names` parse it into the
//! tree of `source`, `whitespace` trims white space, and `run` renders the tree with the
//! semantics of JavaScript values (`values`).
//!
//! Templates are untrusted code, with four limits. The parser limits the nesting of
//! Handlebars, and `mjml` limits the nesting of MJML before the compiler parses it, because
//! a stack overflow ends the process. Parsing and expensive rendering run in the
//! `render_pool`, on threads with a large stack. `step_limit` bounds the work of a
//! rendering. The size of the output is bounded. There are no partials, no includes, and no
//! helpers that read files, open connections or write to the log.

pub mod catalog;
pub(crate) mod compiled;
#[cfg(fuzzing)]
pub mod fuzzing;
mod helpers;
mod lexer;
mod mjml;
mod names;
mod parser;
pub mod render;
pub(crate) mod render_pool;
pub(crate) mod run;
pub(crate) mod schema;
mod source;
pub(crate) mod step_limit;
pub mod store;
mod values;
mod whitespace;

use serde_json::Value;

use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::idempotency::single::Failed;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::{Description, Name, Tag};
pub use catalog::Templates;

/// Tags of one template.
pub const TAGS_MAX: usize = 20;
/// Bytes of each source of a version, and of the HTML that its MJML compiles to.
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
    /// `None` until the template has a version.
    pub current_version_id: Option<TemplateVersionId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A version of a template, with its content.
#[derive(Debug, Clone)]
pub struct TemplateVersion {
    pub id: TemplateVersionId,
    pub template_id: TemplateId,
    /// Counts from 1.
    pub version_number: i32,
    /// The MJML source of the HTML, if any.
    pub mjml_source: Option<String>,
    pub html_content: String,
    pub text_content: Option<String>,
    /// A JSON Schema of the variables.
    pub variables_schema: Option<Value>,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// A version of a template without its content.
#[derive(Debug, Clone)]
pub struct VersionSummary {
    pub id: TemplateVersionId,
    pub template_id: TemplateId,
    /// Counts from 1.
    pub version_number: i32,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// A template to create.
#[derive(Debug)]
pub struct NewTemplate {
    pub name: Name,
    pub description: Option<Description>,
    /// Up to [`TAGS_MAX`], without duplicates.
    pub tags: Vec<Tag>,
}

/// A partial update of a template. Fields that are `None` stay unchanged.
#[derive(Debug, Default)]
pub struct TemplateChange {
    pub name: Option<Name>,
    /// `Some(None)` removes the description.
    pub description: Option<Option<Description>>,
    /// Replaces all tags.
    pub tags: Option<Vec<Tag>>,
}

impl TemplateChange {
    /// The names of the changed fields, for the audit log.
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
    /// MJML. Its compiled HTML replaces `html_content`.
    pub mjml_source: Option<String>,
    pub html_content: String,
    pub text_content: Option<String>,
    /// A JSON Schema of the variables.
    pub variables_schema: Option<Value>,
}

/// Why an operation on a template was refused.
#[derive(Debug, Clone)]
pub enum TemplateRefusal {
    NotFound,
    VersionNotFound,
    /// The template has no version yet.
    WithoutVersion,
    /// The content of a version or the variables are invalid.
    Invalid(Vec<Issue>),
    /// The template cannot be rendered with these variables. Completes "the template …".
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
