//! Parses a message.

use std::sync::Arc;

use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::address::display;
use crate::mail::{AsSent, Body, CapturedAttachment, Envelope, Kind, Recipient, Visible};

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
    visible: Arc<Visible>,
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
        let visible = Visible {
            to: message.to().map(addresses).unwrap_or_default(),
            cc: message.cc().map(addresses).unwrap_or_default(),
        };
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
            visible: Arc::new(visible),
        })
    }

    /// The recipient of this envelope address.
    pub(super) fn recipient(&self, to: &str) -> Recipient {
        let is_in = |list: &[String]| list.iter().any(|one| one.eq_ignore_ascii_case(to));
        let kind = match (is_in(&self.visible.to), is_in(&self.visible.cc)) {
            (true, _) => Kind::To,
            (false, true) => Kind::Cc,
            (false, false) => Kind::Bcc,
        };
        Recipient {
            to: to.to_owned(),
            kind,
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
            PartType::Text(text) if body.text.is_none() && !is_file(part) => {
                body.text = Some(text.replace("\r\n", "\n"));
            }
            PartType::Html(html) if body.html.is_none() && !is_file(part) => {
                body.html = Some(html.replace("\r\n", "\n"));
            }
            PartType::Multipart(_) => {}
            PartType::Text(_)
            | PartType::Html(_)
            | PartType::Binary(_)
            | PartType::InlineBinary(_)
            | PartType::Message(_) => {
                let kind = part.content_type().map(|kind| match kind.subtype() {
                    Some(subtype) => format!("{}/{subtype}", kind.ctype()),
                    None => kind.ctype().to_owned(),
                });
                body.attachments.push(CapturedAttachment::new(
                    part.attachment_name().unwrap_or_default().to_owned(),
                    kind.unwrap_or_default(),
                    part.content_id().map(str::to_owned),
                    part.contents().to_vec(),
                ));
            }
        }
    }
}

/// Whether a part is a file, though its type is that of a body.
fn is_file(part: &MessagePart<'_>) -> bool {
    part.content_disposition().is_some() || part.content_id().is_some()
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
