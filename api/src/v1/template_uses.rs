//! What uses a layout or partial.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use uuid::Uuid;
use waypost_core::ids::TemplateId;
use waypost_core::template::PartUser;

use crate::context::Context;
use crate::error::{Failure, TEMPLATE};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable};
use crate::v1::Section;

pub(crate) struct TemplateUsesApi {
    pub(crate) context: Arc<Context>,
}

/// A current version with the layout or partial in it.
#[derive(Debug, Object)]
#[oai(rename = "TemplateUse", rename_all = "camelCase")]
struct TemplateUseView {
    /// The id of the template that the version is of.
    template_id: Uuid,
    /// `TEMPLATE`, or the `LAYOUT` or `PARTIAL` that has it in it.
    #[oai(rename = "type")]
    template_type: String,
    name: String,
    version_id: Uuid,
    version_number: i32,
    /// The language of the version, as a language tag; null is the default language.
    locale: Nullable<String>,
}

impl From<PartUser> for TemplateUseView {
    fn from(user: PartUser) -> Self {
        Self {
            template_id: user.template_id.0,
            template_type: user.template_type.as_str().to_owned(),
            name: user.name,
            version_id: user.version_id.0,
            version_number: user.version_number,
            locale: Nullable(user.locale),
        }
    }
}

#[OpenApi(tag = "Section::Templates")]
impl TemplateUsesApi {
    /// List what uses a layout or partial
    ///
    /// Requires the permission `TEMPLATES_READ`. Lists up to 1,000 current versions that the
    /// layout or partial is in, also those in which another partial brought it. A template
    /// that is neither is in none.
    #[oai(
        path = "/v1/templates/:id/used-by",
        method = "get",
        operation_id = "list_template_uses"
    )]
    async fn list_template_uses(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the layout or partial.
        id: Path<PathId>,
    ) -> Result<Json<Data<Vec<TemplateUseView>>>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let templates = &self.context.templates;
        let users = templates.users(caller.organization_id(), id).await?;
        Ok(Json(Data {
            data: users.into_iter().map(TemplateUseView::from).collect(),
        }))
    }
}
