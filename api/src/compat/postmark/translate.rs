//! A message of Postmark as one of Waypost.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use uuid::Uuid;
use waypost_core::issue::Issue;

use super::addresses;
use super::fields::FIELDS;
use crate::compat::given::Given;
use crate::compat::templates::{self, NamedTemplates};
use crate::compat::texts::{flag, text, texts};
use crate::compat::translation::Translation;
use crate::fields::kind_of;

/// The stream that every server of Postmark has.
const OUTBOUND: &str = "outbound";
/// What a stream that Waypost has not is told.
pub(super) const UNKNOWN_STREAM: &str =
    "must be outbound, or the id of an unsubscribe group in Waypost";

/// What makes the content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentFrom {
    /// Its own bodies.
    Bodies,
    /// A template.
    Template,
}

/// Whom a message is for, in the vendor's words, for the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Addressees {
    pub(super) to: Option<String>,
    pub(super) cc: Option<String>,
    pub(super) bcc: Option<String>,
}

impl Addressees {
    /// Those of a message.
    pub(super) fn of(value: &Value) -> Self {
        let field = |name| {
            let text = value.get(name).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Self {
            to: field("To"),
            cc: field("Cc"),
            bcc: field("Bcc"),
        }
    }
}

/// The ids of templates that messages name.
pub(super) fn template_ids<'a>(messages: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    let named = messages.flat_map(|message| {
        let fields = ["TemplateId", "TemplateAlias"].into_iter();
        fields.filter_map(|field| message.get(field).and_then(template_id))
    });
    named.collect()
}

/// A number or an alias.
fn template_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// The message.
///
/// # Errors
/// It is no object. All other mistakes are in the translation.
pub(super) fn message(
    value: Value,
    content: ContentFrom,
    templates: &NamedTemplates,
) -> Result<Translation, Vec<Issue>> {
    let mut given = Given::body(FIELDS, value)?;
    let mut message = Translation::default();
    if !given.has("From") {
        message.refuse("From", "is required");
    }
    pass(&mut given, &mut message, "From", "from");
    addresses(&mut given, &mut message);
    let has_text = match content {
        ContentFrom::Bodies => bodies(&mut given, &mut message),
        ContentFrom::Template => {
            template(&mut given, &mut message, templates);
            true
        }
    };
    if let Some(tag) = filled(&mut given, "Tag", &mut message.issues) {
        message.put("tags", "Tag", json!([tag]));
    }
    message.name("tags.0", "Tag");
    if let Some(metadata) = texts(&mut given, "Metadata", &mut message.issues) {
        message.put("metadata", "Metadata", Value::Object(metadata));
    }
    tracking(&mut given, &mut message, has_text);
    stream(&mut given, &mut message);
    headers(&mut given, &mut message);
    attachments(&mut given, &mut message);
    given.finish(&mut message.issues);
    Ok(message)
}

/// Moves a field as it is.
fn pass(given: &mut Given, message: &mut Translation, theirs: &str, ours: &str) {
    message.name(ours, theirs);
    if let Some(value) = given.take(theirs) {
        message.put(ours, theirs, value);
    }
}

/// Takes a text. Clients send an empty one for none.
fn filled(given: &mut Given, name: &str, issues: &mut Vec<Issue>) -> Option<String> {
    text(given, name, issues).filter(|text| !text.is_empty())
}

fn addresses(given: &mut Given, message: &mut Translation) {
    for (theirs, ours) in [
        ("To", "to"),
        ("Cc", "cc"),
        ("Bcc", "bcc"),
        ("ReplyTo", "replyTo"),
    ] {
        message.name(ours, theirs);
        if theirs == "To" && !given.has(theirs) {
            message.refuse(theirs, "is required");
        }
        let Some(list) = text(given, theirs, &mut message.issues) else {
            continue;
        };
        let list = addresses::split(&list);
        if list.is_empty() && theirs == "To" {
            message.refuse(theirs, "must have an address");
        }
        for index in 0..list.len() {
            message.name(format!("{ours}.{index}"), theirs);
        }
        // Postmark sends one mail, whose recipients see each other.
        if theirs == "To" && list.len() > 1 {
            message.put("delivery", theirs, json!("shared"));
        }
        if !list.is_empty() {
            message.put(ours, theirs, json!(list));
        }
    }
}

/// Whether the message has a text.
fn bodies(given: &mut Given, message: &mut Translation) -> bool {
    for name in ["TemplateId", "TemplateAlias", "TemplateModel", "InlineCss"] {
        if given.take(name).is_some() {
            message.refuse(name, "must not be given here; /email/withTemplate takes it");
        }
    }
    message.name("subject", "Subject");
    message.name("html", "HtmlBody");
    let subject = filled(given, "Subject", &mut message.issues);
    match subject {
        Some(subject) => message.put("subject", "Subject", Value::String(subject)),
        None => message.refuse("Subject", "is required"),
    }
    let html = filled(given, "HtmlBody", &mut message.issues);
    let text = filled(given, "TextBody", &mut message.issues);
    let has_text = text.is_some();
    if html.is_none() && !has_text {
        message.refuse("HtmlBody", "is required unless TextBody is given");
    }
    if let Some(html) = html {
        message.put("html", "HtmlBody", Value::String(html));
    }
    if let Some(text) = text {
        message.put("text", "TextBody", Value::String(text));
    }
    has_text
}

