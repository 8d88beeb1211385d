//! Template versions: adding, listing and previewing them, and rolling back to one.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::acceptance::draft::REPLY_TO_MAX;
use waypost_core::address::Mailbox;
use waypost_core::db::{self, OrFault, PgConnection};
use waypost_core::fault::Fault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{OrganizationId, TemplateId, TemplateVersionId};
use waypost_core::issue::Issue;
use waypost_core::template::current::VersionChoice;
use waypost_core::template::render::Rendered;
use waypost_core::template::{
    CurrentVersion, PartRef, Template, TemplateVersion, TextSource, VersionContent, VersionSummary,
    composition, store,
};
use waypost_core::text::Subject;
use waypost_core::text::locale::Locale;

use crate::context::Context;
use crate::error::{Failure, TEMPLATE, VERSION};
use crate::fields::Id;
use crate::fields::content::{JsonObject, PreheaderText, SourceText, Variables};
use crate::fields::recipients::Mailboxes;
use crate::middleware::auth::{Caller, Requires};
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX, VERSION_BYTES_MAX};
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable, Time};
use crate::v1::Section;
use crate::validate::Validated;

pub(crate) struct TemplateVersionsApi {
    pub(crate) context: Arc<Context>,
}

/// A version of a template. What its author gave never changes.
#[derive(Debug, Object)]
#[oai(rename = "TemplateVersion", rename_all = "camelCase")]
pub(crate) struct TemplateVersionView {
    id: Uuid,
    template_id: Uuid,
    /// The number of the version: 1, 2, 3 and so on.
    version_number: i32,
    /// The MJML source.
    mjml_source: Nullable<String>,
    /// The HTML source, a Handlebars template. With `mjmlSource`, the HTML that it was
    /// compiled to, with the layout and the partials in it.
    html_content: String,
    /// The text, a Handlebars template.
    text_content: Nullable<String>,
    /// The JSON Schema of the variables.
    variables_schema: Nullable<Any<Value>>,
    /// The id of the API key that created the version.
    created_by: String,
    created_at: Time,
    /// The language of the version, as a language tag; null is the default language.
    locale: Nullable<String>,
    /// The subject of messages that bring none, a Handlebars template.
    subject: Nullable<String>,
    /// What mail programs show beside the subject, a Handlebars template.
    preheader: Nullable<String>,
    /// The sender of messages that bring none.
    from: Nullable<String>,
    /// The addresses for replies to messages that bring none.
    reply_to: Vec<String>,
    /// The layout around the content.
    layout_id: Nullable<Uuid>,
    /// Whether the text was made from the HTML, because none was given.
    is_text_generated: bool,
    /// The layout and the partials in the version, also those in others, as they were when it
    /// was last composed.
    parts: Vec<TemplatePartView>,
}

impl TemplateVersionView {
    fn new(version: TemplateVersion, parts: Vec<PartRef>) -> Self {
        Self {
            id: version.id.0,
            template_id: version.template_id.0,
            version_number: version.version_number,
            locale: Nullable(version.locale),
            subject: Nullable(version.subject),
            preheader: Nullable(version.preheader),
            from: Nullable(version.from_mailbox),
            reply_to: version.reply_to,
            layout_id: Nullable(version.layout_id.map(|id| id.0)),
            mjml_source: Nullable(version.mjml_source),
            html_content: version.html_source.unwrap_or(version.html_content),
            text_content: Nullable(version.text_source.or(version.text_content)),
            is_text_generated: version.is_text_generated,
            parts: parts.into_iter().map(TemplatePartView::from).collect(),
            variables_schema: Nullable(version.variables_schema.map(Any)),
            created_by: version.created_by,
            created_at: Time(version.created_at),
        }
    }
}

/// A version with its content, and with the parts in it.
pub(crate) async fn find_version(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: TemplateId,
    version_id: TemplateVersionId,
) -> Result<Option<TemplateVersionView>, Fault> {
    let version = store::find_version(connection, organization_id, id, version_id).await?;
    let Some(version) = version else {
        return Ok(None);
    };
    let parts = composition::store::list_parts(connection, version.id).await?;
    Ok(Some(TemplateVersionView::new(version, parts)))
}

/// A layout or partial in a version.
#[derive(Debug, Object)]
#[oai(rename = "TemplatePart", rename_all = "camelCase")]
struct TemplatePartView {
    /// The id of the layout or partial.
    template_id: Uuid,
    /// `LAYOUT` or `PARTIAL`.
    #[oai(rename = "type")]
    part_type: String,
    name: String,
    /// The version that is in it.
    version_id: Uuid,
    version_number: i32,
}

