//! The use cases of templates: create, change and remove templates, add versions, roll back
//! to a version, preview. Also finds the current version for messages, which
//! [`crate::acceptance`] renders.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::compiled::{self, CompiledVersion};
use super::render::{self, Rendered, VersionRef};
use super::render_pool::RenderPool;
use super::store::{self, ColumnChange};
use super::{
    NewTemplate, Template, TemplateChange, TemplateRefusal, TemplateVersion, VersionContent,
    VersionSummary,
};
use crate::audit::{self, Actor, AuditChange, Origin};
use crate::clock::Clock;
use crate::db::{self, OrFault, PgConnection, PgPool};
use crate::fault::Fault;
use crate::idempotency::single::{Failed, Idempotent};
use crate::ids::{Ids, OrganizationId, TemplateId, TemplateVersionId};
use crate::text::{Description, Name, Tag};
use crate::unsubscribe::link_insertion;

/// How long a request waits for its template to be compiled and rendered.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Bytes of cached compiled versions, roughly.
const COMPILED_BYTES_MAX: u64 = 128 << 20;
/// How long a process uses a cached current version after another process has changed it.
const CURRENT_TTL: Duration = Duration::from_secs(1);
/// Templates whose current version is cached.
const CURRENT_MAX: u64 = 100_000;

