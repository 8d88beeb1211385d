//! The attachments of accepted messages: their list, and the content of one, which is read
//! and sent piece by piece.

use std::sync::Arc;

use poem::{Body, IntoResponse, Response};
use poem_openapi::param::Path;
use poem_openapi::payload::{Json, Payload};
use poem_openapi::registry::{MetaMediaType, MetaResponse, MetaResponses, MetaSchema};
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::{ApiResponse, Object, OpenApi};
use tokio::io::AsyncWriteExt as _;
use waypost_core::attachment::{AttachmentRef, MonthKey, store};
use waypost_core::db::{OrFault as _, PgPool};
use waypost_core::fault::Fault;
use waypost_core::ids::{MessageId, OrganizationId};
use waypost_core::message::content::ContentPart;

use crate::context::Context;
use crate::error::{ATTACHMENT, Failure, MESSAGE};
use crate::middleware::auth::Requires;
use crate::middleware::permission;
use crate::request::path_id::PathId;
use crate::response::{Data, Nullable};
use crate::v1::Section;

pub(crate) struct MessageAttachmentsApi {
    pub(crate) context: Arc<Context>,
}

/// An attachment, without its content.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub(super) struct AttachmentDetail {
    /// The file name that the recipient sees.
    filename: String,
    /// The media type.
    content_type: String,
    /// The id by which the HTML body shows the file; null if it does not.
    content_id: Nullable<String>,
    /// The size in bytes.
    size: u64,
    /// The SHA-256 of the content, as lower-case hexadecimal.
    sha256: String,
}

impl From<AttachmentRef> for AttachmentDetail {
    fn from(attachment: AttachmentRef) -> Self {
        Self {
            filename: attachment.filename,
            content_type: attachment.content_type,
            content_id: Nullable(attachment.content_id),
            size: attachment.size,
            sha256: attachment.sha256,
        }
    }
}

/// The content of a file, in a response that has the file's own media type.
struct FileContent {
    content_type: String,
    body: Body,
}

impl Payload for FileContent {
    const CONTENT_TYPE: &'static str = "*/*";

    fn check_content_type(_content_type: &str) -> bool {
        true
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Inline(Box::new(MetaSchema {
            format: Some("binary"),
            ..MetaSchema::new("string")
        }))
    }
}

impl IntoResponse for FileContent {
    fn into_response(self) -> Response {
        Response::builder()
            .content_type(&self.content_type)
            .body(self.body)
    }
}

impl ApiResponse for FileContent {
    fn meta() -> MetaResponses {
        MetaResponses {
            responses: vec![MetaResponse {
                description: "",
                status: Some(200),
                status_range: None,
                content: vec![MetaMediaType {
                    content_type: Self::CONTENT_TYPE,
                    schema: Self::schema_ref(),
                }],
                headers: vec![],
            }],
        }
    }

    fn register(_registry: &mut Registry) {}
}

#[derive(ApiResponse)]
enum Download {
    /// The content of the file, as it was given, with its media type.
    #[oai(status = 200)]
    File(
        FileContent,
        /// `attachment`, with the name of the file.
        #[oai(header = "Content-Disposition")]
        String,
        /// The size in bytes.
        #[oai(header = "Content-Length")]
        u64,
        /// `nosniff`: the content is nothing but what its type says.
        #[oai(header = "X-Content-Type-Options")]
        String,
        /// `sandbox`: a browser that shows the file runs nothing in it.
        #[oai(header = "Content-Security-Policy")]
        String,
    ),
}

