//! Templates: creating, listing, changing and removing them. Their versions are in
//! `template_versions`.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{ApiResponse, Object, OpenApi};
use uuid::Uuid;
use waypost_core::db;
use waypost_core::idempotency::single::Idempotent;
use waypost_core::ids::TemplateId;
use waypost_core::template::{
    NewTemplate, Template, TemplateChange, TemplateType, is_partial_name, partial_name_issue, store,
};
use waypost_core::text::{Description, Name};

use crate::context::Context;
use crate::error::{Failure, TEMPLATE};
use crate::fields::content::TemplateTags;
use crate::fields::{PageLimit, PageNumber};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, OTHER_BYTES_MAX};
use crate::request::cursor::CursorQuery;
use crate::request::idempotency_key::{KeyHeader, created};
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable, Paged, Success, Time};
use crate::v1::Section;
use crate::v1::template_versions::{
    CurrentVersionView, TemplateVersionView, find_version, require_template,
};
use crate::validate::{Clearable, Settable, Validated};

pub(crate) struct TemplatesApi {
    pub(crate) context: Arc<Context>,
}

/// A template. Its content is in its versions.
#[derive(Debug, Object)]
#[oai(rename = "Template", rename_all = "camelCase")]
struct TemplateView {
    id: Uuid,
    organization_id: Uuid,
    name: String,
    description: Nullable<String>,
    tags: Vec<String>,
    /// The version of the default language that messages are rendered from; null if there is
    /// no such version yet.
    current_version_id: Nullable<Uuid>,
    created_at: Time,
    updated_at: Time,
    /// `TEMPLATE`: it is sent. `LAYOUT`: it stands around the templates that name it, which
    /// stand in the place of its `{{{@content}}}`. `PARTIAL`: it stands in others, in the place
    /// of `{{> name}}`.
    #[oai(rename = "type")]
    template_type: String,
}

impl From<Template> for TemplateView {
    fn from(template: Template) -> Self {
        Self {
            id: template.id.0,
            organization_id: template.organization_id.0,
            template_type: template.template_type.as_str().to_owned(),
            name: template.name,
            description: Nullable(template.description),
            tags: template.tags,
            current_version_id: Nullable(template.current_version_id.map(|id| id.0)),
            created_at: Time(template.created_at),
            updated_at: Time(template.updated_at),
        }
    }
}

/// A template with the content of its current version.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct TemplateDetail {
    #[oai(flatten)]
    template: TemplateView,
    /// The current version of the default language; null if there is no such version yet.
    current_version: Nullable<TemplateVersionView>,
    /// The current versions of all languages.
    current_versions: Vec<CurrentVersionView>,
}

/// A template to create.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct CreateTemplateRequest {
    /// The name of the template. That of a partial has up to 100 letters, digits, `-` and `_`,
    /// begins with a letter, and is no other partial's.
    name: Validated<Name>,
    /// What the template is for. The default is `TEMPLATE`. It cannot be changed.
    #[oai(rename = "type")]
    template_type: Validated<Option<TemplateType>>,
    /// The description of the template.
    description: Validated<Option<Description>>,
    /// Up to 20 tags of up to 100 characters each.
    tags: Validated<Option<TemplateTags>>,
}

/// The changes to a template. Absent fields keep their values.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct UpdateTemplateRequest {
    /// The name of the template. A partial that is used keeps its name.
    name: Validated<Settable<Name>>,
    /// The description of the template; null removes it.
    description: Validated<Clearable<Description>>,
    /// Up to 20 tags of up to 100 characters each. They replace the present tags.
    tags: Validated<Settable<TemplateTags>>,
}

#[derive(ApiResponse)]
enum CreatedTemplate {
    /// The template is created. It has no version yet.
    #[oai(status = 201)]
    Created(Json<Data<TemplateView>>),
}

