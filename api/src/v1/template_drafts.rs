//! Previews of versions that are not stored yet, for whoever writes them.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::acceptance::draft::REPLY_TO_MAX;
use waypost_core::address::Mailbox;
use waypost_core::ids::TemplateId;
use waypost_core::text::Subject;
use waypost_core::text::locale::Locale;

use crate::context::Context;
use crate::error::{Failure, TEMPLATE};
use crate::fields::Id;
use crate::fields::content::{JsonObject, PreheaderText, SourceText, Variables};
use crate::fields::recipients::Mailboxes;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::body::{JsonBody, VERSION_BYTES_MAX};
use crate::request::path_id::PathId;
use crate::v1::Section;
use crate::v1::template_versions::{
    CreateTemplateVersionRequest, TemplatePreview, require_template,
};
use crate::validate::Validated;

pub(crate) struct TemplateDraftsApi {
    pub(crate) context: Arc<Context>,
}

/// The content of a version to preview, as for a new version, and its variables.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct PreviewTemplateDraftRequest {
    /// The variables. They need not match the JSON Schema.
    variables: Validated<Option<Variables>>,
    /// The language of the version, as a language tag such as `de`, `de-AT` or `zh-Hant-TW`.
    /// Without one, it is of the default language.
    locale: Validated<Option<Locale>>,
    /// The subject of messages that bring none, a Handlebars template.
    subject: Validated<Option<Subject>>,
    /// What mail programs show beside the subject, a Handlebars template on one line. It is
    /// put at the beginning of the HTML, hidden.
    preheader: Validated<Option<PreheaderText>>,
    /// The sender of messages that bring none.
    from: Validated<Option<Mailbox>>,
    /// One address for replies or an array of up to 10, for messages that bring none.
    reply_to: Validated<Option<Mailboxes<REPLY_TO_MAX>>>,
    /// The layout around the content. One of MJML takes MJML, one of HTML takes HTML.
    layout_id: Validated<Option<Id>>,
    /// The HTML source. It may be empty if `mjmlSource` is given.
    html_content: Validated<SourceText>,
    /// The MJML source. It is compiled now, and the result replaces `htmlContent`.
    mjml_source: Validated<Option<SourceText>>,
    /// The plain-text source. Without it, the text is made from the HTML; if it is empty,
    /// there is no text.
    text_content: Validated<Option<SourceText>>,
    /// A JSON Schema (draft 7, 2019-09 or 2020-12) that the variables of every send must
    /// match. References outside the schema are not allowed.
    variables_schema: Validated<Option<JsonObject<VERSION_BYTES_MAX>>>,
}

impl PreviewTemplateDraftRequest {
    /// The variables and the content.
    fn split(self) -> (Validated<Option<Variables>>, CreateTemplateVersionRequest) {
        let content = CreateTemplateVersionRequest {
            locale: self.locale,
            subject: self.subject,
            preheader: self.preheader,
            from: self.from,
            reply_to: self.reply_to,
            layout_id: self.layout_id,
            html_content: self.html_content,
            mjml_source: self.mjml_source,
            text_content: self.text_content,
            variables_schema: self.variables_schema,
        };
        (self.variables, content)
    }
}

#[OpenApi(tag = "Section::Templates")]
impl TemplateDraftsApi {
    /// Preview a draft of a template version
    ///
    /// Requires the permission `TEMPLATES_READ`. Checks and renders the content as if it were
    /// a new version of the template, with the layout and the partials as they are now. The
    /// content of a layout or partial is rendered as that of a template. Nothing is stored or
    /// sent. If a source is wrong, `details.issues` names its line.
    #[oai(
        path = "/v1/templates/:id/preview-draft",
        method = "post",
        operation_id = "preview_template_draft"
    )]
    async fn preview_template_draft(
        &self,
        caller: Requires<permission::TemplatesRead>,

        /// The id of the template.
        id: Path<PathId>,
        body: JsonBody<PreviewTemplateDraftRequest, VERSION_BYTES_MAX>,
    ) -> Result<Json<TemplatePreview>, Failure> {
        let caller = caller.authorize()?;
        let id: TemplateId = id.0.of(TEMPLATE)?;
        let template = require_template(&self.context, &caller, id).await?;
        let mut issues = Vec::new();
        let (variables, content) = body.take(&mut issues)?.split();
        let variables = variables.take("variables", &mut issues).flatten();
        let content = content.check(issues).map_err(Failure::Invalid)?;
        let variables = variables.unwrap_or_default().0;
        let templates = &self.context.templates;
        // Boxed: it is large, and every layer of the server would move it.
        let rendering = templates.preview_draft(caller.origin(), &template, content, variables);
        Ok(Json(TemplatePreview::new(Box::pin(rendering).await?)))
    }
}
