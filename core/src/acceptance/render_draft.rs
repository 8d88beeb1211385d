//! Renders a draft: from one with variables to one with its subject and bodies. This happens
//! once, at acceptance, so that no template runs when the message is sent.
//!
//! With a template, its current version gives the bodies that the request does not bring;
//! bodies of the request are taken as they are, and its subject is a template too. Without
//! one, the subject and the bodies of the request are templates, compiled for this message
//! only. What else the request leaves out (sender, subject, addresses for replies) comes from
//! the version. In a message with an unsubscribe group, the bodies' variable `unsubscribeUrl`
//! becomes the placeholder of the link; in a message without, bodies that need the link are
//! refused.

use std::future::ready;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::own_content::{self, RecipientContent};
use crate::acceptance::draft::{Draft, TemplateUse};
use crate::address::Mailbox;
use crate::ids::OrganizationId;
use crate::issue::Issue;
use crate::template::catalog::Templates;
use crate::template::compiled::CompiledVersion;
use crate::template::render::{self, Rendered, VersionRef};
use crate::template::run::Escape;
use crate::template::schema::VariablesSchema;
use crate::template::step_limit::StepLimit;
use crate::template::{SOURCE_BYTES_MAX, TemplateRefusal, render_pool};
use crate::text::Subject;
use crate::unsubscribe::link_insertion;

/// What the subject of a message that tries out a template begins with.
const TEST_PREFIX: &str = "[Test] ";

/// A version that was picked before the draft is rendered.
pub(super) type PickedVersion = (Arc<CompiledVersion>, VersionRef);

/// A draft with its subject and bodies.
pub(super) struct RenderedDraft {
    /// Its sender, subject and addresses for replies are those below.
    pub(super) draft: Draft,
    pub(super) from: Mailbox,
    pub(super) subject: Subject,
    pub(super) reply_to: Vec<Mailbox>,
    /// The template version that it was rendered from, if there is one.
    pub(super) version: Option<VersionRef>,
    /// What recipients have instead of the subject and the bodies, by their positions.
    pub(super) own: Vec<RecipientContent>,
    is_rendered: bool,
}

impl RenderedDraft {
    /// The bytes of its bodies, or 0 if they were not rendered.
    pub(super) fn rendered_bytes(&self) -> usize {
        let bodies = [&self.draft.html, &self.draft.text];
        let bytes: usize = bodies.into_iter().flatten().map(String::len).sum();
        let own: usize = self.own.iter().map(RecipientContent::bytes).sum();
        if self.is_rendered { bytes + own } else { 0 }
    }
}

/// The subject and the bodies of a draft, before or after they are rendered.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) subject: Subject,
    pub(super) html: Option<String>,
    pub(super) text: Option<String>,
    /// Whether the message has an unsubscribe link.
    pub(super) has_link: bool,
}

/// Picks the template versions whose sender a draft takes, and gives it to the draft: the sender
/// decides the route. What cannot be picked is refused when it is rendered.
pub(super) async fn pick_senders(
    templates: &Templates,
    organization_id: OrganizationId,
    drafts: &mut [Draft],
) -> Vec<Option<PickedVersion>> {
    let mut picked = Vec::with_capacity(drafts.len());
    let deadline = Templates::deadline();
    for draft in drafts {
        let template = draft.template.as_ref().filter(|_| draft.from.is_none());
        let named = template.and_then(|template| Some((template.template_id?, template)));
        let Some((id, template)) = named else {
            picked.push(None);
            continue;
        };
        let version = templates.version(organization_id, id, &template.choice, deadline);
        // Rare, and boxed: every request would carry it.
        let version = Box::pin(version).await.ok();
        draft.from = version
            .as_ref()
            .and_then(|(compiled, _)| compiled.from.clone());
        picked.push(version);
    }
    picked
}

