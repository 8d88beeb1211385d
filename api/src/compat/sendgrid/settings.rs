//! The content, the attachments and the settings of a request.

use serde_json::{Map, Value, json};
use waypost_core::issue::Issue;

use super::translate::MailTemplate;
use crate::compat::given::Given;
use crate::compat::texts::{flag, text};
use crate::compat::translation::Translation;

/// The bodies of a request, with their places in `content`.
#[derive(Default)]
pub(super) struct MailBodies {
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
    places: [Option<String>; 2],
}

impl MailBodies {
    /// Takes `content`.
    pub(super) fn take(given: &mut Given, issues: &mut Vec<Issue>) -> Self {
        let mut bodies = Self::default();
        for mut item in given.objects("content", issues).unwrap_or_default() {
            for name in ["type", "value"] {
                if !item.has(name) {
                    issues.push(Issue::new(item.place(name), "is required"));
                }
            }
            let place = item.place("value");
            let kind = text(&mut item, "type", issues);
            let value = text(&mut item, "value", issues);
            let (body, index) = match kind.as_deref().map(media_type).as_deref() {
                Some("text/html") => (&mut bodies.html, 0),
                Some("text/plain") => (&mut bodies.text, 1),
                Some(_) => {
                    let rule = "must be text/plain or text/html: Waypost sends no other";
                    issues.push(Issue::new(item.place("type"), rule));
                    item.finish(issues);
                    continue;
                }
                None => {
                    item.finish(issues);
                    continue;
                }
            };
            if body.is_some() {
                let rule = "must not be that of another item";
                issues.push(Issue::new(item.place("type"), rule));
            }
            *body = value;
            bodies.places[index] = Some(place);
            item.finish(issues);
        }
        bodies
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.iter().all(Option::is_none)
    }

    pub(super) fn html_place(&self) -> &str {
        self.places[0].as_deref().unwrap_or("content")
    }

    pub(super) fn text_place(&self) -> &str {
        self.places[1].as_deref().unwrap_or("content")
    }
}

