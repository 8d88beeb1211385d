//! The parts of a mail (RFC 2046): which are the bodies, and which are files.

use mail_parser::ContentType;
use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use memchr::memmem::Finder;

use super::charset;
use super::header::{self, HeaderField};
use super::{MailError, SubmittedFile};

/// How deep parts may be nested.
pub(super) const DEPTH_MAX: usize = 20;
/// The most parts of a mail, those that only contain others too.
pub(super) const PARTS_MAX: usize = 500;
/// The longest boundary. RFC 2046 allows 70.
const BOUNDARY_BYTES_MAX: usize = 200;
/// Parameters of a media type that its reader needs.
const PARAMETERS: [&str; 2] = ["charset", "method"];

/// The bodies and files of a mail.
#[derive(Default)]
pub(super) struct MailContent {
    pub(super) text: Option<String>,
    pub(super) html: Option<String>,
    pub(super) files: Vec<SubmittedFile>,
    parts: usize,
    /// Whether both bodies are decided.
    is_closed: bool,
}

/// The parts around a part.
#[derive(Debug, Clone, Copy)]
struct PartPlace {
    depth: usize,
    is_in_alternative: bool,
    /// Whether a part without a type is a mail (RFC 2046, 5.1.5).
    is_in_digest: bool,
}

/// Reads the body of a mail with these header fields.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read(fields: &[HeaderField<'_>], body: &[u8]) -> Result<MailContent, MailError> {
    let mut content = MailContent::default();
    let place = PartPlace {
        depth: 0,
        is_in_alternative: false,
        is_in_digest: false,
    };
    content.add_part(fields, body, place)?;
    Ok(content)
}

impl MailContent {
    fn add_part(
        &mut self,
        fields: &[HeaderField<'_>],
        body: &[u8],
        place: PartPlace,
    ) -> Result<(), MailError> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err(MailError::ManyParts);
        }
        if place.depth > DEPTH_MAX {
            return Err(MailError::Deep);
        }
        let content_type = find(fields, "Content-Type").and_then(|field| field.content_type());
        let is_multipart = content_type
            .as_ref()
            .is_some_and(|kind| kind.ctype() == "multipart");
        if let Some(kind) = content_type.as_ref().filter(|_| is_multipart) {
            return self.add_multipart(kind, body, place);
        }
        self.add_leaf(fields, content_type.as_ref(), body, place)
    }

    fn add_multipart(
        &mut self,
        kind: &ContentType<'_>,
        body: &[u8],
        place: PartPlace,
    ) -> Result<(), MailError> {
        let boundary = kind.attribute("boundary").ok_or(MailError::Boundary)?;
        let subtype = kind.subtype().unwrap_or_default();
        let begins_alternative = subtype == "alternative" && !place.is_in_alternative;
        let within = PartPlace {
            depth: place.depth + 1,
            is_in_alternative: place.is_in_alternative || begins_alternative,
            is_in_digest: subtype == "digest",
        };
        for part in split(body, boundary, PARTS_MAX)? {
            let (fields, body) = header::split(part)?;
            self.add_part(&fields, body, within)?;
        }
        if begins_alternative && (self.text.is_some() || self.html.is_some()) {
            self.is_closed = true;
        }
        Ok(())
    }

    fn add_leaf(
        &mut self,
        fields: &[HeaderField<'_>],
        content_type: Option<&ContentType<'_>>,
        body: &[u8],
        place: PartPlace,
    ) -> Result<(), MailError> {
        let content = decoded(fields, body)?;
        let disposition = find(fields, "Content-Disposition");
        let disposition = disposition.and_then(|field| field.content_type());
        let is_attachment = disposition
            .as_ref()
            .is_some_and(|one| one.ctype() == "attachment");
        let filename = filename(content_type, disposition.as_ref());
        let media_type = match content_type {
            Some(kind) => media_type(kind),
            None if place.is_in_digest => "message/rfc822".to_owned(),
            None => "text/plain".to_owned(),
        };
        let essence = media_type.split(';').next().unwrap_or_default();
        // An empty part without a name is no file, and no body that a reader would miss.
        if content.is_empty() && filename.is_none() {
            return Ok(());
        }
        let body = match essence {
            "text/plain" => Some(&mut self.text),
            "text/html" => Some(&mut self.html),
            _ => None,
        };
        let is_open = !self.is_closed && !is_attachment && filename.is_none();
        if let Some(body) = body.filter(|body| is_open && body.is_none()) {
            let charset = content_type.and_then(|kind| kind.attribute("charset"));
            *body = Some(charset::decode(content, charset));
            self.is_closed = !place.is_in_alternative;
            return Ok(());
        }
        let content_id = find(fields, "Content-ID").map(|field| {
            let text = field.unfolded();
            text.trim_matches(['<', '>', ' ']).to_owned()
        });
        self.files.push(SubmittedFile {
            filename,
            content_type: media_type,
            content_id,
            is_attachment,
            content,
        });
        Ok(())
    }
}

