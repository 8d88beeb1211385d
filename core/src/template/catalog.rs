//! The use cases of templates: create, change and remove templates, list versions, preview.
//! [`super::composition`] adds versions and rolls back to one, and `current` finds the version
//! for messages, which [`crate::acceptance`] renders.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::compiled::CompiledVersion;
use super::composition;
use super::current::{CurrentVersions, VersionChoice};
use super::render::{self, Rendered};
use super::render_pool::RenderPool;
use super::store::{self, ColumnChange};
use super::{
    CurrentVersion, NewTemplate, Template, TemplateChange, TemplateRefusal, TemplateType,
    VersionSummary,
};
use crate::audit::{self, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, MessageId, OrganizationId, TemplateId, TemplateVersionId};
use crate::text::{Description, Name, Subject, Tag};

/// How long a request waits for its template to be compiled and rendered.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(10);
/// Bytes of cached compiled versions, roughly.
const COMPILED_BYTES_MAX: u64 = 128 << 20;
/// How long a process uses cached current versions after another process has changed it.
const CURRENT_TTL: Duration = Duration::from_secs(1);
/// Templates whose current versions are cached.
const CURRENT_MAX: u64 = 100_000;

/// Manages templates and finds compiled versions. Cheap to clone; clones share their
/// caches.
#[derive(Clone)]
pub struct Templates {
    pub(super) pool: PgPool,
    pub(super) clock: Clock,
    pub(super) ids: Ids,
    render_pool: RenderPool,
    pub(super) current: Cache<(OrganizationId, TemplateId), Arc<CurrentVersions>>,
    /// By the id of the version and its composition.
    pub(super) compiled: Cache<(TemplateVersionId, i32), Arc<CompiledVersion>>,
}

impl Templates {
    /// Starts the render pool.
    ///
    /// # Errors
    /// A fault if a thread cannot be started.
    pub fn start(pool: PgPool, clock: Clock, ids: Ids) -> Result<Self, Fault> {
        Ok(Self {
            pool,
            clock,
            ids,
            render_pool: RenderPool::start()?,
            current: Cache::builder()
                .max_capacity(CURRENT_MAX)
                .time_to_live(CURRENT_TTL)
                .build(),
            compiled: Cache::builder()
                .max_capacity(COMPILED_BYTES_MAX)
                .weigher(|_, version: &Arc<CompiledVersion>| version.bytes())
                .build(),
        })
    }

