//! An accepted mail, as it is kept and as it is shown.
//!
//! Bodies and envelopes are shared between the recipients of one request; what differs for one
//! recipient is filled in only when somebody looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

use crate::providers::Provider;

/// One copy of a message, as its recipient would have received it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Captured {
    /// The place in the order of acceptance, from 0.
    pub sequence: u64,
    pub provider: Provider,
    pub to: String,
    /// Every address this recipient can see in To and Cc.
    pub visible_recipients: Vec<String>,
    /// The sender, with display name when there is one.
    pub from: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// Custom headers, and Reply-To when given.
    pub headers: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// Custom args, Metadata, user variables, or EmailTags.
    pub metadata: BTreeMap<String, String>,
    /// What was attached, without the content.
    pub attachments: Vec<CapturedAttachment>,
    /// The id the provider answered with.
    pub provider_message_id: String,
    /// When it was accepted, in RFC 3339.
    pub accepted_at: String,
    /// Over SMTP: the sender of the envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail_from: Option<String>,
    /// Over SMTP: the whole mail as it came, with the doubled dots undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// An attachment's label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapturedAttachment {
    pub filename: String,
    /// The media type, empty when not given.
    pub content_type: String,
    /// The name by which HTML shows it inline.
    pub content_id: Option<String>,
    pub bytes: usize,
}

/// What is the same for all recipients of one mail, except for its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Envelope {
    pub(crate) from: String,
    pub(crate) reply_to: Option<String>,
    pub(crate) subject: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tags: Vec<String>,
    /// What callbacks are asked for by: Mailgun's domain, Postmark's stream, the configuration set
    /// of SES. Empty where there is none.
    pub(crate) scope: String,
}

/// The content of one mail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) html: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) attachments: Vec<CapturedAttachment>,
    pub(crate) as_sent: Option<AsSent>,
}

/// A mail as it came over SMTP.
#[derive(Clone, Debug)]
pub(crate) struct AsSent {
    /// The sender of the envelope.
    pub(crate) mail_from: String,
    /// Headers and bodies, with the doubled dots undone.
    pub(crate) raw: String,
}

/// One recipient of an accepted request.
#[derive(Clone, Debug)]
pub(crate) struct MailCopy {
    pub(crate) to: String,
    /// To and Cc as this recipient sees them; `None` when the recipient sees only itself.
    pub(crate) visible: Option<Arc<[String]>>,
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) body: Arc<Body>,
    pub(crate) metadata: Vec<(String, String)>,
    /// Texts to replace in subject, bodies, headers and metadata for this recipient.
    pub(crate) substitutions: Vec<(String, String)>,
}

/// One copy as it is kept.
pub(crate) struct Record {
    pub(crate) sequence: u64,
    /// Its place among the copies of its request, from 0.
    pub(crate) place: usize,
    pub(crate) previous: Option<u64>,
    pub(crate) address_hash: u64,
    pub(crate) provider: Provider,
    pub(crate) provider_message_id: Arc<str>,
    /// Who sent it: API key, server token or access key id.
    pub(crate) credential: Arc<str>,
    pub(crate) accepted_at: DateTime<Utc>,
    pub(crate) copy: MailCopy,
    pub(crate) bytes: usize,
}

impl Body {
    pub(crate) fn bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, String::len);
        let raw = self.as_sent.as_ref().map_or(0, |sent| sent.raw.len());
        self.html.as_ref().map_or(0, String::len) + text + raw
    }
}

impl MailCopy {
    pub(crate) fn own_bytes(&self) -> usize {
        let pairs = |list: &[(String, String)]| -> usize {
            list.iter()
                .map(|(name, value)| name.len() + value.len())
                .sum()
        };
        self.to.len()
            + pairs(&self.metadata)
            + pairs(&self.substitutions)
            + pairs(&self.envelope.headers)
    }

    /// Custom args, metadata, variables or tags as this recipient's copy carries them.
    pub(crate) fn filled_metadata(&self) -> BTreeMap<String, String> {
        self.fill_pairs(&self.metadata)
    }

    /// Whether this recipient's copy carries this custom arg, metadata, variable or tag.
    pub(crate) fn has_metadata(&self, name: &str, value: &str) -> bool {
        let is_it = |own: &str| match self.substitutions.is_empty() {
            true => own == value,
            false => self.fill(own) == value,
        };
        let named = self.metadata.iter().filter(|(own, _)| own == name);
        named.into_iter().any(|(_, own)| is_it(own))
    }

    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (from, to) in &self.substitutions {
            if !from.is_empty() && filled.contains(from.as_str()) {
                filled = filled.replace(from.as_str(), to);
            }
        }
        filled
    }

    fn fill_pairs(&self, pairs: &[(String, String)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), self.fill(value)))
            .collect()
    }
}

impl Record {
    /// The mail as this recipient would have received it.
    pub(crate) fn render(&self) -> Captured {
        let copy = &self.copy;
        let reply_to = copy.envelope.reply_to.clone();
        let sent = copy.body.as_sent.as_ref();
        let mut headers = copy.fill_pairs(&copy.envelope.headers);
        if let Some(reply_to) = &reply_to {
            headers.insert("Reply-To".to_owned(), reply_to.clone());
        }
        Captured {
            sequence: self.sequence,
            provider: self.provider,
            to: copy.to.clone(),
            visible_recipients: copy
                .visible
                .as_ref()
                .map_or_else(|| vec![copy.to.clone()], |visible| visible.to_vec()),
            from: copy.envelope.from.clone(),
            reply_to,
            subject: copy.fill(&copy.envelope.subject),
            html: copy.body.html.as_ref().map(|html| copy.fill(html)),
            text: copy.body.text.as_ref().map(|text| copy.fill(text)),
            headers,
            tags: copy.envelope.tags.clone(),
            metadata: copy.fill_pairs(&copy.metadata),
            attachments: copy.body.attachments.clone(),
            provider_message_id: self.provider_message_id.to_string(),
            accepted_at: self
                .accepted_at
                .to_rfc3339_opts(SecondsFormat::Micros, true),
            mail_from: sent.map(|sent| sent.mail_from.clone()),
            raw: sent.map(|sent| sent.raw.clone()),
        }
    }
}
