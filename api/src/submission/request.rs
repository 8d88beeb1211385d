//! Makes of a mail the request of `POST /v1/send`, without I/O. The rules for its fields are
//! those of the API; here is only what SMTP has besides: the envelope, the header, the parts.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use waypost_core::acceptance::attachment_names::{
    check_content_id, check_content_type, check_filename,
};
use waypost_core::acceptance::headers;
use waypost_core::acceptance::headers::path_of;
use waypost_core::address::{AddressHash, EmailAddress};
use waypost_core::attachment::{AttachmentContent, AttachmentSource, COUNT_MAX};
use waypost_core::idempotency::fingerprint::{self, BodyHash};
use waypost_core::issue::Issue;
use waypost_core::submission::mail::{
    HeaderAddress, HeaderField, MailError, SubmittedFile, SubmittedMail,
};

use super::waypost_headers;

/// A mail as the request of `POST /v1/send`.
pub(super) struct MailRequest {
    /// The members of the request, without its attachments.
    pub(super) members: Map<String, Value>,
    pub(super) files: Vec<AttachmentSource>,
    /// The text of `X-Waypost-Idempotency-Key`.
    pub(super) key: Option<String>,
    /// What makes a repeated mail known: its Message-ID, the envelope and the content together.
    /// `None` without a Message-ID.
    pub(super) repeat_key: Option<String>,
    /// The hash of the request.
    pub(super) hash: BodyHash,
    /// Mistakes that are found here.
    pub(super) issues: Vec<Issue>,
}

impl MailRequest {
    /// Reads a mail to the addresses of the envelope.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn read(mail: &[u8], envelope: &[EmailAddress]) -> Result<Self, MailError> {
        let mail = SubmittedMail::read(mail)?;
        let mut issues = Vec::new();
        let mut members = Map::new();
        add_recipients(&mail.fields, envelope, &mut members);
        add_sender(&mail.fields, &mut members, &mut issues);
        add_headers(&mail.fields, &mut members, &mut issues);
        let SubmittedMail {
            fields,
            text,
            html,
            files,
        } = mail;
        let files = attachments(files, html.as_deref(), &mut issues);
        add_bodies(text, html, &mut members);
        let hash = hash_of(&members, &files);
        let key = find(&fields, waypost_headers::IDEMPOTENCY_KEY).map(HeaderField::text);
        let message_id = find(&fields, "Message-ID").map(HeaderField::unfolded);
        let message_id = message_id.filter(|id| !id.is_empty());
        Ok(Self {
            repeat_key: message_id.map(|id| repeat_key(&id, envelope, hash)),
            members,
            files,
            key,
            hash,
            issues,
        })
    }
}

fn find<'f, 'a>(fields: &'f [HeaderField<'a>], name: &str) -> Option<&'f HeaderField<'a>> {
    fields.iter().find(|field| field.is(name))
}

