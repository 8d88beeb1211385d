//! Writes the files of a mail into JSON requests. Pure.
//!
//! A document names a file by an object with the single key [`FILE`]; no other part of a
//! request has such a key. The content is encoded straight into the request's bytes.

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::mail::{MailAttachment, OutgoingMail};

/// The key of an object that stands for the content of a file.
const FILE: &str = "\0file";
/// Room for a document without its bodies and files, in bytes.
const DOCUMENT_BYTES: usize = 16 * 1024;

/// What stands for the nth file's content in a document.
pub(super) fn placeholder(nth: usize) -> Value {
    json!({ FILE: nth })
}

/// The document, with the files in place of their placeholders.
pub(super) fn json_with_files(document: &Value, mail: &OutgoingMail) -> Vec<u8> {
    let mut json = Vec::with_capacity(json_bytes(mail));
    write_with_files(&mut json, document, mail);
    json
}

/// Appends the same to `json`.
pub(super) fn write_with_files(json: &mut Vec<u8>, document: &Value, mail: &OutgoingMail) {
    let node = Node {
        value: document,
        files: &mail.attachments,
    };
    // Neither the vector nor a value of JSON can fail.
    let _written = serde_json::to_writer(json, &node);
}

/// About how many bytes the request of a mail has.
pub(super) fn json_bytes(mail: &OutgoingMail) -> usize {
    let bodies = [&mail.html, &mail.text];
    let bodies = bodies.into_iter().flatten().map(String::len).sum::<usize>();
    mail.attachment_bytes().div_ceil(3) * 4 + bodies + bodies / 8 + DOCUMENT_BYTES
}

struct Node<'a> {
    value: &'a Value,
    files: &'a [MailAttachment],
}

impl Node<'_> {
    /// The file that this stands for.
    fn file(&self) -> Option<&MailAttachment> {
        let nth = self.value.as_object()?.get(FILE)?.as_u64()?;
        self.files.get(usize::try_from(nth).ok()?)
    }
}

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let node = |value| Node {
            value,
            files: self.files,
        };
        if let Some(file) = self.file() {
            return serializer.collect_str(&Base64Display::new(&file.content, &STANDARD));
        }
        match self.value {
            Value::Object(fields) => {
                serializer.collect_map(fields.iter().map(|(name, value)| (name, node(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(node)),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                plain.serialize(serializer)
            }
        }
    }
}
