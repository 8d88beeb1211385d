//! SES' checks of SendEmail.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::model::{Attachment, Content, Header, SendEmail, Simple, Tag};
use crate::address::Mailbox;

const RECIPIENTS_MAX: usize = 50;
const HEADERS_MAX: usize = 15;
const HEADER_NAME_MAX: usize = 126;
const HEADER_VALUE_MAX: usize = 995;
const HEADER_MAX: usize = 996;
const TAG_MAX: usize = 256;
const TAGS_MAX: usize = 50;
const FILE_NAME_MAX: usize = 255;
/// Some of the file extensions that SES refuses (developer guide, "Unsupported attachment
/// types").
const REFUSED_TYPES: [&str; 16] = [
    "ade", "bat", "chm", "cmd", "com", "cpl", "exe", "hta", "js", "jse", "lnk", "msi", "pif",
    "scr", "vbs", "wsf",
];

/// Stops at the first problem; `Err` is the text of the BadRequestException.
pub(super) fn check(email: &SendEmail) -> Result<(), String> {
    let Some(content) = &email.content else {
        return Err(
            "1 validation error detected: Value at 'content' failed to satisfy \
            constraint: Member must not be null"
                .to_owned(),
        );
    };
    let given = [
        content.simple.is_some(),
        content.raw.is_some(),
        content.template.is_some(),
    ];
    if given.into_iter().filter(|given| *given).count() != 1 {
        return Err("Exactly one of 'Simple', 'Raw' and 'Template' must be specified.".to_owned());
    }
    let is_raw = content.raw.is_some();
    match email.from_email_address.as_deref() {
        Some(from) => check_address(from)?,
        None if is_raw => {}
        None => return Err("Missing required header 'From'.".to_owned()),
    }
    let count = email.destination.all().count();
    if count == 0 && !is_raw {
        return Err("Destination must have at least one recipient.".to_owned());
    }
    if count > RECIPIENTS_MAX {
        return Err(format!("Recipient count exceeds {RECIPIENTS_MAX}."));
    }
    let reply_to = email.reply_to_addresses.iter().map(String::as_str);
    for address in email.destination.all().chain(reply_to) {
        check_address(address)?;
    }
    email.email_tags.iter().try_for_each(check_tag)?;
    if email.email_tags.len() > TAGS_MAX {
        return Err(format!("At most {TAGS_MAX} tags may be given."));
    }
    check_content(content)
}

/// Checks that the local part and the display name are ASCII, and the domain too
/// (Punycode if necessary).
pub(super) fn check_address(text: &str) -> Result<(), String> {
    let Some(mailbox) = Mailbox::parse(text) else {
        let reason = if text.contains('@') {
            "Illegal address"
        } else {
            "Missing final '@domain'"
        };
        return Err(reason.to_owned());
    };
    if !mailbox.name.is_ascii() {
        return Err("Display name must be an RFC 2047 encoded word.".to_owned());
    }
    let (local, domain) = mailbox.address.rsplit_once('@').unwrap_or_default();
    if !local.is_ascii() {
        return Err("Local address contains control or non-ASCII characters.".to_owned());
    }
    if !domain
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    {
        return Err("Domain contains illegal character".to_owned());
    }
    Ok(())
}

fn check_content(content: &Content) -> Result<(), String> {
    let Some(simple) = &content.simple else {
        return Ok(());
    };
    let Simple {
        subject,
        body,
        headers,
        attachments,
    } = simple;
    if body.text.is_none() && body.html.is_none() {
        return Err("Body must have at least one of 'Text' and 'Html'.".to_owned());
    }
    if subject.data.contains(['\r', '\n']) {
        return Err("Subject must not contain line breaks.".to_owned());
    }
    if headers.len() > HEADERS_MAX {
        return Err(format!(
            "Value at 'content.simple.headers' failed to satisfy constraint: Member must have \
             length less than or equal to {HEADERS_MAX}"
        ));
    }
    headers.iter().try_for_each(check_header)?;
    attachments.iter().try_for_each(check_attachment)
}

fn check_header(header: &Header) -> Result<(), String> {
    let (name, value) = (&header.name, &header.value);
    let name_fits = (1..=HEADER_NAME_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b':');
    let value_fits = (1..=HEADER_VALUE_MAX).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if name_fits && value_fits && name.len() + value.len() <= HEADER_MAX {
        return Ok(());
    }
    Err(format!(
        "Value at 'content.simple.headers' failed to satisfy constraint: header '{name}' must \
         have a name of 1 to 126 and a value of 1 to 995 printable ASCII characters"
    ))
}

fn check_attachment(attachment: &Attachment) -> Result<(), String> {
    if attachment.file_name.is_empty() || attachment.file_name.chars().count() > FILE_NAME_MAX {
        return Err("Attachment file names must have 1 to 255 characters.".to_owned());
    }
    let extension = attachment.file_name.rsplit_once('.').unwrap_or_default().1;
    if REFUSED_TYPES.contains(&extension.to_ascii_lowercase().as_str()) {
        return Err(format!(
            "Attachments of the type .{extension} are not supported."
        ));
    }
    let disposition = attachment.content_disposition.as_deref();
    if !matches!(disposition, None | Some("ATTACHMENT" | "INLINE")) {
        return Err("ContentDisposition must be ATTACHMENT or INLINE.".to_owned());
    }
    if STANDARD.decode(&attachment.raw_content).is_err() {
        return Err("RawContent must be base64 encoded.".to_owned());
    }
    Ok(())
}

fn check_tag(tag: &Tag) -> Result<(), String> {
    let fits = |text: &str| {
        (1..=TAG_MAX).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    if fits(&tag.name) && fits(&tag.value) {
        return Ok(());
    }
    Err(format!(
        "Value of tag '{}' is invalid: only alphanumeric ASCII characters, '_' and '-' are allowed",
        tag.name
    ))
}
