//! Filling in: from a draft with variables to one with rendered subject and bodies.
//! It happens once, at acceptance, so that nothing foreign runs when the message is
//! sent.
//!
//! Where a template is named, its current version gives the bodies that the request
//! does not bring itself; what it brings is taken as it is, and the subject is a
//! template too. Where none is named, subject and bodies of the request are
//! templates, compiled for this message alone. In a message with an unsubscribe group the
//! bodies' variable `unsubscribeUrl` is the place of the link; in one without, bodies
//! that need the link are refused.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::budget::Budget;
use super::catalog::{Templates, WAIT_MAX};
use super::compiled::Compiled;
use super::render::{self, Rendered, VersionUse};
use super::run::Escape;
use super::schema::Schema;
use super::{SOURCE_BYTES_MAX, TemplateRefusal, store, workshop};
use crate::db::OrFault;
use crate::ids::{OrganizationId, TemplateId};
use crate::issue::Issue;
use crate::message::draft::{Draft, TemplateUse};
use crate::unsubscribe::place;

/// A draft that needs no template any more, and the version that it was filled in
/// from.
pub struct Filled {
    /// The draft, with bodies.
    pub draft: Draft,
    /// What it was rendered from, where that is a template.
    pub version: Option<VersionUse>,
    is_rendered: bool,
}

impl Filled {
    /// Bytes of its bodies where they were rendered.
    pub(crate) fn rendered_bytes(&self) -> usize {
        let bodies = [&self.draft.html, &self.draft.text];
        let bytes = bodies.into_iter().flatten().map(String::len).sum();
        if self.is_rendered { bytes } else { 0 }
    }
}

impl Templates {
    /// When a request that comes now has waited long enough for its templates.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + WAIT_MAX
    }

    /// Fills in a draft. One without variables passes through.
    ///
    /// # Errors
    /// Why it cannot be filled in.
    pub async fn fill(
        &self,
        organization_id: OrganizationId,
        mut draft: Draft,
        deadline: Instant,
    ) -> Result<Filled, TemplateRefusal> {
        let Some(wanted) = draft.template.take() else {
            return Ok(Filled {
                draft,
                version: None,
                is_rendered: false,
            });
        };
        let Some(template_id) = wanted.template_id else {
            let work = move || render_own(wanted.variables, draft);
            return Ok(Filled {
                draft: self.workshop.run(organization_id, deadline, work).await??,
                version: None,
                is_rendered: true,
            });
        };
        let (compiled, version) = self.current(organization_id, template_id, deadline).await?;
        // What comes too late is refused by the workshop.
        let is_light = Instant::now() < deadline
            && !draft.subject.as_str().contains("{{")
            && compiled.is_light(&wanted.variables);
        let work = move || render(&compiled, wanted, draft);
        let draft = if is_light {
            workshop::at_once(work)??
        } else {
            self.workshop.run(organization_id, deadline, work).await??
        };
        Ok(Filled {
            draft,
            version: Some(version),
            is_rendered: true,
        })
    }

    /// A template's current version. What is remembered of it is used; that it has
    /// none is said only after a fresh look.
    async fn current(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        deadline: Instant,
    ) -> Result<(Arc<Compiled>, VersionUse), TemplateRefusal> {
        let key = (organization_id, id);
        let version_id = match self.current.get(&key).await {
            Some(version_id) => version_id,
            None => {
                let mut connection = self.pool.acquire().await.or_fault("find a template")?;
                let template = store::find(&mut connection, organization_id, id)
                    .await?
                    .ok_or(TemplateRefusal::NotFound)?;
                let version_id = template
                    .current_version_id
                    .ok_or(TemplateRefusal::WithoutVersion)?;
                self.current.insert(key, version_id).await;
                version_id
            }
        };
        // It may have been removed a moment ago: a version that is gone is a
        // template that is gone, for whoever sends.
        let compiled = self
            .compiled(organization_id, id, version_id, deadline)
            .await?;
        let version = VersionUse {
            template_id: id,
            version_id,
        };
        Ok((compiled, version))
    }
}

