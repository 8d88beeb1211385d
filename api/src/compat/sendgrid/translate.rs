//! A request of SendGrid as messages of Waypost.

use std::collections::HashSet;

use chrono::SecondsFormat;
use serde_json::{Map, Value, json};
use waypost_core::address::Mailbox;
use waypost_core::clock::Timestamp;
use waypost_core::ids::TemplateId;
use waypost_core::issue::Issue;

use super::fields::FIELDS;
use super::personalization::{Personalization, SendAt, mailboxes, one_mailbox, send_at};
use super::settings::{self, MailBodies};
use crate::compat::given::Given;
use crate::compat::templates;
use crate::compat::texts::{text, texts};
use crate::compat::translation::Translation;

/// The most personalizations of a request.
const PERSONALIZATIONS_MAX: usize = 1_000;
/// The most bytes of the bodies of all messages of a request, where each has its own.
const BODIES_BYTES_MAX: usize = 32 << 20;

/// The template of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum MailTemplate {
    None,
    /// There is none with this id.
    Unknown,
    Known {
        id: TemplateId,
        /// Whether its current version has a subject.
        has_subject: bool,
    },
}

/// The messages of a request.
pub(super) struct Mail {
    /// At least one. The first has the attachments; they are those of all.
    pub(super) messages: Vec<Translation>,
    /// Whether the request only tries out.
    pub(super) is_sandbox: bool,
}

/// What all personalizations of a request share.
struct Common {
    from: Option<Mailbox>,
    reply_to: Option<(&'static str, Vec<Mailbox>)>,
    subject: Option<String>,
    bodies: MailBodies,
    headers: Option<Map<String, Value>>,
    template: MailTemplate,
    categories: Option<Value>,
    custom_args: Option<Map<String, Value>>,
    send_at: Option<SendAt>,
    group: Option<Value>,
    tracking: Map<String, Value>,
    is_sandbox: bool,
}

/// The messages of a request. A `send_at` up to `now` is at once.
///
/// # Errors
/// It is no object, or nobody is named. All other mistakes are in the first message.
pub(super) fn mail(
    value: Value,
    template: MailTemplate,
    now: Timestamp,
) -> Result<Mail, Vec<Issue>> {
    let mut given = Given::body(FIELDS, value)?;
    let mut issues = Vec::new();
    let personalizations = personalizations(&mut given, &mut issues);
    let mut first = Translation::default();
    settings::attachments(&mut given, &mut first);
    let common = Common::take(&mut given, template, &mut issues);
    given.finish(&mut issues);
    common.check(&personalizations, &mut issues);
    issues.append(&mut first.issues);
    if personalizations.is_empty() {
        return Err(issues);
    }
    let mut messages = Vec::new();
    if is_one_message(&personalizations) {
        common.shared_message(&mut first, personalizations, now);
        messages.push(first);
    } else {
        let mut bytes = 0;
        for personalization in personalizations {
            let mut message = match messages.is_empty() {
                true => std::mem::take(&mut first),
                false => Translation::default(),
            };
            bytes += common.own_message(&mut message, personalization, now);
            issues.append(&mut message.issues);
            messages.push(message);
            if bytes > BODIES_BYTES_MAX {
                let rule = format!("must not make more than {BODIES_BYTES_MAX} bytes of content");
                issues.push(Issue::new("personalizations", rule));
                break;
            }
        }
    }
    if !issues.is_empty() {
        // The others repeat what the first shows.
        messages.truncate(1);
        messages[0].issues.append(&mut issues);
    }
    Ok(Mail {
        messages,
        is_sandbox: common.is_sandbox,
    })
}

fn personalizations(given: &mut Given, issues: &mut Vec<Issue>) -> Vec<Personalization> {
    const NAME: &str = "personalizations";
    if !given.has(NAME) {
        issues.push(Issue::new(NAME, "is required"));
    }
    let Some(items) = given.objects(NAME, issues) else {
        return Vec::new();
    };
    if items.is_empty() || items.len() > PERSONALIZATIONS_MAX {
        let count = items.len();
        let rule = format!("must have 1 to {PERSONALIZATIONS_MAX} items; there are {count}");
        issues.push(Issue::new(NAME, rule));
        return Vec::new();
    }
    let items = items.into_iter().map(|item| {
        let path = item.path().to_owned();
        Personalization::take(path, item, issues)
    });
    items.collect()
}

/// Whether the personalizations can be the recipients of one message: each address stands once.
fn is_one_message(personalizations: &[Personalization]) -> bool {
    let mut seen = HashSet::new();
    personalizations.len() > 1
        && personalizations.iter().all(Personalization::is_plain)
        && personalizations
            .iter()
            .flat_map(Personalization::hashes)
            .all(|hash| seen.insert(hash))
}

impl Common {
    fn take(given: &mut Given, template: MailTemplate, issues: &mut Vec<Issue>) -> Self {
        if !given.has("from") {
            issues.push(Issue::new("from", "is required"));
        }
        let template = match given.take("template_id") {
            None => MailTemplate::None,
            Some(_) => template,
        };
        if matches!(template, MailTemplate::Unknown) {
            issues.push(Issue::new("template_id", templates::UNKNOWN));
        }
        let bodies = MailBodies::take(given, issues);
        Self {
            from: one_mailbox(given, "from", issues),
            reply_to: reply_to(given, issues),
            subject: text(given, "subject", issues),
            headers: texts(given, "headers", issues),
            categories: given.take("categories"),
            custom_args: texts(given, "custom_args", issues),
            send_at: send_at(given, issues),
            group: settings::group(given, issues),
            is_sandbox: settings::mail(given, issues),
            tracking: settings::tracking(given, &bodies, template, issues),
            bodies,
            template,
        }
    }