/// Renders a draft. One without variables stays as it is. `picked` is the version of its
/// template, if that was picked already.
///
/// # Errors
/// The reason why it cannot be rendered.
pub(super) fn render_draft(
    templates: &Templates,
    organization_id: OrganizationId,
    mut draft: Draft,
    picked: Option<PickedVersion>,
    deadline: Instant,
) -> BoxFuture<'_, Result<RenderedDraft, TemplateRefusal>> {
    // The future of the rest takes 16 KiB, and most drafts do not need it.
    let Some(template) = draft.template.take() else {
        let head = MessageHead::of(&mut draft, None);
        return ready(head.map(|head| head.with(draft, None, Vec::new()))).boxed();
    };
    render_template(
        templates,
        organization_id,
        (draft, template),
        picked,
        deadline,
    )
    .boxed()
}

async fn render_template(
    templates: &Templates,
    organization_id: OrganizationId,
    (mut draft, template): (Draft, TemplateUse),
    picked: Option<PickedVersion>,
    deadline: Instant,
) -> Result<RenderedDraft, TemplateRefusal> {
    let pool = templates.render_pool();
    let Some(template_id) = template.template_id else {
        let mut head = MessageHead::of(&mut draft, None)?;
        let subject = head.subject.clone();
        let variables = template.variables;
        let work = move || render_all(variables, (draft, subject), deadline, render_own);
        let (draft, subject, own) = pool.run(organization_id, deadline, work).await??;
        head.subject = subject;
        return Ok(RenderedDraft {
            is_rendered: true,
            ..head.with(draft, None, own)
        });
    };
    let (compiled, version) = match picked {
        Some(picked) => picked,
        None => {
            let version =
                templates.version(organization_id, template_id, &template.choice, deadline);
            version.await?
        }
    };
    let mut head = MessageHead::of(&mut draft, Some(&compiled))?;
    let TemplateUse {
        mut variables,
        is_test_send,
        ..
    } = template;
    if is_test_send {
        head.mark_as_test()?;
        compiled.add_example_link(&mut variables);
    }
    // After the deadline the pool refuses it.
    let is_cheap = Instant::now() < deadline
        && !head.subject.as_str().contains("{{")
        && !draft.has_own_variables()
        && compiled.is_cheap(&variables);
    let subject = head.subject.clone();
    let work = move || {
        render_all(variables, (draft, subject), deadline, |variables, parts| {
            render(&compiled, variables, parts)
        })
    };
    let (draft, subject, own) = if is_cheap {
        render_pool::run_inline(work)??
    } else {
        pool.run(organization_id, deadline, work).await??
    };
    head.subject = subject;
    Ok(RenderedDraft {
        is_rendered: true,
        ..head.with(draft, Some(version), own)
    })
}

/// What a message has besides its recipients and bodies.
struct MessageHead {
    from: Mailbox,
    subject: Subject,
    reply_to: Vec<Mailbox>,
}

impl MessageHead {
    /// Takes what the request gives, or else what the version of its template has.
    fn of(draft: &mut Draft, version: Option<&CompiledVersion>) -> Result<Self, TemplateRefusal> {
        let from = draft.from.take();
        let from = from.or_else(|| version.and_then(|version| version.from.clone()));
        let subject = draft.subject.take();
        let subject = subject.or_else(|| version.and_then(|version| version.subject.clone()));
        let reply_to = draft.reply_to.take();
        let reply_to = reply_to.or_else(|| version.map(|version| version.reply_to.clone()));
        let missing = [("from", from.is_none()), ("subject", subject.is_none())];
        match (from, subject) {
            (Some(from), Some(subject)) => Ok(Self {
                from,
                subject,
                reply_to: reply_to.unwrap_or_default(),
            }),
            (_, _) => {
                let missing = missing.into_iter().filter(|(_, is_missing)| *is_missing);
                let why = match version {
                    Some(_) => "is required, because the version of the template has none",
                    None => "is required",
                };
                let issues = missing.map(|(path, _)| Issue::new(path, why));
                Err(TemplateRefusal::Invalid(issues.collect()))
            }
        }
    }

    fn mark_as_test(&mut self) -> Result<(), TemplateRefusal> {
        let subject = format!("{TEST_PREFIX}{}", self.subject.as_str());
        self.subject = Subject::parse(subject).map_err(|error| {
            let issue = Issue::new(
                "subject",
                format!("{error}, with {TEST_PREFIX:?} before it"),
            );
            TemplateRefusal::Invalid(vec![issue])
        })?;
        Ok(())
    }

