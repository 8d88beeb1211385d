//! Contents in Postgres.

use sqlx::types::Json;
use sqlx::{PgConnection, query};

use super::{INVITATION_TAG, StoredContent};
use crate::attachment::AttachmentRef;
use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};

/// A message, as far as its content is concerned.
pub(super) struct Found {
    /// Whether the message has the tag of invitations.
    pub(super) is_withheld: bool,
    /// Whether a recipient is at the position.
    pub(super) has_recipient: bool,
    /// `None` if it is no longer stored.
    pub(super) content: Option<StoredContent>,
}

/// The content of a message. What the recipient at the position has of its own comes first;
/// an empty body of its own stands for none.
pub(super) async fn find(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    position: Option<i32>,
) -> Result<Option<Found>, Fault> {
    let row = query!(
        r#"SELECT coalesce(c.subject, m.subject) AS "subject!", b.message_id IS NOT NULL AS "has_body!",
                  nullif(coalesce(c.html, b.html), '') AS html,
                  nullif(coalesce(c.text, b.text), '') AS text,
                  b.headers AS "headers: Json<Vec<(String, String)>>",
                  b.attachments AS "attachments: Json<Vec<AttachmentRef>>",
                  r.message_id IS NOT NULL AS "has_recipient!",
                  m.tags @> ARRAY[$4::text] AS "is_withheld!"
           FROM messages m
           LEFT JOIN message_bodies b ON b.message_id = $2
           LEFT JOIN recipients r ON r.message_id = $2 AND r.position = $3
           LEFT JOIN recipient_contents c ON c.message_id = $2 AND c.position = $3
           WHERE m.id = $2 AND m.organization_id = $1"#,
        organization_id.0,
        id.0,
        position,
        INVITATION_TAG,
    )
    .fetch_optional(connection)
    .await
    .or_fault("find the content of a message")?;
    Ok(row.map(|row| Found {
        is_withheld: row.is_withheld,
        has_recipient: row.has_recipient,
        content: row.has_body.then(|| StoredContent {
            subject: row.subject,
            html: row.html,
            text: row.text,
            headers: row.headers.map(|Json(list)| list).unwrap_or_default(),
            attachments: row.attachments.map(|Json(list)| list).unwrap_or_default(),
        }),
    }))
}
