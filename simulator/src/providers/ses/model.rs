//! The body of SendEmail. Other members are accepted and ignored.

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SendEmail {
    pub(super) from_email_address: Option<String>,
    #[serde(default)]
    pub(super) destination: Destination,
    #[serde(default)]
    pub(super) reply_to_addresses: Vec<String>,
    pub(super) content: Option<Content>,
    #[serde(default)]
    pub(super) email_tags: Vec<Tag>,
    pub(super) configuration_set_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Destination {
    pub(super) to_addresses: Vec<String>,
    pub(super) cc_addresses: Vec<String>,
    pub(super) bcc_addresses: Vec<String>,
}

impl Destination {
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let all = [&self.to_addresses, &self.cc_addresses, &self.bcc_addresses];
        all.into_iter().flatten().map(String::as_str)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Content {
    pub(super) simple: Option<Simple>,
    pub(super) raw: Option<Raw>,
    pub(super) template: Option<Template>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Simple {
    pub(super) subject: Text,
    pub(super) body: Body,
    #[serde(default)]
    pub(super) headers: Vec<Header>,
    #[serde(default)]
    pub(super) attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Body {
    pub(super) text: Option<Text>,
    pub(super) html: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Text {
    pub(super) data: String,
    pub(super) charset: Option<String>,
}

impl Text {
    /// Without a character set only ASCII survives.
    pub(super) fn decoded(self) -> String {
        if self.charset.is_some() || self.data.is_ascii() {
            return self.data;
        }
        self.data
            .chars()
            .map(|c| if c.is_ascii() { c } else { '?' })
            .collect()
    }
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
    pub(super) raw_content: String,
    pub(super) file_name: String,
    pub(super) content_type: Option<String>,
    pub(super) content_disposition: Option<String>,
    pub(super) content_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Raw {
    pub(super) data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Template {
    pub(super) template_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) value: String,
}
