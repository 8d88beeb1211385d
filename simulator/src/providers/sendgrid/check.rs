//! SendGrid's checks of a message, made before those of the sender.

use std::collections::{BTreeMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Problem;
use super::model::{Mail, Personalization};
use crate::address::is_address;
use crate::clock;

const PERSONALIZATIONS_MAX: usize = 1_000;
const RECIPIENTS_MAX: usize = 1_000;
const REPLY_TO_MAX: usize = 1_000;
const CATEGORIES_MAX: usize = 10;
const CATEGORY_CHARACTERS_MAX: usize = 255;
const CUSTOM_ARGS_BYTES_MAX: usize = 10_000;
const SUBSTITUTIONS_BYTES_MAX: usize = 10_000;
const SEND_AHEAD_SECONDS_MAX: i64 = 72 * 3600;
const REFUSED_HEADERS: [&str; 12] = [
    "x-sg-id",
    "x-sg-eid",
    "received",
    "dkim-signature",
    "content-type",
    "content-transfer-encoding",
    "to",
    "from",
    "subject",
    "reply-to",
    "cc",
    "bcc",
];
pub(super) const INVALID_ADDRESS: &str = "Does not contain a valid address.";

/// All problems of a message.
pub(super) fn check(mail: &Mail) -> Vec<Problem> {
    let mut found = Vec::new();
    check_sender(mail, &mut found);
    check_personalizations(mail, &mut found);
    check_content(mail, &mut found);
    check_headers(mail.headers.as_ref(), "headers", &mut found);
    check_labels(mail, &mut found);
    found
}

fn check_sender(mail: &Mail, found: &mut Vec<Problem>) {
    match &mail.from {
        None => found.push(Problem::new(
            "from",
            "The from object must be provided for every email send. It is an object that requires \
             the email parameter, but may also contain a name parameter.",
        )),
        Some(from) if !is_address(&from.email) => {
            found.push(Problem::new("from.email", INVALID_ADDRESS));
        }
        Some(_) => {}
    }
    if mail
        .reply_to
        .as_ref()
        .is_some_and(|one| !is_address(&one.email))
    {
        found.push(Problem::new("reply_to.email", INVALID_ADDRESS));
    }
    let Some(list) = &mail.reply_to_list else {
        return;
    };
    if mail.reply_to.is_some() {
        let message = "Only one of reply_to and reply_to_list may be used.";
        found.push(Problem::new("reply_to_list", message));
    }
    if list.len() > REPLY_TO_MAX || !list.iter().all(|one| is_address(&one.email)) {
        found.push(Problem::new("reply_to_list", INVALID_ADDRESS));
    }
}

fn check_personalizations(mail: &Mail, found: &mut Vec<Problem>) {
    if mail.personalizations.is_empty() || mail.personalizations.len() > PERSONALIZATIONS_MAX {
        found.push(Problem::new(
            "personalizations",
            "The personalizations field is required and must have at least one and at most 1000 \
             personalizations.",
        ));
    }
    let total: usize = mail
        .personalizations
        .iter()
        .map(|one| one.recipients().count())
        .sum();
    if total > RECIPIENTS_MAX {
        let message = "The total number of recipients must be no more than 1000.";
        found.push(Problem::new("personalizations", message));
    }
    for (at, personalization) in mail.personalizations.iter().enumerate() {
        check_personalization(mail, at, personalization, found);
    }
}

fn check_personalization(
    mail: &Mail,
    at: usize,
    personalization: &Personalization,
    found: &mut Vec<Problem>,
) {
    let field = |name: &str| format!("personalizations.{at}.{name}");
    if personalization.to.is_empty() {
        let message = "The to array is required for all personalization objects, and must have \
            at least one email object with a valid email address.";
        found.push(Problem::new(field("to"), message));
    }
    let lists = [
        ("to", &personalization.to),
        ("cc", &personalization.cc),
        ("bcc", &personalization.bcc),
    ];
    for (list, people) in lists {
        for (index, _) in people
            .iter()
            .enumerate()
            .filter(|(_, one)| !is_address(&one.email))
        {
            found.push(Problem::new(
                field(&format!("{list}.{index}.email")),
                INVALID_ADDRESS,
            ));
        }
    }
    if has_duplicates(personalization) {
        found.push(Problem::new(
            "personalizations",
            "Each email address in the personalization block should be unique between to, cc, and \
             bcc.",
        ));
    }
    if personalization
        .from
        .as_ref()
        .is_some_and(|from| !is_address(&from.email))
    {
        found.push(Problem::new(field("from.email"), INVALID_ADDRESS));
    }
    let subject = personalization.subject.as_ref().or(mail.subject.as_ref());
    if subject.is_none_or(String::is_empty) && mail.template_id.is_none() {
        found.push(Problem::new(
            "subject",
            "The subject is required. You can get around this requirement if you use a template \
             with a subject defined or if every personalization has a subject defined.",
        ));
    }
    check_headers(personalization.headers.as_ref(), &field("headers"), found);
    let custom_args = [
        mail.custom_args.as_ref(),
        personalization.custom_args.as_ref(),
    ];
    if custom_args
        .into_iter()
        .flatten()
        .map(json_bytes)
        .sum::<usize>()
        > CUSTOM_ARGS_BYTES_MAX
    {
        let message = "The custom_args may be no more than 10000 bytes.";
        found.push(Problem::new(field("custom_args"), message));
    }
    if personalization.substitutions.as_ref().map_or(0, json_bytes) > SUBSTITUTIONS_BYTES_MAX {
        let message = "The substitutions may be no more than 10000 bytes.";
        found.push(Problem::new(field("substitutions"), message));
    }
    check_send_at(personalization.send_at, &field("send_at"), found);
}

/// Fast for a single recipient, the usual case.
fn has_duplicates(personalization: &Personalization) -> bool {
    let mut seen = HashSet::new();
    personalization.recipients().nth(1).is_some()
        && personalization
            .recipients()
            .any(|one| !seen.insert(one.email.to_ascii_lowercase()))
}

fn check_content(mail: &Mail, found: &mut Vec<Problem>) {
    let content = mail.content.as_deref().unwrap_or_default();
    if content.is_empty() && mail.template_id.is_none() {
        let message = "Unless a valid template_id is provided, the content parameter is required. \
            There must be at least one defined content block.";
        found.push(Problem::new("content", message));
    }
    for (at, part) in content.iter().enumerate() {
        if part.kind.is_empty() {
            let message = "The content type must be a string at least one character in length.";
            found.push(Problem::new(format!("content.{at}.type"), message));
        }
        if part.value.is_empty() {
            let message = "The content value must be a string at least one character in length.";
            found.push(Problem::new(format!("content.{at}.value"), message));
        }
    }
    let html_at = content.iter().position(|part| part.kind == "text/html");
    let text_at = content.iter().position(|part| part.kind == "text/plain");
    if matches!((text_at, html_at), (Some(text), Some(html)) if text > html) {
        let message = "If present, text/plain must be first, followed by text/html, followed by \
            any other content.";
        found.push(Problem::new("content", message));
    }
    for (at, file) in mail.attachments.iter().flatten().enumerate() {
        let field = |name: &str| format!("attachments.{at}.{name}");
        if file.content.is_empty() || STANDARD.decode(&file.content).is_err() {
            let message = "The attachment content must be base64 encoded and not empty.";
            found.push(Problem::new(field("content"), message));
        }
        if file.filename.is_empty() {
            let message = "The filename of the attachment must be a string.";
            found.push(Problem::new(field("filename"), message));
        }
        let disposition = file.disposition.as_deref().unwrap_or("attachment");
        if !matches!(disposition, "attachment" | "inline") {
            let message = "The disposition must be inline or attachment.";
            found.push(Problem::new(field("disposition"), message));
        }
    }
}

fn check_headers(
    headers: Option<&BTreeMap<String, String>>,
    field: &str,
    found: &mut Vec<Problem>,
) {
    for name in headers.into_iter().flat_map(BTreeMap::keys) {
        if REFUSED_HEADERS
            .iter()
            .any(|refused| refused.eq_ignore_ascii_case(name))
        {
            let message = format!("The {name} header is reserved and may not be set.");
            found.push(Problem::new(format!("{field}.{name}"), message));
        } else if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            let message = "Header names must be non-empty ASCII without spaces.";
            found.push(Problem::new(field, message));
        }
    }
}

