//! Attachments: what a message says about its files, and the files' content. The content is
//! stored once per organization and month, in pieces of [`PIECE_BYTES`], apart from the
//! messages and before them; it goes with its month.
//!
//! [`Attachments::accept`] stores the files of a request and returns what its draft keeps of
//! them. The content of a file in base64 is never held decoded as a whole. That of a URL is
//! held until its hash is known, and counts against the [`ByteBudget`] of the process.
//! [`store::load`] gives a sender the content of one file.

mod base64_text;
mod byte_budget;
mod fetch;
mod month;
pub mod store;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use url::Url;

use crate::clock::Timestamp;
use crate::db::PgPool;
use crate::fault::Fault;
use crate::ids::OrganizationId;
use crate::issue::Issue;
use base64_text::Pieces;
pub use byte_budget::{BudgetExceeded, ByteBudget, ReservedBytes};
use fetch::FetchError;
pub use fetch::{Fetcher, FetcherSettings};
pub use month::MonthKey;

/// The most files of one message.
pub const COUNT_MAX: usize = 50;
/// The media type of a file about whose type nothing is known.
pub const UNKNOWN_TYPE: &str = "application/octet-stream";
/// Bytes of a stored piece of a file. A multiple of 3, so that each piece but the last is a
/// whole number of base64 characters.
pub const PIECE_BYTES: usize = (256 << 10) / 3 * 3;

/// Requests whose files are written at the same time; each has a connection while it writes.
const WRITERS: usize = 2;
/// Files of one request that are fetched at the same time.
const FETCHED_AT_ONCE: usize = 4;
/// Messages of one request whose files are accepted at the same time.
const MESSAGES_AT_ONCE: usize = 4;
/// How long the URLs of all messages of a batch may take together.
const BATCH_FETCH_MAX: Duration = Duration::from_mins(1);

/// A file of a message, without its content. It is stored with the message's bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentRef {
    /// The name that the recipient sees: one path segment without control characters.
    pub filename: String,
    /// The media type, such as `application/pdf`.
    pub content_type: String,
    /// The id by which the HTML body shows it (`cid:…`). Without one it is an attachment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
    /// Bytes of the content.
    pub size: u64,
    /// SHA-256 of the content, in lower-case hex.
    pub sha256: String,
}

/// A file of a request, whose names are checked. Without `Debug`, so that it is never logged.
#[derive(Clone)]
pub struct AttachmentSource {
    pub filename: String,
    /// Without one, the type follows from the name.
    pub content_type: Option<String>,
    pub content_id: Option<String>,
    pub content: AttachmentContent,
}

/// Where the content of a file is.
#[derive(Clone)]
pub enum AttachmentContent {
    /// Text in base64, not checked yet. A slice of the request's body, as a rule.
    Base64(Bytes),
    /// The content itself.
    Decoded(Bytes),
    /// A URL of any scheme, not checked yet.
    Url(Url),
}

/// Why the files of a message were not stored.
#[derive(Debug, Clone)]
pub enum AttachmentRefusal {
    /// Mistakes of the request, with paths such as `attachments.2.content`.
    Invalid(Vec<Issue>),
    /// URLs that gave no file, with paths such as `attachments.2.url`.
    NotFetched(Vec<Issue>),
    /// The process has no memory for more files at the moment.
    Busy(BudgetExceeded),
    Fault(Fault),
}

/// Size and hash of a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    size: u64,
    sha256: [u8; 32],
}

/// A file whose content is at hand.
struct File {
    reference: AttachmentRef,
    digest: Digest,
    data: FileData,
}

enum FileData {
    /// Text that was decoded once already.
    Base64(Bytes),
    Decoded(Bytes),
    Fetched(fetch::FetchedFile),
}

impl File {
    fn new(source: AttachmentSource, digest: Digest, data: FileData) -> Self {
        let content_type = source.content_type;
        let content_type = content_type.unwrap_or_else(|| type_of(&source.filename).to_owned());
        Self {
            reference: AttachmentRef {
                filename: source.filename,
                content_type,
                content_id: source.content_id,
                size: digest.size,
                sha256: hex::encode(digest.sha256),
            },
            digest,
            data,
        }
    }

