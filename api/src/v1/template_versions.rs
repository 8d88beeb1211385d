//! Template versions: adding, listing and previewing them, and rolling back to one.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::types::Any;
use poem_openapi::{ApiResponse, Object, OpenApi};
use serde_json::Value;
use uuid::Uuid;
use waypost_core::db::OrFault;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::{TemplateId, TemplateVersionId};
use waypost_core::issue::Issue;
use waypost_core::template::{TemplateVersion, VersionContent, VersionSummary, store};

use crate::context::Context;
use crate::error::{Failure, TEMPLATE, VERSION};
use crate::fields::Id;
use crate::fields::content::{JsonObject, SourceText, Variables};
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

/// A version of a template. Versions never change.
#[derive(Debug, Object)]
#[oai(rename = "TemplateVersion", rename_all = "camelCase")]
pub(crate) struct TemplateVersionView {
    id: Uuid,
    template_id: Uuid,
    /// The number of the version: 1, 2, 3 and so on.
    version_number: i32,
    /// The MJML that `htmlContent` was compiled from.
    mjml_source: Nullable<String>,
    /// The HTML source, a Handlebars template.
    html_content: String,
    text_content: Nullable<String>,
    /// The JSON Schema of the variables.
    variables_schema: Nullable<Any<Value>>,
    /// The id of the API key that created the version.
    created_by: String,
    created_at: Time,
}

impl From<TemplateVersion> for TemplateVersionView {
    fn from(version: TemplateVersion) -> Self {
        Self {
            id: version.id.0,
            template_id: version.template_id.0,
            version_number: version.version_number,
            mjml_source: Nullable(version.mjml_source),
            html_content: version.html_content,
            text_content: Nullable(version.text_content),
            variables_schema: Nullable(version.variables_schema.map(Any)),
            created_by: version.created_by,
            created_at: Time(version.created_at),
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
    /// The version that messages are rendered from; null if there is no version yet.
    current_version_id: Nullable<Uuid>,
}

/// The content of a new version. Each source is a Handlebars template of up to 1 MiB,
/// rendered as handlebars.js 4.7 renders it. Variables, sections, `if`, `unless`, `each`,
/// `with`, `lookup`, `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `and`, `or`, `not`, `len` and
/// `raw` are supported; partials are not.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateTemplateVersionRequest {
    /// The HTML source. It may be empty if `mjmlSource` is given.
    html_content: Validated<SourceText>,
    /// The MJML source. It is compiled now, and the result replaces `htmlContent`.
    mjml_source: Validated<Option<SourceText>>,
    /// The plain-text source.
    text_content: Validated<Option<SourceText>>,
    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
    /// match. References outside the schema are not allowed.
    variables_schema: Validated<Option<JsonObject<VERSION_BYTES_MAX>>>,
}

impl CreateTemplateVersionRequest {
    /// The content, or all mistakes in the request.
    fn check(self, mut issues: Vec<Issue>) -> Result<VersionContent, Vec<Issue>> {
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
                html_content: html?.0,
                mjml_source: mjml?,
                text_content: non_empty(text?),
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
}

/// A rendered template version.
#[derive(Debug, Object)]
struct TemplatePreview {
    html: String,
    /// The rendered text; empty if the version has no text.
    text: String,
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
    /// becomes the current one. Its sources are checked now.
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
            |version: &TemplateVersion| {
                let data = TemplateVersionView::from(version.clone());
                created(&Data { data })
            },
        );
        // A repeated request gets its stored response first: the template may have been
        // removed since, and checking a version takes time.
        idempotent.look_up(&self.context.pool).await?;
        self.require_template(&caller, id).await?;
        let request = body.take(&mut issues)?;
        let content = request.check(issues).map_err(Failure::Invalid)?;
        let templates = &self.context.templates;
        let version = templates
            .add_version(
                caller.organization_id(),
                caller.origin(),
                id,
                content,
                &idempotent,
            )
            .await?;
        Ok(CreatedVersion::Created(Json(Data {
            data: version.into(),
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
        let (template, versions) = templates.versions(caller.organization_id(), id).await?;
        Ok(Json(TemplateVersionList {
            data: versions
                .into_iter()
                .map(TemplateVersionSummary::from)
                .collect(),
            current_version_id: Nullable(template.current_version_id.map(|id| id.0)),
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
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("show a template version")?;
        let version = store::find_version(&mut connection, organization_id, id, version_id).await?;
        let version = version.ok_or(Failure::NotFound(VERSION))?;
        Ok(Json(Data {
            data: version.into(),
        }))
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
        self.require_template(&caller, id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let variables = request.variables.take("variables", &mut issues);
        let version_id = request.version_id.take("versionId", &mut issues);
        let (Some(variables), Some(version_id), true) = (variables, version_id, issues.is_empty())
        else {
            return Err(Failure::Invalid(issues));
        };
        let version_id = version_id.map(|id| TemplateVersionId(id.0));
        let variables = variables.unwrap_or_default().0;
        let templates = &self.context.templates;
        let rendered = templates
            .preview(caller.organization_id(), id, version_id, variables)
            .await?;
        Ok(Json(TemplatePreview {
            html: rendered.html,
            text: rendered.text.unwrap_or_default(),
        }))
    }

    /// Roll back to a template version
    ///
    /// Requires the permission `TEMPLATES_WRITE`. Makes this version the current one. No
    /// version is added or removed.
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

impl TemplateVersionsApi {
    /// Requires that the template exists, before the handler parses the body.
    async fn require_template(&self, caller: &Caller, id: TemplateId) -> Result<(), Failure> {
        let mut connection = self
            .context
            .pool
            .acquire()
            .await
            .or_fault("find a template")?;
        let template = store::find(&mut connection, caller.organization_id(), id).await?;
        template.map(|_| ()).ok_or(Failure::NotFound(TEMPLATE))
    }
}