impl From<PartRef> for TemplatePartView {
    fn from(part: PartRef) -> Self {
        Self {
            template_id: part.template_id.0,
            part_type: part.part_type.as_str().to_owned(),
            name: part.name,
            version_id: part.version_id.0,
            version_number: part.version_number,
        }
    }
}

/// The current version of a language.
#[derive(Debug, Object)]
#[oai(rename = "CurrentTemplateVersion", rename_all = "camelCase")]
pub(crate) struct CurrentVersionView {
    /// The language, as a language tag; null is the default language.
    locale: Nullable<String>,
    version_id: Uuid,
    version_number: i32,
}

impl From<CurrentVersion> for CurrentVersionView {
    fn from(version: CurrentVersion) -> Self {
        Self {
            locale: Nullable(version.locale),
            version_id: version.version_id.0,
            version_number: version.version_number,
        }
    }
}

/// A version of a template, without its content.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct TemplateVersionSummary {
    id: Uuid,
    template_id: Uuid,
    version_number: i32,
    /// The language of the version, as a language tag; null is the default language.
    locale: Nullable<String>,
    /// The id of the API key that created the version.
    created_by: String,
    created_at: Time,
}

impl From<VersionSummary> for TemplateVersionSummary {
    fn from(version: VersionSummary) -> Self {
        Self {
            id: version.id.0,
            template_id: version.template_id.0,
            version_number: version.version_number,
            locale: Nullable(version.locale),
            created_by: version.created_by,
            created_at: Time(version.created_at),
        }
    }
}

/// All versions of a template, newest first.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct TemplateVersionList {
    data: Vec<TemplateVersionSummary>,
    /// The version of the default language that messages are rendered from; null if there is
    /// no such version yet.
    current_version_id: Nullable<Uuid>,
    /// The current versions of all languages.
    current_versions: Vec<CurrentVersionView>,
}

/// The content of a new version. Each source is a Handlebars template of up to 1 MiB,
/// rendered as handlebars.js 4.7 renders it. Variables, sections, `if`, `unless`, `each`,
/// `with`, `lookup`, `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `and`, `or`, `not`, `len` and
/// `raw` are supported, and partials of the organization: `{{> name}}`. A layout or partial
/// has sources and a language alone.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(super) struct CreateTemplateVersionRequest {
    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
    /// Without one, it is of the default language.
    pub(super) locale: Validated<Option<Locale>>,
    /// The subject of messages that bring none, a Handlebars template.
    pub(super) subject: Validated<Option<Subject>>,
    /// What mail programs show beside the subject, a Handlebars template on one line. It is
    /// put at the beginning of the HTML, hidden.
    pub(super) preheader: Validated<Option<PreheaderText>>,
    /// The sender of messages that bring none.
    pub(super) from: Validated<Option<Mailbox>>,
    /// One address for replies or an array of up to 10, for messages that bring none.
    pub(super) reply_to: Validated<Option<Mailboxes<REPLY_TO_MAX>>>,
    /// The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
    pub(super) layout_id: Validated<Option<Id>>,
    /// The HTML source. It may be empty if `mjmlSource` is given.
    pub(super) html_content: Validated<SourceText>,
    /// The MJML source. It is compiled now, and the result replaces `htmlContent`.
    pub(super) mjml_source: Validated<Option<SourceText>>,
    /// The plain-text source. Without it, the text is made from the HTML; if it is empty,
    /// there is no text.
    pub(super) text_content: Validated<Option<SourceText>>,
    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
    /// match. References outside the schema are not allowed.
    pub(super) variables_schema: Validated<Option<JsonObject<VERSION_BYTES_MAX>>>,
}

