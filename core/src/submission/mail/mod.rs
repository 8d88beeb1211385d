//! A MIME mail as a client submits it (RFC 5322, 2045 to 2047, 2231): its header fields, its
//! two bodies, and its files.
//!
//! The library reads header fields, transfer encodings and charsets. The parts are walked here:
//! the time for it grows with the mail alone, the files keep their bytes, and what has no place
//! in a message is refused rather than guessed.
//!
//! The bodies are the first `text/plain` and the first `text/html` of the first
//! `multipart/alternative`, or the first text that is no file. Everything else is a file.

mod charset;
mod header;
mod parts;

pub use header::{HeaderAddress, HeaderField};

/// A mail. Without `Debug`, so that it is never logged.
pub struct SubmittedMail<'a> {
    pub fields: Vec<HeaderField<'a>>,
    pub text: Option<String>,
    pub html: Option<String>,
    pub files: Vec<SubmittedFile>,
}

/// A part that is a file. Its names are not checked.
#[derive(Clone)]
pub struct SubmittedFile {
    pub filename: Option<String>,
    /// In lower case, with the parameters that matter to a reader.
    pub content_type: String,
    /// Without its angle brackets.
    pub content_id: Option<String>,
    /// Whether the mail says that it is to be shown as a file, not within the body.
    pub is_attachment: bool,
    pub content: Vec<u8>,
}

/// Why a mail cannot be read. `Display` is a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    #[error("Line {0} of a header is not a header field such as \"Subject: Hello\"")]
    NoField(usize),
    #[error("A header must not have more than 1000 fields or 1 MiB")]
    LargeHeader,
    #[error("A multipart must have a boundary of 1 to 200 bytes that begins each part")]
    Boundary,
    #[error(
        "The parts of the mail must not be nested more than {} deep",
        parts::DEPTH_MAX
    )]
    Deep,
    #[error("The mail must not have more than {} parts", parts::PARTS_MAX)]
    ManyParts,
    #[error(
        "A part has an unknown Content-Transfer-Encoding; known are 7bit, 8bit, binary, base64 and quoted-printable"
    )]
    UnknownEncoding,
    #[error("A part is not valid {0}, as its Content-Transfer-Encoding says")]
    Encoding(&'static str),
}

impl<'a> SubmittedMail<'a> {
    /// Reads a mail.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(mail: &'a [u8]) -> Result<Self, MailError> {
        let (fields, body) = header::split(mail)?;
        let content = parts::read(&fields, body)?;
        Ok(Self {
            fields,
            text: content.text,
            html: content.html,
            files: content.files,
        })
    }
}
