//! Versions: adding one, rolling back to one, and composing those that a changed part is in.
//!
//! A version is composed of its author's sources, its layout and its partials when it is
//! created. What is rendered is stored beside the sources, with the versions of the parts in
//! it. When a part gets another current version, all current versions with the part in them
//! are composed again in the same transaction; if one of them cannot be, nothing changes.
//! Versions that are not current stay as they were composed, until a rollback.
//!
//! Transactions that compose take turns within an organization, so that a version never holds
//! a part that was replaced meanwhile. A version's content may change under its id:
//! `composition` counts that, and the caches of compiled versions go by it.

mod build;
pub(super) mod compose;
mod draft;
mod parts;
pub mod store;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::catalog::{Templates, WAIT_MAX};
use super::compiled;
use super::store as versions;
use super::{
    PartRef, PartUser, Template, TemplateRefusal, TemplateType, TemplateVersion, TextSource,
    VersionContent,
};
use crate::address::Mailbox;
use crate::audit::{Actor, AuditChange, Origin};
use crate::db::{self, OrFault, PgConnection};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{OrganizationId, TemplateId, TemplateVersionId};
use crate::issue::Issue;
use crate::text::Subject;
use build::{Built, Sources, VersionParts};
use parts::PartCache;

/// Current versions that a part can be in when it gets another version.
pub const USES_MAX: usize = 200;
/// Current versions with a part that are listed.
const USES_LISTED_MAX: i64 = 1_000;
/// How long composing the versions with a part in them may take.
const RECOMPOSE_WAIT_MAX: Duration = Duration::from_secs(30);

/// A version that is being composed: whose, and until when.
#[derive(Clone, Copy)]
struct Composing {
    organization_id: OrganizationId,
    deadline: Instant,
}

