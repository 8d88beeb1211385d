//! Renders a draft: from one with variables to one with its subject and bodies. This happens
//! once, at acceptance, so that no template runs when the message is sent.
//!
//! With a template, its current version gives the bodies that the request does not bring;
//! bodies of the request are taken as they are, and its subject is a template too. Without
//! one, the subject and the bodies of the request are templates, compiled for this message
//! only. In a message with an unsubscribe group, the bodies' variable `unsubscribeUrl`
//! becomes the placeholder of the link; in a message without, bodies that need the link are
//! refused.

use serde_json::Value;
use tokio::time::Instant;

use crate::acceptance::draft::{Draft, TemplateUse};
use crate::ids::OrganizationId;
use crate::issue::Issue;
use crate::template::catalog::Templates;
use crate::template::compiled::CompiledVersion;
use crate::template::render::{self, Rendered, VersionRef};
use crate::template::run::Escape;
use crate::template::schema::VariablesSchema;
use crate::template::step_limit::StepLimit;
use crate::template::{SOURCE_BYTES_MAX, TemplateRefusal, render_pool};
use crate::unsubscribe::link_insertion;

/// A draft with its subject and bodies.
pub(super) struct RenderedDraft {
    pub(super) draft: Draft,
    /// The template version that it was rendered from, if there is one.
    pub(super) version: Option<VersionRef>,
    is_rendered: bool,
}

impl RenderedDraft {
    /// The bytes of its bodies, or 0 if they were not rendered.
    pub(super) fn rendered_bytes(&self) -> usize {
        let bodies = [&self.draft.html, &self.draft.text];
        let bytes = bodies.into_iter().flatten().map(String::len).sum();
        if self.is_rendered { bytes } else { 0 }
    }
}

/// Renders a draft. One without variables stays as it is.
///
/// # Errors
/// The reason why it cannot be rendered.
pub(super) async fn render_draft(
    templates: &Templates,
    organization_id: OrganizationId,
    mut draft: Draft,
    deadline: Instant,
) -> Result<RenderedDraft, TemplateRefusal> {
    let Some(template) = draft.template.take() else {
        return Ok(RenderedDraft {
            draft,
            version: None,
            is_rendered: false,
        });
    };
    let pool = templates.render_pool();
    let Some(template_id) = template.template_id else {
        let work = move || render_own(template.variables, draft);
        return Ok(RenderedDraft {
            draft: pool.run(organization_id, deadline, work).await??,
            version: None,
            is_rendered: true,
        });
    };
    let current = templates.current(organization_id, template_id, deadline);
    let (compiled, version) = current.await?;
    // After the deadline the pool refuses it.
    let is_cheap = Instant::now() < deadline
        && !draft.subject.as_str().contains("{{")
        && compiled.is_cheap(&template.variables);
    let work = move || render(&compiled, template, draft);
    let draft = if is_cheap {
        render_pool::run_inline(work)??
    } else {
        pool.run(organization_id, deadline, work).await??
    };
    Ok(RenderedDraft {
        draft,
        version: Some(version),
        is_rendered: true,
    })
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
fn refuse_link(draft: &Draft, variables: &Value) -> Result<(), TemplateRefusal> {
    if draft.unsubscribe_group_id.is_none() || variables.get(link_insertion::VARIABLE).is_none() {
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

fn render(
    compiled: &CompiledVersion,
    template: TemplateUse,
    mut draft: Draft,
) -> Result<Draft, TemplateRefusal> {
    let has_link = draft.unsubscribe_group_id.is_some();
    let variables = template.variables;
    refuse_link(&draft, &variables)?;
    if let Some(schema) = &compiled.schema {
        let issues = check(schema, &variables, has_link);
        if !issues.is_empty() {
            return Err(TemplateRefusal::Invalid(issues));
        }
    }
    let subject = render::subject(&draft.subject, &variables);
    draft.subject = subject.map_err(|issue| TemplateRefusal::Invalid(vec![issue]))?;
    // After the subject, which must not contain the link.
    let is_mentioned = compiled.mentions(link_insertion::VARIABLE);
    let rendered = with_link(variables, is_mentioned, has_link, |variables| {
        let rendered = render::bodies(compiled, variables);
        let mut rendered = rendered.map_err(TemplateRefusal::Unrenderable)?;
        // The request's own bodies replace those of the template.
        if draft.html.is_some() {
            rendered.html.clear();
        }
        rendered.text = rendered.text.filter(|_| draft.text.is_none());
        Ok(rendered)
    })?;
    let non_empty = |body: String| Some(body).filter(|body| !body.is_empty());
    draft.html = draft.html.or_else(|| non_empty(rendered.html));
    draft.text = draft.text.or_else(|| rendered.text.and_then(non_empty));
    if draft.html.is_none() && draft.text.is_none() {
        let issue = Issue::new("variables", "leave the template's bodies empty");
        return Err(TemplateRefusal::Invalid(vec![issue]));
    }
    Ok(draft)
}

/// Renders a draft's own subject and bodies. The error lists all problems.
fn render_own(variables: Value, mut draft: Draft) -> Result<Draft, TemplateRefusal> {
    refuse_link(&draft, &variables)?;
    refuse_long_sources(&draft)?;
    let subject = render::subject(&draft.subject, &variables);
    // After the subject, which must not contain the link.
    let has_link = draft.unsubscribe_group_id.is_some();
    let is_mentioned = [&draft.html, &draft.text]
        .into_iter()
        .flatten()
        .any(|source| source.contains(link_insertion::VARIABLE));
    let bodies = with_link(variables, is_mentioned, has_link, |variables| {
        own_bodies(&draft, variables)
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
    draft.subject = subject;
    draft.html = non_empty(rendered.html);
    draft.text = rendered.text.and_then(non_empty);
    if draft.html.is_none() && draft.text.is_none() {
        let issue = Issue::new("variables", "leave the bodies empty");
        return Err(TemplateRefusal::Invalid(vec![issue]));
    }
    Ok(draft)
}

/// Refuses bodies that are longer than a template may be.
fn refuse_long_sources(draft: &Draft) -> Result<(), TemplateRefusal> {
    let bodies = [("html", &draft.html), ("text", &draft.text)];
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

fn own_bodies(draft: &Draft, variables: &Value) -> Result<Rendered, TemplateRefusal> {
    let mut step_limit = StepLimit::new();
    let mut issues = Vec::new();
    let mut body = |path, source: &Option<String>, escape| {
        let rendered = render::own_body(source.as_ref()?, variables, escape, &mut step_limit);
        rendered
            .map_err(|problem| issues.push(Issue::new(path, problem)))
            .ok()
    };
    let html = body("html", &draft.html, Escape::Html).unwrap_or_default();
    let text = body("text", &draft.text, Escape::Nothing);
    if issues.is_empty() {
        Ok(Rendered { html, text })
    } else {
        Err(TemplateRefusal::Invalid(issues))
    }
}