fn find<'f, 'a>(fields: &'f [HeaderField<'a>], name: &str) -> Option<&'f HeaderField<'a>> {
    fields.iter().find(|field| field.is(name))
}

/// The parts between the boundaries of a multipart. Without its last boundary the last part ends
/// with the multipart. What stands before the first and after the last boundary is not read.
fn split<'a>(body: &'a [u8], boundary: &str, max: usize) -> Result<Vec<&'a [u8]>, MailError> {
    if boundary.is_empty() || boundary.len() > BOUNDARY_BYTES_MAX {
        return Err(MailError::Boundary);
    }
    let delimiter = format!("--{boundary}");
    let finder = Finder::new(&delimiter);
    let mut parts = Vec::new();
    let mut begin = None;
    for at in finder.find_iter(body) {
        let is_at_line_begin = at == 0 || body[at - 1] == b'\n';
        let after = &body[at + delimiter.len()..];
        let Some((length, is_last)) = delimiter_end(after).filter(|_| is_at_line_begin) else {
            continue;
        };
        if let Some(begin) = begin {
            // The line break before a boundary belongs to the boundary.
            let part = body.get(begin..at).unwrap_or_default();
            let part = part.strip_suffix(b"\n").unwrap_or(part);
            parts.push(part.strip_suffix(b"\r").unwrap_or(part));
        }
        begin = Some(at + delimiter.len() + length);
        if is_last {
            return Ok(parts);
        }
        if parts.len() >= max {
            return Err(MailError::ManyParts);
        }
    }
    let begin = begin.ok_or(MailError::Boundary)?;
    parts.push(body.get(begin..).unwrap_or_default());
    Ok(parts)
}

/// The rest of the line of a boundary, and whether it is the last boundary. `None` if the line
/// is no boundary: another one may begin alike.
fn delimiter_end(after: &[u8]) -> Option<(usize, bool)> {
    let (rest, is_last) = match after.strip_prefix(b"--") {
        Some(rest) => (rest, true),
        None => (after, false),
    };
    let space = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    let line_end = match &rest[space..] {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        [] => 0,
        _ => return None,
    };
    Some((after.len() - rest.len() + space + line_end, is_last))
}

/// The content of a part without its transfer encoding.
fn decoded(fields: &[HeaderField<'_>], body: &[u8]) -> Result<Vec<u8>, MailError> {
    let encoding = find(fields, "Content-Transfer-Encoding").map(HeaderField::unfolded);
    let encoding = encoding.unwrap_or_default().to_ascii_lowercase();
    match encoding.as_str() {
        "" | "7bit" | "8bit" | "binary" => Ok(body.to_vec()),
        "base64" => base64_decode(body).ok_or(MailError::Encoding("base64")),
        "quoted-printable" => {
            quoted_printable_decode(body).ok_or(MailError::Encoding("quoted-printable"))
        }
        _ => Err(MailError::UnknownEncoding),
    }
}

/// The name of a file: that of its disposition, or else that of its type.
fn filename(
    content_type: Option<&ContentType<'_>>,
    disposition: Option<&ContentType<'_>>,
) -> Option<String> {
    let of_disposition = disposition.and_then(|one| one.attribute("filename"));
    let of_type = || content_type.and_then(|kind| kind.attribute("name"));
    let name = of_disposition.or_else(of_type)?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// A media type with the parameters that matter.
fn media_type(kind: &ContentType<'_>) -> String {
    let mut text = kind.ctype().to_ascii_lowercase();
    if let Some(subtype) = kind.subtype() {
        text.push('/');
        text.push_str(&subtype.to_ascii_lowercase());
    }
    for name in PARAMETERS {
        if let Some(value) = kind.attribute(name) {
            text.push_str(&format!("; {name}={value}"));
        }
    }
    text
}
