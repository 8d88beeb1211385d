//! Postmark's checks of an email.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::model::Email;
use crate::address::{Mailbox, split_list};
use crate::domains::is_verified;

const RECIPIENTS_MAX: usize = 50;
const BODY_BYTES_MAX: usize = 5_000_000;
/// The whole message, with its files in base64.
const MESSAGE_BYTES_MAX: usize = 10_000_000;
/// Postmark's page "What file types can I send as attachments".
const REFUSED_TYPES: [&str; 31] = [
    "vbs", "exe", "bin", "bat", "chm", "com", "cpl", "crt", "hlp", "hta", "inf", "ins", "isp",
    "jse", "lnk", "mdb", "pcd", "pif", "reg", "scr", "sct", "shs", "vbe", "vba", "wsf", "wsh",
    "wsl", "msc", "msi", "msp", "mst",
];
const TAG_CHARACTERS_MAX: usize = 1_000;
const METADATA_FIELDS_MAX: usize = 10;
const METADATA_NAME_CHARACTERS_MAX: usize = 20;
const METADATA_VALUE_CHARACTERS_MAX: usize = 80;
const TRACK_LINKS: [&str; 4] = ["None", "HtmlAndText", "HtmlOnly", "TextOnly"];

/// An ErrorCode with its text.
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(code: u16, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(300, message)
    }
}

/// The addresses of a valid email.
pub(super) struct Recipients {
    pub(super) to: Vec<String>,
    pub(super) cc: Vec<String>,
    pub(super) bcc: Vec<String>,
}

impl Recipients {
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        let all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        all.map(String::as_str)
    }
}

/// Stops at the first problem, like the real service.
pub(super) fn check(email: &Email) -> Result<Recipients, Refusal> {
    let from = mailbox("From", &email.from)?;
    let recipients = Recipients {
        to: addresses("To", email.to.as_deref())?,
        cc: addresses("Cc", email.cc.as_deref())?,
        bcc: addresses("Bcc", email.bcc.as_deref())?,
    };
    match recipients.all().count() {
        0 => return Err(Refusal::invalid("Zero recipients specified")),
        count if count > RECIPIENTS_MAX => {
            return Err(Refusal::invalid(format!(
                "Too many recipients: {count}. The maximum number of recipients is {RECIPIENTS_MAX}."
            )));
        }
        _ => {}
    }
    for reply_to in split_list(email.reply_to.as_deref().unwrap_or_default()) {
        mailbox("ReplyTo", reply_to)?;
    }
    check_content(email)?;
    check_labels(email)?;
    if !is_verified(from) {
        return Err(Refusal::new(
            400,
            format!(
                "The 'From' address you supplied ({from}) is not a Sender Signature on your \
                 account. Please add and confirm this address in order to be able to use it in \
                 the 'From' field of your messages."
            ),
        ));
    }
    Ok(recipients)
}

fn check_content(email: &Email) -> Result<(), Refusal> {
    let bodies = [email.html_body.as_deref(), email.text_body.as_deref()];
    if bodies.iter().flatten().all(|body| body.is_empty()) {
        let message = "Provide either email TextBody or HtmlBody or both.";
        return Err(Refusal::invalid(message));
    }
    if bodies
        .iter()
        .flatten()
        .any(|body| body.len() > BODY_BYTES_MAX)
    {
        let message = "TextBody and HtmlBody may have at most 5 MB each.";
        return Err(Refusal::invalid(message));
    }
    for file in email.attachments.iter().flatten() {
        if file.name.is_empty() || STANDARD.decode(&file.content).is_err() {
            let message = format!("Invalid attachment content: '{}'.", file.name);
            return Err(Refusal::invalid(message));
        }
    }
    for file in email.attachments.iter().flatten() {
        let extension = file.name.rsplit_once('.').unwrap_or_default().1;
        if REFUSED_TYPES.contains(&extension.to_ascii_lowercase().as_str()) {
            let message = format!("The attachment '{}' has a forbidden file type.", file.name);
            return Err(Refusal::new(411, message));
        }
    }
    let files = email
        .attachments
        .iter()
        .flatten()
        .map(|file| file.content.len());
    let texts = bodies.iter().flatten().map(|body| body.len());
    if files.chain(texts).sum::<usize>() > MESSAGE_BYTES_MAX {
        return Err(Refusal::invalid("The message is larger than 10 MB."));
    }
    for header in email.headers.iter().flatten() {
        let name_fits = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        if header.name.is_empty()
            || !header.name.bytes().all(name_fits)
            || header.value.contains(['\r', '\n'])
        {
            let message = format!("Invalid header: '{}'.", header.name);
            return Err(Refusal::invalid(message));
        }
    }
    Ok(())
}

fn check_labels(email: &Email) -> Result<(), Refusal> {
    let tag = email.tag.as_deref().unwrap_or_default();
    if tag.chars().count() > TAG_CHARACTERS_MAX {
        return Err(Refusal::invalid(format!(
            "Tag may have at most {TAG_CHARACTERS_MAX} characters."
        )));
    }
    if let Some(metadata) = &email.metadata {
        if metadata.len() > METADATA_FIELDS_MAX {
            return Err(Refusal::invalid(format!(
                "Metadata may have at most {METADATA_FIELDS_MAX} fields."
            )));
        }
        for (name, value) in metadata {
            if name.is_empty() || name.chars().count() > METADATA_NAME_CHARACTERS_MAX {
                return Err(Refusal::invalid(format!(
                    "Metadata field name '{name}' exceeds the maximum of \
                     {METADATA_NAME_CHARACTERS_MAX} characters."
                )));
            }
            if value.chars().count() > METADATA_VALUE_CHARACTERS_MAX {
                return Err(Refusal::invalid(format!(
                    "Metadata value of field '{name}' exceeds the maximum of \
                     {METADATA_VALUE_CHARACTERS_MAX} characters."
                )));
            }
        }
    }
    let track_links = email.track_links.as_deref().unwrap_or("None");
    if !TRACK_LINKS.contains(&track_links) {
        return Err(Refusal::invalid("Invalid TrackLinks value."));
    }
    let stream = email.message_stream.as_deref().unwrap_or("outbound");
    if stream.contains("invalid") {
        return Err(Refusal::new(
            1235,
            format!("The 'MessageStream' provided ({stream}) does not exist on this server."),
        ));
    }
    if stream == "inbound" {
        return Err(Refusal::new(
            1236,
            "Sending is not supported on message stream 'inbound'.",
        ));
    }
    Ok(())
}

fn addresses(field: &str, list: Option<&str>) -> Result<Vec<String>, Refusal> {
    split_list(list.unwrap_or_default())
        .into_iter()
        .map(|text| mailbox(field, text).map(str::to_owned))
        .collect()
}

fn mailbox<'a>(field: &str, text: &'a str) -> Result<&'a str, Refusal> {
    match Mailbox::parse(text) {
        Some(mailbox) if mailbox.name_is_well_formed() => Ok(mailbox.address),
        _ => Err(Refusal::invalid(format!(
            "Invalid '{field}' address: '{text}'."
        ))),
    }
}
