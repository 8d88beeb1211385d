//! The form of a send, read from `multipart/form-data`.

use std::collections::HashSet;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use serde_json::{Map, Value};

use crate::address::split_list;
use crate::mail::CapturedAttachment;
use crate::request::Request;

/// More fields than a valid send can have.
const FIELDS_MAX: usize = 5_000;

/// A send's fields, in the order of the form.
#[derive(Default)]
pub(super) struct Form {
    pub(super) fields: Vec<(String, String)>,
    pub(super) attachments: Vec<CapturedAttachment>,
}

impl Form {
    /// `Err` is the text of the rejection.
    pub(super) async fn read(request: &Request) -> Result<Self, String> {
        let content_type = request.header("content-type").unwrap_or_default();
        let boundary = multer::parse_boundary(content_type)
            .map_err(|_| "Expecting 'multipart/form-data'".to_owned())?;
        let body = request.body.clone();
        let chunks = stream::iter([Ok::<Bytes, Infallible>(body)]);
        let mut multipart = multer::Multipart::new(chunks, boundary);
        let broken = |cause: multer::Error| format!("malformed multipart body: {cause}");
        let mut form = Self::default();
        while let Some(field) = multipart.next_field().await.map_err(broken)? {
            if form.fields.len() + form.attachments.len() >= FIELDS_MAX {
                return Err("too many parameters".to_owned());
            }
            let name = field.name().unwrap_or_default().to_owned();
            let filename = field.file_name().map(str::to_owned);
            let content_type = field.content_type().map(ToString::to_string);
            let data = field.bytes().await.map_err(broken)?;
            match (name.as_str(), filename) {
                ("attachment" | "inline", Some(filename)) => {
                    let content_id = (name == "inline").then(|| filename.clone());
                    let kind = content_type.unwrap_or_default();
                    let file = CapturedAttachment::new(filename, kind, content_id, data);
                    form.attachments.push(file);
                }
                // A file without a name is ignored.
                ("attachment" | "inline", None) => {}
                _ => {
                    let text = String::from_utf8(data.to_vec())
                        .map_err(|_| format!("{name} parameter is not valid UTF-8"))?;
                    form.fields.push((name, text));
                }
            }
        }
        Ok(form)
    }

    /// The first field of that name; an empty one counts as missing.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields
            .iter()
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The fields whose names start with the prefix, without the prefix.
    pub(super) fn prefixed(&self, prefix: &str) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    /// The mailboxes of `to`, `cc` or `bcc`; repeated ones are ignored.
    pub(super) fn mailboxes(&self, name: &str) -> Vec<&str> {
        let mut seen = HashSet::new();
        let mut mailboxes: Vec<&str> = self.all(name).flat_map(split_list).collect();
        mailboxes.retain(|mailbox| seen.insert(*mailbox));
        mailboxes
    }

    pub(super) fn is_yes(&self, name: &str) -> bool {
        matches!(self.get(name), Some("yes" | "true"))
    }

    /// `recipient-variables`: `Ok(None)` if absent, `Err` if it is not an object.
    pub(super) fn recipient_variables(&self) -> Result<Option<Map<String, Value>>, ()> {
        match self.get("recipient-variables").map(serde_json::from_str) {
            None => Ok(None),
            Some(Ok(Value::Object(variables))) => Ok(Some(variables)),
            Some(_) => Err(()),
        }
    }
}