#[OpenApi(tag = "Section::Messages")]
impl MessageAttachmentsApi {
    /// List a message's attachments
    ///
    /// Requires the permission `CONTENT_READ`. The attachments are in the order of the send
    /// request. Each request is recorded in the audit log. If the content of the message is
    /// no longer stored, the response is 404 with the reason `MESSAGE_CONTENT_GONE`.
    #[oai(
        path = "/v1/messages/:id/attachments",
        method = "get",
        operation_id = "list_message_attachments"
    )]
    async fn list_message_attachments(
        &self,
        caller: Requires<permission::ContentRead>,

        /// The id of the message.
        id: Path<PathId>,
    ) -> Result<Json<Data<Vec<AttachmentDetail>>>, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let (organization_id, part) = (caller.organization_id(), ContentPart::Attachments);
        let contents = &self.context.contents;
        let found = (contents.read(organization_id, caller.origin(), id, part)).await?;
        Ok(Json(Data {
            data: found
                .attachments
                .into_iter()
                .map(AttachmentDetail::from)
                .collect(),
        }))
    }

    /// Download an attachment
    ///
    /// Requires the permission `CONTENT_READ`. Each request is recorded in the audit log. If
    /// the content of the message is no longer stored, the response is 404 with the reason
    /// `MESSAGE_CONTENT_GONE`.
    #[oai(
        path = "/v1/messages/:id/attachments/:index",
        method = "get",
        operation_id = "download_message_attachment"
    )]
    async fn download_message_attachment(
        &self,
        caller: Requires<permission::ContentRead>,

        /// The id of the message.
        id: Path<PathId>,
        /// The place of the attachment in the list, from 0.
        index: Path<String>,
    ) -> Result<Download, Failure> {
        let caller = caller.authorize()?;
        let id: MessageId = id.0.of(MESSAGE)?;
        let index: usize = (index.0.parse()).map_err(|_| Failure::NotFound(ATTACHMENT))?;
        let (organization_id, part) = (caller.organization_id(), ContentPart::Attachment(index));
        let contents = &self.context.contents;
        let mut found = (contents.read(organization_id, caller.origin(), id, part)).await?;
        let attachment = found.attachments.swap_remove(index);
        let content_type = attachment.content_type.clone();
        let disposition = disposition(&attachment.filename);
        let size = attachment.size;
        let file = StoredFile {
            pool: self.context.pool.clone(),
            organization_id: caller.organization_id(),
            month: MonthKey::of_message(id),
            attachment,
        };
        Ok(Download::File(
            FileContent {
                content_type,
                body: file.body().await?,
            },
            disposition,
            size,
            "nosniff".to_owned(),
            "sandbox".to_owned(),
        ))
    }
}

/// The content of a file in Postgres.
struct StoredFile {
    pool: PgPool,
    organization_id: OrganizationId,
    month: MonthKey,
    attachment: AttachmentRef,
}

/// Bytes of a body that wait for the client.
const WAITING_BYTES_MAX: usize = 64 << 10;

impl StoredFile {
    /// A body that reads the pieces one by one, while the client takes them. The first is read
    /// now, so that a fault with it becomes the response.
    async fn body(self) -> Result<Body, Fault> {
        if store::piece_count(&self.attachment) == 0 {
            return Ok(Body::empty());
        }
        let first = self.piece(0).await?;
        let (mut writer, reader) = tokio::io::duplex(WAITING_BYTES_MAX);
        tokio::spawn(async move {
            let mut piece = first;
            for next in 1..=store::piece_count(&self.attachment) {
                // The client is gone.
                if writer.write_all(&piece).await.is_err() {
                    return;
                }
                if next == store::piece_count(&self.attachment) {
                    return;
                }
                match self.piece(next).await {
                    Ok(found) => piece = found,
                    // The response ends before its Content-Length: the client sees that it
                    // is cut off.
                    Err(fault) => return Failure::from(fault).log(),
                }
            }
        });
        Ok(Body::from_async_read(reader))
    }

    async fn piece(&self, piece: i32) -> Result<bytes::Bytes, Fault> {
        let mut connection = (self.pool.acquire().await).or_fault("load an attachment")?;
        let (month, attachment) = (self.month, &self.attachment);
        store::load_piece(
            &mut connection,
            self.organization_id,
            month,
            attachment,
            piece,
        )
        .await
    }
}

/// The header for a download (RFC 6266, RFC 8187): never `inline`, so that a browser does not
/// show a customer's HTML under this host. A name of plain characters is given as it is,
/// others also in UTF-8.
fn disposition(filename: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
    let plain: String = (filename.chars())
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    if plain == filename {
        return format!("attachment; filename=\"{plain}\"");
    }
    let encoded = percent_encoding::utf8_percent_encode(filename, UNESCAPED);
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// All but `attr-char` of RFC 8187, 3.2.1.
const UNESCAPED: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_');

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_cannot_leave_its_header() {
        for (filename, expected) in [
            ("invoice 12.pdf", "attachment; filename=\"invoice 12.pdf\""),
            (
                "Rechnung für Ä.pdf",
                "attachment; filename=\"Rechnung f_r _.pdf\"; filename*=UTF-8''Rechnung%20f%C3%BCr%20%C3%84.pdf",
            ),
            (
                "a\"; x=\r\nSet-Cookie: a",
                "attachment; filename=\"a__ x___Set-Cookie_ a\"; filename*=UTF-8''a%22%3B%20x%3D%0D%0ASet-Cookie%3A%20a",
            ),
            (
                "%41'",
                "attachment; filename=\"_41_\"; filename*=UTF-8''%2541%27",
            ),
        ] {
            assert_eq!(disposition(filename), expected);
        }
    }
}
