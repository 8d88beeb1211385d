//! The settings of large requests and attachments.

use std::time::Duration;

use super::reader::Reader;

/// How long the files that one message names by URL may take together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of attachments.
#[derive(Debug, Clone, Copy)]
pub struct AttachmentSettings {
    /// Bytes of the decoded files of one message together.
    pub bytes_max: u64,
    /// Bytes of large requests and of fetched files that a process holds at the same time.
    pub memory_bytes_max: u64,
    pub fetch_timeout: Duration,
}

/// Reads the settings.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<AttachmentSettings> {
    let bytes_max = reader.parse(
        "WAYPOST_ATTACHMENTS_MAX_BYTES",
        "26214400",
        "Maximum size of the attachments of one message together, decoded, in bytes. The body of a send with attachments in base64 has at most 30 MiB, that is 22 MiB decoded; larger attachments are sent by URL.",
        0..=104_857_600,
    );
    let memory_bytes_max = reader.parse(
        "WAYPOST_LARGE_REQUESTS_MAX_BYTES",
        "268435456",
        "Maximum size of all request bodies above 1 MiB, and of attachments that are fetched by URL, that one API process holds at the same time, in bytes. A request for which too little is left gets 503 with `Retry-After`. At least the largest body, 50 MiB.",
        52_428_800..=u64::from(u32::MAX) << 10,
    );
    Some(AttachmentSettings {
        bytes_max: bytes_max?,
        memory_bytes_max: memory_bytes_max?,
        fetch_timeout: FETCH_TIMEOUT,
    })
}