/// A media type without parameters, in lower case.
fn media_type(text: &str) -> String {
    let name = text.split(';').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

/// Takes the attachments.
pub(super) fn attachments(given: &mut Given, message: &mut Translation) {
    let Some(files) = given.objects("attachments", &mut message.issues) else {
        return;
    };
    let files = files.into_iter().enumerate();
    let files = files.map(|(index, file)| attachment(index, file, message));
    let files = files.collect();
    message.put("attachments", "attachments", Value::Array(files));
}

fn attachment(index: usize, mut file: Given, message: &mut Translation) -> Value {
    for name in ["content", "filename"] {
        if !file.has(name) {
            message.refuse(file.place(name), "is required");
        }
    }
    let disposition = text(&mut file, "disposition", &mut message.issues);
    let content_id = file.take("content_id");
    let content_id = match disposition.as_deref() {
        Some("inline") => {
            if content_id.is_none() {
                let rule = "is required: the disposition is inline";
                message.refuse(file.place("content_id"), rule);
            }
            content_id
        }
        // As with SendGrid, the id of a file that is not inline is not used.
        Some("attachment") | None => None,
        Some(_) => {
            message.refuse(file.place("disposition"), "must be attachment or inline");
            None
        }
    };
    let mut ours = Map::new();
    for (theirs, our_name, value) in [
        ("content", "content", file.take("content")),
        ("filename", "filename", file.take("filename")),
        ("type", "contentType", file.take("type")),
        ("content_id", "contentId", content_id),
    ] {
        message.name(
            format!("attachments.{index}.{our_name}"),
            file.place(theirs),
        );
        if let Some(value) = value {
            ours.insert(our_name.to_owned(), value);
        }
    }
    file.finish(&mut message.issues);
    Value::Object(ours)
}

/// Takes `asm`: the id of an unsubscribe group.
pub(super) fn group(given: &mut Given, issues: &mut Vec<Issue>) -> Option<Value> {
    let mut asm = given.object("asm", issues)?;
    if !asm.has("group_id") {
        issues.push(Issue::new(asm.place("group_id"), "is required"));
    }
    let group = asm.take("group_id");
    if group.as_ref().is_some_and(Value::is_number) {
        issues.push(Issue::new(
            asm.place("group_id"),
            "must be the id of an unsubscribe group in Waypost, a string; SendGrid's numbers are unknown here",
        ));
    }
    if asm
        .take("groups_to_display")
        .is_some_and(|groups| groups != json!([]))
    {
        issues.push(Issue::new(
            asm.place("groups_to_display"),
            "is not supported: a recipient sees the group of the message alone",
        ));
    }
    asm.finish(issues);
    group
}

/// Takes `mail_settings`; returns whether the request only tries out.
pub(super) fn mail(given: &mut Given, issues: &mut Vec<Issue>) -> bool {
    let Some(mut settings) = given.object("mail_settings", issues) else {
        return false;
    };
    const NO_BYPASS: &str = "Waypost sends to no suppressed address";
    for name in [
        "bypass_list_management",
        "bypass_spam_management",
        "bypass_bounce_management",
        "bypass_unsubscribe_management",
    ] {
        require_off(&mut settings, name, NO_BYPASS, issues);
    }
    require_off(&mut settings, "footer", "Waypost adds no footer", issues);
    let sandbox = settings.object("sandbox_mode", issues);
    let is_sandbox = sandbox.and_then(|mut sandbox| {
        let is_on = flag(&mut sandbox, "enable", issues);
        sandbox.finish(issues);
        is_on
    });
    settings.finish(issues);
    is_sandbox == Some(true)
}

/// Takes `tracking_settings`, as our `tracking`.
pub(super) fn tracking(
    given: &mut Given,
    bodies: &MailBodies,
    template: MailTemplate,
    issues: &mut Vec<Issue>,
) -> Map<String, Value> {
    let mut tracking = Map::new();
    let Some(mut settings) = given.object("tracking_settings", issues) else {
        return tracking;
    };
    if let Some(mut clicks) = settings.object("click_tracking", issues) {
        let is_on = flag(&mut clicks, "enable", issues);
        let in_texts = flag(&mut clicks, "enable_text", issues);
        let has_text = bodies.text.is_some() || !matches!(template, MailTemplate::None);
        if in_texts == Some(true) && is_on != Some(false) && has_text {
            let rule = "must be false: Waypost tracks no links of texts";
            issues.push(Issue::new(clicks.place("enable_text"), rule));
        }
        tracking.extend(is_on.map(|is_on| ("clicks".to_owned(), json!(is_on))));
        clicks.finish(issues);
    }
    if let Some(mut opens) = settings.object("open_tracking", issues) {
        let is_on = flag(&mut opens, "enable", issues);
        if is_on == Some(false) {
            opens.take("substitution_tag");
        }
        tracking.extend(is_on.map(|is_on| ("opens".to_owned(), json!(is_on))));
        opens.finish(issues);
    }
    for (name, why) in [
        (
            "subscription_tracking",
            "asm.group_id adds an unsubscribe link",
        ),
        ("ganalytics", "Waypost adds no parameters to links"),
    ] {
        require_off(&mut settings, name, why, issues);
    }
    settings.finish(issues);
    tracking
}

/// Takes a setting that Waypost has not. Switched off, it is as if it were absent, whatever else
/// it says.
fn require_off(settings: &mut Given, name: &str, why: &str, issues: &mut Vec<Issue>) {
    let Some(mut setting) = settings.object(name, issues) else {
        return;
    };
    if flag(&mut setting, "enable", issues) != Some(false) {
        issues.push(Issue::new(
            setting.place("enable"),
            format!("must be false: {why}"),
        ));
    }
}
