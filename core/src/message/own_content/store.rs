//! What recipients have instead of their message's content, in Postgres.

use std::collections::HashMap;

use sqlx::{PgConnection, query};

use crate::db::OrFault;
use crate::fault::Fault;
use crate::ids::{MessageId, OrganizationId};
use crate::message::compose::OwnContent;

const DOING: &str = "read the contents of recipients";

/// How many bytes the contents of these recipients have.
///
/// # Errors
/// A fault if Postgres does not answer.
pub async fn bytes(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    positions: &[i32],
) -> Result<i64, Fault> {
    let row = query!(
        r#"SELECT coalesce(sum(coalesce(octet_length(subject), 0) + coalesce(octet_length(html), 0)
                               + coalesce(octet_length(text), 0)), 0)::bigint AS "bytes!"
           FROM recipient_contents
           WHERE organization_id = $1 AND message_id = $2 AND position = ANY($3)"#,
        organization_id.0,
        id.0,
        positions,
    )
    .fetch_one(connection)
    .await
    .or_fault(DOING)?;
    Ok(row.bytes)
}

/// The contents of these recipients, by position. One without a row has the message's.
///
/// # Errors
/// A fault if Postgres does not answer.
pub async fn load(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    id: MessageId,
    positions: &[i32],
) -> Result<HashMap<i32, OwnContent>, Fault> {
    let rows = query!(
        "SELECT position, subject, html, text
         FROM recipient_contents
         WHERE organization_id = $1 AND message_id = $2 AND position = ANY($3)",
        organization_id.0,
        id.0,
        positions,
    )
    .fetch_all(connection)
    .await
    .or_fault(DOING)?;
    let contents = rows.into_iter().map(|row| {
        let content = OwnContent {
            subject: row.subject,
            html: row.html,
            text: row.text,
        };
        (row.position, content)
    });
    Ok(contents.collect())
}
