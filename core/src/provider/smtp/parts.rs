//! The parts of a message: its bodies, and its files around them (RFC 2046). Pure.
//!
//! With attachments the message is `multipart/mixed`; its first part is the body. With files
//! that the HTML shows, the body is `multipart/related`, and its first part are the texts.

use std::fmt::Write as _;

use super::super::mail::{MailAttachment, OutgoingMail};
use super::wire::{Content, Segment};
use crate::ids::SendAttemptId;

/// The longest value of a parameter that is written on one line.
const PARAMETER_BYTES_MAX: usize = 60;

/// Writes parts one after the other.
pub(super) struct MimeParts {
    segments: Vec<Segment>,
    lines: Vec<u8>,
    boundary: String,
}

impl MimeParts {
    /// No part holds the boundary: `=_` occurs in no encoded text, and the author of an
    /// unencoded one cannot know the random part of the attempt's id.
    pub(super) fn new(attempt_id: SendAttemptId) -> Self {
        Self {
            segments: Vec::new(),
            lines: Vec::new(),
            boundary: format!("=_{}", attempt_id.0.simple()),
        }
    }

    pub(super) fn write(&mut self, lines: &[u8]) {
        self.lines.extend_from_slice(lines);
    }

    /// Writes the texts, which begin with their own headers, and the files of a mail.
    ///
    /// # Errors
    /// What cannot be written.
    pub(super) fn write_mail(
        &mut self,
        texts: &[u8],
        mail: &OutgoingMail,
    ) -> Result<(), &'static str> {
        let has_html = mail.html.as_ref().is_some_and(|html| !html.is_empty());
        let (shown, attached): (Vec<_>, Vec<_>) = mail
            .attachments
            .iter()
            .partition(|file| has_html && file.content_id.is_some());
        let mixed = (!attached.is_empty()).then(|| format!("{}_m", self.boundary));
        let related = (!shown.is_empty()).then(|| format!("{}_r", self.boundary));
        if let Some(boundary) = &mixed {
            self.open("mixed", "", boundary);
        }
        if let Some(boundary) = &related {
            let has_text = mail.text.as_ref().is_some_and(|text| !text.is_empty());
            let root = if has_text {
                "multipart/alternative"
            } else {
                "text/html"
            };
            self.open("related", &format!(" type=\"{root}\";"), boundary);
        }
        self.write(texts);
        for (boundary, files) in [(related, shown), (mixed, attached)] {
            let Some(boundary) = boundary else { continue };
            for file in files {
                self.write(format!("\r\n--{boundary}\r\n").as_bytes());
                self.write_file(file)?;
            }
            self.write(format!("\r\n--{boundary}--\r\n").as_bytes());
        }
        Ok(())
    }

    /// The segments, which end in a line break.
    ///
    /// # Errors
    /// What cannot be written.
    pub(super) fn finish(mut self) -> Result<Vec<Segment>, &'static str> {
        if !self.lines.ends_with(b"\r\n") {
            self.lines.extend_from_slice(b"\r\n");
        }
        self.end_lines()?;
        Ok(self.segments)
    }

    fn open(&mut self, kind: &str, parameters: &str, boundary: &str) {
        let header = format!("Content-Type: multipart/{kind};{parameters}\r\n");
        self.write(header.as_bytes());
        let rest = format!(" boundary=\"{boundary}\"\r\n\r\n--{boundary}\r\n");
        self.write(rest.as_bytes());
    }

    fn write_file(&mut self, file: &MailAttachment) -> Result<(), &'static str> {
        let (kind, disposition) = (content_type(file), file.disposition());
        let filename = parameter("filename", &file.filename);
        let mut header = format!(
            "Content-Type: {kind}\r\nContent-Transfer-Encoding: base64\r\n\
             Content-Disposition: {disposition}{filename}\r\n"
        );
        if let Some(id) = &file.content_id {
            header.push_str(&format!("Content-ID: <{id}>\r\n"));
        }
        header.push_str("\r\n");
        self.write(header.as_bytes());
        self.end_lines()?;
        self.segments.push(Segment::File(file.content.clone()));
        Ok(())
    }

    fn end_lines(&mut self) -> Result<(), &'static str> {
        let lines = std::mem::take(&mut self.lines);
        self.segments.push(Segment::Lines(Content::of(&lines)?));
        Ok(())
    }
}

/// The type of a file. A message or a multipart as a file may not be in base64 (RFC 2046,
/// 5.2.1), and its name tells a mail program what it is.
fn content_type(file: &MailAttachment) -> &str {
    let kind = file.content_type.to_ascii_lowercase();
    if kind.starts_with("message/") || kind.starts_with("multipart/") {
        "application/octet-stream"
    } else {
        &file.content_type
    }
}

/// A parameter of a header, on lines of its own: quoted, or in the extended form of RFC
/// 2231, in pieces that break between characters.
fn parameter(name: &str, value: &str) -> String {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    // Readers decode an encoded word (RFC 2047) in quotes, though it has no meaning there.
    let is_plain = value.bytes().all(is_plain) && !value.contains("=?");
    if value.len() <= PARAMETER_BYTES_MAX && is_plain {
        return format!(";\r\n {name}=\"{value}\"");
    }
    let mut pieces = vec![String::new()];
    for character in value.chars() {
        let mut buffer = [0; 4];
        let mut encoded = String::new();
        for byte in character.encode_utf8(&mut buffer).bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _written = write!(encoded, "%{byte:02X}");
            }
        }
        match pieces.last_mut() {
            Some(piece) if piece.len() + encoded.len() <= PARAMETER_BYTES_MAX => {
                piece.push_str(&encoded);
            }
            _ => pieces.push(encoded),
        }
    }
    if let [piece] = pieces.as_slice() {
        return format!(";\r\n {name}*=utf-8''{piece}");
    }
    let numbered = pieces.iter().enumerate().map(|(nth, piece)| {
        let charset = if nth == 0 { "utf-8''" } else { "" };
        format!(";\r\n {name}*{nth}*={charset}{piece}")
    });
    numbered.collect()
}