/// Manages templates and finds compiled versions. Cheap to clone; clones share their
/// caches.
#[derive(Clone)]
pub struct Templates {
    pool: PgPool,
    clock: Clock,
    ids: Ids,
    render_pool: RenderPool,
    current: Cache<(OrganizationId, TemplateId), TemplateVersionId>,
    compiled: Cache<TemplateVersionId, Arc<CompiledVersion>>,
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
    /// A fault, or the answer that the idempotency key requires. Nothing is stored then.
    pub async fn create(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        new: NewTemplate,
        once: &Idempotent<'_, Template>,
    ) -> Result<Template, Failed<TemplateRefusal>> {
        let now = self.clock.now();
        let template = Template {
            id: self.ids.next_at(now),
            organization_id,
            name: new.name.into_string(),
            description: new.description.map(Description::into_string),
            tags: new.tags.into_iter().map(Tag::into_string).collect(),
            current_version_id: None,
            created_at: now,
            updated_at: now,
        };
        let mut transaction = once.begin(&self.pool, "create a template").await?;
        store::insert(&mut transaction, &template).await?;
        let change = AuditChange::new("template.created", template.id);
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &template, "create a template")
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
        let template = store::update(&mut transaction, organization_id, id, &columns, now)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        self.record(&mut transaction, organization_id, origin, &entry)
            .await?;
        transaction.commit().await.or_fault("change a template")?;
        Ok(template)
    }

    /// Removes a template with all its versions. Messages that were rendered from it do not
    /// change.
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

    /// Adds a version and makes it current.
    ///
    /// # Errors
    /// [`TemplateRefusal`], for example if the content is invalid. Nothing is stored then.
    pub async fn add_version(
        &self,
        organization_id: OrganizationId,
        origin: &Origin,
        id: TemplateId,
        content: VersionContent,
        once: &Idempotent<'_, TemplateVersion>,
    ) -> Result<TemplateVersion, Failed<TemplateRefusal>> {
        let deadline = Instant::now() + WAIT_MAX;
        let content = self
            .render_pool
            .run(organization_id, deadline, || compiled::check(content))
            .await?
            .map_err(TemplateRefusal::Invalid)?;
        let mut transaction = once.begin(&self.pool, "add a template version").await?;
        let version_number = store::next_version_number(&mut transaction, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let now = self.clock.now();
        let version = TemplateVersion {
            id: self.ids.next_at(now),
            template_id: id,
            version_number,
            mjml_source: content.mjml_source,
            html_content: content.html_content,
            text_content: content.text_content,
            variables_schema: content.variables_schema,
            created_by: author(&origin.actor),
            created_at: now,
        };
        store::insert_version(&mut transaction, organization_id, &version).await?;
        store::make_current(&mut transaction, organization_id, id, version.id, now)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        let change = AuditChange::new("template.version_created", id)
            .with(json!({ "versionId": version.id, "versionNumber": version_number }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        once.commit(transaction, &version, "add a template version")
            .await?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(version)
    }

    /// Makes an earlier or later version current and returns its number.
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
        let now = self.clock.now();
        let number = store::make_current(&mut transaction, organization_id, id, version_id, now)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        let change = AuditChange::new("template.rolled_back", id)
            .with(json!({ "versionId": version_id, "versionNumber": number }));
        self.record(&mut transaction, organization_id, origin, &change)
            .await?;
        transaction
            .commit()
            .await
            .or_fault("roll a template back")?;
        self.current.invalidate(&(organization_id, id)).await;
        Ok(number)
    }

    /// A template and its versions, newest first.
    ///
    /// # Errors
    /// [`TemplateRefusal::NotFound`], or a fault.
    pub async fn versions(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
    ) -> Result<(Template, Vec<VersionSummary>), TemplateRefusal> {
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("list template versions")?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        let versions = store::list_versions(&mut connection, organization_id, id).await?;
        Ok((template, versions))
    }

    /// Renders a version, by default the current one. The schema is not checked, so that
    /// authors can preview with incomplete variables. The unsubscribe link is an example URL.
    ///
    /// # Errors
    /// [`TemplateRefusal`], for example if the version cannot be rendered.
    pub async fn preview(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        version_id: Option<TemplateVersionId>,
        mut variables: Value,
    ) -> Result<Rendered, TemplateRefusal> {
        let mut connection = self.pool.acquire().await.or_fault("preview a template")?;
        let template = store::find(&mut connection, organization_id, id)
            .await?
            .ok_or(TemplateRefusal::NotFound)?;
        drop(connection);
        let version_id = version_id
            .or(template.current_version_id)
            .ok_or(TemplateRefusal::WithoutVersion)?;
        let deadline = Instant::now() + WAIT_MAX;
        let compiled = self
            .compiled(organization_id, id, version_id, deadline)
            .await?;
        if let Some(given) = variables.as_object_mut()
            && compiled.mentions(link_insertion::VARIABLE)
        {
            let link = given.entry(link_insertion::VARIABLE);
            link.or_insert_with(|| link_insertion::EXAMPLE_URL.into());
        }
        self.render_pool
            .run(organization_id, deadline, move || {
                render::bodies(&compiled, &variables)
            })
            .await?
            .map_err(TemplateRefusal::Unrenderable)
    }

    /// The threads that render templates.
    pub(crate) fn render_pool(&self) -> &RenderPool {
        &self.render_pool
    }

    /// The deadline for the templates of a request that starts now.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + WAIT_MAX
    }

    /// A template's current version, compiled. Only existing versions are cached: a missing
    /// template or version is looked up in Postgres each time.
    pub(crate) async fn current(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        deadline: Instant,
    ) -> Result<(Arc<CompiledVersion>, VersionRef), TemplateRefusal> {
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
        // If the template was removed a moment ago, this returns VersionNotFound. The API
        // reports both to the sender as a missing template.
        let compiled = self
            .compiled(organization_id, id, version_id, deadline)
            .await?;
        let version = VersionRef {
            template_id: id,
            version_id,
        };
        Ok((compiled, version))
    }

    /// A compiled version from the cache, or compiled now.
    async fn compiled(
        &self,
        organization_id: OrganizationId,
        id: TemplateId,
        version_id: TemplateVersionId,
        deadline: Instant,
    ) -> Result<Arc<CompiledVersion>, TemplateRefusal> {
        // The cache key is the version id alone, so check the organization and template.
        if let Some(compiled) = self.compiled.get(&version_id).await
            && compiled.belongs_to(organization_id, id)
        {
            return Ok(compiled);
        }
        let mut connection = self
            .pool
            .acquire()
            .await
            .or_fault("read a template version")?;
        let version = store::find_version(&mut connection, organization_id, id, version_id)
            .await?
            .ok_or(TemplateRefusal::VersionNotFound)?;
        drop(connection);
        let work = move || compiled::compile(organization_id, &version);
        let compiled = self
            .render_pool
            .run(organization_id, deadline, work)
            .await?;
        let compiled = compiled
            .map(Arc::new)
            // An earlier release may have accepted a version that this one refuses.
            .map_err(TemplateRefusal::Unrenderable)?;
        self.compiled
            .insert(version_id, Arc::clone(&compiled))
            .await;
        Ok(compiled)
    }

    async fn record(
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

/// The creator of a version: the id of the caller's API key.
fn author(actor: &Actor) -> String {
    match actor {
        Actor::ApiKey { id, .. } => id.to_string(),
        Actor::Recipient | Actor::System => actor.kind().to_owned(),
    }
}
