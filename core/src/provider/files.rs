//! Puts the files of a mail into JSON requests. Pure.
//!
//! A document names a file by an object with the single key [`FILE`]; no other part of a
//! request has such a key. The content is encoded when the request is sent, not before.

use bytes::Bytes;
use serde_json::{Value, json};

use super::mail::OutgoingMail;
use crate::http::BodyPiece;

/// The key of an object that stands for the content of a file.
const FILE: &str = "\0file";
/// How such an object begins in JSON. In a text of the document the quotes would be escaped.
const MARK: &str = "{\"\\u0000file\":";
/// Room for a document without its bodies and files, in bytes.
const DOCUMENT_BYTES: usize = 16 * 1024;

/// What stands for the nth file's content in a document.
pub(super) fn placeholder(nth: usize) -> Value {
    json!({ FILE: nth })
}

/// The document, with the files in place of their placeholders.
pub(super) fn json_with_files(document: &Value, mail: &OutgoingMail) -> Vec<BodyPiece> {
    let json = document.to_string();
    let mut pieces = Vec::with_capacity(2 * mail.attachments.len() + 1);
    let mut text = String::new();
    let mut rest = json.as_str();
    while let Some((before, marked)) = rest.split_once(MARK) {
        let (nth, after) = marked.split_once('}').unwrap_or((marked, ""));
        let file = nth
            .parse()
            .ok()
            .and_then(|nth: usize| mail.attachments.get(nth));
        text.push_str(before);
        text.push('"');
        pieces.push(BodyPiece::Bytes(Bytes::from(std::mem::take(&mut text))));
        pieces.extend(file.map(|file| BodyPiece::Base64(file.content.clone())));
        text.push('"');
        rest = after;
    }
    text.push_str(rest);
    pieces.push(BodyPiece::Bytes(Bytes::from(text)));
    pieces
}

/// About how many bytes the request of a mail has.
pub(super) fn json_bytes(mail: &OutgoingMail) -> usize {
    let bodies = [&mail.html, &mail.text];
    let bodies = bodies.into_iter().flatten().map(String::len).sum::<usize>();
    mail.attachment_bytes().div_ceil(3) * 4 + bodies + bodies / 8 + DOCUMENT_BYTES
}