impl CreateTemplateVersionRequest {
    /// The content, or all mistakes in the request.
    pub(super) fn check(self, mut issues: Vec<Issue>) -> Result<VersionContent, Vec<Issue>> {
        let locale = self.locale.take("locale", &mut issues);
        let subject = self.subject.take("subject", &mut issues);
        let preheader = self.preheader.take("preheader", &mut issues);
        let from = self.from.take("from", &mut issues);
        let reply_to = self.reply_to.take("replyTo", &mut issues);
        let layout_id = self.layout_id.take("layoutId", &mut issues);
        let html = self.html_content.take("htmlContent", &mut issues);
        let mjml = self.mjml_source.take("mjmlSource", &mut issues);
        let text = self.text_content.take("textContent", &mut issues);
        let schema = self.variables_schema.take("variablesSchema", &mut issues);
        let non_empty = |source: Option<SourceText>| {
            source
                .map(|source| source.0)
                .filter(|text| !text.is_empty())
        };
        let mjml = mjml.map(non_empty);
        if mjml == Some(None) && html.as_ref().is_some_and(|html| html.0.is_empty()) {
            issues.push(Issue::new("htmlContent", "must not be empty"));
        }
        let content = (|| {
            Some(VersionContent {
                locale: locale?,
                subject: subject?,
                preheader: preheader?.map(|preheader| preheader.0),
                from: from?,
                reply_to: reply_to?.unwrap_or_default().0,
                layout_id: layout_id?.map(|id| TemplateId(id.0)),
                html_content: html?.0,
                mjml_source: mjml?,
                text: match text? {
                    None => TextSource::FromHtml,
                    Some(text) if text.0.is_empty() => TextSource::None,
                    Some(text) => TextSource::Given(text.0),
                },
                variables_schema: schema?.map(|schema| schema.0),
            })
        })();
        content.filter(|_| issues.is_empty()).ok_or(issues)
    }
}

#[derive(ApiResponse)]
enum CreatedVersion {
    /// The version is created and is now the current one.
    #[oai(status = 201)]
    Created(Json<Data<TemplateVersionView>>),
}

/// What to preview.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct PreviewTemplateRequest {
    /// The variables. They need not match the JSON Schema of the version.
    variables: Validated<Option<Variables>>,
    /// The id of the version. The default is the current version.
    version_id: Validated<Option<Id>>,
    /// The language of the version, instead of `versionId`: its current version is rendered,
    /// or that of the next less exact language, or of the default.
    locale: Validated<Option<Locale>>,
}

/// The version that a request means.
pub(super) fn version_choice(
    version_id: Option<Option<Id>>,
    locale: Option<Option<Locale>>,
    issues: &mut Vec<Issue>,
) -> Option<VersionChoice> {
    match (version_id?, locale?) {
        (Some(_), Some(_)) => {
            let why = "must not be given with versionId: a version has its language";
            issues.push(Issue::new("locale", why));
            None
        }
        (Some(id), None) => Some(VersionChoice::Given(TemplateVersionId(id.0))),
        (None, locale) => Some(VersionChoice::Current(locale)),
    }
}

/// A rendered template version.
#[derive(Debug, Object)]
#[oai(skip_serializing_if_is_none)]
pub(super) struct TemplatePreview {
    /// The rendered subject; absent if the version has none.
    subject: Option<String>,
    html: String,
    /// The rendered text; empty if the version has no text.
    text: String,
}

impl TemplatePreview {
    pub(super) fn new((subject, rendered): (Option<String>, Rendered)) -> Self {
        Self {
            subject,
            html: rendered.html,
            text: rendered.text.unwrap_or_default(),
        }
    }
}

/// The result of a rollback.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct RolledBack {
    template_id: Uuid,
    current_version_id: Uuid,
    version_number: i32,
}

