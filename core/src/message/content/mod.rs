//! The content of a message, as its sender gave it or its template made it: before tracking
//! and unsubscribe links are added. Whoever reads it leaves an entry in the audit log.

mod store;

use serde_json::{Value, json};

use crate::attachment::AttachmentRef;
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::{Ids, MessageId, OrganizationId};

/// The tag of a message that invites somebody. Its content is not shown: whoever may read the
/// content of messages could accept the invitation, whose role may be a higher one.
pub const INVITATION_TAG: &str = "waypost-invitation";

/// What a recipient reads. No `Debug`: it must not be logged.
pub struct StoredContent {
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// Extra headers: names and values.
    pub headers: Vec<(String, String)>,
    pub attachments: Vec<AttachmentRef>,
}

/// Which content of a message is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentPart {
    /// What all recipients get.
    Message,
    /// What the recipient at this position gets.
    Recipient(i32),
    /// The list of attachments.
    Attachments,
    /// The attachment at this index, from 0.
    Attachment(usize),
}

impl ContentPart {
    /// What the audit log says of it.
    fn metadata(self) -> Value {
        match self {
            Self::Message => json!({}),
            Self::Recipient(position) => json!({ "position": position }),
            Self::Attachments => json!({ "part": "attachments" }),
            Self::Attachment(index) => json!({ "part": format!("attachments.{index}") }),
        }
    }
}

/// Why content is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ContentRefusal {
    #[error("the message does not exist")]
    MessageNotFound,
    #[error("the message has no recipient at this position")]
    RecipientNotFound,
    #[error("the message has no attachment with this index")]
    AttachmentNotFound,
    /// Bodies are kept for a shorter time than messages.
    #[error("the content is no longer stored")]
    Expired,
    /// The message invites somebody.
    #[error("the content of an invitation is not shown")]
    Withheld,
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Reads contents. Cheap to clone.
#[derive(Clone)]
pub struct ContentReader {
    pub pool: PgPool,
    pub clock: Clock,
    pub ids: Ids,
}

impl ContentReader {
    /// The content of a message, and an entry in the audit log that says which part was read.
    ///
    /// # Errors
    /// The refusal, or a fault. Nothing is shown and nothing recorded then.
    pub async fn read(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: MessageId,
        part: ContentPart,
    ) -> Result<StoredContent, ContentRefusal> {
        let doing = "read the content of a message";
        let mut transaction = db::begin(&self.pool, doing).await?;
        let position = match part {
            ContentPart::Recipient(position) => Some(position),
            ContentPart::Message | ContentPart::Attachments | ContentPart::Attachment(_) => None,
        };
        let found = store::find(&mut transaction, organization_id, id, position)
            .await?
            .ok_or(ContentRefusal::MessageNotFound)?;
        if position.is_some() && !found.has_recipient {
            return Err(ContentRefusal::RecipientNotFound);
        }
        if found.is_withheld {
            return Err(ContentRefusal::Withheld);
        }
        let content = found.content.ok_or(ContentRefusal::Expired)?;
        if let ContentPart::Attachment(index) = part
            && index >= content.attachments.len()
        {
            return Err(ContentRefusal::AttachmentNotFound);
        }
        let change = AuditChange::new("message.content_read", id).with(part.metadata());
        let now = self.clock.now();
        audit::store::insert(
            &mut transaction,
            organization_id,
            origin,
            &change,
            &self.ids,
            now,
        )
        .await?;
        transaction.commit().await.or_fault(doing)?;
        Ok(content)
    }
}
