//! Loads what a chunk's mails need besides the message: a large body, the files, and the
//! contents that recipients have of their own.
//!
//! The files of all chunks of a worker share a bound on memory: the files themselves, and
//! the request of one call at a time, which has them in base64.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use waypost_core::attachment::{self, MonthKey};
use waypost_core::db::{self, OrFault};
use waypost_core::delivery::lease::{self, LeasedRecipient};
use waypost_core::fault::Fault;
use waypost_core::message::compose::OwnContent;
use waypost_core::message::own_content::store as own_content;
use waypost_core::provider::mail::{MailAttachment, OutgoingMail};
use waypost_core::unsubscribe::link::ensure_placeholder;

use super::job::SendHandler;
use crate::store::LeasedChunk;

/// The most bytes of files and of their requests in a worker.
const FILES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The unit in which that is reserved, in bytes.
const MEMORY_UNIT: usize = 1024;
/// Files of so many bytes are in one call of a chunk at a time.
const LARGE_FILES_BYTES: usize = 256 * 1024;
/// The most bytes of recipients' own contents that are loaded at once.
const OWN_CONTENTS_BYTES_MAX: i64 = 1024 * 1024;

/// The memory for the files of a worker. Cheap to clone.
#[derive(Clone)]
pub(super) struct FileMemory(Arc<Semaphore>);

impl Default for FileMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(FILES_BYTES_MAX / MEMORY_UNIT)))
    }
}

impl FileMemory {
    /// Waits until there is room for files of so many bytes and for one request with them.
    async fn reserve(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = (bytes.saturating_mul(5) / 2).min(FILES_BYTES_MAX);
        let units = u32::try_from(wanted.div_ceil(MEMORY_UNIT)).ok()?;
        Arc::clone(&self.0).acquire_many_owned(units).await.ok()
    }
}

impl LeasedChunk {
    /// Whether its files are in one call at a time.
    pub(super) fn has_large_files(&self) -> bool {
        self.attachment_bytes() > LARGE_FILES_BYTES
    }
}

impl SendHandler {
    pub(super) async fn load_body(&self, chunk: &mut LeasedChunk) -> Result<(), Fault> {
        const DOING: &str = "read a large message";
        let mut message = (*chunk.message).clone();
        let content = &mut message.content;
        let pool = &self.sending.accounts.pool;
        let read = db::bounded(DOING, async {
            let mut connection = pool.acquire().await.or_fault(DOING)?;
            lease::load_body(&mut connection, content.organization_id, content.id).await
        });
        (content.html, content.text) = read.await?;
        chunk.message = Arc::new(message);
        Ok(())
    }

    /// Loads the files once for all mails of a chunk.
    pub(super) async fn load_files(&self, chunk: &mut LeasedChunk) -> Result<(), Fault> {
        const DOING: &str = "read the files of a message";
        let content = &chunk.message.content;
        let sizes = content.attachments.iter().map(|file| file.size);
        let bytes = usize::try_from(sizes.sum::<u64>()).unwrap_or(usize::MAX);
        chunk.memory = self.file_memory.reserve(bytes).await;
        let month = MonthKey::of_message(content.id);
        let pool = &self.sending.accounts.pool;
        let mut files = Vec::with_capacity(content.attachments.len());
        for file in &content.attachments {
            let read = db::bounded(DOING, async {
                let mut connection = pool.acquire().await.or_fault(DOING)?;
                let of = content.organization_id;
                attachment::store::load(&mut connection, of, month, file).await
            });
            files.push(MailAttachment {
                filename: file.filename.clone(),
                content_type: file.content_type.clone(),
                content_id: file.content_id.clone(),
                content: read.await?,
            });
        }
        chunk.attachments = files;
        Ok(())
    }

    /// Loads the recipients' own contents. True if they are too large for that: they are
    /// then read for each mail.
    pub(super) async fn load_own_contents(&self, chunk: &mut LeasedChunk) -> Result<bool, Fault> {
        const DOING: &str = "read the contents of recipients";
        let (of, id) = (
            chunk.message.content.organization_id,
            chunk.message.content.id,
        );
        let positions = chunk.positions();
        let pool = &self.sending.accounts.pool;
        let read = db::bounded(DOING, async {
            let mut connection = pool.acquire().await.or_fault(DOING)?;
            let bytes = own_content::bytes(&mut connection, of, id, &positions).await?;
            if bytes > OWN_CONTENTS_BYTES_MAX {
                return Ok(None);
            }
            let contents = own_content::load(&mut connection, of, id, &positions).await?;
            Ok(Some(contents))
        });
        match read.await? {
            Some(contents) => {
                chunk.own_contents = Some(contents);
                Ok(false)
            }
            None => Ok(true),
        }
    }

    /// The own content of a recipient, if it was too large to be loaded with the others.
    pub(super) async fn own_content(
        &self,
        chunk: &LeasedChunk,
        recipient: &LeasedRecipient,
    ) -> Result<Option<OwnContent>, Fault> {
        const DOING: &str = "read the content of a recipient";
        if !chunk.message.has_recipient_contents {
            return Ok(None);
        }
        if let Some(contents) = &chunk.own_contents {
            return Ok(contents.get(&recipient.position).cloned());
        }
        let (of, id) = (
            chunk.message.content.organization_id,
            chunk.message.content.id,
        );
        let pool = &self.sending.accounts.pool;
        let position = recipient.position;
        let read = db::bounded(DOING, async {
            let mut connection = pool.acquire().await.or_fault(DOING)?;
            own_content::load(&mut connection, of, id, &[position]).await
        });
        let mut contents: HashMap<i32, OwnContent> = read.await?;
        Ok(contents.remove(&position))
    }
}

/// Puts a recipient's own content into its mail, with the placeholder of the unsubscribe
/// link if the message has one. An empty body of its own stands for none. True if the mail has
/// another HTML body now.
pub(super) fn put_own_content(mail: &mut OutgoingMail, own: OwnContent, has_link: bool) -> bool {
    if let Some(subject) = own.subject {
        mail.subject = subject;
    }
    if let Some(text) = own.text {
        mail.text = Some(text).filter(|text| !text.is_empty());
    }
    let is_other = own.html.is_some();
    if is_other {
        mail.html = own.html.filter(|html| !html.is_empty());
        if has_link && mail.html.is_some() {
            ensure_placeholder(&mut mail.html);
        }
    }
    is_other
}