/// Holds variables against a schema. One that asks for the link gets it.
fn check(schema: &Schema, variables: &Value, has_link: bool) -> Vec<Issue> {
    let issues = schema.check(variables);
    if issues.is_empty() || !has_link {
        return issues;
    }
    let mut linked = variables.clone();
    linked[place::VARIABLE] = place::EXAMPLE_URL.into();
    let linked = schema.check(&linked);
    if linked.len() < issues.len() {
        linked
    } else {
        issues
    }
}

/// Refuses a variable that has the name of the link, where there is one.
fn refuse_link(draft: &Draft, variables: &Value) -> Result<(), TemplateRefusal> {
    if draft.unsubscribe_group_id.is_none() || variables.get(place::VARIABLE).is_none() {
        return Ok(());
    }
    let path = format!("variables.{}", place::VARIABLE);
    let issue = Issue::new(path, "stands for the unsubscribe link of the group");
    Err(TemplateRefusal::Invalid(vec![issue]))
}

/// Renders bodies, with the place of the link where they mention it. Without a group
/// they must not write it, unless the variables bring their own; they may ask whether
/// there is one.
fn with_link(
    mut variables: Value,
    is_mentioned: bool,
    has_link: bool,
    mut render: impl FnMut(&Value) -> Result<Rendered, TemplateRefusal>,
) -> Result<Rendered, TemplateRefusal> {
    if !is_mentioned || variables.get(place::VARIABLE).is_some() {
        return render(&variables);
    }
    if has_link {
        variables[place::VARIABLE] = place::PLACEHOLDER.into();
        return render(&variables);
    }
    variables[place::VARIABLE] = Value::Null;
    let without = render(&variables)?;
    // To whoever asks, false is as little a link as null is; but it is written.
    variables[place::VARIABLE] = Value::Bool(false);
    if render(&variables)? != without {
        return Err(TemplateRefusal::Invalid(vec![place::without_group()]));
    }
    Ok(without)
}

fn render(
    compiled: &Compiled,
    wanted: TemplateUse,
    mut draft: Draft,
) -> Result<Draft, TemplateRefusal> {
    let has_link = draft.unsubscribe_group_id.is_some();
    let variables = wanted.variables;
    refuse_link(&draft, &variables)?;
    if let Some(schema) = &compiled.schema {
        let issues = check(schema, &variables, has_link);
        if !issues.is_empty() {
            return Err(TemplateRefusal::Invalid(issues));
        }
    }
    let subject = render::subject(&draft.subject, &variables);
    draft.subject = subject.map_err(|issue| TemplateRefusal::Invalid(vec![issue]))?;
    // After the subject, which no link belongs into.
    let is_mentioned = compiled.mentions(place::VARIABLE);
    let rendered = with_link(variables, is_mentioned, has_link, |variables| {
        let rendered = render::bodies(compiled, variables);
        let mut rendered = rendered.map_err(TemplateRefusal::Unrenderable)?;
        // What the request brings itself takes their place.
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

/// Renders a draft's own subject and bodies; everything that is wrong with them is
/// reported at once.
fn render_own(variables: Value, mut draft: Draft) -> Result<Draft, TemplateRefusal> {
    refuse_link(&draft, &variables)?;
    refuse_long_sources(&draft)?;
    let subject = render::subject(&draft.subject, &variables);
    // After the subject, which no link belongs into.
    let has_link = draft.unsubscribe_group_id.is_some();
    let is_mentioned = [&draft.html, &draft.text]
        .into_iter()
        .flatten()
        .any(|source| source.contains(place::VARIABLE));
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

/// Refuses bodies that are longer than those of a template may be.
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
    let mut budget = Budget::new();
    let mut issues = Vec::new();
    let mut body = |path, source: &Option<String>, escape| {
        let rendered = render::own_body(source.as_ref()?, variables, escape, &mut budget);
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
