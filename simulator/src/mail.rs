//! An accepted message, as it is stored and as it is shown.
//!
//! The recipients of one request share bodies and envelopes; a recipient's own texts are
//! filled in when the message is read.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::providers::Provider;

/// A message as one recipient would have received it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Captured {
    /// The position in the order of acceptance, from 0.
    pub sequence: u64,
    pub provider: Provider,
    pub to: String,
    /// `TO`, `CC` or `BCC`: how the sender named this recipient.
    pub kind: Kind,
    /// Every address that this recipient sees in To and Cc.
    pub visible_recipients: Vec<String>,
    /// Those of them that it sees in Cc.
    pub visible_cc: Vec<String>,
    /// The From mailbox, with its display name if there is one.
    pub from: String,
    pub reply_to: Option<String>,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// Custom headers, and Reply-To if there is one.
    pub headers: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// Custom args, Metadata, user variables, or EmailTags.
    pub metadata: BTreeMap<String, String>,
    /// The attachments, without their content.
    pub attachments: Vec<CapturedAttachment>,
    /// The id in the provider's response.
    pub provider_message_id: String,
    /// The time of acceptance, in RFC 3339.
    pub accepted_at: String,
    /// Over SMTP: the sender of the envelope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail_from: Option<String>,
    /// Over SMTP: the whole message as it arrived, with dot-stuffing removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// How a recipient is named in a mail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Kind {
    #[default]
    To,
    Cc,
    Bcc,
}

/// What all recipients of a mail see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    pub(crate) to: Vec<String>,
    pub(crate) cc: Vec<String>,
}

/// An attachment. Its content is served by `/inbox/<sequence>/attachments/<n>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CapturedAttachment {
    pub filename: String,
    /// The media type, empty if not given.
    pub content_type: String,
    /// The content id by which HTML refers to it.
    pub content_id: Option<String>,
    pub bytes: usize,
    /// In lower-case hex.
    pub sha256: String,
    /// Empty if bodies are not kept.
    #[serde(skip)]
    pub content: Bytes,
}

impl CapturedAttachment {
    pub(crate) fn new(
        filename: String,
        content_type: String,
        content_id: Option<String>,
        content: impl Into<Bytes>,
    ) -> Self {
        let content = content.into();
        Self {
            filename,
            content_type,
            content_id,
            bytes: content.len(),
            sha256: hex::encode(Sha256::digest(&content)),
            content,
        }
    }
}

/// The fields that all recipients of a message share, except for its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Envelope {
    pub(crate) from: String,
    pub(crate) reply_to: Option<String>,
    pub(crate) subject: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) tags: Vec<String>,
    /// Selects the callbacks: Mailgun's domain, Postmark's stream, the configuration set
    /// of SES. Empty if there is none.
    pub(crate) scope: String,
}

/// The content of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) html: Option<String>,
    pub(crate) text: Option<String>,
    pub(crate) attachments: Vec<CapturedAttachment>,
    pub(crate) as_sent: Option<AsSent>,
}

/// A message as it arrived over SMTP.
#[derive(Clone, Debug)]
pub(crate) struct AsSent {
    /// The sender of the envelope.
    pub(crate) mail_from: String,
    /// Headers and bodies, with dot-stuffing removed.
    pub(crate) raw: String,
}

/// A recipient of an accepted request.
#[derive(Clone, Debug)]
pub(crate) struct Recipient {
    pub(crate) to: String,
    pub(crate) kind: Kind,
    /// To and Cc as this recipient sees them; `None` if the recipient sees only itself.
    pub(crate) visible: Option<Arc<Visible>>,
    pub(crate) envelope: Arc<Envelope>,
    pub(crate) body: Arc<Body>,
    pub(crate) metadata: Vec<(String, String)>,
    /// Placeholders to replace in subject, bodies, headers and metadata for this
    /// recipient.
    pub(crate) substitutions: Vec<(String, String)>,
}

/// A stored recipient.
pub(crate) struct Record {
    pub(crate) sequence: u64,
    /// Its position among the recipients of its request, from 0.
    pub(crate) position: usize,
    pub(crate) previous: Option<u64>,
    pub(crate) address_hash: u64,
    pub(crate) provider: Provider,
    pub(crate) provider_message_id: Arc<str>,
    /// The sender's credential: API key, server token or access key id.
    pub(crate) credential: Arc<str>,
    pub(crate) accepted_at: DateTime<Utc>,
    pub(crate) recipient: Recipient,
    pub(crate) bytes: usize,
}

impl Body {
    pub(crate) fn bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, String::len);
        let raw = self.as_sent.as_ref().map_or(0, |sent| sent.raw.len());
        let files = self.attachments.iter().map(|file| file.content.len());
        self.html.as_ref().map_or(0, String::len) + text + raw + files.sum::<usize>()
    }

    /// Drops the contents of the files.
    pub(crate) fn without_contents(mut self) -> Self {
        for file in &mut self.attachments {
            file.content = Bytes::new();
        }
        self
    }
}

impl Recipient {
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

    /// Custom args, metadata, variables or tags of this recipient.
    pub(crate) fn filled_metadata(&self) -> BTreeMap<String, String> {
        self.fill_pairs(&self.metadata)
    }

    /// Whether this recipient has this custom arg, metadata, variable or tag.
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
    /// The message as this recipient would have received it.
    pub(crate) fn render(&self) -> Captured {
        let recipient = &self.recipient;
        let reply_to = recipient.envelope.reply_to.clone();
        let sent = recipient.body.as_sent.as_ref();
        let mut headers = recipient.fill_pairs(&recipient.envelope.headers);
        if let Some(reply_to) = &reply_to {
            headers.insert("Reply-To".to_owned(), reply_to.clone());
        }
        Captured {
            sequence: self.sequence,
            provider: self.provider,
            to: recipient.to.clone(),
            kind: recipient.kind,
            visible_recipients: recipient.visible.as_ref().map_or_else(
                || vec![recipient.to.clone()],
                |visible| [visible.to.clone(), visible.cc.clone()].concat(),
            ),
            visible_cc: recipient
                .visible
                .as_ref()
                .map_or_else(Vec::new, |visible| visible.cc.clone()),
            from: recipient.envelope.from.clone(),
            reply_to,
            subject: recipient.fill(&recipient.envelope.subject),
            html: recipient
                .body
                .html
                .as_ref()
                .map(|html| recipient.fill(html)),
            text: recipient
                .body
                .text
                .as_ref()
                .map(|text| recipient.fill(text)),
            headers,
            tags: recipient.envelope.tags.clone(),
            metadata: recipient.fill_pairs(&recipient.metadata),
            attachments: recipient.body.attachments.clone(),
            provider_message_id: self.provider_message_id.to_string(),
            accepted_at: self
                .accepted_at
                .to_rfc3339_opts(SecondsFormat::Micros, true),
            mail_from: sent.map(|sent| sent.mail_from.clone()),
            raw: sent.map(|sent| sent.raw.clone()),
        }
    }
}

/// Each recipient of a mail with its kind.
pub(crate) fn with_kinds<T>(
    to: Vec<T>,
    cc: Vec<T>,
    bcc: Vec<T>,
) -> impl Iterator<Item = (Kind, T)> {
    let lists = [(Kind::To, to), (Kind::Cc, cc), (Kind::Bcc, bcc)];
    let lists = lists.into_iter();
    lists.flat_map(|(kind, list)| list.into_iter().map(move |one| (kind, one)))
}