    /// The content in pieces of [`PIECE_BYTES`], decoded one by one.
    fn pieces(&self) -> Box<dyn Iterator<Item = Cow<'_, [u8]>> + Send + '_> {
        match &self.data {
            // A mistake would have been found when the text was hashed.
            FileData::Base64(text) => {
                Box::new(Pieces::of(text).map_while(Result::ok).map(Cow::Owned))
            }
            FileData::Decoded(content) => Box::new(content.chunks(PIECE_BYTES).map(Cow::from)),
            FileData::Fetched(fetched) => {
                Box::new(fetched.pieces.iter().map(|piece| Cow::from(&piece[..])))
            }
        }
    }
}

/// The media type that a file's name suggests.
fn type_of(filename: &str) -> &'static str {
    mime_guess::from_path(filename)
        .first_raw()
        .unwrap_or(UNKNOWN_TYPE)
}

/// Stores the files of requests. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Attachments {
    pool: PgPool,
    fetcher: Fetcher,
    budget: ByteBudget,
    bytes_max: u64,
    writers: Arc<Semaphore>,
}

impl Attachments {
    /// `bytes_max` is the limit on the decoded files of one message together.
    #[must_use]
    pub fn new(pool: PgPool, fetcher: Fetcher, budget: ByteBudget, bytes_max: u64) -> Self {
        Self {
            pool,
            fetcher,
            budget,
            bytes_max,
            writers: Arc::new(Semaphore::new(WRITERS)),
        }
    }

    /// Stores the content of a message's files and returns what the message keeps of them, in
    /// their order. `now` is the time of the request: the message may be accepted some minutes
    /// later. If the message is refused afterwards, the content stays until its month goes.
    ///
    /// # Errors
    /// See [`AttachmentRefusal`]. Nothing is stored then.
    pub async fn accept(
        &self,
        organization_id: OrganizationId,
        now: Timestamp,
        sources: Vec<AttachmentSource>,
    ) -> Result<Vec<AttachmentRef>, AttachmentRefusal> {
        self.accept_until(None, organization_id, now, sources).await
    }

    /// As [`Self::accept`] for each message of a batch.
    pub async fn accept_all(
        &self,
        organization_id: OrganizationId,
        now: Timestamp,
        messages: Vec<Vec<AttachmentSource>>,
    ) -> Vec<Result<Vec<AttachmentRef>, AttachmentRefusal>> {
        let latest = Some(Instant::now() + BATCH_FETCH_MAX);
        let accepted = messages
            .into_iter()
            .map(|sources| self.accept_until(latest, organization_id, now, sources));
        stream::iter(accepted)
            .buffered(MESSAGES_AT_ONCE)
            .collect()
            .await
    }

    async fn accept_until(
        &self,
        latest: Option<Instant>,
        organization_id: OrganizationId,
        now: Timestamp,
        sources: Vec<AttachmentSource>,
    ) -> Result<Vec<AttachmentRef>, AttachmentRefusal> {
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        let digests = self.measure(&sources).await?;
        let files = self.fetch_missing(sources, digests, latest).await?;
        let writer = self.writers.acquire().await;
        let _writer = writer.map_err(|error| Fault::internal("store attachments", error))?;
        let months = MonthKey::of_acceptance(now);
        store::insert(&self.pool, organization_id, &months, &files).await?;
        Ok(files.into_iter().map(|file| file.reference).collect())
    }

    /// Size and hash of the files in base64; `None` for those of URLs.
    async fn measure(
        &self,
        sources: &[AttachmentSource],
    ) -> Result<Vec<Option<Digest>>, AttachmentRefusal> {
        let mut issues = Vec::new();
        let total: u64 = sources.iter().map(size_of).sum();
        if total > self.bytes_max {
            let max = self.bytes_max;
            let message = format!("must not be larger than {max} bytes in all; it is {total}");
            // Decoding so much would only cost time.
            let issue = Issue::new("attachments", message);
            return Err(AttachmentRefusal::Invalid(vec![issue]));
        }
        let mut digests = Vec::with_capacity(sources.len());
        for (index, source) in sources.iter().enumerate() {
            let (field, digest) = match &source.content {
                AttachmentContent::Base64(text) => {
                    ("content", base64_text::digest(text).await.map(Some))
                }
                AttachmentContent::Decoded(content) => {
                    ("content", Ok(Some(digest_of(content).await)))
                }
                AttachmentContent::Url(url) => ("url", self.fetcher.check(url).map(|()| None)),
            };
            match digest {
                Ok(digest) => digests.push(digest),
                Err(message) => {
                    issues.push(Issue::new(format!("attachments.{index}.{field}"), message));
                }
            }
        }
        if issues.is_empty() {
            Ok(digests)
        } else {
            Err(AttachmentRefusal::Invalid(issues))
        }
    }

