//! The content of attachments in Postgres.

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use sqlx::{PgConnection, query, query_scalar};

use super::{AttachmentRef, File, MonthKey, PIECE_BYTES};
use crate::db::{self, OrFault, PgPool};
use crate::fault::Fault;
use crate::ids::OrganizationId;

/// Inserts the files that a month does not have yet, in one transaction. Files and pieces are
/// in the order of their keys, so that concurrent requests do not wait for each other in
/// circles.
pub(super) async fn insert(
    pool: &PgPool,
    organization_id: OrganizationId,
    months: &[MonthKey],
    files: &[File],
) -> Result<(), Fault> {
    let doing = "store attachments";
    let mut order: Vec<&File> = files.iter().filter(|file| file.digest.size > 0).collect();
    order.sort_by_key(|file| file.digest.sha256);
    order.dedup_by_key(|file| file.digest.sha256);
    for month in months {
        let mut connection = pool.acquire().await.or_fault(doing)?;
        let stored = list_stored(&mut connection, organization_id, *month, &order).await?;
        drop(connection);
        let is_new = |file: &&&File| !stored.iter().any(|hash| hash[..] == file.digest.sha256);
        let new: Vec<&&File> = order.iter().filter(is_new).collect();
        if new.is_empty() {
            continue;
        }
        let mut transaction = db::begin(pool, doing).await?;
        for file in new {
            insert_file(&mut transaction, organization_id, *month, file).await?;
        }
        transaction.commit().await.or_fault(doing)?;
    }
    Ok(())
}

/// The hashes of the files that are stored. All pieces of a file are inserted in one
/// transaction, so its last piece stands for all.
async fn list_stored(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    month: MonthKey,
    files: &[&File],
) -> Result<Vec<Vec<u8>>, Fault> {
    let hashes: Vec<Vec<u8>> = files
        .iter()
        .map(|file| file.digest.sha256.to_vec())
        .collect();
    let last: Vec<i32> = files
        .iter()
        .map(|file| pieces(file.digest.size) - 1)
        .collect();
    query_scalar!(
        "SELECT c.sha256
         FROM UNNEST($3::bytea[], $4::integer[]) AS given (sha256, piece)
         JOIN attachment_contents c ON c.month = $1 AND c.organization_id = $2
             AND c.sha256 = given.sha256 AND c.piece = given.piece",
        month.0,
        organization_id.0,
        &hashes,
        &last,
    )
    .fetch_all(connection)
    .await
    .or_fault("find stored attachments")
}

async fn insert_file(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    month: MonthKey,
    file: &File,
) -> Result<(), Fault> {
    let mut size = 0;
    for (piece, content) in (0..).zip(file.pieces()) {
        size += content.len() as u64;
        query!(
            "INSERT INTO attachment_contents (month, organization_id, sha256, piece, content)
             VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT DO NOTHING",
            month.0,
            organization_id.0,
            &file.digest.sha256,
            piece,
            &content[..],
        )
        .execute(&mut *connection)
        .await
        .or_fault("store an attachment")?;
    }
    if size == file.digest.size {
        Ok(())
    } else {
        Err(Fault::internal("store an attachment", "it changed"))
    }
}

/// The whole content of a message's file, for its sender. Checked against size and hash.
///
/// # Errors
/// A fault if the content is not stored, or is not what was accepted.
pub async fn load(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    month: MonthKey,
    attachment: &AttachmentRef,
) -> Result<Bytes, Fault> {
    let doing = "load an attachment";
    let sha256 = hash_of(attachment)?;
    let size = usize::try_from(attachment.size).unwrap_or(usize::MAX);
    let mut content = Vec::with_capacity(size.min(CAPACITY_MAX));
    let mut hasher = Sha256::new();
    let mut rows = query_scalar!(
        "SELECT content
         FROM attachment_contents
         WHERE month = $1 AND organization_id = $2 AND sha256 = $3
         ORDER BY piece",
        month.0,
        organization_id.0,
        &sha256,
    )
    .fetch(connection);
    while let Some(piece) = rows.try_next().await.or_fault(doing)? {
        hasher.update(&piece);
        content.extend_from_slice(&piece);
    }
    if content.len() != size {
        let found = format!("{} of {size} bytes are stored", content.len());
        return Err(Fault::internal(doing, found));
    }
    if hasher.finalize()[..] != sha256 {
        return Err(Fault::internal(doing, "its content has another hash"));
    }
    Ok(content.into())
}

/// Memory that is reserved for a file before its pieces are read.
const CAPACITY_MAX: usize = 64 << 20;

/// One piece of a message's file, to read it piece by piece; see [`piece_count`].
///
/// # Errors
/// A fault if it is not stored.
pub async fn load_piece(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
    month: MonthKey,
    attachment: &AttachmentRef,
    piece: i32,
) -> Result<Bytes, Fault> {
    let content = query_scalar!(
        "SELECT content
         FROM attachment_contents
         WHERE month = $1 AND organization_id = $2 AND sha256 = $3 AND piece = $4",
        month.0,
        organization_id.0,
        &hash_of(attachment)?,
        piece,
    )
    .fetch_optional(connection)
    .await
    .or_fault("load a piece of an attachment")?;
    let size = usize::try_from(attachment.size).unwrap_or(usize::MAX);
    let begin = usize::try_from(piece).unwrap_or_default() * PIECE_BYTES;
    let expected = size.saturating_sub(begin).min(PIECE_BYTES);
    match content.filter(|content| content.len() == expected) {
        Some(content) => Ok(content.into()),
        None => Err(Fault::internal(
            "load a piece of an attachment",
            "it is not stored",
        )),
    }
}

/// The number of pieces of a file.
#[must_use]
pub fn piece_count(attachment: &AttachmentRef) -> i32 {
    pieces(attachment.size)
}

fn pieces(size: u64) -> i32 {
    i32::try_from(size.div_ceil(PIECE_BYTES as u64)).unwrap_or(i32::MAX)
}

fn hash_of(attachment: &AttachmentRef) -> Result<Vec<u8>, Fault> {
    hex::decode(&attachment.sha256)
        .map_err(|error| Fault::internal("read the hash of an attachment", error))
}