#[OpenApi(tag = "Section::Templates")]
impl TemplatesApi {
    /// List templates
    ///
    /// Requires the permission `TEMPLATES_READ`. The newest template comes first.
    #[oai(
        path = "/v1/templates",
        method = "get",
        operation_id = "list_templates"
    )]
    async fn list_templates(
        &self,
        caller: Requires<permission::TemplatesRead>,
        /// The page number, from 1.
        page: Query<Validated<Option<PageNumber>>>,
        /// The number of items per page.
        limit: Query<Validated<Option<PageLimit>>>,
        /// The `nextCursor` of the page before, instead of `page`. The pages stay as they are
        /// while the list grows at its beginning.
        cursor: CursorQuery,
    ) -> Result<Json<Paged<TemplateView>>, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let page = cursor
            .read_page(page.0, limit.0, &mut issues)
            .ok_or(Failure::Invalid(issues))?;
        let mut connection = db::snapshot(&self.context.pool, "list templates").await?;
        let found = store::list(&mut connection, caller.organization_id(), page).await?;
        Ok(Json(Paged {
            data: found.rows.into_iter().map(TemplateView::from).collect(),
            pagination: cursor.pagination(page, found.total, found.next),
        }))
    }

    /// Create a template
    ///
    /// Requires the permission `TEMPLATES_WRITE`. The template can be used once it has a
    /// version.
    #[oai(
        path = "/v1/templates",
        method = "post",
        operation_id = "create_template"
    )]
    async fn create_template(
        &self,
        caller: Requires<permission::TemplatesWrite>,
        /// Makes the request safe to repeat.
        #[oai(name = "Idempotency-Key")]
        key: KeyHeader,
        body: JsonBody<CreateTemplateRequest, OTHER_BYTES_MAX>,
    ) -> Result<CreatedTemplate, Failure> {
        let caller = caller.authorize()?;
        let mut issues = Vec::new();
        let claim = key.claim(&self.context, &caller, &body, &mut issues);
        let request = body.take(&mut issues)?;
        let name = request.name.take("name", &mut issues);
        let description = request.description.take("description", &mut issues);
        let tags = request.tags.take("tags", &mut issues);
        let template_type = request.template_type.take("type", &mut issues);
        let template_type = template_type.map(Option::unwrap_or_default);
        if let (Some(TemplateType::Partial), Some(name)) = (template_type, &name)
            && !is_partial_name(name.as_str())
        {
            issues.push(partial_name_issue());
        }
        let (Some(name), Some(description), Some(tags), Some(template_type), Some(claim), true) = (
            name,
            description,
            tags,
            template_type,
            claim,
            issues.is_empty(),
        ) else {
            return Err(Failure::Invalid(issues));
        };
        let idempotent = Idempotent::new(claim, &self.context.sealer, |template: &Template| {
            let data = TemplateView::from(template.clone());
            created(&Data { data })
        });
        let new = NewTemplate {
            name,
            template_type,
            description,
            tags: tags.unwrap_or_default().0,
        };
        let templates = &self.context.templates;
        let template = templates
            .create(caller.organization_id(), caller.origin(), new, &idempotent)
            .await?;
        Ok(CreatedTemplate::Created(Json(Data {
            data: template.into(),
        })))
    }

    /// Get a template
    ///
    /// Requires the permission `TEMPLATES_READ`. `currentVersion` has the content.
    #[oai(
        path = "/v1/templates/:id",
        method = "get",
        operation_id = "get_template"
    )]
    async fn get_template(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the template.
        id: Path<PathId>,
    ) -> Result<Json<Data<TemplateDetail>>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let organization_id = caller.organization_id();
        let mut connection = db::snapshot(&self.context.pool, "show a template").await?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(Failure::NotFound(TEMPLATE))?;
        let version = match template.current_version_id {
            Some(version) => find_version(&mut connection, organization_id, id, version).await?,
            None => None,
        };
        let current = store::list_current(&mut connection, organization_id, id).await?;
        Ok(Json(Data {
            data: TemplateDetail {
                template: template.into(),
                current_version: Nullable(version),
                current_versions: current.into_iter().map(CurrentVersionView::from).collect(),
            },
        }))
    }

    /// Change a template
    ///
    /// Requires the permission `TEMPLATES_WRITE`. To change the content, add a version.
    #[oai(
        path = "/v1/templates/:id",
        method = "patch",
        operation_id = "update_template"
    )]
    async fn update_template(
        &self,
        caller: Requires<permission::TemplatesWrite>,

        /// The id of the template.
        id: Path<PathId>,
        body: JsonBody<UpdateTemplateRequest, OTHER_BYTES_MAX>,
    ) -> Result<Json<Data<TemplateView>>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        require_template(&self.context, &caller, id).await?;
        let mut issues = Vec::new();
        let request = body.take(&mut issues)?;
        let name = request.name.change("name", &mut issues);
        let description = request.description.change("description", &mut issues);
        let tags = request.tags.change("tags", &mut issues);
        if !issues.is_empty() {
            return Err(Failure::Invalid(issues));
        }
        let wanted = TemplateChange {
            name,
            description,
            tags: tags.map(|tags| tags.0),
        };
        let templates = &self.context.templates;
        let template = templates
            .change(caller.organization_id(), caller.origin(), id, wanted)
            .await?;
        Ok(Json(Data {
            data: template.into(),
        }))
    }

    /// Remove a template
    ///
    /// Requires the permission `TEMPLATES_WRITE`. Removes all versions of the template
    /// too. Messages that were already accepted are sent as they are. A layout or partial that
    /// a current version uses is not removed (409).
    #[oai(
        path = "/v1/templates/:id",
        method = "delete",
        operation_id = "delete_template"
    )]
    async fn delete_template(
        &self,
        caller: Requires<permission::TemplatesWrite>,

        /// The id of the template.
        id: Path<PathId>,
    ) -> Result<Json<Success>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        self.context
            .templates
            .remove(caller.organization_id(), caller.origin(), id)
            .await?;
        Ok(Json(Success { success: true }))
    }
}