impl Templates {
    /// Adds a version and makes it the current one of its language. Answers it with the parts
    /// in it.
    ///
    /// # Errors
    /// [`TemplateRefusal`], for example if the content is invalid. Nothing is stored then.
    pub async fn add_version(
        &self,
        origin: &Origin,
        template: &Template,
        content: VersionContent,
        once: &Idempotent<'_, (TemplateVersion, Vec<PartRef>)>,
    ) -> Result<(TemplateVersion, Vec<PartRef>), Failed<TemplateRefusal>> {
        let (organization_id, id) = (template.organization_id, template.id);
        let composing = Composing {
            organization_id,
            deadline: Instant::now() + WAIT_MAX,
        };
        let is_part = template.template_type != TemplateType::Template;
        let prepared = self.prepare(composing, template.template_type, &content);
        let (sources, built) = prepared.await?;
        let mut transaction = once.begin(&self.pool, "add a template version").await?;
        if built.is_none() {
            store::lock(&mut transaction, organization_id).await?;
        }
        let version_number = versions::next_version_number(&mut transaction, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let mut version = self.new_version(origin, id, content, &sources.text);
        version.version_number = version_number;
        if let Some(built) = &built {
            take_built(&mut version, built);
        }
        versions::insert_version(&mut transaction, organization_id, &version).await?;
        self.make_current(&mut transaction, organization_id, id, version.id)
            .await?;
        let parts = match built {
            Some(_) => Vec::new(),
            // After it became current: a partial must not include itself.
            None => {
                let mut cache = PartCache::default();
                self.build_stored(
                    &mut transaction,
                    composing,
                    (&mut version, sources),
                    &mut cache,
                )
                .await?
            }
        };
        let users = match is_part {
            true => {
                self.compose_users(&mut transaction, organization_id, id)
                    .await?
            }
            false => Vec::new(),
        };
        let change = AuditChange::new("template.version_created", id).with(json!({
            "versionId": version.id, "versionNumber": version_number, "composedAgain": users.len(),
        }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        let added = (version, parts);
        once.commit(transaction, &added, "add a template version")
            .await?;
        self.forget_current(organization_id, users.into_iter().chain([id]))
            .await;
        Ok(added)
    }

    /// Checks the content of a version, and builds it if no parts can be in it: what has parts
    /// is built within the transaction.
    async fn prepare(
        &self,
        composing: Composing,
        template_type: TemplateType,
        content: &VersionContent,
    ) -> Result<(Sources, Option<Built>), TemplateRefusal> {
        let mut sources = Sources::of_content(template_type, content);
        let checking = self.check_fields(composing, template_type, content);
        let issues = checking.await?;
        if issues.iter().any(|issue| issue.path == "preheader") {
            // It would be found again in the HTML.
            sources.preheader = None;
        }
        let has_parts = template_type != TemplateType::Template || sources.may_have_parts();
        if !has_parts {
            let building = self.build(composing, sources.clone(), issues, VersionParts::default());
            let built = building.await?;
            return Ok((sources, Some(built)));
        }
        if !issues.is_empty() {
            return Err(TemplateRefusal::Invalid(issues));
        }
        Ok((sources, None))
    }

    /// Makes an earlier or later version the current one of its language and returns its
    /// number. It is composed with its parts as they are now.
    ///
    /// # Errors
    /// [`TemplateRefusal`]; nothing is changed then.
    pub async fn roll_back(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        version_id: TemplateVersionId,
    ) -> Result<i32, TemplateRefusal> {
        let mut transaction = db::begin(&self.pool, "roll a template back").await?;
        let template = versions::find(&mut transaction, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let version = versions::find_version(&mut transaction, organization_id, id, version_id)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        let is_part = template.template_type != TemplateType::Template;
        let has_parts = is_part
            || Sources::of_version(template.template_type, version.clone()).may_have_parts();
        if has_parts {
            store::lock(&mut transaction, organization_id).await?;
        }
        let number = self
            .make_current(&mut transaction, organization_id, id, version_id)
            .await?;
        let mut users = Vec::new();
        if has_parts {
            let composing = Composing {
                organization_id,
                deadline: Instant::now() + WAIT_MAX,
            };
            let mut cache = PartCache::default();
            let user = PartUser {
                template_id: id,
                template_type: template.template_type,
                name: template.name,
                version_id,
                version_number: number,
                locale: version.locale,
            };
            self.compose_again(&mut transaction, composing, &user, &mut cache)
                .await?;
        }
        if is_part {
            users = self
                .compose_users(&mut transaction, organization_id, id)
                .await?;
        }
        let change = AuditChange::new("template.rolled_back", id).with(json!({
            "versionId": version_id, "versionNumber": number, "composedAgain": users.len(),
        }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction
            .commit()
            .await
            .or_fault("roll a template back")?;
        self.forget_current(organization_id, users.into_iter().chain([id]))
            .await;
        Ok(number)
    }

    /// The current versions that a layout or partial is in.
    ///
    /// # Errors
    /// [`TemplateRefusal::NotFound`], or a fault.
    pub async fn users(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<Vec<PartUser>, TemplateRefusal> {
        let mut connection = db::snapshot(&self.pool, "list what uses a template").await?;
        versions::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        Ok(store::list_users(&mut connection, organization_id, id, USES_LISTED_MAX).await?)
    }

    /// Refuses to change or remove a part that current versions use. Parts stay as they are
    /// until the transaction ends.
    pub(super) async fn require_unused(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<(), TemplateRefusal> {
        store::lock(connection, organization_id).await?;
        let users = store::list_users(connection, organization_id, id, 1).await?;
        if users.is_empty() {
            Ok(())
        } else {
            Err(TemplateRefusal::InUse)
        }
    }

    fn new_version(
        &self,
        origin: &Origin,
        id: TemplateId,
        content: VersionContent,
        text: &TextSource,
    ) -> TemplateVersion {
        let now = self.clock.now();
        TemplateVersion {
            id: self.ids.next_at(now),
            template_id: id,
            version_number: 0,
            locale: content.locale.map(|locale| locale.to_string()),
            subject: content.subject.map(Subject::into_string),
            preheader: content.preheader,
            from_mailbox: content.from.map(|from| from.to_header()),
            reply_to: content.reply_to.iter().map(Mailbox::to_header).collect(),
            layout_id: content.layout_id,
            mjml_source: content.mjml_source,
            html_content: content.html_content,
            html_source: None,
            text_content: given(text),
            text_source: None,
            is_text_generated: *text == TextSource::FromHtml,
            composition: 0,
            variables_schema: content.variables_schema,
            created_by: author(&origin.actor),
            created_at: now,
        }
    }

    /// Makes a version the current one of its language.
    async fn make_current(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        id: TemplateId,
        version_id: TemplateVersionId,
    ) -> Result<i32, TemplateRefusal> {
        let now = self.clock.now();
        let made = versions::make_current(connection, organization_id, id, version_id, now).await?;
        let (number, locales) = made.ok_or(TemplateRefusal::VersionNotFound)?;
        if locales > super::LOCALES_MAX {
            let text = format!(
                "the template has versions in {} languages, which is the maximum",
                super::LOCALES_MAX
            );
            return Err(TemplateRefusal::Invalid(vec![Issue::new("locale", text)]));
        }
        Ok(number)
    }

    /// Composes all current versions with a part in them again. Answers their templates.
    async fn compose_users(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        part_id: TemplateId,
    ) -> Result<Vec<TemplateId>, TemplateRefusal> {
        let users =
            store::list_users(connection, organization_id, part_id, USES_LISTED_MAX).await?;
        if users.len() > USES_MAX {
            return Err(TemplateRefusal::TooManyUses);
        }
        let composing = Composing {
            organization_id,
            deadline: Instant::now() + RECOMPOSE_WAIT_MAX,
        };
        let mut cache = PartCache::default();
        for user in &users {
            self.compose_again(connection, composing, user, &mut cache)
                .await?;
        }
        Ok(users.into_iter().map(|user| user.template_id).collect())
    }

    /// Composes a version of the sources that its author gave.
    async fn compose_again(
        &self,
        connection: &mut PgConnection,
        composing: Composing,
        user: &PartUser,
        cache: &mut PartCache,
    ) -> Result<(), TemplateRefusal> {
        // Whoever removes its template meanwhile waits, or was first.
        if !store::lock_version(connection, user.version_id).await? {
            return Ok(());
        }
        let (organization_id, id) = (composing.organization_id, user.template_id);
        let found = versions::find_version(connection, organization_id, id, user.version_id);
        let Some(mut version) = found.await? else {
            return Ok(());
        };
        let sources = Sources::of_version(user.template_type, version.clone());
        restore_sources(&mut version, &sources);
        let building = self.build_stored(connection, composing, (&mut version, sources), cache);
        building.await.map_err(|refusal| explain(user, refusal))?;
        Ok(())
    }

    /// Builds a stored version of its sources and the parts that it needs. Answers the parts.
    async fn build_stored(
        &self,
        connection: &mut PgConnection,
        composing: Composing,
        (version, sources): (&mut TemplateVersion, Sources),
        cache: &mut PartCache,
    ) -> Result<Vec<PartRef>, TemplateRefusal> {
        let building = self.build_with_parts(connection, composing, sources, cache);
        let built = building.await?;
        take_built(version, &built);
        store::update_built(connection, version, &built).await?;
        store::replace_uses(connection, version.id, &built.parts).await?;
        Ok(built.parts)
    }

    /// The issues of what a version has besides its bodies.
    async fn check_fields(
        &self,
        composing: Composing,
        template_type: TemplateType,
        content: &VersionContent,
    ) -> Result<Vec<Issue>, Fault> {
        let mut issues = unfit(template_type, content);
        let subject = content.subject.clone().map(Subject::into_string);
        let lines = [
            ("subject", subject),
            ("preheader", content.preheader.clone()),
        ];
        let schema = content.variables_schema.clone();
        let work = move || compiled::check_fields(&lines, schema.as_ref());
        let Composing {
            organization_id,
            deadline,
        } = composing;
        issues.extend(
            self.render_pool()
                .run(organization_id, deadline, work)
                .await?,
        );
        Ok(issues)
    }

    async fn build(
        &self,
        composing: Composing,
        sources: Sources,
        mut issues: Vec<Issue>,
        parts: VersionParts,
    ) -> Result<Built, TemplateRefusal> {
        let Composing {
            organization_id,
            deadline,
        } = composing;
        let work = move || build::build(&sources, &parts);
        match self
            .render_pool()
            .run(organization_id, deadline, work)
            .await?
        {
            Ok(built) if issues.is_empty() => Ok(built),
            Ok(_) => Err(TemplateRefusal::Invalid(issues)),
            Err(found) => {
                issues.extend(found);
                Err(TemplateRefusal::Invalid(issues))
            }
        }
    }
}

/// The HTML and the text of sources without parts, if they can be built.
#[cfg(fuzzing)]
pub(super) fn build_alone(
    html: String,
    mjml: Option<String>,
    text: TextSource,
) -> Option<(String, Option<String>)> {
    let sources = Sources {
        template_type: TemplateType::Template,
        locale: None,
        layout_id: None,
        preheader: None,
        html,
        mjml,
        text,
    };
    let built = build::build(&sources, &VersionParts::default()).ok()?;
    Some((built.html, built.text))
}

/// Lets one transaction of an organization at a time change which parts there are.
pub(super) async fn lock_parts(
    connection: &mut PgConnection,
    organization_id: OrganizationId,
) -> Result<(), Fault> {
    store::lock(connection, organization_id).await
}

/// Puts what is rendered into a version, and keeps what the author gave beside it.
fn take_built(version: &mut TemplateVersion, built: &Built) {
    let given = std::mem::replace(&mut version.html_content, built.html.clone());
    let is_given = version.mjml_source.is_some() || given == version.html_content;
    version.html_source = (!is_given).then_some(given);
    let given = std::mem::replace(&mut version.text_content, built.text.clone());
    let is_given = version.is_text_generated || given == version.text_content;
    version.text_source = given.filter(|_| !is_given);
}

/// Puts what the author gave back into the place of what is rendered.
fn restore_sources(version: &mut TemplateVersion, sources: &Sources) {
    version.html_content.clone_from(&sources.html);
    version.text_content = given(&sources.text);
}

fn given(text: &TextSource) -> Option<String> {
    match text {
        TextSource::Given(text) => Some(text.clone()),
        TextSource::FromHtml | TextSource::None => None,
    }
}

/// The refusal of a change whose consequence for another version is this one.
fn explain(user: &PartUser, refusal: TemplateRefusal) -> TemplateRefusal {
    let problem = match refusal {
        TemplateRefusal::Invalid(issues) => {
            let issues = issues
                .iter()
                .map(|issue| format!("{}: {}", issue.path, issue.message));
            issues.collect::<Vec<_>>().join("; ")
        }
        TemplateRefusal::UnknownLayout => "its layout does not exist".to_owned(),
        refusal @ (TemplateRefusal::NotFound
        | TemplateRefusal::VersionNotFound
        | TemplateRefusal::WithoutVersion
        | TemplateRefusal::Unrenderable(_)
        | TemplateRefusal::IsPart
        | TemplateRefusal::NameTaken
        | TemplateRefusal::InUse
        | TemplateRefusal::TooManyUses
        | TemplateRefusal::NotComposable { .. }
        | TemplateRefusal::Fault(_)) => return refusal,
    };
    TemplateRefusal::NotComposable {
        template_id: user.template_id,
        name: user.name.clone(),
        problem,
    }
}

/// The issues of fields that a version of this type does not have.
fn unfit(template_type: TemplateType, content: &VersionContent) -> Vec<Issue> {
    let given = [
        ("subject", content.subject.is_some()),
        ("preheader", content.preheader.is_some()),
        ("from", content.from.is_some()),
        ("replyTo", !content.reply_to.is_empty()),
        ("layoutId", content.layout_id.is_some()),
        ("variablesSchema", content.variables_schema.is_some()),
    ];
    let is_template = template_type == TemplateType::Template;
    let given = given
        .into_iter()
        .filter(|(_, is_given)| *is_given && !is_template);
    given
        .map(|(path, _)| {
            let word = template_type.as_str();
            Issue::new(
                path,
                format!("must not be given for a {word}, which is not sent itself"),
            )
        })
        .collect()
}

/// The creator of a version: the id of the user or of the API key.
fn author(actor: &Actor) -> String {
    match actor.identity() {
        Some((id, _)) => id.to_string(),
        None => actor.kind().to_owned(),
    }
}