fn check_labels(mail: &Mail, found: &mut Vec<Problem>) {
    let categories = mail.categories.as_deref().unwrap_or_default();
    if categories.len() > CATEGORIES_MAX {
        let message = "You can only assign up to 10 categories per message.";
        found.push(Problem::new("categories", message));
    }
    if categories
        .iter()
        .any(|one| one.chars().count() > CATEGORY_CHARACTERS_MAX)
    {
        let message = "Category names cannot be longer than 255 characters.";
        found.push(Problem::new("categories", message));
    }
    if categories.iter().collect::<HashSet<_>>().len() != categories.len() {
        let message = "Categories must be unique.";
        found.push(Problem::new("categories", message));
    }
    check_send_at(mail.send_at, "send_at", found);
}

fn check_send_at(send_at: Option<i64>, field: &str, found: &mut Vec<Problem>) {
    if send_at.is_some_and(|at| at > clock::now().timestamp() + SEND_AHEAD_SECONDS_MAX) {
        let message = "Scheduling email more than 72 hours in advance is forbidden.";
        found.push(Problem::new(field, message));
    }
}

/// The length of an object of strings as compact JSON, without escapes.
fn json_bytes(object: &BTreeMap<String, String>) -> usize {
    2 + object
        .iter()
        .map(|(name, value)| name.len() + value.len() + 6)
        .sum::<usize>()
}
