//! The content of recipients with variables of their own: the message is rendered for each of
//! them, with their variables over those of the message. What comes out the same as for the
//! message is not kept.

use serde_json::Value;
use tokio::time::Instant;

use super::RENDERED_BYTES_MAX;
use super::draft::DraftRecipient;
use super::render_draft::Parts;
use crate::fault::Fault;
use crate::issue::Issue;
use crate::template::TemplateRefusal;

/// What a recipient has instead of the message's subject and bodies. `None` is the message's;
/// an empty body is no body.
pub(super) struct RecipientContent {
    /// The recipient's position.
    pub(super) position: usize,
    pub(super) subject: Option<String>,
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
}

impl RecipientContent {
    /// The bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.subject, &self.html, &self.text];
        texts.into_iter().flatten().map(String::len).sum()
    }
}

/// Renders the message and the content of each recipient with variables of its own, which are
/// taken out of `recipients`. If all recipients have their own, the message's content is that
/// of the first one: its own variables may not suffice.
///
/// # Errors
/// All issues, up to the number that a response shows; or that there is too much to render.
pub(super) fn render_each(
    variables: &Value,
    source: &Parts,
    recipients: &mut [DraftRecipient],
    deadline: Instant,
    render: impl Fn(Value, Parts) -> Result<Parts, TemplateRefusal>,
) -> Result<(Parts, Vec<RecipientContent>), TemplateRefusal> {
    let mut message = match recipients.iter().all(|to| to.variables.is_some()) {
        true => None,
        false => Some(render(variables.clone(), source.clone())?),
    };
    let (mut contents, mut issues, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (position, to) in recipients.iter_mut().enumerate() {
        let Some(own) = to.variables.take() else {
            continue;
        };
        if Instant::now() >= deadline {
            return Err(Fault::unavailable("render a template", "it took too long").into());
        }
        match render(over(variables, own), source.clone()) {
            Ok(parts) => match &message {
                None => message = Some(parts),
                Some(message) => {
                    let content = difference(position, parts, message);
                    bytes += content.bytes();
                    contents.push(content);
                }
            },
            Err(TemplateRefusal::Invalid(found)) => {
                let found = found.into_iter();
                for issue in found.map(|issue| of_recipient(issue, to.index)) {
                    // An issue of the message comes with each recipient.
                    if issues.last() != Some(&issue) {
                        issues.push(issue);
                    }
                }
            }
            Err(refusal) => return Err(refusal),
        }
        if bytes > RENDERED_BYTES_MAX {
            return Err(TemplateRefusal::Invalid(vec![too_large()]));
        }
        if issues.len() >= Issue::SHOWN_MAX {
            break;
        }
    }
    match message {
        Some(message) if issues.is_empty() => Ok((message, contents)),
        Some(_) | None => Err(TemplateRefusal::Invalid(issues)),
    }
}

/// The variables of a message with those of a recipient over them.
fn over(variables: &Value, own: Value) -> Value {
    let mut all = variables.clone();
    match (&mut all, own) {
        (Value::Object(all), Value::Object(own)) => all.extend(own),
        (all, own) => *all = own,
    }
    all
}

/// What a recipient's content has other than the message's.
fn difference(position: usize, parts: Parts, message: &Parts) -> RecipientContent {
    let body = |own: Option<String>, of_message: &Option<String>| {
        (own != *of_message).then(|| own.unwrap_or_default())
    };
    let is_other = parts.subject != message.subject;
    RecipientContent {
        position,
        subject: is_other.then(|| parts.subject.into_string()),
        html: body(parts.html, &message.html),
        text: body(parts.text, &message.text),
    }
}

/// An issue of a recipient's rendering: below its variables, or about what they make of a
/// field of the message.
fn of_recipient(issue: Issue, index: usize) -> Issue {
    let at = format!("to.{index}");
    if issue.path == "variables" || issue.path.starts_with("variables.") {
        return issue.under(&at);
    }
    if ["subject", "html", "text"].contains(&issue.path.as_str()) {
        let message = format!("gets a message whose {} {}", issue.path, issue.message);
        return Issue::new(at, message);
    }
    issue
}

fn too_large() -> Issue {
    let max = RENDERED_BYTES_MAX >> 20;
    Issue::new(
        "to",
        format!(
            "has recipients whose own subjects and bodies take more than {max} MiB together; send to fewer of them in one request"
        ),
    )
}
