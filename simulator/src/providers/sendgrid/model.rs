//! The body of `POST /v3/mail/send`, with the fields of the published document. Others
//! are rejected.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Mail {
    #[serde(default)]
    pub(super) personalizations: Vec<Personalization>,
    pub(super) from: Option<Person>,
    pub(super) reply_to: Option<Person>,
    pub(super) reply_to_list: Option<Vec<Person>>,
    pub(super) subject: Option<String>,
    pub(super) content: Option<Vec<Content>>,
    pub(super) attachments: Option<Vec<Attachment>>,
    pub(super) template_id: Option<String>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) categories: Option<Vec<String>>,
    pub(super) custom_args: Option<BTreeMap<String, String>>,
    pub(super) send_at: Option<i64>,
    pub(super) mail_settings: Option<MailSettings>,
    #[serde(rename = "tracking_settings")]
    _tracking_settings: Option<TrackingSettings>,
    #[serde(rename = "sections")]
    _sections: Option<IgnoredAny>,
    #[serde(rename = "batch_id")]
    _batch_id: Option<String>,
    #[serde(rename = "asm")]
    _asm: Option<IgnoredAny>,
    #[serde(rename = "ip_pool_name")]
    _ip_pool_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Personalization {
    #[serde(default)]
    pub(super) to: Vec<Person>,
    #[serde(default)]
    pub(super) cc: Vec<Person>,
    #[serde(default)]
    pub(super) bcc: Vec<Person>,
    pub(super) from: Option<Person>,
    pub(super) subject: Option<String>,
    pub(super) headers: Option<BTreeMap<String, String>>,
    pub(super) substitutions: Option<BTreeMap<String, String>>,
    pub(super) custom_args: Option<BTreeMap<String, String>>,
    pub(super) send_at: Option<i64>,
    #[serde(rename = "dynamic_template_data")]
    _dynamic_template_data: Option<IgnoredAny>,
}

impl Personalization {
    pub(super) fn recipients(&self) -> impl Iterator<Item = &Person> {
        self.to.iter().chain(&self.cc).chain(&self.bcc)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Person {
    #[serde(default)]
    pub(super) email: String,
    pub(super) name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attachment {
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) filename: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) disposition: Option<String>,
    pub(super) content_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MailSettings {
    pub(super) sandbox_mode: Option<Switch>,
    #[serde(rename = "bypass_list_management")]
    _bypass_list_management: Option<Switch>,
    #[serde(rename = "bypass_spam_management")]
    _bypass_spam_management: Option<Switch>,
    #[serde(rename = "bypass_bounce_management")]
    _bypass_bounce_management: Option<Switch>,
    #[serde(rename = "bypass_unsubscribe_management")]
    _bypass_unsubscribe_management: Option<Switch>,
    #[serde(rename = "footer")]
    _footer: Option<Switch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrackingSettings {
    #[serde(rename = "click_tracking")]
    _click_tracking: Option<Switch>,
    #[serde(rename = "open_tracking")]
    _open_tracking: Option<Switch>,
    #[serde(rename = "subscription_tracking")]
    _subscription_tracking: Option<Switch>,
    #[serde(rename = "ganalytics")]
    _ganalytics: Option<IgnoredAny>,
}

/// A setting that can be enabled; its other fields have no effect here.
#[derive(Deserialize)]
pub(super) struct Switch {
    #[serde(default)]
    pub(super) enable: bool,
}