    /// The files, with the content of their URLs.
    async fn fetch_missing(
        &self,
        sources: Vec<AttachmentSource>,
        digests: Vec<Option<Digest>>,
        latest: Option<Instant>,
    ) -> Result<Vec<File>, AttachmentRefusal> {
        let given: u64 = digests.iter().flatten().map(|digest| digest.size).sum();
        let allowance = self.fetcher.allowance(self.bytes_max - given, latest);
        let files = sources.into_iter().zip(digests).map(|(source, digest)| {
            let allowance = &allowance;
            async move {
                match (&source.content, digest) {
                    (AttachmentContent::Base64(text), Some(digest)) => {
                        let text = text.clone();
                        Ok(File::new(source, digest, FileData::Base64(text)))
                    }
                    (AttachmentContent::Decoded(content), Some(digest)) => {
                        let content = content.clone();
                        Ok(File::new(source, digest, FileData::Decoded(content)))
                    }
                    (AttachmentContent::Url(url), _) => {
                        let fetching = self.fetcher.fetch(url.clone(), allowance, &self.budget);
                        let fetched = fetching.await?;
                        Ok(File::new(
                            source,
                            fetched.digest,
                            FileData::Fetched(fetched),
                        ))
                    }
                    (AttachmentContent::Base64(_) | AttachmentContent::Decoded(_), None) => {
                        Err(FetchError::NoFile("is not measured".into()))
                    }
                }
            }
        });
        let files = stream::iter(files).buffered(FETCHED_AT_ONCE);
        let files: Vec<Result<File, FetchError>> = files.collect().await;
        let mut found = Vec::with_capacity(files.len());
        let mut issues = Vec::new();
        for (index, file) in files.into_iter().enumerate() {
            match file {
                Ok(file) => found.push(file),
                Err(FetchError::NoFile(message)) => {
                    issues.push(Issue::new(format!("attachments.{index}.url"), message));
                }
                Err(FetchError::Busy(exceeded)) => return Err(AttachmentRefusal::Busy(exceeded)),
            }
        }
        if issues.is_empty() {
            Ok(found)
        } else {
            Err(AttachmentRefusal::NotFetched(issues))
        }
    }
}

/// Bytes of a file, as far as they are known before it is read.
fn size_of(source: &AttachmentSource) -> u64 {
    match &source.content {
        AttachmentContent::Base64(text) => base64_text::size_of(text),
        AttachmentContent::Decoded(content) => content.len() as u64,
        AttachmentContent::Url(_) => 0,
    }
}

/// Size and hash of a content. Lets other tasks run between its pieces.
async fn digest_of(content: &[u8]) -> Digest {
    let mut hasher = Sha256::new();
    for piece in content.chunks(PIECE_BYTES) {
        hasher.update(piece);
        tokio::task::yield_now().await;
    }
    Digest {
        size: content.len() as u64,
        sha256: hasher.finalize().into(),
    }
}

impl From<Fault> for AttachmentRefusal {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_file_follows_from_its_name() {
        for (filename, expected) in [
            ("invoice.pdf", "application/pdf"),
            ("Photo.JPG", "image/jpeg"),
            ("a.tar.gz", "application/gzip"),
            ("notes.txt", "text/plain"),
            ("invite.ics", "text/calendar"),
            ("none", UNKNOWN_TYPE),
            (".pdf", UNKNOWN_TYPE),
            ("x.unheardof", UNKNOWN_TYPE),
        ] {
            assert_eq!(type_of(filename), expected, "{filename}");
        }
    }
}
