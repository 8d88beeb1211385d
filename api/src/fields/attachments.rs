//! The attachments of messages in requests.

use bytes::Bytes;
use poem_openapi::Object;
use poem_openapi::registry::{MetaSchemaRef, Registry};
use poem_openapi::types::Type as _;
use serde_json::Value;
use url::Url;
use waypost_core::acceptance::attachment_names::{self, CONTENT_ID_BYTES_MAX, NAME_BYTES_MAX};
use waypost_core::attachment::{AttachmentContent, AttachmentSource, COUNT_MAX};
use waypost_core::issue::Issue;

use crate::fields::{list, list_of_objects, object, schema, string};
use crate::request::large_text;
use crate::validate::{Field, Validated, problem};

/// The files of a message.
#[derive(Default)]
pub(crate) struct AttachmentList(pub(crate) Vec<AttachmentSource>);

impl std::fmt::Debug for AttachmentList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} attachments", self.0.len())
    }
}

/// A file of a message. It needs `content` or `url`.
#[derive(Debug, Object)]
#[oai(rename = "MessageAttachment", rename_all = "camelCase")]
struct AttachmentObject {
    /// The name that the recipient sees: no path, no control characters.
    filename: Validated<FileName>,
    /// The file in base64 (RFC 4648, without line breaks).
    content: Validated<Option<Base64Text>>,
    /// A public `https` URL. The file is fetched when the message is accepted, and kept.
    url: Validated<Option<FileUrl>>,
    /// The media type. Without it, the type follows from the file name.
    content_type: Validated<Option<ContentType>>,
    /// Shows the file within the HTML body, where `cid:` and this id are the URL of an image.
    content_id: Validated<Option<ContentId>>,
}

impl AttachmentObject {
    fn check(self) -> Result<AttachmentSource, Vec<Issue>> {
        let mut issues = Vec::new();
        let (has_content, has_url) = (self.content.is_given(), self.url.is_given());
        let filename = self.filename.take("filename", &mut issues);
        let content = self.content.take("content", &mut issues);
        let url = self.url.take("url", &mut issues);
        let content_type = self.content_type.take("contentType", &mut issues);
        let content_id = self.content_id.take("contentId", &mut issues);
        if has_content && has_url {
            issues.push(Issue::new("url", "must not be given together with content"));
        } else if !has_content && !has_url {
            issues.push(Issue::new("content", "is required unless url is given"));
        }
        let source = (|| {
            let content = match (content?, url?) {
                (Some(Base64Text(text)), _) => AttachmentContent::Base64(text),
                (None, Some(FileUrl(url))) => AttachmentContent::Url(url),
                (None, None) => return None,
            };
            Some(AttachmentSource {
                filename: filename?.0,
                content_type: content_type?.map(|text| text.0),
                content_id: content_id?.map(|id| id.0),
                content,
            })
        })();
        source.filter(|_| issues.is_empty()).ok_or(issues)
    }
}

/// One file.
struct OneAttachment(AttachmentSource);

impl Field for OneAttachment {
    fn schema() -> MetaSchemaRef {
        AttachmentObject::schema_ref()
    }

    fn register(registry: &mut Registry) {
        AttachmentObject::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        object::<AttachmentObject>(value)?.check().map(Self)
    }
}

impl Field for AttachmentList {
    fn schema() -> MetaSchemaRef {
        schema("array", |list| {
            list.items = Some(Box::new(OneAttachment::schema()));
            list.max_items = Some(COUNT_MAX);
        })
    }

    fn register(registry: &mut Registry) {
        OneAttachment::register(registry);
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let items = list_of_objects(value)?;
        let files = list::<OneAttachment>(items, 0, COUNT_MAX, "attachments")?;
        let files: Vec<AttachmentSource> = files.into_iter().map(|file| file.0).collect();
        let repeated = files.iter().enumerate().filter(|(index, file)| {
            let id = file.content_id.as_ref();
            id.is_some()
                && files[..*index]
                    .iter()
                    .any(|other| other.content_id.as_ref() == id)
        });
        let issues: Vec<Issue> = repeated
            .map(|(index, _)| {
                let path = format!("{index}.contentId");
                Issue::new(path, "must not be that of another attachment")
            })
            .collect();
        if issues.is_empty() {
            Ok(Self(files))
        } else {
            Err(issues)
        }
    }
}

macro_rules! checked_texts {
    ($($(#[$doc:meta])* $name:ident: $max:expr, $example:literal, $check:path;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        struct $name(String);

        impl Field for $name {
            fn schema() -> MetaSchemaRef {
                schema("string", |schema| {
                    schema.min_length = Some(1);
                    schema.max_length = Some($max);
                    schema.example = Some(Value::from($example));
                })
            }

            fn read(value: Value) -> Result<Self, Vec<Issue>> {
                let text = string(value)?;
                match $check(&text) {
                    Ok(()) => Ok(Self(text)),
                    Err(rule) => problem(rule),
                }
            }
        }
    )+};
}

checked_texts! {
    /// The name of a file.
    FileName: NAME_BYTES_MAX, "receipt-1042.pdf", attachment_names::check_filename;
    /// The media type of a file.
    ContentType: NAME_BYTES_MAX, "application/pdf", attachment_names::check_content_type;
    /// The content id of a file.
    ContentId: CONTENT_ID_BYTES_MAX, "logo", attachment_names::check_content_id;
}

/// Text in base64, which is decoded when the file is stored.
struct Base64Text(Bytes);

impl std::fmt::Debug for Base64Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Field for Base64Text {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("byte");
            schema.example = Some(Value::from("VGhhbmsgeW91Lg=="));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        large_text::take(value).map(Self)
    }
}

/// The longest URL of a file.
const URL_CHARS_MAX: usize = 2_048;

/// The URL of a file. Which URLs are fetched is decided by the fetcher.
#[derive(Debug)]
struct FileUrl(Url);

impl Field for FileUrl {
    fn schema() -> MetaSchemaRef {
        schema("string", |schema| {
            schema.format = Some("uri");
            schema.max_length = Some(URL_CHARS_MAX);
            schema.example = Some(Value::from("https://example.com/receipt-1042.pdf"));
        })
    }

    fn read(value: Value) -> Result<Self, Vec<Issue>> {
        let text = string(value)?;
        if text.len() > URL_CHARS_MAX {
            return problem(format!(
                "must not be longer than {URL_CHARS_MAX} characters"
            ));
        }
        match Url::parse(&text) {
            Ok(url) if url.has_host() => Ok(Self(url)),
            Ok(_) | Err(_) => problem("must be a URL such as https://example.com/a.pdf"),
        }
    }
}