#[OpenApi(tag = "Section::Templates")]
impl TemplateVersionsApi {
    /// Add a version to a template
    ///
    /// Requires the permission `TEMPLATES_WRITE`. The version gets the next number and
    /// becomes the current one of its language. Its sources are checked now. A version of a
    /// layout or partial is put into the current versions that use it, at once; if one of
    /// them cannot be composed with it, it is refused (422).
    #[oai(
        path = "/v1/templates/:id/versions",
        method = "post",
        operation_id = "create_template_version"
    )]
    async fn create_template_version(
        &self,
        caller: Requires<permission::TemplatesWrite>,

        /// The id of the template.
        id: Path<PathId>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateTemplateVersionRequest, VERSION_BYTES_MAX>,
    ) -> Result<CreatedVersion, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let idempotent = Idempotent::new(
            claim.flatten(),
            &self.context.sealer,
            |(version, parts): &(TemplateVersion, Vec<PartRef>)| {
                let data = TemplateVersionView::new(version.clone(), parts.clone());
                created(&Data { data })
            },
        );
        // A repeated request gets its stored response first: the template may have been
        // removed since, and checking a version takes time.
        idempotent.look_up(&self.context.pool).await?;
        let template = require_template(&self.context, &caller, id).await?;
        let request = body.take(&mut issues)?;
        let content = request.check(issues).map_err(Failure::Invalid)?;
        let templates = &self.context.templates;
        // Boxed: it is large, and every layer of the server would move it.
        let adding = templates.add_version(caller.origin(), &template, content, &idempotent);
        let (version, parts) = Box::pin(adding).await?;
        Ok(CreatedVersion::Created(Json(Data {
            data: TemplateVersionView::new(version, parts),
        })))
    }

    /// List a template's versions
    ///
    /// Requires the permission `TEMPLATES_READ`. The newest version comes first. The
    /// content is not included.
    #[oai(
        path = "/v1/templates/:id/versions",
        method = "get",
        operation_id = "list_template_versions"
    )]
    async fn list_template_versions(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the template.
        id: Path<PathId>,
    ) -> Result<Json<TemplateVersionList>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let templates = &self.context.templates;
        let found = templates.versions(caller.organization_id(), id).await?;
        let (template, versions, current) = found;
        Ok(Json(TemplateVersionList {
            data: versions
                .into_iter()
                .map(TemplateVersionSummary::from)
                .collect(),
            current_version_id: Nullable(template.current_version_id.map(|id| id.0)),
            current_versions: current.into_iter().map(CurrentVersionView::from).collect(),
        }))
    }

    /// Get a template version
    ///
    /// Requires the permission `TEMPLATES_READ`.
    #[oai(
        path = "/v1/templates/:id/versions/:versionId",
        method = "get",
        operation_id = "get_template_version"
    )]
    async fn get_template_version(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the template.
        id: Path<PathId>,
        /// The id of the template version.
        #[oai(name = "versionId")]
        version_id: Path<PathId>,
    ) -> Result<Json<Data<TemplateVersionView>>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let version_id: TemplateVersionId = version_id.0.of(VERSION)?;
        let organization_id = caller.organization_id();
        let mut connection = db::snapshot(&self.context.pool, "show a template version").await?;
        let version = find_version(&mut connection, organization_id, id, version_id).await?;
        let data = version.ok_or(Failure::NotFound(VERSION))?;
        Ok(Json(Data { data }))
    }

    /// Preview a template
    ///
    /// Requires the permission `TEMPLATES_READ`. Renders a version; nothing is sent.
    /// Missing variables render as empty text.
    #[oai(
        path = "/v1/templates/:id/preview",
        method = "post",
        operation_id = "preview_template"
    )]
    async fn preview_template(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the template.
        id: Path<PathId>,
        body: JsonBody<PreviewTemplateRequest, OTHER_BYTES_MAX, true>,
    ) -> Result<Json<TemplatePreview>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        require_template(&self.context, &caller, id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let variables = request.variables.take("variables", &mut issues);
        let version_id = request.version_id.take("versionId", &mut issues);
        let locale = request.locale.take("locale", &mut issues);
        let choice = version_choice(version_id, locale, &mut issues);
        let (Some(variables), Some(choice), true) = (variables, choice, issues.is_empty()) else {
            return Err(Failure::Invalid(issues));
        };
        let variables = variables.unwrap_or_default().0;
        let templates = &self.context.templates;
        let rendered = templates
            .preview(caller.organization_id(), id, &choice, variables)
            .await?;
        Ok(Json(TemplatePreview::new(rendered)))
    }

    /// Roll back to a template version
    ///
    /// Requires the permission `TEMPLATES_WRITE`. Makes this version the current one of its
    /// language. It is composed with its layout and partials as they are now. No version is
    /// added or removed.
    #[oai(
        path = "/v1/templates/:id/rollback/:versionId",
        method = "post",
        operation_id = "rollback_template"
    )]
    async fn rollback_template(
        &self,
        caller: Requires<permission::TemplatesWrite>,

        /// The id of the template.
        id: Path<PathId>,
        /// The id of the template version.
        #[oai(name = "versionId")]
        version_id: Path<PathId>,
    ) -> Result<Json<Data<RolledBack>>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let version_id: TemplateVersionId = version_id.0.of(VERSION)?;
        let templates = &self.context.templates;
        let version_number = templates
            .roll_back(caller.organization_id(), caller.origin(), id, version_id)
            .await?;
        Ok(Json(Data {
            data: RolledBack {
                template_id: id.0,
                current_version_id: version_id.0,
                version_number,
            },
        }))
    }
}

/// Requires that the template exists, before the handler parses the body.
pub(super) async fn require_template(
    context: &Context,
    caller: &Caller,
    id: TemplateId,
) -> Result<Template, Failure> {
    let mut connection = context.pool.acquire().await.or_fault("find a template")?;
    let template = store::find(&mut connection, caller.organization_id(), id).await?;
    template.ok_or(Failure::NotFound(TEMPLATE))
}