    /// Creates a template without a version.
    ///
    /// # Errors
    /// That a partial's name is taken, a fault, or the answer that the idempotency key
    /// requires. Nothing is stored then.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewTemplate,
        once: &Idempotent<'_, Template>,
    ) -> Result<Template, Failed<TemplateRefusal>> {
        let mut transaction = once.begin(&self.pool, "create a template").await?;
        let template = self
            .create_in(&mut transaction, organization_id, origin, new)
            .await?;
        once.commit(transaction, &template, "create a template")
            .await?;
        Ok(template)
    }

    /// Creates a template without a version in a transaction of the caller.
    ///
    /// # Errors
    /// That a partial's name is taken, or a fault.
    pub(crate) async fn create_in(
        &self,
        transaction: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewTemplate,
    ) -> Result<Template, TemplateRefusal> {
        let now = self.clock.now();
        let template = Template {
            id: self.ids.next_at(now),
            organization_id,
            template_type: new.template_type,
            name: new.name.into_string(),
            description: new.description.map(Description::into_string),
            tags: new.tags.into_iter().map(Tag::into_string).collect(),
            current_version_id: None,
            created_at: now,
            updated_at: now,
        };
        if template.template_type == TemplateType::Partial {
            // Its name may be given to another one now.
            composition::lock_parts(&mut *transaction, organization_id).await?;
        }
        if !store::insert(&mut *transaction, &template).await? {
            return Err(TemplateRefusal::NameTaken);
        }
        let change = AuditChange::new("template.created", template.id);
        self.record(transaction, organization_id, origin, &change)
            .await?;
        Ok(template)
    }

    /// Changes a template's name, description or tags.
    ///
    /// # Errors
    /// [`TemplateRefusal`]; nothing is changed then.
    pub async fn change(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        change: TemplateChange,
    ) -> Result<Template, TemplateRefusal> {
        let entry =
            AuditChange::new("template.updated", id).with(json!({ "fields": change.fields() }));
        let columns = ColumnChange {
            name: change.name.map(Name::into_string),
            description: change
                .description
                .map(|given| given.map(Description::into_string)),
            tags: change
                .tags
                .map(|tags| tags.into_iter().map(Tag::into_string).collect()),
        };
        let mut transaction = db::begin(&self.pool, "change a template").await?;
        let now = self.clock.now();
        if columns.name.is_some() {
            self.require_name(&mut transaction, organization_id, id, &columns)
                .await?;
        }
        let template = store::update(&mut transaction, organization_id, id, &columns, now)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        self.record(&mut transaction, organization_id, origin, &entry)
            .await?;
        transaction.commit().await.or_fault("change a template")?;
        Ok(template)
    }

    /// Refuses a name that a partial cannot have: sources include it by its name, so it keeps
    /// the one that it has while it is used.
    async fn require_name(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        id: TemplateId,
        columns: &ColumnChange,
    ) -> Result<(), TemplateRefusal> {
        let found = store::find(connection, organization_id, id).await?;
        let template = found.ok_or(TemplateRefusal::NotFound)?;
        let name = columns.name.as_deref().unwrap_or(&template.name);
        if template.template_type != TemplateType::Partial || template.name == name {
            return Ok(());
        }
        if !super::is_partial_name(name) {
            return Err(TemplateRefusal::Invalid(vec![super::partial_name_issue()]));
        }
        self.require_unused(connection, organization_id, id).await?;
        if store::has_partial(connection, organization_id, name).await? {
            return Err(TemplateRefusal::NameTaken);
        }
        Ok(())
    }

    /// Removes a template with all its versions. Messages that were rendered from it do not
    /// change. A part that is used stays.
    ///
    /// # Errors
    /// [`TemplateRefusal`]; nothing is removed then.
    pub async fn remove(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
    ) -> Result<(), TemplateRefusal> {
        let mut transaction = db::begin(&self.pool, "remove a template").await?;
        let template_type = store::find_type(&mut transaction, organization_id, id).await?;
        if template_type.is_some_and(|found| found != TemplateType::Template) {
            self.require_unused(&mut transaction, organization_id, id)
                .await?;
        }
        if !store::delete(&mut transaction, organization_id, id).await? {
            return Err(TemplateRefusal::NotFound);
        }
        let change = AuditChange::new("template.deleted", id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction.commit().await.or_fault("remove a template")?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(())
    }

    /// A template, its versions, newest first, and those that are current.
    ///
    /// # Errors
    /// [`TemplateRefusal::NotFound`], or a fault.
    pub async fn versions(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<(Template, Vec<VersionSummary>, Vec<CurrentVersion>), TemplateRefusal> {
        let mut connection = db::snapshot(&self.pool, "list template versions").await?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let versions = store::list_versions(&mut connection, organization_id, id).await?;
        let current = store::list_current(&mut connection, organization_id, id).await?;
        Ok((template, versions, current))
    }

    /// Renders a version. The schema is not checked, so that authors can preview with
    /// incomplete variables. The unsubscribe link is an example URL. Answers the subject too,
    /// if the version has one.
    ///
    /// # Errors
    /// [`TemplateRefusal`], for example if the version cannot be rendered.
    pub async fn preview(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        choice: &VersionChoice,
        variables: Value,
    ) -> Result<(Option<String>, Rendered), TemplateRefusal> {
        let deadline = Instant::now() + WAIT_MAX;
        let version = self.version(organization_id, id, choice, deadline);
        let (compiled, _version) = version.await?;
        self.render_preview(organization_id, deadline, compiled, variables)
            .await
    }

    pub(super) async fn render_preview(
        &self,
        organization_id: OrganizationId,
        deadline: Instant,
        compiled: Arc<CompiledVersion>,
        mut variables: Value,
    ) -> Result<(Option<String>, Rendered), TemplateRefusal> {
        compiled.add_example_link(&mut variables);
        let work = move || {
            let subject = compiled.subject.as_ref();
            let subject = subject.map(|subject| render::subject(subject, &variables));
            let rendered = render::bodies(&compiled, &variables);
            rendered.map(|rendered| (subject, rendered))
        };
        let rendered = self.render_pool.run(organization_id, deadline, work);
        let (subject, rendered) = rendered.await?.map_err(TemplateRefusal::Unrenderable)?;
        // Incomplete variables may leave the subject empty.
        let subject =
            subject.map(|subject| subject.map_or_else(|_| String::new(), Subject::into_string));
        Ok((subject, rendered))
    }

    /// Records that a template was sent to try it out.
    ///
    /// # Errors
    /// A fault.
    pub async fn record_test(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        message_id: MessageId,
    ) -> Result<(), Fault> {
        let mut connection = self.pool.acquire().await.or_fault("record a test")?;
        let change =
            AuditChange::new("template.test_sent", id).with(json!({ "messageId": message_id }));
        self.record(&mut connection, organization_id, origin, &change)
            .await
    }

    /// The threads that render templates.
    pub(crate) fn render_pool(&self) -> &RenderPool {
        &self.render_pool
    }

    /// The deadline for the templates of a request that starts now.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + WAIT_MAX
    }

    pub(super) async fn record(
        &self,
        connection: &mut PgConnection,
        organization_id: OrganizationId,
        origin: &Origin,
        change: &AuditChange,
    ) -> Result<(), Fault> {
        let now = self.clock.now();
        audit::store::insert(connection, organization_id, origin, change, &self.ids, now).await
    }
}