    /// What must be together.
    fn check(&self, personalizations: &[Personalization], issues: &mut Vec<Issue>) {
        let has_template = !matches!(self.template, MailTemplate::None);
        if !has_template && self.bodies.is_empty() {
            issues.push(Issue::new(
                "content",
                "is required unless template_id is given",
            ));
        }
        for personalization in personalizations {
            let path = &personalization.path;
            if personalization.data.is_some() && !has_template {
                issues.push(Issue::new(
                    format!("{path}.dynamic_template_data"),
                    "must not be given without template_id",
                ));
            }
            let Some(substitutions) = &personalization.substitutions else {
                continue;
            };
            let path = format!("{path}.substitutions");
            let replies = self.reply_to.iter().flat_map(|(_, replies)| replies);
            if has_template {
                let rule = "must not be given together with template_id; use dynamic_template_data";
                issues.push(Issue::new(path, rule));
            } else if replies
                .map(Mailbox::to_header)
                .any(|reply| substitutions.is_in(&reply))
            {
                issues.push(Issue::new(path, "must not replace anything in reply_to"));
            }
        }
    }

    /// One message to all, each of whom gets a mail of their own.
    fn shared_message(
        &self,
        message: &mut Translation,
        personalizations: Vec<Personalization>,
        now: Timestamp,
    ) {
        let mut recipients = Vec::with_capacity(personalizations.len());
        for (index, personalization) in personalizations.into_iter().enumerate() {
            let Personalization {
                path,
                to,
                data,
                custom_args,
                ..
            } = personalization;
            let ours = format!("to.{index}");
            message.name(
                format!("{ours}.variables"),
                format!("{path}.dynamic_template_data"),
            );
            message.name(format!("{ours}.metadata"), format!("{path}.custom_args"));
            message.name(ours, format!("{path}.to.0"));
            let mut recipient = Map::new();
            for mailbox in &to {
                recipient.insert("email".to_owned(), json!(mailbox.address().as_str()));
                recipient.extend(mailbox.name().map(|name| ("name".to_owned(), json!(name))));
            }
            recipient.extend(data.map(|data| ("variables".to_owned(), data)));
            let args = custom_args.map(|args| ("metadata".to_owned(), Value::Object(args)));
            recipient.extend(args);
            recipients.push(Value::Object(recipient));
        }
        message.put("to", "personalizations", Value::Array(recipients));
        message.put("delivery", "personalizations", json!("private"));
        if let Some(args) = &self.custom_args {
            message.put("metadata", "custom_args", Value::Object(args.clone()));
        }
        self.from(message, None);
        self.subject(message, self.subject.clone(), "subject");
        self.headers(message, None);
        self.scheduled_at(message, self.send_at.clone(), now);
        self.put_rest(message);
        self.put_bodies(message, self.bodies.html.clone(), self.bodies.text.clone());
    }

    /// The message of one personalization; returns the bytes of its bodies.
    fn own_message(
        &self,
        message: &mut Translation,
        personalization: Personalization,
        now: Timestamp,
    ) -> usize {
        let Personalization {
            path,
            to,
            cc,
            bcc,
            from,
            subject,
            headers,
            substitutions,
            data,
            custom_args,
            send_at,
        } = personalization;
        if to.len() > 1 {
            message.put("delivery", format!("{path}.to"), json!("shared"));
        }
        for (name, mailboxes) in [("to", to), ("cc", cc), ("bcc", bcc)] {
            let texts: Vec<Value> = mailboxes.iter().map(header).collect();
            message.put(name, format!("{path}.{name}"), Value::Array(texts));
        }
        self.from(message, from.map(|from| (from, format!("{path}.from"))));
        let replaced = |text: &String| match &substitutions {
            None => Some(text.clone()),
            Some(substitutions) => substitutions.replaced(text),
        };
        let subject_path = match &subject {
            Some(_) => format!("{path}.subject"),
            None => "subject".to_owned(),
        };
        let subject = subject.as_ref().or(self.subject.as_ref());
        let given = [
            subject,
            self.bodies.html.as_ref(),
            self.bodies.text.as_ref(),
        ];
        let [subject, html, text] = given.map(|text| text.map(replaced));
        if [&subject, &html, &text]
            .into_iter()
            .any(|text| *text == Some(None))
        {
            let rule = format!(
                "must not make a text larger than {} bytes",
                super::substitutions::RESULT_BYTES_MAX
            );
            message.refuse(format!("{path}.substitutions"), rule);
        }
        self.subject(message, subject.flatten(), &subject_path);
        self.headers(message, headers.map(|own| (own, format!("{path}.headers"))));
        if let Some(data) = data {
            message.put("variables", format!("{path}.dynamic_template_data"), data);
        }
        let mut metadata = self.custom_args.clone().unwrap_or_default();
        metadata.extend(custom_args.unwrap_or_default());
        if !metadata.is_empty() {
            message.put(
                "metadata",
                format!("{path}.custom_args"),
                Value::Object(metadata),
            );
        }
        self.scheduled_at(message, send_at.or_else(|| self.send_at.clone()), now);
        self.put_rest(message);
        self.put_bodies(message, html.flatten(), text.flatten())
    }

