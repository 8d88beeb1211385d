//! The body of `POST /email`. Other fields are accepted and ignored.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Email {
    #[serde(default)]
    pub(super) from: String,
    pub(super) to: Option<String>,
    pub(super) cc: Option<String>,
    pub(super) bcc: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) html_body: Option<String>,
    pub(super) text_body: Option<String>,
    pub(super) reply_to: Option<String>,
    pub(super) headers: Option<Vec<Header>>,
    #[serde(rename = "TrackOpens")]
    _track_opens: Option<bool>,
    pub(super) track_links: Option<String>,
    pub(super) attachments: Option<Vec<Attachment>>,
    pub(super) metadata: Option<BTreeMap<String, String>>,
    pub(super) message_stream: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Attachment {
    pub(super) name: String,
    pub(super) content: String,
    pub(super) content_type: String,
    #[serde(rename = "ContentID")]
    pub(super) content_id: Option<String>,
}