    fn with(
        self,
        draft: Draft,
        version: Option<VersionRef>,
        own: Vec<RecipientContent>,
    ) -> RenderedDraft {
        RenderedDraft {
            draft,
            from: self.from,
            subject: self.subject,
            reply_to: self.reply_to,
            version,
            own,
            is_rendered: false,
        }
    }
}

/// Renders a draft and its subject for all of its recipients.
fn render_all(
    variables: Value,
    (mut draft, subject): (Draft, Subject),
    deadline: Instant,
    render: impl Fn(Value, Parts) -> Result<Parts, TemplateRefusal>,
) -> Result<(Draft, Subject, Vec<RecipientContent>), TemplateRefusal> {
    let has_own = draft.has_own_variables();
    let parts = Parts {
        subject,
        html: draft.html,
        text: draft.text,
        has_link: draft.unsubscribe_group_id.is_some(),
    };
    let (parts, own) = if has_own {
        own_content::render_each(&variables, &parts, &mut draft.to, deadline, render)?
    } else {
        (render(variables, parts)?, Vec::new())
    };
    draft.html = parts.html;
    draft.text = parts.text;
    Ok((draft, parts.subject, own))
}

/// Checks variables against a schema. If the message has an unsubscribe link, a schema that
/// requires the link's variable is satisfied.
fn check(schema: &VariablesSchema, variables: &Value, has_link: bool) -> Vec<Issue> {
    let issues = schema.check(variables);
    if issues.is_empty() || !has_link {
        return issues;
    }
    let mut linked = variables.clone();
    linked[link_insertion::VARIABLE] = link_insertion::EXAMPLE_URL.into();
    let linked = schema.check(&linked);
    if linked.len() < issues.len() {
        linked
    } else {
        issues
    }
}

/// Refuses a variable with the name of the link, if the message has one.
fn refuse_link(parts: &Parts, variables: &Value) -> Result<(), TemplateRefusal> {
    if !parts.has_link || variables.get(link_insertion::VARIABLE).is_none() {
        return Ok(());
    }
    let path = format!("variables.{}", link_insertion::VARIABLE);
    let issue = Issue::new(path, "stands for the unsubscribe link of the group");
    Err(TemplateRefusal::Invalid(vec![issue]))
}

/// Renders bodies, with a placeholder if they mention the unsubscribe link. In a message
/// without a group the bodies may test whether there is a link, but must not output it,
/// unless the request brings the variable itself.
fn with_link(
    mut variables: Value,
    is_mentioned: bool,
    has_link: bool,
    mut render: impl FnMut(&Value) -> Result<Rendered, TemplateRefusal>,
) -> Result<Rendered, TemplateRefusal> {
    if !is_mentioned || variables.get(link_insertion::VARIABLE).is_some() {
        return render(&variables);
    }
    if has_link {
        variables[link_insertion::VARIABLE] = link_insertion::PLACEHOLDER.into();
        return render(&variables);
    }
    variables[link_insertion::VARIABLE] = Value::Null;
    let without = render(&variables)?;
    // In a test, `false` counts as no link, as `null` does. But `false` is visible in the
    // output, so the two results differ if the bodies output the link.
    variables[link_insertion::VARIABLE] = Value::Bool(false);
    if render(&variables)? != without {
        return Err(TemplateRefusal::Invalid(vec![
            link_insertion::group_required(),
        ]));
    }
    Ok(without)
}

