//! `GET /v1/messages/:id/content`: what a message says.

use std::sync::Arc;

use poem_openapi::param::Path;
use poem_openapi::payload::Json;
use poem_openapi::{Object, OpenApi};
use waypost_core::ids::MessageId;
use waypost_core::message::content::{ContentPart, StoredContent};

use crate::context::Context;
use crate::error::{Failure, MESSAGE};
use crate::fields::Position;
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::request::query::Query;
use crate::response::{Data, Nullable};
use crate::v1::Section;
use crate::v1::message_attachments::AttachmentDetail;
use crate::validate::Validated;

pub(crate) struct MessageContentApi {
    pub(crate) context: Arc<Context>,
}

/// What a message says, before tracking and unsubscribe links are added.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
struct MessageContentView {
    subject: String,
    /// The HTML body.
    html: Nullable<String>,
    /// The text body.
    text: Nullable<String>,
    /// The extra headers of the message.
    headers: Vec<ContentHeader>,
    attachments: Vec<AttachmentDetail>,
}

/// An extra header.
#[derive(Debug, Object)]
struct ContentHeader {
    /// The name of the header.
    name: String,
    /// The value of the header.
    value: String,
}

impl From<StoredContent> for MessageContentView {
    fn from(content: StoredContent) -> Self {
        let headers = content.headers.into_iter();
        Self {
            subject: content.subject,
            html: Nullable(content.html),
            text: Nullable(content.text),
            headers: headers
                .map(|(name, value)| ContentHeader { name, value })
                .collect(),
            attachments: content
                .attachments
                .into_iter()
                .map(AttachmentDetail::from)
                .collect(),
        }
    }
}

#[OpenApi(tag = "Section::Messages")]
impl MessageContentApi {
    /// Get a message's content
    ///
    /// Requires the permission `CONTENT_READ`. The audit log records each request. The
    /// content of a message is stored for a shorter time than the message: afterwards the
    /// response is 404 with `details.reason` `MESSAGE_CONTENT_GONE`.
    #[oai(
        path = "/v1/messages/:id/content",
        method = "get",
        operation_id = "get_message_content"
    )]
    async fn get_message_content(
        &self,
        caller: Requires<permission::ContentRead>,
        /// The id of the message.
        id: Path<PathId>,
        /// The position of a recipient in the send request, from 0: the content as rendered
        /// for this recipient.
        position: Query<Validated<Option<Position>>>,
    ) -> Result<Json<Data<MessageContentView>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let mut issues = Vec::new();
        let position = position.0.take("position", &mut issues);
        let position = position.ok_or(Failure::Invalid(issues))?;
        let part = position.map_or(ContentPart::Message, |position| {
            ContentPart::Recipient(position.0)
        });
        let organization_id = caller.organization_id();
        let contents = &self.context.contents;
        let content = contents
            .read(organization_id, caller.origin(), id, part)
            .await?;
        Ok(Json(Data {
            data: content.into(),
        }))
    }
}
