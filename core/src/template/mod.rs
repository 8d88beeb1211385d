//! Templates: bodies in Handlebars, or in MJML with Handlebars, that are rendered with the
//! variables of each message.
//!
//! A *template* has a name and *versions*. What an author gave a version is immutable, and one
//! version of each language is current. A message is rendered when it is accepted and its
//! bodies are stored, so a later version does not change it.
//!
//! *Layouts* and *partials* are templates that are parts of others. `composition` puts them
//! into the sources when a version is created, and again into the current versions that use
//! them when a part gets another current version. A version without a text gets one from its
//! HTML (`plain_text`).
//!
//! Handlebars behaves like handlebars.js 4.7: `lexer`, `parser` and `names` parse it into the
//! tree of `source`, `whitespace` trims white space, and `run` renders the tree with the
//! semantics of JavaScript values (`values`).
//!
//! Templates are untrusted code, with four limits. The parser limits the nesting of
//! Handlebars, and `mjml` limits the nesting of MJML before the compiler parses it, because
//! a stack overflow ends the process. Parsing and expensive rendering run in the
//! `render_pool`, on threads with a large stack. `step_limit` bounds the work of a
//! rendering. The size of the output is bounded, and so are the depth and the size of what
//! partials include. No helper reads files, opens connections or writes to the log.

pub mod catalog;
pub(crate) mod compiled;
pub mod composition;
pub mod current;
#[cfg(fuzzing)]
pub mod fuzzing;
mod helpers;
mod lexer;
mod mjml;
mod names;
mod parser;
mod pieces;
mod plain_text;
mod problem;
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

use crate::address::Mailbox;
use crate::clock::Timestamp;
use crate::fault::Fault;
use crate::idempotency::single::Failed;
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::locale::Locale;
use crate::text::{Description, Name, Subject, Tag};
pub use catalog::Templates;

/// Tags of one template.
pub const TAGS_MAX: usize = 20;
/// Bytes of each source of a version, and of the HTML that its MJML compiles to.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a rendered body.
pub const RENDERED_BYTES_MAX: usize = 2 << 20;
/// Bytes of a message's variables, as JSON.
pub const VARIABLES_BYTES_MAX: usize = 256 << 10;

/// Characters of a preheader's source.
pub const PREHEADER_CHARS_MAX: usize = 1_000;
/// Languages of one template, besides the default.
pub const LOCALES_MAX: i64 = 100;

/// What a template is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::Type)]
#[sqlx(type_name = "template_type", rename_all = "UPPERCASE")]
pub enum TemplateType {
    /// It is sent.
    #[default]
    Template,
    /// What stands around templates, with `{{{@content}}}` in their place.
    Layout,
    /// What stands in templates, layouts and partials, at `{{> name}}`.
    Partial,
}

impl TemplateType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Template, Self::Layout, Self::Partial];

    /// The name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Template => "TEMPLATE",
            Self::Layout => "LAYOUT",
            Self::Partial => "PARTIAL",
        }
    }
}

/// A template.
#[derive(Debug, Clone)]
pub struct Template {
    pub id: TemplateId,
    pub organization_id: OrganizationId,
    pub template_type: TemplateType,
    pub name: String,
    pub description: Option<String>,
    pub tags: Vec<String>,
    /// That of the default language. `None` until it has a version.
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
    /// `None` is the default language.
    pub locale: Option<String>,
    pub subject: Option<String>,
    pub preheader: Option<String>,
    /// The sender, as a header has it.
    pub from_mailbox: Option<String>,
    /// Addresses for replies, as a header has them.
    pub reply_to: Vec<String>,
    pub layout_id: Option<TemplateId>,
    /// The MJML source of the HTML, if any.
    pub mjml_source: Option<String>,
    /// What is rendered.
    pub html_content: String,
    /// What the author gave, if something else is rendered. Not of MJML.
    pub html_source: Option<String>,
    /// What is rendered.
    pub text_content: Option<String>,
    /// What the author gave, if something else is rendered.
    pub text_source: Option<String>,
    /// Whether the text is made from the HTML.
    pub is_text_generated: bool,
    /// How often its rendered content was composed again.
    pub composition: i32,
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
    pub locale: Option<String>,
    pub created_by: String,
    pub created_at: Timestamp,
}

/// The current version of a language.
#[derive(Debug, Clone)]
pub struct CurrentVersion {
    /// `None` is the default language.
    pub locale: Option<String>,
    pub version_id: TemplateVersionId,
    pub version_number: i32,
    pub composition: i32,
}

/// A layout or partial that is in a version.
#[derive(Debug, Clone)]
pub struct PartRef {
    pub template_id: TemplateId,
    pub part_type: TemplateType,
    pub name: String,
    pub version_id: TemplateVersionId,
    pub version_number: i32,
}

/// A current version that a layout or partial is in.
#[derive(Debug, Clone)]
pub struct PartUser {
    pub template_id: TemplateId,
    pub template_type: TemplateType,
    pub name: String,
    pub version_id: TemplateVersionId,
    pub version_number: i32,
    pub locale: Option<String>,
}

/// A template to create.
#[derive(Debug)]
pub struct NewTemplate {
    /// That of a partial is one that sources can say.
    pub name: Name,
    pub template_type: TemplateType,
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

/// Where the text of a version comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextSource {
    /// It is made from the HTML.
    FromHtml,
    /// There is no text.
    None,
    Given(String),
}

/// The content of a version, each source within [`SOURCE_BYTES_MAX`].
#[derive(Debug, Clone)]
pub struct VersionContent {
    pub subject: Option<Subject>,
    /// Up to [`PREHEADER_CHARS_MAX`].
    pub preheader: Option<String>,
    pub from: Option<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    /// `None` is the default language.
    pub locale: Option<Locale>,
    pub layout_id: Option<TemplateId>,
    /// MJML. Its compiled HTML replaces `html_content`.
    pub mjml_source: Option<String>,
    pub html_content: String,
    pub text: TextSource,
    /// A JSON Schema of the variables.
    pub variables_schema: Option<Value>,
}

/// Whether a partial can have this name.
#[must_use]
pub fn is_partial_name(name: &str) -> bool {
    composition::compose::is_partial_name(name)
}

/// The issue of a partial's name.
#[must_use]
pub fn partial_name_issue() -> Issue {
    let rule = "must be of up to 100 letters, digits, - and _, with a letter first: sources include the partial by its name";
    Issue::new("name", rule)
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
    /// It is a layout or partial, which is not rendered itself.
    IsPart,
    /// The organization has no such layout with a version.
    UnknownLayout,
    /// A partial of this name exists.
    NameTaken,
    /// Current versions use the part.
    InUse,
    /// More current versions use the part than are composed at once.
    TooManyUses,
    /// A current version cannot be composed with its parts as they would be.
    NotComposable {
        template_id: TemplateId,
        name: String,
        problem: String,
    },
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
