//! Mailgun's checks of a send.

use serde_json::{Map, Value};

use super::form::Form;
use crate::address::Mailbox;

const RECIPIENTS_MAX: usize = 1_000;
/// By the documentation of 2024; newer accounts may have more.
const TAGS_MAX: usize = 3;
const TAG_BYTES_MAX: usize = 128;
/// All `o:`, `h:`, `v:` and `t:` parameters together.
const OPTIONS_BYTES_MAX: usize = 16 * 1024;
/// The message without the form around it.
const MESSAGE_BYTES_MAX: usize = 25 << 20;

/// A valid send.
pub(super) struct Checked {
    pub(super) to: Vec<String>,
    pub(super) cc: Vec<String>,
    pub(super) bcc: Vec<String>,
    pub(super) variables: Option<Map<String, Value>>,
}

impl Checked {
    pub(super) fn recipients(&self) -> impl Iterator<Item = &str> {
        let all = self.to.iter().chain(&self.cc).chain(&self.bcc);
        all.map(String::as_str)
    }
}

/// Stops at the first problem; `Err` is the text of the rejection.
pub(super) fn check(form: &Form) -> Result<Checked, String> {
    let from = form.get("from").ok_or("from parameter is missing")?;
    if Mailbox::parse(from).is_none() {
        return Err(not_an_address("from"));
    }
    if form.get("to").is_none() {
        return Err("to parameter is missing".to_owned());
    }
    let (to, cc, bcc) = (
        addresses(form, "to")?,
        addresses(form, "cc")?,
        addresses(form, "bcc")?,
    );
    if to.len() + cc.len() + bcc.len() > RECIPIENTS_MAX {
        return Err(format!("Too many recipients, max is {RECIPIENTS_MAX}"));
    }
    let has_template = form.get("template").is_some();
    if form.get("subject").is_none() && !has_template {
        return Err("subject parameter is missing".to_owned());
    }
    let bodies = ["text", "html", "amp-html"];
    if !has_template && bodies.iter().all(|name| form.get(name).is_none()) {
        return Err(
            "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified"
                .to_owned(),
        );
    }
    check_options(form)?;
    check_size(form)?;
    let variables = form
        .recipient_variables()
        .map_err(|()| "recipient-variables parameter is not valid JSON".to_owned())?;
    if variables
        .as_ref()
        .is_some_and(|all| all.len() > RECIPIENTS_MAX)
    {
        return Err(format!("Too many recipients, max is {RECIPIENTS_MAX}"));
    }
    Ok(Checked {
        to,
        cc,
        bcc,
        variables,
    })
}

fn check_options(form: &Form) -> Result<(), String> {
    let prefixes = ["o:", "h:", "v:", "t:"];
    let options = form
        .fields
        .iter()
        .filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let bytes: usize = options.map(|(name, value)| name.len() + value.len()).sum();
    if bytes > OPTIONS_BYTES_MAX {
        return Err(
            "Send options (parameters starting with o:, h:, v:, or t:) are limited to 16 kB total"
                .to_owned(),
        );
    }
    for (name, value) in form.prefixed("h:") {
        let fits = |byte: u8| byte.is_ascii_graphic() && byte != b':';
        if name.is_empty() || !name.bytes().all(fits) || value.contains(['\r', '\n']) {
            return Err(format!("h:{name} parameter is not a valid header"));
        }
    }
    if form.all("o:tag").count() > TAGS_MAX {
        return Err(format!("o:tag parameter: too many tags, max is {TAGS_MAX}"));
    }
    if form
        .all("o:tag")
        .any(|tag| tag.len() > TAG_BYTES_MAX || !tag.is_ascii())
    {
        return Err("o:tag parameter must be ASCII, 128 characters at most".to_owned());
    }
    for name in ["o:tracking", "o:tracking-clicks", "o:tracking-opens"] {
        let fits = match form.get(name) {
            None | Some("yes" | "no" | "true" | "false") => true,
            Some("htmlonly") => name != "o:tracking-opens",
            Some(_) => false,
        };
        if !fits {
            return Err(format!("{name} parameter is not valid"));
        }
    }
    Ok(())
}

fn check_size(form: &Form) -> Result<(), String> {
    let texts: usize = form.fields.iter().map(|(_, value)| value.len()).sum();
    let files: usize = form.attachments.iter().map(|file| file.bytes).sum();
    if texts + files > MESSAGE_BYTES_MAX {
        return Err("Message is too large, max is 25 MB".to_owned());
    }
    Ok(())
}

fn addresses(form: &Form, name: &str) -> Result<Vec<String>, String> {
    form.mailboxes(name)
        .into_iter()
        .map(|text| {
            let mailbox = Mailbox::parse(text).ok_or_else(|| not_an_address(name))?;
            Ok(mailbox.address.to_owned())
        })
        .collect()
}

pub(super) fn not_an_address(parameter: &str) -> String {
    format!("{parameter} parameter is not a valid address. please check documentation")
}
