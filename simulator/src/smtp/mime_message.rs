//! Parses a message.

use std::sync::Arc;

use mail_parser::{Address, Message, MessageParser, MimeHeaders, PartType};

use crate::address::display;
use crate::mail::{AsSent, Body, CapturedAttachment, Envelope, Recipient};

/// Headers with fields of their own, and the headers that describe a body.
const HEADERS_SHOWN_ELSEWHERE: [&str; 9] = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Reply-To",
    "Date",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// A parsed message.
pub(super) struct MimeMessage {
    /// Its Message-ID, in angle brackets.
    pub(super) message_id: String,
    envelope: Arc<Envelope>,
    body: Arc<Body>,
    visible: Arc<[String]>,
}

impl MimeMessage {
    /// `None` if the content is no message. Without `keeps_body` the bodies are dropped.
    pub(super) fn parse(content: &[u8], mail_from: &str, keeps_body: bool) -> Option<Self> {
        let raw = content;
        // The line end before the final dot belongs to SMTP; it may also belong to the
        // text, which cannot be decided.
        let content = content.strip_suffix(b"\r\n").unwrap_or(content);
        let message = MessageParser::default().parse(content)?;
        let from = message.from()?.first()?;
        let message_id = message.message_id()?;
        let mut body = Body::default();
        if keeps_body {
            body.as_sent = Some(AsSent {
                mail_from: mail_from.to_owned(),
                raw: String::from_utf8_lossy(raw).into_owned(),
            });
            read_body(&message, &mut body);
        }
        let visible = [message.to(), message.cc()].into_iter().flatten();
        let visible: Vec<String> = visible.flat_map(addresses).collect();
        Some(Self {
            message_id: format!("<{message_id}>"),
            envelope: Arc::new(Envelope {
                from: display(from.name(), from.address()?),
                reply_to: message.reply_to().and_then(first_shown),
                subject: message.subject().unwrap_or_default().to_owned(),
                headers: own_headers(&message),
                tags: Vec::new(),
                scope: String::new(),
            }),
            body: Arc::new(body),
            visible: visible.into(),
        })
    }

    /// The recipient of this envelope address.
    pub(super) fn recipient(&self, to: &str) -> Recipient {
        Recipient {
            to: to.to_owned(),
            visible: Some(Arc::clone(&self.visible)),
            envelope: Arc::clone(&self.envelope),
            body: Arc::clone(&self.body),
            metadata: Vec::new(),
            substitutions: Vec::new(),
        }
    }
}

fn read_body(message: &Message<'_>, body: &mut Body) {
    for part in &message.parts {
        // With the line ends that the author wrote, not those of the protocol.
        match &part.body {
            PartType::Text(text) if body.text.is_none() => {
                body.text = Some(text.replace("\r\n", "\n"));
            }
            PartType::Html(html) if body.html.is_none() => {
                body.html = Some(html.replace("\r\n", "\n"));
            }
            PartType::Multipart(_) => {}
            PartType::Text(_)
            | PartType::Html(_)
            | PartType::Binary(_)
            | PartType::InlineBinary(_)
            | PartType::Message(_) => body.attachments.push(CapturedAttachment {
                filename: part.attachment_name().unwrap_or_default().to_owned(),
                content_type: part
                    .content_type()
                    .map(|kind| match kind.subtype() {
                        Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                        None => kind.ctype().to_owned(),
                    })
                    .unwrap_or_default(),
                content_id: part.content_id().map(str::to_owned),
                bytes: part.contents().len(),
            }),
        }
    }
}

fn own_headers(message: &Message<'_>) -> Vec<(String, String)> {
    let is_own = |name: &str| {
        !HEADERS_SHOWN_ELSEWHERE
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    message
        .headers_raw()
        .filter(|(name, _)| is_own(name))
        .map(|(name, value)| (name.to_owned(), unfolded(value)))
        .collect()
}

fn unfolded(value: &str) -> String {
    let lines: Vec<&str> = value.lines().map(str::trim).collect();
    lines.join(" ").trim().to_owned()
}

fn addresses(list: &Address<'_>) -> Vec<String> {
    let addresses = list.iter().filter_map(|one| one.address());
    addresses.map(str::to_owned).collect()
}

fn first_shown(list: &Address<'_>) -> Option<String> {
    let first = list.first()?;
    Some(display(first.name(), first.address()?))
}
