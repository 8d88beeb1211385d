//! What a provider takes of a mail, checked before a message is accepted. Pure.
//!
//! A provider that cannot carry a part of a message refuses the whole message here, by a
//! reason that names the part. Nothing is left out of a mail to make it fit.

use std::collections::HashSet;

use super::mail::header_value;
use crate::attachment::AttachmentRef;

/// The headers of an unsubscribe link: two, with a link in one of them.
const LINK_HEADERS: usize = 2;
const LINK_HEADERS_BYTES: usize = 1_200;
/// About how many bytes the other headers and the boundaries of a mail take.
const ENVELOPE_BYTES: usize = 4 * 1024;
/// The longest run of text without a space in a header: it cannot be folded (RFC 5322,
/// 2.1.1).
const HEADER_WORD_BYTES_MAX: usize = 900;

/// The parts of a mail that not every provider carries.
#[derive(Debug, Clone, Copy)]
pub struct MailShape<'a> {
    /// Recipients of one mail: 1, if it is private.
    pub recipients: usize,
    /// The customer's headers.
    pub headers: &'a [(String, String)],
    /// Whether the mail gets an unsubscribe link, which takes two headers.
    pub has_unsubscribe_link: bool,
    /// Bytes of the mailboxes for replies.
    pub reply_to_bytes: usize,
    /// Bytes of the HTML and of the plain text.
    pub body_bytes: [usize; 2],
    pub attachments: &'a [AttachmentRef],
}

/// The limits of a provider. `None` stands for no limit.
#[derive(Debug)]
pub struct MailLimits {
    /// Recipients of one mail.
    pub(super) recipients_max: usize,
    /// The size of the whole mail, with its files in base64.
    pub(super) mail_bytes_max: Option<usize>,
    /// The size of each body.
    pub(super) body_bytes_max: Option<usize>,
    pub(super) headers: HeaderLimits,
    pub(super) files: FileLimits,
}

/// The limits on extra headers.
#[derive(Debug)]
pub struct HeaderLimits {
    pub(super) count_max: Option<usize>,
    pub(super) name_bytes_max: Option<usize>,
    pub(super) value_bytes_max: Option<usize>,
    /// Name and value together.
    pub(super) bytes_max: Option<usize>,
    /// All headers together.
    pub(super) total_bytes_max: Option<usize>,
    /// Names that it refuses, in lower case.
    pub(super) refused: &'static [&'static str],
    /// Whether a name may occur twice.
    pub(super) may_repeat: bool,
}

/// The limits on files.
#[derive(Debug)]
pub struct FileLimits {
    /// Extensions of file names that it refuses, in lower case.
    pub(super) refused_extensions: &'static [&'static str],
    pub(super) name_chars_max: Option<usize>,
    pub(super) content_type_chars_max: Option<usize>,
    pub(super) content_id_chars_max: Option<usize>,
    pub(super) may_be_empty: bool,
}

impl HeaderLimits {
    pub(super) const NONE: Self = Self {
        count_max: None,
        name_bytes_max: None,
        value_bytes_max: None,
        bytes_max: None,
        total_bytes_max: None,
        refused: &[],
        may_repeat: true,
    };
}

impl FileLimits {
    pub(super) const NONE: Self = Self {
        refused_extensions: &[],
        name_chars_max: None,
        content_type_chars_max: None,
        content_id_chars_max: None,
        may_be_empty: true,
    };
}

impl MailLimits {
    /// Why a mail of this shape cannot be sent: completes "the provider cannot carry the
    /// message: …".
    pub(super) fn refuse(&self, shape: &MailShape<'_>) -> Option<String> {
        let (most, given) = (self.recipients_max, shape.recipients);
        if given > most {
            return Some(format!(
                "a mail has at most {most} recipients, and this one has {given}"
            ));
        }
        self.refuse_size(shape)
            .or_else(|| self.headers.refuse(shape))
            .or_else(|| {
                shape
                    .attachments
                    .iter()
                    .find_map(|file| self.files.refuse(file))
            })
    }

    fn refuse_size(&self, shape: &MailShape<'_>) -> Option<String> {
        let bodies = ["HTML", "plain text"].into_iter().zip(shape.body_bytes);
        let mut bodies = bodies.filter_map(|(name, bytes)| {
            let most = self.body_bytes_max.filter(|most| bytes > *most)?;
            let (most, given) = (megabytes(most), megabytes(bytes));
            Some(format!(
                "the {name} has at most {most}, and this one has {given}"
            ))
        });
        if let Some(refusal) = bodies.next() {
            return Some(refusal);
        }
        let given = mail_bytes(shape);
        let most = self.mail_bytes_max.filter(|most| given > *most)?;
        let (most, given) = (megabytes(most), megabytes(given));
        Some(format!(
            "a mail has at most {most} with its attachments in base64, and this one has {given}"
        ))
    }
}