fn template(given: &mut Given, message: &mut Translation, templates: &NamedTemplates) {
    for name in ["Subject", "HtmlBody", "TextBody"] {
        if filled(given, name, &mut message.issues).is_some() {
            message.refuse(name, "must not be given with a template, which has its own");
        }
    }
    // Without effect, whatever it is.
    flag(given, "InlineCss", &mut message.issues);
    let number = given.take("TemplateId");
    let alias = given.take("TemplateAlias");
    let (field, id) = match (number, alias) {
        (Some(_), Some(_)) => {
            message.refuse(
                "TemplateAlias",
                "must not be given together with TemplateId",
            );
            return;
        }
        (None, None) => {
            message.refuse("TemplateId", "is required unless TemplateAlias is given");
            return;
        }
        (Some(number), None) => ("TemplateId", number),
        (None, Some(alias)) => ("TemplateAlias", alias),
    };
    message.name("templateId", field);
    match template_id(&id).and_then(|id| templates.get(&id)) {
        Some(template) => message.put("templateId", field, json!(template.0)),
        None => message.refuse(field, templates::UNKNOWN),
    }
    if !given.has("TemplateModel") {
        message.refuse("TemplateModel", "is required");
    }
    pass(given, message, "TemplateModel", "variables");
}

fn tracking(given: &mut Given, message: &mut Translation, has_text: bool) {
    let mut tracking = Map::new();
    if let Some(opens) = flag(given, "TrackOpens", &mut message.issues) {
        tracking.insert("opens".to_owned(), json!(opens));
    }
    let links = filled(given, "TrackLinks", &mut message.issues);
    let clicks = match links.as_deref() {
        None => None,
        Some("None") => Some(false),
        Some("HtmlOnly") => Some(true),
        Some("HtmlAndText") if !has_text => Some(true),
        Some("HtmlAndText" | "TextOnly") => {
            let rule = "must be HtmlOnly or None: Waypost tracks no links of texts";
            message.refuse("TrackLinks", rule);
            None
        }
        Some(_) => {
            let rule = "must be None, HtmlOnly, HtmlAndText or TextOnly";
            message.refuse("TrackLinks", rule);
            None
        }
    };
    tracking.extend(clicks.map(|clicks| ("clicks".to_owned(), json!(clicks))));
    if !tracking.is_empty() {
        message.put("tracking", "TrackLinks", Value::Object(tracking));
    }
}

fn stream(given: &mut Given, message: &mut Translation) {
    const NAME: &str = "MessageStream";
    message.name("unsubscribeGroupId", NAME);
    let Some(stream) = filled(given, NAME, &mut message.issues) else {
        return;
    };
    match Uuid::parse_str(&stream) {
        Ok(group) => message.put("unsubscribeGroupId", NAME, json!(group)),
        Err(_) if stream == OUTBOUND => {}
        Err(_) => message.refuse(NAME, UNKNOWN_STREAM),
    }
}

fn headers(given: &mut Given, message: &mut Translation) {
    message.name("headers", "Headers");
    let Some(items) = given.objects("Headers", &mut message.issues) else {
        return;
    };
    let mut headers = Map::new();
    for mut item in items {
        for field in ["Name", "Value"] {
            if !item.has(field) {
                message.refuse(item.place(field), "is required");
            }
        }
        let name = text(&mut item, "Name", &mut message.issues);
        let value = text(&mut item, "Value", &mut message.issues);
        if let (Some(name), Some(value)) = (name, value) {
            let is_repeated = headers.contains_key(&name);
            if is_repeated {
                message.refuse(item.place("Name"), "must not be that of another header");
            }
            headers.insert(name, Value::String(value));
        }
        item.finish(&mut message.issues);
    }
    if !headers.is_empty() {
        message.put("headers", "Headers", Value::Object(headers));
    }
}

fn attachments(given: &mut Given, message: &mut Translation) {
    let Some(files) = given.objects("Attachments", &mut message.issues) else {
        return;
    };
    let files = files.into_iter().enumerate();
    let files = files.map(|(index, file)| attachment(index, file, message));
    let files = files.collect();
    message.put("attachments", "Attachments", Value::Array(files));
}

fn attachment(index: usize, mut file: Given, message: &mut Translation) -> Value {
    let mut ours = Map::new();
    for (theirs, our_name) in [
        ("Name", "filename"),
        ("Content", "content"),
        ("ContentType", "contentType"),
    ] {
        if !file.has(theirs) {
            message.refuse(file.place(theirs), "is required");
        }
        message.name(
            format!("attachments.{index}.{our_name}"),
            file.place(theirs),
        );
        if let Some(value) = file.take(theirs) {
            ours.insert(our_name.to_owned(), value);
        }
    }
    message.name(
        format!("attachments.{index}.contentId"),
        file.place("ContentID"),
    );
    match file.take("ContentID") {
        None => {}
        Some(Value::String(id)) if id.is_empty() => {}
        Some(Value::String(id)) => {
            let id = id.strip_prefix("cid:").unwrap_or(&id);
            ours.insert("contentId".to_owned(), json!(id));
        }
        Some(other) => {
            let rule = format!("must be a string, not {}", kind_of(&other));
            message.refuse(file.place("ContentID"), rule);
        }
    }
    file.finish(&mut message.issues);
    Value::Object(ours)
}
