//! Previews of versions that are not stored: what an author writes, as it would be rendered.

use serde_json::Value;
use tokio::time::Instant;

use super::super::catalog::{Templates, WAIT_MAX};
use super::super::render::Rendered;
use super::super::{Template, TemplateRefusal, TemplateType, VersionContent, compiled};
use super::parts::PartCache;
use super::{Composing, take_built};
use crate::audit::Origin;
use crate::db;

impl Templates {
    /// Renders content as [`Templates::add_version`] would store it, with the layout and the
    /// partials as they are now. Nothing is stored. Answers the subject too, if there is one.
    /// The content of a layout or partial, which are not rendered themselves, is taken as that
    /// of a template: authors see a part in content that stands for a template.
    ///
    /// # Errors
    /// [`TemplateRefusal`]: all issues of the content.
    pub async fn preview_draft(
        &self,
        origin: &Origin,
        template: &Template,
        content: VersionContent,
        variables: Value,
    ) -> Result<(Option<String>, Rendered), TemplateRefusal> {
        let organization_id = template.organization_id;
        let deadline = Instant::now() + WAIT_MAX;
        let composing = Composing {
            organization_id,
            deadline,
        };
        let prepared = self.prepare(composing, TemplateType::Template, &content);
        let (sources, built) = prepared.await?;
        let text = sources.text.clone();
        let built = match built {
            Some(built) => built,
            None => {
                let mut connection = db::snapshot(&self.pool, "preview a template").await?;
                let mut cache = PartCache::default();
                self.build_with_parts(&mut connection, composing, sources, &mut cache)
                    .await?
            }
        };
        let mut version = self.new_version(origin, template.id, content, &text);
        take_built(&mut version, &built);
        let work = move || compiled::compile(organization_id, &version);
        let compiling = self.render_pool().run(organization_id, deadline, work);
        let compiled = compiling.await?.map_err(TemplateRefusal::Unrenderable)?;
        self.render_preview(organization_id, deadline, compiled.into(), variables)
            .await
    }
}