    fn from(&self, message: &mut Translation, own: Option<(Mailbox, String)>) {
        message.name("from", "from");
        let from = own.or_else(|| Some((self.from.clone()?, "from".to_owned())));
        if let Some((from, path)) = from {
            message.put("from", path, header(&from));
        }
    }

    /// As with SendGrid, the subject of a template comes first.
    fn subject(&self, message: &mut Translation, subject: Option<String>, path: &str) {
        let of_template = match self.template {
            MailTemplate::None => None,
            MailTemplate::Unknown => Some(true),
            MailTemplate::Known { has_subject, .. } => Some(has_subject),
        };
        message.name("subject", path);
        match (subject, of_template) {
            (_, Some(true)) => {}
            (Some(subject), Some(false) | None) => message.put("subject", path, json!(subject)),
            (None, Some(false)) => {
                message.refuse("subject", "is required: the template has no subject");
            }
            (None, None) => message.refuse("subject", "is required"),
        }
    }

    fn headers(&self, message: &mut Translation, own: Option<(Map<String, Value>, String)>) {
        let mut all = Map::new();
        let (own, path) = own.unwrap_or((Map::new(), "headers".to_owned()));
        for (name, value) in self.headers.iter().flatten() {
            if !own.keys().any(|other| other.eq_ignore_ascii_case(name)) {
                all.insert(name.clone(), value.clone());
            }
        }
        all.extend(own);
        if !all.is_empty() {
            message.put("headers", path, Value::Object(all));
        }
    }

    fn scheduled_at(&self, message: &mut Translation, at: Option<SendAt>, now: Timestamp) {
        if let Some(SendAt { at, path }) = at.filter(|time| time.at > now) {
            let text = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            message.put("scheduledAt", path, json!(text));
        }
    }

    /// What no personalization has of its own.
    fn put_rest(&self, message: &mut Translation) {
        if let Some((path, mailboxes)) = &self.reply_to {
            let texts: Vec<Value> = mailboxes.iter().map(header).collect();
            message.put("replyTo", *path, Value::Array(texts));
        }
        if let Some(categories) = &self.categories {
            message.put("tags", "categories", categories.clone());
        }
        if let Some(group) = &self.group {
            message.put("unsubscribeGroupId", "asm.group_id", group.clone());
        }
        if !self.tracking.is_empty() {
            let tracking = Value::Object(self.tracking.clone());
            message.put("tracking", "tracking_settings", tracking);
        }
        message.name("templateId", "template_id");
        if let MailTemplate::Known { id, .. } = self.template {
            message.put("templateId", "template_id", json!(id.0));
        }
        if self.is_sandbox {
            message.put("test", "mail_settings.sandbox_mode.enable", json!(true));
        }
    }

    /// As with SendGrid, the bodies of a template come first. Returns their bytes.
    fn put_bodies(
        &self,
        message: &mut Translation,
        html: Option<String>,
        text: Option<String>,
    ) -> usize {
        if !matches!(self.template, MailTemplate::None) {
            return 0;
        }
        message.name("html", "content");
        let mut bytes = 0;
        for (ours, body, place) in [
            ("html", html, self.bodies.html_place()),
            ("text", text, self.bodies.text_place()),
        ] {
            if let Some(body) = body {
                bytes += body.len();
                message.put(ours, place, Value::String(body));
            }
        }
        bytes
    }
}

fn reply_to(given: &mut Given, issues: &mut Vec<Issue>) -> Option<(&'static str, Vec<Mailbox>)> {
    if given.has("reply_to") && given.has("reply_to_list") {
        issues.push(Issue::new(
            "reply_to_list",
            "must not be given together with reply_to",
        ));
    }
    let list = mailboxes(given, "reply_to_list", issues).map(|list| ("reply_to_list", list));
    let one = one_mailbox(given, "reply_to", issues).map(|one| ("reply_to", vec![one]));
    one.or(list)
}

fn header(mailbox: &Mailbox) -> Value {
    Value::String(mailbox.to_header())
}