impl HeaderLimits {
    fn refuse(&self, shape: &MailShape<'_>) -> Option<String> {
        let links = if shape.has_unsubscribe_link {
            LINK_HEADERS
        } else {
            0
        };
        let given = shape.headers.len() + links;
        if let Some(most) = self.count_max.filter(|most| given > *most) {
            return Some(format!(
                "a mail has at most {most} extra headers, and this one has {given}"
            ));
        }
        let total = headers_bytes(shape) + shape.reply_to_bytes;
        if let Some(most) = self.total_bytes_max.filter(|most| total > *most) {
            return Some(format!(
                "extra headers have at most {most} bytes together, and these have {total}"
            ));
        }
        let mut names = HashSet::with_capacity(shape.headers.len());
        shape.headers.iter().find_map(|(name, value)| {
            let is_new = names.insert(name.to_ascii_lowercase());
            self.refuse_one(name, value, is_new)
        })
    }

    fn refuse_one(&self, name: &str, value: &str, is_new: bool) -> Option<String> {
        let value = header_value(value);
        let over = |limit: Option<usize>, given: usize| limit.filter(|most| given > *most);
        if self.refused.contains(&name.to_ascii_lowercase().as_str()) {
            return Some(format!("the header {name} is its own"));
        }
        if !is_new && !self.may_repeat {
            return Some(format!("the header {name} can be given once only"));
        }
        if let Some(most) = over(self.name_bytes_max, name.len()) {
            return Some(format!(
                "the header {name} has a name of more than {most} characters"
            ));
        }
        if let Some(most) = over(self.value_bytes_max, value.len()) {
            return Some(format!(
                "the header {name} has a value of more than {most} characters"
            ));
        }
        if let Some(most) = over(self.bytes_max, name.len() + value.len()) {
            return Some(format!(
                "the header {name} has more than {most} characters with its name"
            ));
        }
        if value
            .split(' ')
            .any(|word| word.len() > HEADER_WORD_BYTES_MAX)
        {
            return Some(format!(
                "the header {name} has more than {HEADER_WORD_BYTES_MAX} characters without a space"
            ));
        }
        None
    }
}

impl FileLimits {
    fn refuse(&self, file: &AttachmentRef) -> Option<String> {
        let name = &file.filename;
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let extension = extension.unwrap_or_default().trim().to_lowercase();
        if self.refused_extensions.contains(&extension.as_str()) {
            return Some(format!(
                "the attachment {name} is of the refused type .{extension}"
            ));
        }
        if file.size == 0 && !self.may_be_empty {
            return Some(format!("the attachment {name} is empty"));
        }
        let id = file.content_id.as_deref().unwrap_or_default();
        let limits = [
            ("name", self.name_chars_max, name.as_str()),
            (
                "content type",
                self.content_type_chars_max,
                &file.content_type,
            ),
            ("content id", self.content_id_chars_max, id),
        ];
        limits.into_iter().find_map(|(what, limit, text)| {
            let most = limit.filter(|most| text.chars().count() > *most)?;
            Some(format!(
                "the attachment {name} has a {what} of more than {most} characters"
            ))
        })
    }
}

/// About how many bytes the mail has as an RFC 5322 message.
fn mail_bytes(shape: &MailShape<'_>) -> usize {
    let files = shape.attachments.iter().map(|file| {
        let bytes = usize::try_from(file.size).unwrap_or(usize::MAX / 4);
        // Four characters for three bytes, and a line break after 76.
        let encoded = bytes.div_ceil(3).saturating_mul(4);
        encoded.saturating_add(encoded / 38)
    });
    let files = files.fold(0_usize, usize::saturating_add);
    let bodies = shape.body_bytes.iter().sum::<usize>();
    let rest = bodies + headers_bytes(shape) + shape.reply_to_bytes + ENVELOPE_BYTES;
    files.saturating_add(rest)
}

fn headers_bytes(shape: &MailShape<'_>) -> usize {
    let own = shape.headers.iter();
    let own = own.map(|(name, value)| name.len() + header_value(value).len() + 4);
    let links = if shape.has_unsubscribe_link {
        LINK_HEADERS_BYTES
    } else {
        0
    };
    own.sum::<usize>() + links
}

/// Bytes as megabytes, with a decimal.
fn megabytes(bytes: usize) -> String {
    let tenths = bytes.div_ceil(100_000);
    match tenths % 10 {
        0 => format!("{} MB", tenths / 10),
        tenth => format!("{}.{tenth} MB", tenths / 10),
    }
}