/// Renders with a template version.
pub(super) fn render(
    compiled: &CompiledVersion,
    variables: Value,
    mut parts: Parts,
) -> Result<Parts, TemplateRefusal> {
    refuse_link(&parts, &variables)?;
    if let Some(schema) = &compiled.schema {
        let issues = check(schema, &variables, parts.has_link);
        if !issues.is_empty() {
            return Err(TemplateRefusal::Invalid(issues));
        }
    }
    let subject = render::subject(&parts.subject, &variables);
    parts.subject = subject.map_err(|issue| TemplateRefusal::Invalid(vec![issue]))?;
    // After the subject, which must not contain the link.
    let is_mentioned = compiled.mentions(link_insertion::VARIABLE);
    let rendered = with_link(variables, is_mentioned, parts.has_link, |variables| {
        let rendered = render::bodies(compiled, variables);
        let mut rendered = rendered.map_err(TemplateRefusal::Unrenderable)?;
        // The request's own bodies replace those of the template.
        if parts.html.is_some() {
            rendered.html.clear();
        }
        rendered.text = rendered.text.filter(|_| parts.text.is_none());
        Ok(rendered)
    })?;
    let non_empty = |body: String| Some(body).filter(|body| !body.is_empty());
    parts.html = parts.html.or_else(|| non_empty(rendered.html));
    parts.text = parts.text.or_else(|| rendered.text.and_then(non_empty));
    if parts.html.is_none() && parts.text.is_none() {
        let issue = Issue::new("variables", "leave the template's bodies empty");
        return Err(TemplateRefusal::Invalid(vec![issue]));
    }
    Ok(parts)
}

/// Renders the request's own subject and bodies. The error lists all problems.
pub(super) fn render_own(variables: Value, mut parts: Parts) -> Result<Parts, TemplateRefusal> {
    refuse_link(&parts, &variables)?;
    refuse_long_sources(&parts)?;
    let subject = render::subject(&parts.subject, &variables);
    // After the subject, which must not contain the link.
    let is_mentioned = [&parts.html, &parts.text]
        .into_iter()
        .flatten()
        .any(|source| source.contains(link_insertion::VARIABLE));
    let bodies = with_link(variables, is_mentioned, parts.has_link, |variables| {
        own_bodies(&parts, variables)
    });
    let (subject, rendered) = match (subject, bodies) {
        (Ok(subject), Ok(rendered)) => (subject, rendered),
        (Err(issue), Ok(_)) => return Err(TemplateRefusal::Invalid(vec![issue])),
        (Err(issue), Err(TemplateRefusal::Invalid(mut issues))) => {
            issues.insert(0, issue);
            return Err(TemplateRefusal::Invalid(issues));
        }
        (_, Err(refusal)) => return Err(refusal),
    };
    let non_empty = |body: String| Some(body).filter(|body| !body.is_empty());
    parts.subject = subject;
    parts.html = non_empty(rendered.html);
    parts.text = rendered.text.and_then(non_empty);
    if parts.html.is_none() && parts.text.is_none() {
        let issue = Issue::new("variables", "leave the bodies empty");
        return Err(TemplateRefusal::Invalid(vec![issue]));
    }
    Ok(parts)
}

/// Refuses bodies that are longer than a template may be.
fn refuse_long_sources(parts: &Parts) -> Result<(), TemplateRefusal> {
    let bodies = [("html", &parts.html), ("text", &parts.text)];
    let long = bodies.into_iter().filter(|(_, body)| {
        let bytes = body.as_ref().map_or(0, String::len);
        bytes > SOURCE_BYTES_MAX
    });
    let issues: Vec<Issue> = long
        .map(|(path, _)| {
            let text = format!(
                "must not be larger than {SOURCE_BYTES_MAX} bytes where variables are given"
            );
            Issue::new(path, text)
        })
        .collect();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(TemplateRefusal::Invalid(issues))
    }
}

fn own_bodies(parts: &Parts, variables: &Value) -> Result<Rendered, TemplateRefusal> {
    let mut step_limit = StepLimit::new();
    let mut issues = Vec::new();
    let mut body = |path, source: &Option<String>, escape| {
        let rendered = render::own_body(source.as_ref()?, variables, escape, &mut step_limit);
        rendered
            .map_err(|problem| issues.push(Issue::new(path, problem)))
            .ok()
    };
    let html = body("html", &parts.html, Escape::Html).unwrap_or_default();
    let text = body("text", &parts.text, Escape::Nothing);
    if issues.is_empty() {
        Ok(Rendered { html, text })
    } else {
        Err(TemplateRefusal::Invalid(issues))
    }
}