/// All addresses of the headers of a name.
fn addresses(fields: &[HeaderField<'_>], name: &str) -> Vec<HeaderAddress> {
    let fields = fields.iter().filter(|field| field.is(name));
    fields.flat_map(HeaderField::addresses).collect()
}

/// An address as a field of the request has it.
fn mailbox(address: HeaderAddress) -> String {
    match address.name.filter(|name| !name.is_empty()) {
        None => address.address,
        Some(name) => {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            format!("\"{name}\" <{}>", address.address)
        }
    }
}

/// The recipients are the addresses of the envelope. Those that the header names in To and Cc
/// are there in the message too, and the others get a blind copy. If the header names none of
/// them, as that of a mailing list, each gets a mail of its own.
fn add_recipients(
    fields: &[HeaderField<'_>],
    envelope: &[EmailAddress],
    members: &mut Map<String, Value>,
) {
    let mut left: HashSet<AddressHash> = envelope.iter().map(EmailAddress::hash).collect();
    let mut named = |name| {
        let named = addresses(fields, name).into_iter().filter(|named| {
            let address = EmailAddress::parse(&named.address);
            address.is_ok_and(|address| left.remove(&address.hash()))
        });
        named.map(mailbox).collect::<Vec<String>>()
    };
    let (mut to, mut cc) = (named("To"), named("Cc"));
    if to.is_empty() {
        to = std::mem::take(&mut cc);
    }
    let others = envelope.iter();
    let others = others.filter(|address| left.remove(&address.hash()));
    let others = others.map(|address| address.as_str().to_owned());
    if to.is_empty() {
        members.insert("to".to_owned(), others.collect());
        return;
    }
    let bcc: Vec<String> = others.collect();
    if to.len() > 1 || !cc.is_empty() || !bcc.is_empty() {
        members.insert("delivery".to_owned(), json!("shared"));
    }
    for (name, list) in [("to", to), ("cc", cc), ("bcc", bcc)] {
        if !list.is_empty() {
            members.insert(name.to_owned(), list.into());
        }
    }
}

fn add_sender(
    fields: &[HeaderField<'_>],
    members: &mut Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    let mut from = addresses(fields, "From");
    match (from.pop(), from.is_empty()) {
        (Some(only), true) => {
            members.insert("from".to_owned(), mailbox(only).into());
        }
        (Some(_), false) => {
            // Given, so that it is not required besides.
            members.insert("from".to_owned(), json!("several@example.com"));
            issues.push(Issue::new("from", "must be one address"));
        }
        (None, _) => {}
    }
    let reply_to = addresses(fields, "Reply-To");
    if !reply_to.is_empty() {
        let reply_to = reply_to.into_iter().map(mailbox);
        members.insert("replyTo".to_owned(), reply_to.collect());
    }
    let subject = find(fields, "Subject").map(HeaderField::text);
    if let Some(subject) = subject.filter(|subject| !subject.is_empty()) {
        members.insert("subject".to_owned(), subject.into());
    }
}

/// The headers that are not written anew, of which some have become fields of the request. One
/// that says nothing is left out.
fn add_headers(
    fields: &[HeaderField<'_>],
    members: &mut Map<String, Value>,
    issues: &mut Vec<Issue>,
) {
    const REPEATED: &str = "must not be given twice; upper and lower case do not matter";
    let mut others = Map::new();
    let mut seen = HashSet::new();
    for field in fields {
        let lower = field.name.to_ascii_lowercase();
        if headers::is_written(&lower) {
            continue;
        }
        if !seen.insert(lower) {
            issues.push(Issue::new(path_of(field.name), REPEATED));
        } else if waypost_headers::is_one(field) {
            waypost_headers::add(field, members, issues);
        } else {
            let value = field.unfolded();
            if !value.is_empty() {
                others.insert(field.name.to_owned(), value.into());
            }
        }
    }
    if !others.is_empty() {
        members.insert("headers".to_owned(), others.into());
    }
}

/// A mail without any text has an empty line, unless a template gives it one: mail programs
/// send such mails. Blank bodies give way to those of a template.
fn add_bodies(text: Option<String>, html: Option<String>, members: &mut Map<String, Value>) {
    let has_template = members.contains_key("templateId");
    let given = |body: &String| !(has_template && body.trim().is_empty());
    let (text, html) = (text.filter(given), html.filter(given));
    let is_empty = text.is_none() && html.is_none() && !has_template;
    let text = text.or_else(|| is_empty.then(|| "\n".to_owned()));
    for (name, body) in [("text", text), ("html", html)] {
        if let Some(body) = body {
            members.insert(name.to_owned(), body.into());
        }
    }
}

/// The files of a mail as attachments, by the rules of the API for their names.
fn attachments(
    files: Vec<SubmittedFile>,
    html: Option<&str>,
    issues: &mut Vec<Issue>,
) -> Vec<AttachmentSource> {
    let count = files.len();
    if count > COUNT_MAX {
        let message = format!("must not have more than {COUNT_MAX} attachments; there are {count}");
        issues.push(Issue::new("attachments", message));
    }
    let mut sources: Vec<AttachmentSource> = Vec::with_capacity(count.min(COUNT_MAX));
    for (index, file) in files.into_iter().enumerate().take(COUNT_MAX) {
        let path = |field: &str| format!("attachments.{index}.{field}");
        let content_type = content_type(&file.content_type);
        let filename = file.filename.unwrap_or_else(|| {
            let essence = content_type.as_deref().unwrap_or_default();
            format!("attachment-{}.{}", index + 1, extension(essence))
        });
        if let Err(rule) = check_filename(&filename) {
            issues.push(Issue::new(path("filename"), rule));
        }
        // An id that nothing shows only hides the file.
        let content_id = file.content_id.filter(|id| {
            let is_shown = html.is_some_and(|html| shows(html, id));
            !id.is_empty() && is_shown
        });
        if let Some(Err(rule)) = content_id.as_deref().map(check_content_id) {
            issues.push(Issue::new(path("contentId"), rule));
        }
        let mut others = sources.iter().filter_map(|other| other.content_id.as_ref());
        if content_id
            .as_ref()
            .is_some_and(|id| others.any(|other| other == id))
        {
            let message = "must not be that of another attachment";
            issues.push(Issue::new(path("contentId"), message));
        }
        sources.push(AttachmentSource {
            filename,
            content_type,
            content_id,
            content: AttachmentContent::Decoded(file.content.into()),
        });
    }
    sources
}

/// Whether an HTML body loads the file with this content id.
fn shows(html: &str, id: &str) -> bool {
    let after_scheme = html
        .match_indices("cid:")
        .map(|(at, scheme)| &html[at + scheme.len()..]);
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ')' | '>' | '<');
    let mut ids = after_scheme.map(|rest| rest.split(ends).next().unwrap_or_default());
    ids.any(|shown| shown == id || percent_decode_str(shown).decode_utf8_lossy() == id)
}

/// A media type that a message may have: without its parameters if these are unusual. `None`
/// leaves it to the name of the file.
fn content_type(given: &str) -> Option<String> {
    let essence = given.split(';').next().unwrap_or_default().trim();
    let candidates = [given, essence].into_iter();
    let mut valid = candidates.filter(|one| check_content_type(one).is_ok());
    valid.next().map(ToOwned::to_owned)
}

/// The extension of a file that has no name.
fn extension(content_type: &str) -> &'static str {
    match content_type.split(';').next().unwrap_or_default() {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "application/pgp-signature" => "asc",
        "image/gif" => "gif",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "image/webp" => "webp",
        "message/rfc822" | "message/global" => "eml",
        "text/calendar" => "ics",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/plain" => "txt",
        _ => "bin",
    }
}

/// The hash of a request with its files.
fn hash_of(members: &Map<String, Value>, files: &[AttachmentSource]) -> BodyHash {
    let mut hash = Sha256::new();
    for member in members {
        let (name, value) = member;
        hash.update(fingerprint::of_text(name).0);
        hash.update(fingerprint::of(value).0);
    }
    for file in files {
        let AttachmentContent::Decoded(content) = &file.content else {
            continue;
        };
        let names = json!([file.filename, file.content_type, file.content_id]);
        hash.update(fingerprint::of(&names).0);
        hash.update(Sha256::digest(content));
    }
    BodyHash(hash.finalize().into())
}

/// The key of a mail without one. It has the content, since programs use a Message-ID for
/// several mails, and the envelope, since a server may send one mail in several transactions.
fn repeat_key(message_id: &str, envelope: &[EmailAddress], content: BodyHash) -> String {
    let mut hashes: Vec<AddressHash> = envelope.iter().map(EmailAddress::hash).collect();
    hashes.sort_unstable();
    let mut hash = Sha256::new();
    hash.update(fingerprint::of_text(message_id).0);
    hash.update(content.0);
    for address in hashes {
        hash.update(address.0);
    }
    hex::encode(hash.finalize())
}
